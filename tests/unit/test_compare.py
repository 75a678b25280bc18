"""Comparing systems: measures of replicates against scoring the replicates, pairs, notes and order."""

from __future__ import annotations

import math
import random
import re
import shutil
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats

import swsdask as sws
from swsdask.api.comparing import sample_evaluation
from swsdask.api.runs import given_runs
from swsdask.comparison import resampled
from swsdask.comparison.compare import compare
from swsdask.comparison.gates import parse_gate
from swsdask.comparison.resampled import needed_for, query_numbers
from swsdask.comparison.significance import (
    DOCUMENTS,
    bca_interval,
    bootstrap_weights,
    left_out_weights,
    percentile_interval,
)
from swsdask.model.comparison import Resampling
from swsdask.model.results import CURVES, SCORES, Result
from swsdask.model.samples import Averages
from swsdask.simulate.evaluation import simulate, write
from swsdask.simulate.speech import SYSTEMS
from tests.replicates import write_drawn_documents, write_replicate, write_turned
from tests.results import MANIFEST

SETTINGS = {"evaluation": {"operating_point": {"beta": 20.0}}}
LOSSES = "loss_not_found loss_within_query loss_across_queries loss_threshold calibration_loss".split()
EVERY = [*"atwv otwv stwv map mgap mtwv twv_bayes twv@4.5 cxe cnxe cnxe_min ap".split(), *LOSSES]
UNDEFINED = {"mediaeval": {"loss_across_queries", "loss_threshold"}}
"""The measures that a compat does not define."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    write(simulate(11, hours=0.4, n_queries=18, systems=SYSTEMS[:3]), folder)
    return folder


@pytest.fixture(scope="module")
def once(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same files as compat=mediaeval has them.

    The RTTM has the ids of the queries where they occur; of detections of a query in a document the first is left.
    """
    folder = tmp_path_factory.mktemp("once")
    (folder / "runs").mkdir()
    for path in (path for path in files.rglob("*") if path.is_file()):
        kept, query, there = [], "", set()
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            query = found[1] if (found := re.search('<detected_kwlist kwid="([^"]*)"', line)) else query
            detected = re.search('<kw file="([^"]*)"', line)
            if detected is None or (query, detected[1]) not in there:
                kept.append(line)
            if detected is not None:
                there.add((query, detected[1]))
        (folder / path.relative_to(files)).write_text("".join(kept), encoding="utf-8")
    with (folder / "sim.rttm").open("a", encoding="utf-8") as rttm:
        for row in sws.open(files).table("occurrences").to_pylist():
            rttm.write(f"LEXEME {row['document']} {row['channel']} {row['start']} 0.1 {row['query']} lex SELF <NA>\n")
    return folder


@pytest.mark.parametrize(
    ("replicates", "chosen"),
    [
        (20, {"compat": "none"}),
        (2, {"compat": "kwseval"}),
        (2, {"impute": -3.5, "nonnegative_gamma": True, "average_precision": {"ties": "expected"}}),
        (2, {"average_precision": {"integration": "trapezoid", "interpolation": "none", "score_dtype": "float32"}}),
        (2, {"compat": "kwseval", "no_targets": "false_alarms_only"}),
        (2, {"compat": "kwseval", "average_precision": {"ties": "document-descending"}}),
        (2, {"trials": "segment", "average_precision": {"ties": "document-descending", "score_dtype": "float32"}}),
        (2, {"trials": "document", "average_precision": {"ties": "best", "duplicates": "false-positive"}}),
        (5, {"trials": "document", "compat": "mediaeval", "impute": "min"}),
        (2, {"trials": "document", "compat": "mediaeval", "impute": 1.5}),
        (2, {"average_precision": {"ties": "document-ascending", "duplicates": "ignore", "score_floor": 2.0}}),
    ],
)
def test_a_replicate_has_the_numbers_of_scoring_it(
    files: Path, once: Path, tmp_path: Path, replicates: int, chosen: dict[str, Any]
) -> None:
    files = once if chosen.get("compat") == "mediaeval" else files
    every = [name for name in EVERY if name not in UNDEFINED.get(chosen.get("compat", "none"), ())]
    asked = {"evaluation": {"operating_point": {"beta": 20.0}, **chosen}}
    evaluation = sws.open(files, settings=asked)
    result, by_condition, *_ = sample_evaluation(evaluation, every, given_runs(files / "runs"))
    samples = by_condition["all"]
    assert set(samples) == set(every)
    queries = query_numbers(result, "all", ["n_target"]).queries
    weights = bootstrap_weights(4, range(replicates), len(queries))
    found = {(m, system): s.replicates(weights) for m, by_system in samples.items() for system, s in by_system.items()}
    others = dict.fromkeys(set(re.findall('kwid="([^"]*)"', (files / "sim.kwlist.xml").read_text())) - {*queries}, 1)
    for replicate in range(replicates):
        target = tmp_path / str(replicate)
        write_replicate(files, target, others | dict(zip(queries, weights[:, replicate].tolist(), strict=True)))
        again = sws.score(sws.open(target, settings=asked), every, runs=str(target / "runs"))
        for row in again.table.to_pylist():
            if row["query"] is None and row["measure"] in every:
                number = found[row["measure"], row["system"]][replicate]
                assert number == pytest.approx(row["value"], rel=1e-12, abs=1e-12), row


def test_otwv_of_a_replicate_under_compat_kwseval_has_the_highest_score_of_the_queries_drawn(
    files: Path, tmp_path: Path
) -> None:
    """KWSEval cannot reject the highest score of all: here those of six queries are false alarms, each higher still."""
    asked = {"evaluation": {"operating_point": {"beta": 3000.0}, "compat": "kwseval"}}
    shutil.copytree(files, tmp_path / "files")
    evaluation = sws.open(tmp_path / "files", settings=asked)
    for path in sorted((tmp_path / "files" / "runs").iterdir()):
        head, *lists = path.read_text().split("<detected_kwlist ")
        for number in range(6):
            lists[number] = re.sub(
                r'tbeg="[^"]*" dur="[^"]*" score="[^"]*"',
                f'tbeg="0" dur="0.01" score="{30 + number}"',
                lists[number],
                count=1,
            )
        path.write_text("<detected_kwlist ".join([head, *lists]))
    runs = str(tmp_path / "files" / "runs")
    result, by_condition, *_ = sample_evaluation(evaluation, ["otwv", "loss_within_query"], given_runs(runs))
    queries = query_numbers(result, "all", ["n_target"]).queries
    weights = bootstrap_weights(4, range(8), len(queries))
    highest = set()
    for replicate in range(8):
        times = dict(zip(queries, weights[:, replicate].tolist(), strict=True))
        highest.add(max(query for query in queries[:6] if times[query]))
        target = tmp_path / str(replicate)
        write_replicate(tmp_path / "files", target, times)
        again = sws.score(sws.open(target, settings=asked), ["otwv", "loss_within_query"], runs=str(target / "runs"))
        for row in again.table.filter(pc.is_null(again.table["query"])).to_pylist():
            if row["measure"] in by_condition["all"]:
                sample = by_condition["all"][row["measure"]][row["system"]]
                assert sample.replicates(weights)[replicate] == pytest.approx(row["value"], rel=1e-12, abs=1e-12)
    assert len(highest) > 1


@pytest.mark.parametrize(
    ("replicates", "chosen", "by"),
    [
        (2, {"compat": "none"}, ""),
        (2, {"compat": "kwseval", "no_targets": "exclude"}, ""),
        (2, {"trials": "segment", "average_precision": {"ties": "expected"}}, ""),
        (2, {"trials": "document"}, ""),
        (2, {"trials": "document", "compat": "mediaeval", "impute": "min"}, ""),
        (2, {"compat": "kwseval", "no_targets": "false_alarms_only"}, ""),
        (2, {"compat": "kwseval", "no_targets": "false_alarms_only"}, "document_pattern:_000[1-4](-|$)"),
        (2, {"compat": "kwseval", "no_targets": "false_alarms_only"}, "query_pattern:sim-00.[1-5](#|$)"),
        (2, {"average_precision": {"duplicates": "ignore", "score_floor": 2.0}}, ""),
        (2, {"trials": "segment", "average_precision": {"duplicates": "false-positive", "ties": "best"}}, ""),
        (2, {"trials": "document", "average_precision": {"ties": "document-descending"}}, ""),
        (2, {"average_precision": {"ties": "input", "score_floor": 2.0}}, ""),
        (2, {"average_precision": {"missing": "skip"}}, ""),
        (2, {"trials": "document", "average_precision": {"ties": "input", "score_floor": 2.0}}, ""),
    ],
)
def test_a_replicate_of_documents_has_the_numbers_of_scoring_it(
    files: Path, once: Path, tmp_path: Path, replicates: int, chosen: dict[str, Any], by: str
) -> None:
    """The files have documents and queries as often as they were drawn."""
    files = once if chosen.get("compat") == "mediaeval" else files
    every = [name for name in EVERY if name not in UNDEFINED.get(chosen.get("compat", "none"), ())]
    asked = {"evaluation": {"operating_point": {"beta": 20.0}, **chosen}}
    evaluation, runs = sws.open(files, settings=asked), [str(path) for path in sorted((files / "runs").iterdir())]
    runs = runs[:1] if by.startswith("query") else runs  # queries that are nowhere differ from run to run
    result, by_condition, _, n_documents = sample_evaluation(
        evaluation, every, given_runs(runs), by.split(), documents=True
    )
    condition = by.replace("_pattern:", "~") or "all"
    samples = by_condition[condition]
    assert set(samples) == set(every)
    queries = query_numbers(result, condition, ["n_target"]).queries
    ids = sorted(set(evaluation.archive.documents["document"].to_pylist()))
    pattern = re.compile(by.removeprefix("document_pattern:") if by.startswith("document") else "")
    documents = [document for document in ids if pattern.search(document)]
    assert n_documents[condition] == len(documents)
    drawn = bootstrap_weights(4, range(replicates), len(documents), DOCUMENTS)
    of_queries = bootstrap_weights(4, range(replicates), len(queries))
    if chosen.get("average_precision", {}).get("ties") == "input":  # copies of queries are not beside one another
        of_queries[:] = 1
    weights = np.vstack([of_queries, drawn])
    for row in result.table.to_pylist():
        if row["query"] is None and row["measure"] in every and row["condition"] == condition:
            sample = samples[row["measure"]][row["system"]]
            assert sample.replicates(np.ones_like(weights))[0] == pytest.approx(row["value"], rel=1e-12, nan_ok=True)
            assert sample.value == pytest.approx(row["value"], rel=1e-12, nan_ok=True)
    found = {(m, system): s.replicates(weights) for m, by_system in samples.items() for system, s in by_system.items()}
    others = dict.fromkeys(set(re.findall('kwid="([^"]*)"', (files / "sim.kwlist.xml").read_text())) - {*queries}, 1)
    for replicate in range(replicates):
        half, target = tmp_path / f"{replicate}-documents", tmp_path / str(replicate)
        times = dict.fromkeys(ids, 1) | dict(zip(documents, drawn[:, replicate].tolist(), strict=True))
        write_drawn_documents(files, half, times)
        write_replicate(half, target, others | dict(zip(queries, weights[:, replicate].tolist(), strict=False)))
        again = sws.score(sws.open(target, settings=asked), every, runs=str(target / "runs"), by=by.split())
        for row in again.table.to_pylist():
            place = row["measure"], row["system"]
            if row["query"] is None and row["condition"] == condition and place in found:
                number = found[place][replicate]
                assert number == pytest.approx(row["value"], rel=1e-12, abs=1e-12, nan_ok=True), row


def test_randomization_comes_near_to_scipys_on_numbers_by_query(files: Path) -> None:
    """Here all exchanges are tried, as few queries differ; scipy draws some."""
    measures = {"atwv": "atwv", "map": "ap", "stwv": "stwv"}
    result, by_condition, n_queries, _ = sample_evaluation(
        sws.open(files, settings=SETTINGS), list(measures), given_runs(files / "runs")
    )
    systems = result.table["system"].unique().to_pylist()
    found = compare(by_condition, n_queries, systems, Resampling(), [(systems[0], systems[-1])])
    for measure, by_query in measures.items():
        columns = query_numbers(result, "all", [by_query]).columns
        (row,) = found.differences_of("all", measure)
        expected = stats.permutation_test(
            (columns[row["a"], by_query], columns[row["b"], by_query]),
            lambda x, y, axis: np.mean(x - y, axis=axis),
            permutation_type="samples",
            n_resamples=1999,
            vectorized=True,
            rng=3,
        )
        error = math.sqrt(row["p_randomization"] / 1999)
        assert row["p_randomization"] == pytest.approx(expected.pvalue, abs=4 * error + 1e-3)


@pytest.mark.parametrize("how", [{"interval": "bca"}, {"resample": "documents"}])
def test_blocks_of_replicates_give_the_same_bits(
    files: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    """Many queries have replicates that do not fit into memory together."""
    evaluation = sws.open(files, settings=SETTINGS)

    def compared() -> sws.Comparison:
        return sws.compare(evaluation, EVERY, runs=files / "runs", replicates=40, adjust="max-t", **how)

    whole = compared()
    for size in (1, 4 * 18 * 7, 18 * 9):
        monkeypatch.setattr(resampled, "BLOCK_BYTES", size)
        for table in ("interval_table", "difference_table"):
            assert repr(getattr(compared(), table).to_pylist()) == repr(getattr(whole, table).to_pylist())


def test_intervals_are_those_of_scipy_on_numbers_by_query(files: Path) -> None:
    measures = {"atwv": "atwv", "map": "ap", "stwv": "stwv"}
    result, by_condition, n_queries, _ = sample_evaluation(
        sws.open(files, settings=SETTINGS), list(measures), given_runs(files / "runs")
    )
    every = range(n_queries["all"])
    weights, left_out = bootstrap_weights(0, range(300), len(every)), left_out_weights(len(every), every)
    for measure, by_query in measures.items():
        for system, sample in by_condition["all"][measure].items():
            numbers = query_numbers(result, "all", [by_query])
            values, replicates = numbers.columns[system, by_query], sample.replicates(weights)
            means = [values[np.repeat(np.arange(len(values)), times)].mean() for times in weights.T]
            assert replicates.tolist() == pytest.approx(means, rel=1e-12, abs=1e-12)
            same = stats.bootstrap((values,), np.mean, n_resamples=2, method="percentile")
            same.bootstrap_distribution = replicates
            ends = {"percentile": percentile_interval(replicates, 0.95)}
            ends["BCa"] = bca_interval(sample.value, replicates, sample.replicates(left_out), 0.95)
            for method, own in ends.items():
                found = stats.bootstrap((values,), np.mean, n_resamples=0, bootstrap_result=same, method=method)
                assert own == pytest.approx(tuple(found.confidence_interval), rel=1e-9, abs=1e-12)


def test_wilcoxon_is_that_of_scipy_on_numbers_by_query(files: Path) -> None:
    measures = {"atwv": "atwv", "map": "ap", "stwv": "stwv"}
    evaluation, runs = sws.open(files, settings=SETTINGS), str(files / "runs")
    result, *_ = sample_evaluation(evaluation, list(measures), given_runs(runs))
    found = sws.compare(evaluation, list(measures), runs=runs, replicates=20)
    for measure, by_query in measures.items():
        columns = query_numbers(result, "all", [by_query]).columns
        for row in found.differences_of("all", measure):
            # Shares of few targets: differences that rounding alone distinguishes are equal.
            difference = np.round(columns[row["a"], by_query] - columns[row["b"], by_query], 9)
            moved = difference[difference != 0]
            # Of a permutation test, scipy has the exact distribution with ties too.
            alone = len(np.unique(abs(moved))) == len(moved)
            method = "exact" if alone else stats.PermutationMethod(n_resamples=2**18)
            expected = stats.wilcoxon(moved, method=method).pvalue if len(moved) else 1.0
            assert row["p_wilcoxon"] == pytest.approx(expected, rel=1e-9), (measure, row["a"], row["b"])


def made(rows: list[tuple[str, str | None, str, float]], condition: str = "all") -> Result:
    columns = [list(column) for column in zip(*((s, condition, q, m, v) for s, q, m, v in rows), strict=True)]
    table = pa.table(columns, schema=SCORES)
    return Result.of(table, CURVES.empty_table(), {**MANIFEST, "measures": ["map"]})


def averaged(values: dict[str, list[float]]) -> Result:
    rows: list[tuple[str, str | None, str, float]] = []
    for system, own in values.items():
        rows += [(system, f"q{n:02d}", "ap", value) for n, value in enumerate(own)]
        rows.append((system, None, "map", float(np.nanmean(own))))
    return made(rows)


RNG = np.random.default_rng(1)
THREE = {
    name: np.clip(RNG.normal(mean, 0.2, 30), 0, 1).tolist() for name, mean in (("b", 0.5), ("a", 0.45), ("c", 0.2))
}


def test_columns() -> None:
    found = sws.compare(averaged(THREE), replicates=200)
    assert found.intervals.columns.tolist() == "system condition measure value low high standard_error".split()
    tests = "p_bootstrap p_randomization p_sign p_wilcoxon p_adjusted".split()
    assert found.differences.columns.tolist() == [*"a b condition measure difference low high".split(), *tests]
    assert found.intervals["system"].tolist() == ["a", "b", "c"]
    assert list(zip(found.differences["a"], found.differences["b"], strict=True)) == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]
    for row in found.differences.to_dict("records"):
        assert row["difference"] == pytest.approx(np.mean(THREE[row["a"]]) - np.mean(THREE[row["b"]]))
        assert row["low"] <= row["difference"] <= row["high"]


def test_the_order_of_systems_and_queries_never_shows() -> None:
    result = averaged(THREE)
    rows = result.table.to_pylist()
    random.Random(3).shuffle(rows)
    shuffled = Result.of(pa.Table.from_pylist(rows, SCORES), result.curve_table, result.manifest)
    for options in ({}, {"interval": "bca", "adjust": "max-t"}):
        one, other = (sws.compare(each, replicates=300, seed=5, **options) for each in (result, shuffled))
        assert one.interval_table.equals(other.interval_table)
        assert one.difference_table.equals(other.difference_table)
        assert one.notes == other.notes


def test_the_order_of_queries_in_files_never_shows(files: Path, tmp_path: Path) -> None:
    write_turned(files, tmp_path)
    assert (tmp_path / "sim.kwlist.xml").read_text() != (files / "sim.kwlist.xml").read_text()
    one, other = (
        sws.compare(sws.open(folder, settings=SETTINGS), EVERY, runs=str(folder / "runs"), replicates=20)
        for folder in (files, tmp_path)
    )
    assert one.interval_table.equals(other.interval_table)
    assert one.difference_table.to_pandas().equals(other.difference_table.to_pandas())


def test_any_executor_gives_the_same_bits(files: Path) -> None:
    evaluation = sws.open(files, settings=SETTINGS)
    tables = []
    for executor in ("serial", "threads"):
        found = sws.compare(evaluation, EVERY, runs=str(files / "runs"), replicates=20, executor=executor)
        tables.append((found.interval_table, found.difference_table))
    assert tables[0][0].equals(tables[1][0])
    assert tables[0][1].to_pandas().equals(tables[1][1].to_pandas())
    assert set(tables[0][0]["measure"].to_pylist()) == set(EVERY)


def test_documents_drawn_widen_intervals_and_leave_tests_by_query_undefined(files: Path) -> None:
    evaluation, runs = sws.open(files, settings=SETTINGS), str(files / "runs")
    found = sws.compare(evaluation, ["atwv", "loss_threshold"], runs=runs, resample="documents", replicates=60)
    alone = sws.compare(evaluation, ["atwv", "loss_threshold"], runs=runs, replicates=60)
    assert found.how.resample == "documents"
    assert found.intervals["value"].tolist() == pytest.approx(alone.intervals["value"].tolist(), rel=1e-12)
    wider = found.intervals["standard_error"] > alone.intervals["standard_error"]
    assert wider[found.intervals["measure"] == "atwv"].all()
    assert found.differences[["p_randomization", "p_sign", "p_wilcoxon"]].isna().all(axis=None)
    assert found.differences["p_bootstrap"].between(0, 1).all()
    one = sws.open(files, settings=SETTINGS).archive.queries["query"][0].as_py()
    pattern = f"query_pattern:^{one}$"
    found = sws.compare(evaluation, "atwv", runs=runs, by=pattern, resample="documents", replicates=60)
    of_one = found.intervals[found.intervals["condition"] != "all"]
    assert len(of_one) > 1
    assert of_one["standard_error"].notna().all()


@pytest.fixture(scope="module")
def said(files: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The runs, in the order of their names, each with a way of its own to give queries an oov_count of 0 or 1."""
    folder = tmp_path_factory.mktemp("said")
    for number, path in enumerate(sorted((files / "runs").iterdir())):
        first, *others = path.read_text().split('oov_count="0"')
        counts = (f'oov_count="{place // (number + 2) % 2}"' for place in range(len(others)))
        text = first + "".join(f"{count}{other}" for count, other in zip(counts, others, strict=True))
        (folder / path.name).write_text(text)
    return sorted(folder.iterdir())


def test_a_pair_whose_queries_differ_is_compared_over_those_of_both(files: Path, said: list[Path]) -> None:
    evaluation, measures = sws.open(files, settings=SETTINGS), [name for name in EVERY if name != "mgap"]
    own = [set(re.findall('kwid="([^"]*)" [^>]*oov_count="1"', run.read_text())) for run in said]
    pattern = f"^({'|'.join(sorted(own[0] & own[1]))})$"
    runs, given = [str(run) for run in said], given_runs(said)
    result, samples, n_queries, _ = sample_evaluation(evaluation, measures, given, ["oov_count"])
    _, expected, n_both, _ = sample_evaluation(evaluation, measures, given, [f"query_pattern:{pattern}"])
    queries = query_numbers(result, "oov_count=1", ["n_target"]).queries
    both = np.isin(queries, sorted(own[0] & own[1]))
    weights = bootstrap_weights(1, range(5), n_queries["oov_count=1"])
    assert 1 < both.sum() == n_both[f"query~{pattern}"] < len(own[0] & set(queries)) < len(both)
    systems = sorted(result.table["system"].unique().to_pylist())[:2]
    for measure in measures:
        of_system = samples["oov_count=1"][measure]
        common = of_system[systems[0]].queries & of_system[systems[1]].queries
        for system in systems:
            found, alone = of_system[system].restricted_to(common), expected[f"query~{pattern}"][measure][system]
            assert found.value == pytest.approx(alone.value, rel=1e-12, abs=1e-12)
            assert found.replicates(weights).tolist() == pytest.approx(
                alone.replicates(weights[both]).tolist(), rel=1e-12, abs=1e-12, nan_ok=True
            )
    compared = sws.compare(evaluation, ["mtwv", "atwv"], runs=runs, by="oov_count", replicates=20)
    pairs = [row for row in compared.differences.to_dict("records") if row["condition"] == "oov_count=1"]
    for row in (row for row in pairs if [row["a"], row["b"]] == systems):
        a, b = (expected[f"query~{pattern}"][row["measure"]][system].value for system in systems)
        assert row["difference"] == pytest.approx(a - b, rel=1e-12, abs=1e-12)
    assert any(
        "oov_count=1, mtwv: " in note and "counts them for only one of the two" in note for note in compared.notes
    )
    with pytest.raises(sws.SettingsError, match="Documents cannot be resampled"):
        sws.compare(evaluation, "atwv", runs=runs, by="oov_count", resample="documents")


def test_pair_and_baseline() -> None:
    result = averaged(THREE)
    (row,) = sws.compare(result, pair=("c", "a"), replicates=50).differences.to_dict("records")
    assert (row["a"], row["b"]) == ("c", "a")
    assert row["difference"] == pytest.approx(np.mean(THREE["c"]) - np.mean(THREE["a"]))
    against = sws.compare(result, baseline="b", replicates=50).differences
    assert list(zip(against["a"], against["b"], strict=True)) == [("a", "b"), ("c", "b")]


def test_who_is_tied_with_the_best() -> None:
    (told,) = sws.compare(averaged(THREE)).notes
    assert told == "all, map: best is b; tied with it (p >= 0.05): a."
    assert sws.compare(averaged(THREE), pair=("a", "c")).notes == ()


def test_a_note_names_few_systems_and_counts_the_others() -> None:
    """From the best; so do notes on queries that are left out of many pairs."""
    values = np.random.default_rng(2).normal(0.5, 0.1, (20, 30))
    means = values.mean(axis=1)
    systems = {f"s{n:02d}": [*own, math.nan] for n, own in enumerate(values.tolist())}
    told = sws.compare(averaged({**systems, "z": [0.1] * 31}), replicates=300, adjust="max-t").notes
    best, *others = (f"s{n:02d}" for n in np.argsort(-means))
    assert f"all, map: best is {best}; tied with it (p >= 0.05): {', '.join(others[:5])} and 14 more." in told
    assert any("1 query left out of s00 and z, s01 and z" in note and note.count(" and z") == 5 for note in told)


def test_too_few_replicates_for_so_many_pairs_are_noted() -> None:
    """Three pairs: with 59 replicates the least p is 1 / 60, and three times that is .05; with 60 it is less."""
    apart = averaged({name: [0.1 * n + 0.001 * query for query in range(40)] for n, name in enumerate("abc")})
    (coarse, tied) = sws.compare(apart, replicates=59).notes
    assert coarse.startswith("all, map: no difference can be significant (p < 0.05): the least p of 59 replicates")
    assert coarse.endswith(
        "multiplies by 3 pairs. Use --adjust max-t or fewer pairs (--baseline, --pair), or --replicates 60."
    )
    assert tied.endswith("tied with it (p >= 0.05): b, a.")
    for enough in ({"replicates": 60}, {"replicates": 59, "adjust": "max-t"}, {"replicates": 59, "baseline": "c"}):
        assert [note for note in sws.compare(apart, **enough).notes if "significant" in note] == []
        assert sws.compare(apart, **enough).differences["p_adjusted"].max() < 0.05


def test_queries_that_count_for_one_system_only_are_left_out_and_reported() -> None:
    values = {"a": [0.1, 0.9, 0.5, math.nan] * 5, "b": [0.3, 0.7, math.nan, 0.2] * 5}
    found = sws.compare(averaged(values), replicates=500)
    (row,) = found.differences.to_dict("records")
    assert row["difference"] == pytest.approx(0.0)
    assert found.intervals["value"].tolist() == pytest.approx([0.5, 0.4])
    assert (
        "all, map: 10 queries left out of a and b: the measure counts them for only one of the two, and 10 for both; "
        "intervals and tests based on fewer than 30 queries are unreliable."
    ) in found.notes


def test_few_queries_are_noted() -> None:
    found = sws.compare(averaged({"a": [0.1, 0.2, 0.4], "b": [0.2, 0.3, 0.1]}), replicates=50)
    assert found.notes[0] == "all: 3 queries; intervals and tests based on fewer than 30 queries are unreliable."


def test_a_notebook_shows_the_comparison_of_the_first_conditions(files: Path) -> None:
    evaluation = sws.open(files)
    names = evaluation.table("queries")["query"].to_pylist()
    result = sws.score(
        evaluation, ["atwv"], runs=str(files / "runs"), by=[f"query_pattern:^(?!{name}$)" for name in names[:15]]
    )
    shown = sws.compare(result, replicates=50)._repr_html_()
    assert shown.count("<table") == 12
    assert "<li>12 of 16 conditions; <code>to_markdown(None)</code> has all.</li>" in shown


@pytest.mark.parametrize("adjust", ["holm", "max-t"])
def test_an_infinite_loss_fails_a_gate_and_is_not_tied(adjust: str) -> None:
    """A likelihood of 0 for false alarms of many queries makes the cost infinite in nearly all replicates."""
    queries = [f"q{number}" for number in range(40)]
    occurrences = [{"query": query, "document": "d", "start": 1.0, "duration": 1.0} for query in queries]
    evaluation = sws.open(documents=[{"document": "d", "duration": 600.0}], occurrences=occurrences)
    rng = np.random.default_rng(1)

    def run(false_alarm: float) -> list[dict[str, object]]:
        return [
            {"query": query, "document": "d", "start": start, "duration": 1.0, "score": score}
            for number, query in enumerate(queries)
            for start, score in ((1.0, 9.0 + rng.random()), (50.0, false_alarm if number % 2 else rng.random()))
        ]

    runs = {"broken": run(math.inf), "fine": run(1.0), "x": run(1.0)}
    gate = "cnxe rises .01 with p < .05"
    how: dict[str, Any] = {"baseline": "fine", "fail_if": [gate], "adjust": adjust, "replicates": 200}
    found = sws.compare(evaluation, ["cnxe"], runs=runs, **how)
    assert [(failure.system, failure.p) for failure in found.failures] == [("broken", 2 / 201)]
    tied = sws.compare(evaluation, ["cnxe"], runs=runs, adjust=adjust, replicates=200).tied("all", "cnxe")  # type: ignore[arg-type]
    assert tied is not None
    assert "broken" not in (*tied.others, *tied.untested)


def test_a_gate_without_a_p_value_is_noted() -> None:
    samples = {name: Averages(0.0, (1.0,), np.array([[value]])) for name, value in {"a": 0.1, "b": 0.5}.items()}
    gate = parse_gate("map drops .01 with p < .05")
    how = Resampling(0, 50, 0.95, "percentile", "holm", "queries")
    found = compare({"all": {"map": samples}}, {"all": 1}, samples, how, [("a", "b")], [gate])
    assert found.failures == ()
    assert f"gate {gate.text!r}: not tested, because there is no p value, and so passed: a." in found.notes


@pytest.mark.parametrize("adjust", ["holm", "max-t"])
@pytest.mark.parametrize("n_common", [2, 3, 4])
def test_few_common_queries_prove_nothing(n_common: int, adjust: Any) -> None:
    """Exchanges of n queries have no p below 2^(1 - n), whatever the bootstrap says, which sees one sign only."""
    rng = np.random.default_rng(4)
    none = [math.nan] * 40
    a, b = ([*(share + 0.01 * rng.random(n_common))] for share in (0.2, 0.8))
    result = averaged({"a": [*a, *rng.random(40), *none], "b": [*b, *none, *rng.random(40)]})
    gate = "map drops .01 with p < .05"
    found = sws.compare(result, baseline="b", fail_if=gate, adjust=adjust)
    (row,) = found.differences.to_dict("records")
    least = 2.0 ** (1 - n_common)
    assert row["p_bootstrap"] < 0.05
    assert row["p_randomization"] == least
    assert row["p_adjusted"] == (least if adjust == "holm" else pytest.approx(least, abs=0.02))
    assert found.failures == ()
    common = f"{n_common} for both; intervals and tests based on fewer than 30 queries are unreliable."
    assert any(note.endswith(common) for note in found.notes)
    said = f"the least p of {n_common} queries"
    assert f"all, map: no difference can be significant (p < 0.05): {said} is {least:.2g}." in found.notes
    assert f"gate {gate!r}: cannot fail, because {said} and 1 pair is {least:.2g}." in found.notes
    tied = found.tied("all", "map")
    assert tied is not None
    assert len(tied.others) == 1


def test_one_query_has_no_interval_and_no_test() -> None:
    """It would be drawn again and again, and any difference would seem certain; so would one query of both systems."""
    found = sws.compare(averaged({"a": [0.1], "b": [0.4]}), replicates=50, interval="bca", adjust="max-t")
    assert found.intervals["value"].tolist() == [0.1, 0.4]
    assert found.intervals[["low", "high", "standard_error"]].isna().all(axis=None)
    assert found.differences.filter(regex="low|high|p_").isna().all(axis=None)
    assert "all, map: 1 query of a, b: no interval and no test." in found.notes
    assert "all, map: best is b; tied with it (p >= 0.05): none; not tested: a." in found.notes
    of_one = sws.compare(averaged({"a": [0.1, 0.2, math.nan], "b": [0.9, math.nan, 0.8]}), replicates=50)
    assert of_one.intervals["low"].notna().all()
    assert of_one.differences[["low", "high", "p_bootstrap", "p_adjusted"]].isna().all(axis=None)


def test_tables_for_papers_and_notebooks() -> None:
    """The best is bold, and so is what is tied with it."""
    found = sws.compare(averaged({"x_1": THREE["c"], **THREE}), replicates=300)
    lines = found.to_markdown().splitlines()
    low, high = found.intervals.set_index("system").loc["b", ["low", "high"]]
    assert lines[:2] == ["| System | MAP |", "| --- | ---: |"]
    assert lines[2] == f"| b | **{np.mean(THREE['b']):.4f} \\[{low:.4f}, {high:.4f}]** |"
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| b", "| a", "| c", "| x_1"]
    assert ["**" in line for line in lines[2:]] == [True, True, False, False]
    latex = found.to_latex()
    assert rf"b & \textbf{{{np.mean(THREE['b']):.4f} [{low:.4f}, {high:.4f}]}} \\" in latex
    assert r"x\_1 & " in latex
    shown = found._repr_html_()
    assert shown.count("<b>") == 2
    assert all(escape(note) in shown for note in found.notes)
    assert repr(found) == f"<Comparison: 4 intervals, 6 differences; {found.signature}>"
    with pytest.raises(sws.SettingsError, match="no condition 'oov' was compared"):
        found.to_markdown("oov")
    beside_c = sws.compare(averaged({"x": THREE["b"], **THREE}), baseline="c", replicates=50)
    lines = beside_c.to_markdown().splitlines()[2:]
    assert [line.split(" | ")[0] for line in lines if "**" in line] == ["| b", "| x"]
    assert "{[}a] & " in sws.compare(averaged({"[a]": THREE["a"]}), replicates=50).to_latex()


def test_averages_over_different_queries() -> None:
    """P_miss averages over q0 and q1, P_fa over all three; the values by query of ATWV alone would not do."""
    p_miss, p_fa, beta = [0.2, 0.4, math.nan], [0.01, 0.0, 0.05], 2.0
    rows: list[tuple[str, str | None, str, float]] = [
        ("s", f"q{n}", name, value)
        for name, column in (("p_miss", p_miss), ("p_fa", p_fa), ("atwv", [0.78, 0.6, math.nan]))
        for n, value in enumerate(column)
    ]
    rows += [("s", None, "beta", beta), ("s", None, "atwv", 1 - (0.3 + beta * 0.02))]
    samples = query_numbers(made(rows), "all", needed_for(["atwv"])).averages("atwv")
    assert samples is not None
    found = samples["s"].replicates(np.array([[1, 0], [0, 0], [2, 3]], np.int32))
    assert found[0] == pytest.approx(1 - (0.2 + beta * (0.01 + 2 * 0.05) / 3))
    assert math.isnan(found[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": "mtwv"}, "the results have no mtwv: request it when you score"),
        ({"baseline": "z"}, "'z' is none of the systems: a, b, c"),
        ({"pair": ("a", "a")}, "compared with itself"),
        ({"pair": ("a", "b"), "baseline": "a"}, "not both"),
        ({"seed": -1}, "seed is -1"),
        ({"replicates": 0}, "replicates is 0"),
        ({"replicates": True}, "replicates is True"),
        ({"replicates": 10**20}, "expected a whole number from 1 to 10,000,000, all of which are in memory"),
        ({"replicates": 1e3}, "replicates is 1000.0"),
        ({"seed": None}, "seed is None"),
        ({"resample": "document"}, "resample is 'document'; expected one of queries, documents"),
        ({"interval": "BCa"}, "interval is 'BCa'; expected one of percentile, bca"),
        ({"adjust": "maxt"}, "adjust is 'maxt'; expected one of holm, max-t"),
        ({"pair": ("a", "b", "c")}, "pair is .*; expected the names of two systems"),
        ({"measures": []}, "No measure is named"),
        ({"level": 1.0}, "level is 1.0"),
        ({"resample": "documents"}, "A result has no numbers by document"),
        ({"resample": "documents", "interval": "bca"}, 'interval="bca" needs resample="queries"'),
        ({"by": "oov"}, "A result has its runs and conditions"),
    ],
)
def test_bad_arguments(options: dict[str, object], message: str) -> None:
    with pytest.raises(sws.SettingsError, match=message.replace("(", r"\(")):
        sws.compare(averaged(THREE), **options)  # type: ignore[arg-type]


def test_measures_that_are_not_named_are_those_that_any_system_has(tmp_path: Path) -> None:
    """ATWV needs decisions, and of rankings there is none."""
    documents = [{"document": "d", "duration": 100.0}]
    spoken = [{"query": q, "document": "d", "start": 5.0 * n, "duration": 1.0} for n, q in enumerate("qrs")]
    runs = {
        name: [{**each, "score": score * each["start"]} for each in spoken[:n]]  # type: ignore[operator]
        for name, n, score in (("a", 3, 1.0), ("b", 2, -1.0))
    }
    evaluation = sws.open(documents=documents, occurrences=spoken)
    found = sws.compare(evaluation, runs=runs, replicates=20)
    assert [*found.intervals["measure"].unique()] == ["mtwv", "otwv", "stwv", "map"]
    assert found.notes[-1] == "Not compared, for no system has them: atwv."
    with pytest.raises(sws.SettingsError, match="atwv cannot be resampled"):
        sws.compare(evaluation, "atwv", runs=runs, replicates=20)
    judged = sws.open(qrels={q: {"d": 1, "e": 0} for q in "qrs"}, preset="trec")
    ranked = {name: {q: {"d": 2.0, "e": 1.0 + n} for q in "qrs"} for n, name in enumerate("ab")}
    found = sws.compare(judged, runs=ranked, replicates=20)
    assert [*found.intervals["measure"].unique()] == ["map", "ndcg", "r_precision", "bpref", "reciprocal_rank"]


@pytest.mark.parametrize("preset", ["trec", "trec10"])
def test_topics_that_a_run_lacks_have_no_numbers_and_pairs_are_compared_over_the_others(preset: str) -> None:
    topics = [f"t{number}" for number in range(8)]
    judged = sws.open(qrels={topic: {"d": 1, "e": 0} for topic in topics}, preset=preset)
    runs = {
        "whole": {topic: {"d": 2.0, "e": 1.0} for topic in topics},
        "lacking": {topic: {"d": 1.0, "e": 2.0} for topic in topics[:-1]},
        "of one": {"t7": {"d": 1.0}},
    }
    measures = ["map", "ap", "ndcg", "P@5", "n_relevant"]
    scores = sws.score(judged, measures, runs=runs).scores
    of_lacking = scores[(scores["system"] == "lacking") & scores["query"].notna()]
    assert {*of_lacking["query"]} == {*topics[:-1]}
    found = sws.compare(judged, ["map", "ndcg", "P@5"], runs=runs, replicates=50)
    differences = found.differences.set_index(["measure", "a", "b"])["difference"]
    assert differences["map", "lacking", "whole"] == pytest.approx(0.5 - 1.0)
    assert differences["precision_at_rank@5", "of one", "whole"] == 0
    assert math.isnan(differences["map", "lacking", "of one"])
    note = "all, map: 1 query left out of lacking and whole: the measure counts them for only one of the two, and 7"
    assert any(each.startswith(note) for each in found.notes)


def test_results_without_the_parts_of_an_average_say_so(files: Path) -> None:
    evaluation = sws.open(files)
    result = sws.score(evaluation, ["atwv", "mtwv", "map"], runs=files / "runs")
    found = sws.compare(result, replicates=20)
    assert {measure for _, measure in found.measures} == {"atwv"}
    assert found.notes[-1].startswith("Not compared, for the results lack what they are resampled from;")
    assert found.notes[-1].endswith(": mtwv, map.")
    with pytest.raises(sws.SettingsError, match=r"map is the average of ap by query, .* request ap too when you score"):
        sws.compare(result, ["map"], replicates=20)
    whole = sws.score(evaluation, ["map", "ap"], runs=files / "runs")
    assert ("all", "map") in sws.compare(whole, ["map"], replicates=20).measures
