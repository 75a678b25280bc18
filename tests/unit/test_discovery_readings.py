"""How the measures document is read: its own examples, what each setting changes, and folds cut by time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swsdask as sws
from swsdask.discovery.placing import parts_of_time
from swsdask.model.discovery import Tokens
from swsdask.model.units import MAX_TICKS

TENTHS = "{} {:.1f} {:.1f} {}\n"
"""A line of an alignment."""


@pytest.fixture
def corpus(tmp_path: Path) -> dict[str, Path]:
    """Phones of a tenth of a second: f says "abcd", then nothing for .3 s, then "efg"; g says "abcd"."""
    spoken = [("f", 0, "abcd"), ("f", 7, "efg"), ("g", 0, "abcd")]
    phones = [
        TENTHS.format(file, (at + n) / 10, (at + n + 1) / 10, label)
        for file, at, text in spoken
        for n, label in enumerate(text)
    ]
    words = [TENTHS.format(file, at / 10, (at + len(text)) / 10, text) for file, at, text in spoken]
    (tmp_path / "c.phn").write_text("".join(phones))
    (tmp_path / "c.wrd").write_text("".join(words))
    return {"phones": tmp_path / "c.phn", "words": tmp_path / "c.wrd"}


def scored(corpus: dict[str, Path], *classes: list[str], **settings: Any) -> dict[str, float]:
    """The numbers of some classes of lines, over the corpus as one."""
    file = corpus["phones"].with_name("s.classes")
    file.write_text("".join(f"Class {n}\n" + "".join(f"{x}\n" for x in c) + "\n" for n, c in enumerate(classes)))
    result = sws.discover(file, **corpus, n_folds=1, settings={"discovery": settings})
    frame = result.scores
    own = frame[frame["condition"] == "all"]
    return dict(zip(own["measure"], own["value"], strict=True))


ABCD, EFG, OTHER = "f 0.0 0.4", "f 0.7 1.0", "g 0.0 0.4"


def test_the_example_of_substring_completion(corpus: dict[str, Path]) -> None:
    """<abcd, efg> gives <abc, efg>, <ab, ef>, <bc, fg>, <bcd, efg> ..., of which 3 phones and more count by default.

    With <abcd, abcd> beside it, abc, bcd and abcd of either file are gold.
    """
    windows = {3: 3 + 3, 2: 3 + 3 + 3 + 2 + 3, 1: 3 + 3 + 3 + 2 + 3 + 4 + 3 + 4}
    for shortest, n_windows in windows.items():
        found = scored(corpus, [ABCD, EFG], [ABCD, OTHER], min_phones=shortest)
        assert found["matching_precision"] == pytest.approx(6 / (n_windows + 1))
        assert found["matching_recall"] == 1.0


def test_coverage_of_what_is_covered_or_also_gold(corpus: dict[str, Path]) -> None:
    assert scored(corpus, [ABCD, EFG])["coverage"] == 4 / 8
    assert scored(corpus, [ABCD, EFG], coverage="union")["coverage"] == 7 / 8
    assert scored(corpus, [ABCD, EFG], [ABCD, OTHER], coverage="union")["coverage"] == 11 / 8


def test_wrong_boundaries_singly_or_as_the_index_minus_one(corpus: dict[str, Path]) -> None:
    """Two boundaries of fragments lie in the silence, two at words."""
    classes = ["f 0.0 0.5", "f 0.55 1.0"]
    singly, together = (scored(corpus, classes, boundaries=how) for how in ("singly", "together"))
    assert singly["boundary_precision"] == 2 / 4
    assert together["boundary_precision"] == 2 / 3
    assert singly["boundary_recall"] == together["boundary_recall"] == 2 / 6


def test_pairs_of_a_class_that_overlap(corpus: dict[str, Path]) -> None:
    """Two fragments of a class that read alike and overlap are no pair of P_goldclus, but may be one of P_clus."""
    classes = ["f 0.0 0.4", "f 0.0 0.38", OTHER], ["f 0.7 1.0", "f 0.69 1.0"]
    left_out, kept = (scored(corpus, *classes, overlapping_pairs=how) for how in ("left_out", "kept"))
    assert left_out["grouping_precision"] == 1.0
    assert kept["grouping_precision"] == 3 / 5
    assert left_out["ned"] == kept["ned"] == 0.0


def test_two_fragments_without_phones_are_no_pair(corpus: dict[str, Path]) -> None:
    """A class of silences has no pairs; a fragment without phones and one with some are wholly unlike."""
    silences = ["f 0.45 0.5", "f 0.55 0.6", "f 0.65 0.7"]
    found = scored(corpus, silences)
    assert found["n_pairs"] == 0
    assert np.isnan([found[name] for name in ("ned", "grouping_precision", "grouping_recall")]).all()
    mixed = scored(corpus, [*silences, ABCD], [ABCD, OTHER])
    assert mixed["n_pairs"] == 4
    assert mixed["ned"] == 3 / 4
    assert mixed["grouping_precision"] == 2 / 5
    assert mixed["grouping_recall"] == 1.0


def test_what_was_read_how_is_reported(corpus: dict[str, Path]) -> None:
    scored(corpus, [ABCD, EFG])
    file = corpus["phones"].with_name("s.classes")
    plain = sws.discover(file, **corpus)
    assert plain.notes[0] == (
        "Measures follow the Zero Resource challenge's measures document, with these readings: coverage counts phones "
        "that are covered and gold; matching pairs strings of 3 phones or more; each wrong boundary counts; "
        "overlapping pairs are left out of P_clus."
    )
    literal = {"coverage": "union", "min_phones": 2, "boundaries": "together", "overlapping_pairs": "kept"}
    other = sws.discover(file, **corpus, settings={"discovery": literal})
    assert "counts phones that are covered, gold or not; matching pairs strings of 2 phones or more" in other.notes[0]
    assert "all wrong boundaries count as one; overlapping pairs are kept in P_clus" in other.notes[0]
    assert "definition=document coverage=union min_phones=2" in other.manifest["signature"]
    assert other.manifest["settings"] == {"definition": "document", "fold_by": "file", **literal}
    assert json.dumps(other.manifest["settings"]) != json.dumps(plain.manifest["settings"])
    for definition in ("tde2015", "tdev2"):
        with pytest.raises(sws.SettingsError, match=f'coverage goes with definition = "document": {definition} reads'):
            sws.discover(file, **corpus, definition=definition, settings={"discovery": {"coverage": "union"}})
        assert "coverage" not in sws.discover(file, **corpus, definition=definition).manifest["settings"]


def test_one_file_is_cut_into_folds_by_time(corpus: dict[str, Path]) -> None:
    scored(corpus, [ABCD, EFG])
    file = corpus["phones"].with_name("s.classes")
    by_file, by_time = (
        sws.discover(file, **corpus, n_folds=5, settings={"discovery": {"fold_by": how}}) for how in ("file", "time")
    )
    assert by_file.manifest["folds"]["all"] == {"names": ["1", "2"], "stretches": 2}
    assert by_time.manifest["folds"]["all"] == {"names": ["1", "2", "3", "4", "5"], "stretches": 5}
    assert "fold_by=time folds=5" in by_time.manifest["signature"]
    (corpus["phones"].with_name("folds")).write_text("f 0 1\n\ng 0 1\n")
    with pytest.raises(sws.SettingsError, match="A fold file defines the folds: leave fold_by out"):
        sws.discover(
            file, **corpus, folds=corpus["phones"].with_name("folds"), settings={"discovery": {"fold_by": "time"}}
        )
    with pytest.raises(sws.SettingsError, match="tdev2 has no folds"):
        sws.discover(file, **corpus, definition="tdev2", settings={"discovery": {"fold_by": "time"}})


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50), st.integers(1, 90)), min_size=1, max_size=30),
    st.integers(1, 8),
)
def test_every_phone_is_in_one_part_of_time(rows: list[tuple[int, int, int]], n_folds: int) -> None:
    """The parts are as many as asked, follow one another, and leave no time of a file out."""
    rows = sorted(rows, key=lambda row: row[0])
    columns: list[list[int]] = [[], [], []]
    time = 0
    for number, (file, gap, duration) in enumerate(rows):
        time = (time if number and rows[number - 1][0] == file else 0) + gap
        for column, value in zip(columns, (file, time, time + duration), strict=True):
            column.append(value)
        time += duration
    file, start, end = (np.array(column, np.int32) for column in columns)
    first = np.searchsorted(file, np.arange(5))
    phones = Tokens(file, start, end, np.zeros(len(file), np.int32), ("a",), first)
    parts = parts_of_time(phones, 4, n_folds)
    assert sorted(set(parts.fold.tolist())) == list(range(min(n_folds, len(rows))))
    assert (np.diff(parts.fold) >= 0).all()
    for number in range(4):
        own = slice(parts.first[number], parts.first[number + 1])
        edges = [0, *parts.end[own].tolist()]
        assert parts.start[own].tolist() == edges[:-1]
        assert len(edges) == 1 or edges[-1] == MAX_TICKS
    for f, s, e in zip(file, start, end, strict=True):
        holding = (parts.file == f) & (parts.start <= s) & (e <= parts.end)
        assert holding.sum() == 1
