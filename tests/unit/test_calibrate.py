"""Maps of scores, their file, and the runs that they are applied to."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from swsdask.archive.protocols import Run
from swsdask.calibration.applying import apply_to_runs
from swsdask.calibration.maps import AffineMap, Calibration, StepMap, step_map
from swsdask.formats.runs.read import read_run
from swsdask.formats.runs.write import write_run_table
from swsdask.formats.runs.write_xml import write_kwslist, write_lists
from swsdask.formats.runs.xml import DIALECTS
from swsdask.measures.calibration import isotonic_blocks
from swsdask.model.errors import InputError, Problems
from swsdask.model.trials import ScoreRange
from tests.archives import rows_of
from tests.results import fitted_on
from tests.small_evaluation import RUN

finite = st.floats(-1e6, 1e6)


@st.composite
def step_maps(draw: st.DrawFn) -> StepMap:
    begins = sorted(draw(st.sets(finite, max_size=6)))
    llr = sorted(draw(st.lists(finite, min_size=len(begins) + 1, max_size=len(begins) + 1)))
    return StepMap(begins=tuple(begins), llr=tuple(llr))


affine_maps = st.builds(AffineMap, gamma=st.floats(1e-6, 1e6), delta=finite)


@given(affine_maps | step_maps(), st.lists(finite, max_size=20))
def test_maps_rise(score_map: AffineMap | StepMap, scores: list[float]) -> None:
    ascending = np.sort(np.array(scores, np.float64))
    assert (np.diff(score_map(ascending)) >= 0).all()


@given(step_maps(), finite)
def test_a_step_begins_at_its_first_score(steps: StepMap, score: float) -> None:
    passed = sum(begin <= score for begin in steps.begins)
    assert steps(np.array([score])).tolist() == [steps.llr[passed]]


def test_an_affine_map_is_eq_44() -> None:
    assert AffineMap(gamma=2.0, delta=-1.0)(np.array([0.0, 1.5])).tolist() == [-1.0, 2.0]


@given(affine_maps | step_maps(), st.sampled_from(["min", "error", -10.0, 3e-300]))
def test_a_file_keeps_every_digit(
    tmp_path_factory: pytest.TempPathFactory, score_map: AffineMap | StepMap, impute: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / "calibration.toml"
    made = Calibration(map=score_map, fitted_on=fitted_on(impute=impute))
    made.write(path)
    assert Calibration.read(path) == made
    assert made.bayes_threshold == 4.2


RUN_OF_S = Run("s", 1, "ab", True, ScoreRange(None, (0.0, 1.0)), files=("s.xml",))


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8),
    st.tuples(st.integers(0, 2), st.integers(1, 10**9)),
    st.tuples(st.integers(1, 3), st.integers(0, 1)),
)
def test_steps_are_the_blocks_with_half_a_trial_at_the_ends(
    rows: list[tuple[int, int]], first: tuple[int, int], last: tuple[int, int]
) -> None:
    target, nontarget = np.array([first, *rows, last], np.int64).T.copy()
    blocks = isotonic_blocks(target, nontarget)
    n_target, n_nontarget = int(target.sum()), int(nontarget.sum())
    lowest = np.arange(len(target), dtype=np.float64)[blocks.first]
    if len(lowest) < 2:
        with pytest.raises(InputError, match=r"s\.xml: expected scores that a calibration .* one step"):
            step_map(lowest, blocks, RUN_OF_S)
        return
    steps = step_map(lowest, blocks, RUN_OF_S)
    assert steps.begins == tuple(lowest[1:].tolist())
    pairs = list(zip(blocks.target.tolist(), blocks.nontarget.tolist(), strict=True))
    for k, (llr, (hits, others)) in enumerate(zip(steps.llr, pairs, strict=True)):
        prior = math.log(n_target / n_nontarget)
        if hits and others:
            assert llr == pytest.approx(math.log(hits / others) - prior, abs=1e-12)
        else:
            half = math.log((hits + 0.5) / (others + 0.5)) - prior
            beside = steps.llr[1 if k == 0 else -2]
            alone = len(pairs) == 2 and not (pairs[1 - k][0] and pairs[1 - k][1])
            expected = half if alone else (min if k == 0 else max)(half, beside)
            assert llr == pytest.approx(expected, abs=1e-12)


BAD = {
    "not TOML": (lambda text: text.replace("[map]", "[map"), "a file that `swsdask calibrate` wrote"),
    "another file": (lambda text: "[evaluation]\n", "found no version"),
    "a later version": (lambda text: text.replace("version = 1", "version = 2"), "found version 2. Fit it again"),
    "an unknown key": (lambda text: text.replace("[map]", "[map]\nextra = 1"), "the unknown key map.extra"),
    "an unknown table": (lambda text: f"{text}[other]\n", "the unknown key other"),
    "a missing key": (lambda text: text.replace("gamma = 2.0\n", ""), "expected the key map.gamma; found none"),
    "a method": (lambda text: text.replace('"affine"', '"spline"'), "map = "),
    "a gamma that turns scores round": (lambda text: text.replace("gamma = 2.0", "gamma = -2.0"), "map.gamma = -2.0"),
    "a gamma of nan": (lambda text: text.replace("gamma = 2.0", "gamma = nan"), "map.gamma = nan"),
    "no number": (lambda text: text.replace("delta = 0.5", 'delta = "x"'), "map.delta = 'x'"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_one_clear_error(tmp_path: Path, kind: str) -> None:
    spoil, part = BAD[kind]
    path = tmp_path / "calibration.toml"
    Calibration(map=AffineMap(gamma=2.0, delta=0.5), fitted_on=fitted_on()).write(path)
    path.write_text(spoil(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        Calibration.read(path)
    assert len(caught.value.problems) == 1
    assert str(caught.value).startswith(f"{path}: expected ")
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("begins", "llr"), [((1.0,), (0.0,)), ((1.0, 1.0), (0.0, 1.0, 2.0)), ((1.0,), (1.0, 0.0)), ((), ())]
)
def test_steps_that_do_not_rise_are_refused(begins: Any, llr: Any) -> None:
    with pytest.raises(ValidationError, match="begins"):
        StepMap(begins=begins, llr=llr)


def test_a_file_with_steps_that_fall(tmp_path: Path) -> None:
    path = tmp_path / "calibration.toml"
    Calibration(map=StepMap(begins=(1.0, 2.0), llr=(-0.5, 0.5, 7.25)), fitted_on=fitted_on()).write(path)
    path.write_text(path.read_text(encoding="utf-8").replace("7.25", "-7.25"), encoding="utf-8")
    with pytest.raises(
        InputError, match=r"calibration\.toml: expected a calibration's values; found map = .*never fall"
    ):
        Calibration.read(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing there"):
        Calibration.read(tmp_path / "none.toml")


TWICE = AffineMap(gamma=2.0, delta=-1.0)
RANGED = RUN.replace("<kwslist ", '<kwslist min_score="0" max_score="1" index_size="5" ')
STDLIST = (
    (RANGED.replace("kwslist", "stdlist").replace("detected_kwlist", "detected_termlist").replace("<kw ", "<term "))
    .replace("kwid", "termid")
    .replace("kwlist_filename", "termlist_filename")
    .replace("index_size", 'indexing_time="2" index_size')
    .replace("search_time", "term_search_time")
    .replace("oov_count", "oov_term_count")
)
TABLE = """query	document	start	duration	score	decision
K1	a	1.1	0.8	0.9	YES
K2	b	9	0.5	0.6	NO
"""
WIDER = TABLE.replace("score", "extra\tscore").replace("0.8\t", "0.8\tx\t").replace("0.5\t", "0.5\tx\t")
KALDI = "K1 a 1.1 1.9 0.9\nK2 b 9 9.5 0.6\n"
FORMS: dict[str, tuple[bytes, str, bytes]] = {
    "first.kwslist.xml": (RANGED.encode(), "first.kwslist.xml", b"<?xml"),
    "first.kwslist.xml.gz": (gzip.compress(RANGED.encode()), "first.kwslist.xml.gz", b"\x1f\x8b"),
    "plain.xml": (STDLIST.encode(), "plain.xml", b'<?xml version="1.0" encoding="UTF-8"?>\n<stdlist'),
    "nameless": (RANGED.encode(), "nameless.xml", b"<?xml"),
    "run.tsv": (WIDER.encode(), "run.tsv", WIDER.encode()[: WIDER.index("x")]),
    "run.csv.zst": (b"", "run.csv.zst", b"\x28\xb5\x2f\xfd"),
    "run.parquet": (b"", "run.parquet", b"PAR1"),
    "results.txt": (KALDI.encode(), "results.txt.tsv", b"system\tquery"),
    "ranked.txt": (b"q Q0 d 1 0.5 tag\nq Q0 e 2 0.25 tag\n", "ranked.txt.tsv", b"system\tquery"),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_run_keeps_its_form_and_its_rows(tmp_path: Path, name: str) -> None:
    content, becomes, magic = FORMS[name]
    source = tmp_path / "in" / name
    source.parent.mkdir()
    if content:
        source.write_bytes(content)
    else:
        (tmp_path / "x.tsv").write_text(TABLE, encoding="utf-8")
        write_run_table(read_run(str(tmp_path / "x.tsv"), Problems()), str(source))
    (applied,) = apply_to_runs(TWICE, [str(source)], str(tmp_path / "out"), 0.25)
    target = tmp_path / "out" / becomes
    assert [path.name for path in target.parent.iterdir()] == [becomes]
    assert target.read_bytes().startswith(magic)
    (before,), (after,) = (list(read_run(str(path), Problems())) for path in (source, target))
    assert after.header.system == before.header.system
    assert after.listed == before.listed
    assert after.score.tolist() == (2.0 * before.score - 1.0).tolist()
    assert after.decision.tolist() == [int(score >= 0.25) for score in after.score.tolist()]
    assert [row[:5] for row in rows_of([after])] == [row[:5] for row in rows_of([before])]
    assert (applied.rows, applied.accepted) == (len(before), int((after.decision == 1).sum()))
    assert (applied.lowest, applied.highest) == (after.score.min(), after.score.max())
    assert applied.systems == [before.header.system]
    assert applied.dropped == ()
    if "xml" in becomes:
        assert before.header.declared_scores == (0.0, 1.0)
        assert after.header.declared_scores == (-1.0, 1.0)
        assert after.header.attributes == before.header.attributes


def test_decisions_can_be_kept(tmp_path: Path) -> None:
    source = tmp_path / "run.tsv"
    source.write_text(TABLE, encoding="utf-8")
    (applied,) = apply_to_runs(TWICE, [str(source)], str(tmp_path / "out.tsv"), None)
    (after,) = read_run(str(tmp_path / "out.tsv"), Problems())
    assert after.decision.tolist() == [1, 0]
    assert applied.accepted == 1


def test_a_score_at_the_threshold_is_accepted(tmp_path: Path) -> None:
    source = tmp_path / "run.tsv"
    source.write_text(TABLE, encoding="utf-8")
    at = 2.0 * 0.6 - 1.0
    assert apply_to_runs(TWICE, [str(source)], str(tmp_path / "out.tsv"), at)[0].accepted == 2
    assert apply_to_runs(TWICE, [str(source)], str(tmp_path / "out.tsv"), math.nextafter(at, 1))[0].accepted == 1


def test_all_files_or_none(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.kwslist.xml", tmp_path / "bad.tsv"
    good.write_text(RUN, encoding="utf-8")
    bad.write_text(TABLE.replace("0.6", "NaN"), encoding="utf-8")
    with pytest.raises(InputError, match=r"bad.tsv:3: expected a score"):
        apply_to_runs(TWICE, [str(good), str(bad)], str(tmp_path / "out"), 0.0)
    bad.write_text("query\tscore\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"bad.tsv:1: expected the columns"):
        apply_to_runs(TWICE, [str(good), str(bad)], str(tmp_path / "out"), 0.0)
    assert list((tmp_path / "out").iterdir()) == []


def test_places_that_would_lose_something(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.tsv").write_text(TABLE, encoding="utf-8")
    a, b = (str(tmp_path / folder / "run.tsv") for folder in ("a", "b"))
    for sources, out, part in (
        ([a], str(tmp_path / "a"), "found the run"),
        ([a, b], str(tmp_path / "out"), "one run for each file"),
        ([a, b], str(tmp_path / "out.tsv"), "a folder for several runs"),
        ([a], "https://host/out", "a web address, which can only be read"),
    ):
        with pytest.raises(InputError, match=part):
            apply_to_runs(TWICE, sources, out, 0.0)
    assert (tmp_path / "a" / "run.tsv").read_text(encoding="utf-8") == TABLE


def test_scores_beyond_a_float_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "run.tsv"
    source.write_text(TABLE.replace("0.6", "1e308"), encoding="utf-8")
    with pytest.raises(InputError, match=r"found 1e\+308"):
        apply_to_runs(AffineMap(gamma=1e3, delta=0.0), [str(source)], str(tmp_path / "out.tsv"), 0.0)
    assert not (tmp_path / "out.tsv").exists()


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 3)), min_size=1, max_size=8), st.integers(1, 4))
def test_lists_are_written_as_they_come(lists: list[tuple[str, int]], rows_per_piece: int) -> None:
    text = "".join(
        f'<detected_kwlist kwid="{query}">'
        + "".join(f'<kw file="d" channel="1" tbeg="{at}" dur="1" score="{k}"/>' for at in range(n))
        + "</detected_kwlist>\n"
        for k, (query, n) in enumerate(lists)
    )
    problems = Problems()
    with TemporaryDirectory() as folder:
        Path(folder, "in.xml").write_text(f'<kwslist system_id="s">{text}</kwslist>')
        read = read_run(f"{folder}/in.xml", problems, rows_per_piece=rows_per_piece)
        write_lists(read, DIALECTS["kwslist"], f"{folder}/out.xml")
        write_kwslist(read_run(f"{folder}/in.xml", problems), f"{folder}/joined.xml")
        one, other = (list(read_run(f"{folder}/{name}.xml", problems)) for name in ("out", "joined"))
    assert not list(problems)
    assert sorted(rows_of(one)) == sorted(rows_of(other))
    assert set(one[0].listed) == {query for query, _ in lists}
    if len({query for query, _ in lists}) == len(lists):
        assert rows_of(one) == rows_of(other)
        assert one[0].listed == other[0].listed
