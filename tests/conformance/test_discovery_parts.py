"""Placing, coverage, token, type and boundary as the official tools printed them: every fold, counts exact."""

from __future__ import annotations

import json
import math
import re
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from swsdask.discovery.corpus import read_fragments
from swsdask.discovery.counting.per_fold import things_counted
from swsdask.discovery.measures import select
from swsdask.discovery.measures.clustering import spellings
from swsdask.discovery.measures.matching import gold_ticks
from swsdask.discovery.placing import locate
from swsdask.model.discovery import Corpus, Definition, Discovered, Fragments
from tests.corpora import read_corpus

NAMES = {
    "coverage": ("coverage",),
    "boundary": ("boundary_precision", "boundary_recall"),
    "token": ("token_precision", "token_recall", "type_precision", "type_recall"),
}
TDE = {
    "micro": ("micro/micro", "micro.cross", "micro.within", ("micro.disc", "tde.out")),
    "example": (
        "tde_sample/sample",
        "sample.intervals.cross",
        "sample.intervals.within",
        ("sample.classes.example", "sample_example.out"),
    ),
    "jitter": (
        "tde_sample/sample",
        "sample.intervals.cross",
        "sample.intervals.within",
        ("sample_jitA.classes", "sample_jitA.out"),
    ),
}
TDEV2 = {
    "micro": ("micro/micro", "micro.disc", "tdev2.out"),
    "example": ("tde_sample/sample", "sample.classes.example", "sample_example.tdev2.out"),
    "jitter": ("tde_sample/sample", "sample_jitA.classes", "sample_jitA.tdev2.out"),
    "mandarin": ("tdev2_mandarin/mandarin", "ZR17_mandarin.class", "ZR17.out"),
    "mandarin jitter": ("tdev2_mandarin/mandarin", "mand_jit.class", "mand_jit.out"),
}


class Scored(NamedTuple):
    """What was found, its statistics by family, and the numbers per fold by (fold set, name)."""

    corpus: Corpus
    discovered: Discovered
    statistics: dict[str, Any]
    numbers: dict[tuple[int, str], list[float]]


def score(corpus: Corpus, classes: Path) -> Scored:
    discovered = locate(read_fragments(str(classes), corpus), corpus)
    statistics, numbers = {}, {}
    for family in select(("coverage", "token", "type", "boundary"), corpus.definition)[1]:
        kind = family.statistic
        cells = kind.cells(corpus, discovered, 50_000)
        merged = reduce(kind.merge, (kind.from_cell(cell, corpus, discovered) for cell in cells))
        statistics[family.names[0].partition("_")[0]] = merged
        for fold_set in range(len(corpus.folds)):
            for name, values in family.values(merged, corpus, fold_set).items():
                numbers[fold_set, name] = values.tolist()
    return Scored(corpus, discovered, statistics, numbers)


def corpus_of(stem: Path, definition: Definition, **files: str) -> Corpus:
    given = {name: str(stem.parent / file) for name, file in files.items()}
    return read_corpus(f"{stem}.phn", f"{stem}.wrd", definition, **given)


def near(expected: list[float | None]) -> Any:
    return pytest.approx([math.nan if x is None else x for x in expected], rel=1e-9, abs=0, nan_ok=True)


@pytest.mark.parametrize(("definition", "tool"), [("tde2015", "tde"), ("tdev2", "tdev2")])
def test_edge_probes(cases: Path, definition: Definition, tool: str) -> None:
    micro = cases / "discovery/micro"
    corpus = corpus_of(micro / "micro", definition)
    probes = [line.split() for line in (micro / "edges.in").read_text().splitlines()]
    printed = (micro / f"edges.{tool}.out").read_text().splitlines()
    assert len(probes) == len(printed) == 54
    for (file, start, end), line in zip(probes, printed, strict=True):
        times = [np.array([round(float(x) * 10_000)], np.int32) for x in (start, end)]
        one = np.zeros(1, np.int32)
        placed = locate(Fragments("probe", ("1",), one, one + corpus.files.index(file), *times), corpus)
        missing = "<empty>" if definition == "tdev2" else f"{file} {start} {end} <ValueError>"
        phones = missing
        if len(placed):
            labels = corpus.phones.label[placed.first[0] : placed.last[0]]
            phones = " ".join(corpus.phones.labels[label] for label in labels) or "<empty>"
        assert f"{file} {start} {end} {phones}" == line


@pytest.mark.parametrize("case", TDE)
def test_numbers_of_tde(cases: Path, case: str) -> None:
    name, cross, within, (classes, report) = TDE[case]
    stem = cases / "discovery" / name
    corpus = corpus_of(stem, "tde2015", split=f"{stem.name}.split", folds=cross, within=within)
    scored = score(corpus, stem.parent / classes)
    text = (stem.parent / report).read_text()
    compared = 0
    for condition, family, lists in re.findall(r"^(cross|within) (\w+)(?: P,R.*?)? (\[\[.*\]\])$", text, re.MULTILINE):
        for number, printed in zip(NAMES.get(family, ()), json.loads(lists), strict=False):
            assert scored.numbers[("cross", "within").index(condition), number] == near(printed), (condition, number)
            compared += 1
    assert compared == 14
    for condition, lists in re.findall(r"^(cross|within) cover_sec disc,gold (.*)$", text, re.MULTILINE):
        fold_set = ("cross", "within").index(condition)
        found, gold = json.loads(lists)
        assert (scored.statistics["coverage"].ticks[fold_set, : len(found)] / 10_000).tolist() == near(found)
        assert (gold_ticks(corpus)[fold_set, : len(gold)] / 10_000).tolist() == near(gold)


@pytest.mark.parametrize("case", TDEV2)
def test_numbers_of_tdev2(cases: Path, case: str) -> None:
    name, classes, report = TDEV2[case]
    stem = cases / "discovery" / name
    scored = score(corpus_of(stem, "tdev2"), stem.parent / classes)
    text = (stem.parent / report).read_text()
    printed = {family: json.loads(numbers) for family, numbers in re.findall(r"^(\w+) (\{.*\})$", text, re.MULTILINE)}

    def only(array: np.ndarray) -> int:
        (number,) = array.ravel().tolist()
        return int(number)

    boundary, words = printed["boundary"], printed["token_type"]
    found = scored.statistics["boundary"]
    assert [only(x) for x in (found.right, found.found, found.gold)] == [boundary[x] for x in ("hit", "disc", "gold")]
    tokens = scored.statistics["token"]
    counted = [only(x) for x in (tokens.right, tokens.found, tokens.gold)]
    assert counted == [words[x] for x in ("token_hit", "disc", "gold_tokens")]
    types = scored.statistics["type"]
    sets = (types.right, types.seen, spellings(scored.corpus))
    counted = [only(things_counted(x, 0, scored.corpus)) for x in sets]
    assert counted == [words[x] for x in ("type_hit", "types_disc", "types_gold")]
    bits = scored.statistics["coverage"].bits
    assert int(np.unpackbits(bits).sum()) == printed["coverage"]["covered"]
    unique = re.search(r"^unique_intervals (\d+)", text, re.MULTILINE)
    assert unique is not None
    assert len(scored.discovered) == int(unique[1])
    expected = {
        "coverage": printed["coverage"]["coverage"],
        "boundary_precision": boundary["P"],
        "boundary_recall": boundary["R"],
        "token_precision": words["tokP"],
        "token_recall": words["tokR"],
        "type_precision": words["typP"],
        "type_recall": words["typR"],
    }
    for number, value in expected.items():
        assert scored.numbers[0, number] == near([value]), number
