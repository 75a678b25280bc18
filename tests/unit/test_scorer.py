"""Runs that come in batches, and tables that go out: the same numbers as when files are scored."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import swsdask as sws
from swsdask.api.runs import given_runs
from swsdask.cli import main
from swsdask.formats.in_memory import TableRun
from tests import engines

MEASURES = ["atwv", "mtwv", "cnxe", "map"]
FORMS = {"pandas": pa.Table.to_pandas, "polars": pl.from_arrow, "arrow": lambda table: table}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    main(["demo", "--out", str(folder / "demo"), "--hours", "1", "--queries", "20"])
    return folder / "demo"


@pytest.fixture(scope="module")
def archive(demo: Path) -> sws.Evaluation:
    return sws.open(demo / "archive")


@pytest.fixture(scope="module")
def scored(archive: sws.Evaluation) -> sws.Result:
    return sws.score(archive, MEASURES, by=["oov", "n_words"])


def batches(table: pa.Table, seed: int, parts: int) -> Iterator[pa.Table]:
    order = np.random.default_rng(seed).permutation(table.num_rows)
    for rows in np.array_split(order, parts):
        yield table.take(rows)


@pytest.mark.parametrize("parts", [1, 7, 50])
def test_any_batches_in_any_order_give_the_same_bits(archive: sws.Evaluation, scored: sws.Result, parts: int) -> None:
    scorer = sws.Scorer(archive, MEASURES, by=["oov", "n_words"])
    for batch in batches(archive.table("detections"), parts, parts):
        scorer.update(batch)
    result = scorer.result()
    assert engines.parquet(result.table) == engines.parquet(scored.table)
    assert engines.parquet(result.curve_table) == engines.parquet(scored.curve_table)
    assert result.manifest["inputs"] == scored.manifest["inputs"]
    assert result.manifest["signature"] == scored.manifest["signature"]


@pytest.mark.parametrize("form", FORMS)
def test_what_comes_out_goes_in_again(archive: sws.Evaluation, scored: sws.Result, form: str) -> None:
    documents, queries, occurrences, detections = (
        FORMS[form](archive.table(name)) for name in ("documents", "queries", "occurrences", "detections")
    )
    evaluation = sws.open(documents=documents, queries=queries, occurrences=occurrences, preset="sws2013")
    result = sws.score(evaluation, MEASURES, runs=detections, by=["oov", "n_words"])
    assert engines.parquet(result.table) == engines.parquet(scored.table)
    assert engines.parquet(result.curve_table) == engines.parquet(scored.curve_table)
    assert result.to_arrow("query_texts").equals(scored.to_arrow("query_texts"))


def test_texts_of_queries_come_from_archives_and_files_alike(archive: sws.Evaluation, demo: Path) -> None:
    of_files = sws.open(demo / "files", preset="sws2013").table("queries")
    assert archive.table("queries").equals(of_files)
    listed = ElementTree.parse(demo / "files" / "sim.kwlist.xml").iter("kw")
    texts = {kw.get("kwid"): kw.findtext("kwtext") for kw in listed}
    assert dict(zip(*(of_files[name].to_pylist() for name in ("query", "text")), strict=True)) == texts


def test_a_batch_with_a_fault_adds_nothing(archive: sws.Evaluation) -> None:
    first, second = batches(archive.table("detections", "weak"), 1, 2)
    scorer = sws.Scorer(archive, "mtwv")
    scorer.update(first)
    before = scorer.result()
    faulty = pd.concat([second.to_pandas(), second.to_pandas().assign(score=np.nan)])
    with pytest.raises(sws.InputError, match=rf"run: expected a score; .* in row {second.num_rows + 1}"):
        scorer.update(faulty)
    with pytest.raises(sws.InputError, match="expected a decision, as in run"):
        scorer.update(second.drop_columns("decision"))
    assert scorer.result().table.equals(before.table)
    scorer.update(second)
    assert scorer.result().table.equals(sws.score(archive, "mtwv", runs="weak").table)


def test_batches_of_files_and_of_named_systems(archive: sws.Evaluation, demo: Path) -> None:
    scorer = sws.Scorer(demo / "files", "mtwv")
    scorer.update(demo / "files" / "runs" / "weak.kwslist.xml")
    for batch in batches(archive.table("detections", "middling").drop_columns("system"), 2, 3):
        scorer.update({"middling": batch})
    expected = sws.score(demo / "files", "mtwv", runs=[demo / "files" / "runs" / f"{n}.kwslist.xml" for n in RUNS])
    assert scorer.result().table.equals(expected.table)


RUNS = ("middling", "weak")


def test_positions_of_batches_count_where_those_of_files_do(archive: sws.Evaluation) -> None:
    ties = {"evaluation": {"average_precision": {"ties": "input"}}}
    evaluation = sws.open(archive.archive.storage.url, settings=ties)  # type: ignore[attr-defined]
    table = archive.table("detections", "weak").to_pandas().assign(score=0.0)
    in_order = sws.score(evaluation, "map", runs=[table]).table
    reversed_order = sws.score(evaluation, "map", runs=[table[::-1]]).table
    assert not in_order.equals(reversed_order)
    for rows, expected in ((table, in_order), (table[::-1], reversed_order)):
        scorer = sws.Scorer(evaluation, "map")
        for begin in range(0, len(rows), 20):
            scorer.update(rows[begin : begin + 20])
        assert scorer.result().table.equals(expected)


DOCUMENTS = {"evaluation": {"trials": "document"}}


def test_mediaevals_trials_are_there_once_in_all_batches() -> None:
    document = [{"document": "a", "duration": 9.0}, {"document": "b", "duration": 9.0}]
    spoken = [{"query": "q", "document": "a", "start": 1.0, "duration": 1.0}]
    evaluation = sws.open(documents=document, occurrences=spoken, compat="mediaeval", settings=DOCUMENTS)
    scorer = sws.Scorer(evaluation, "mtwv")
    row = {"query": "q", "document": "a", "start": 0.0, "duration": 1.0, "score": 0.5, "decision": "YES"}
    scorer.update([row])
    scorer.update([row])
    with pytest.raises(sws.InputError, match="expected every trial once; found query q in document a again"):
        scorer.result()


def test_arguments_are_checked_at_once(archive: sws.Evaluation) -> None:
    with pytest.raises(sws.SettingsError, match=r"measure 'mtvw' is unknown\. Nearest: mtwv"):
        sws.Scorer(archive, ["mtvw"])
    with pytest.raises(sws.SettingsError, match="No runs to score"):
        sws.Scorer(archive, "mtwv").result()
    with pytest.raises(sws.SettingsError, match="There are: documents, queries, occurrences, judgments, detections"):
        archive.table("words")
    with pytest.raises(sws.SettingsError, match=r"no run of strong\. There are: calibrated, "):
        archive.table("detections", ["weak", "strong"])
    with pytest.raises(sws.SettingsError, match="goes with the table detections"):
        archive.table("queries", "weak")


def test_detections_are_those_of_the_files(archive: sws.Evaluation, demo: Path, tmp_path: Path) -> None:
    from swsdask.formats.runs.write import convert

    convert(str(demo / "files" / "runs" / "weak.kwslist.xml"), str(tmp_path / "weak.csv"))
    columns = ["query", "document", "channel", "start", "duration", "score", "decision"]
    read = pd.read_csv(tmp_path / "weak.csv")[columns].sort_values(columns).reset_index(drop=True)
    found = archive.table("detections", "weak").to_pandas()[columns].astype({"query": str, "document": str})
    found = found.astype({"decision": str}).sort_values(columns).reset_index(drop=True)
    pd.testing.assert_frame_equal(found, read, check_dtype=False)


def test_unknown_documents_have_their_ids() -> None:
    document = [{"document": "a", "duration": 9.0}]
    spoken = [{"query": "q", "document": "a", "start": 1.0, "duration": 1.0}]
    evaluation = sws.open(
        documents=document, occurrences=spoken, settings={"evaluation": {"unknown_documents": "outside"}}
    )
    rows = [
        {"system": s, "query": "q", "document": d, "start": 0.0, "duration": 1.0, "score": 0.5}
        for s, d in (("x", "z"), ("x", "a"), ("y", "b"), ("y", "z"))
    ]
    scorer = sws.Scorer(evaluation, "mtwv")
    scorer.update(rows)
    held = sws.Evaluation(scorer._runs.archive(), evaluation.settings)
    found = held.table("detections").select(["system", "document"]).to_pylist()
    assert sorted((row["system"], row["document"]) for row in found) == [("x", "a"), ("x", "z"), ("y", "b"), ("y", "z")]


def test_a_query_of_duckdb_over_the_stream(archive: sws.Evaluation) -> None:
    detections = archive.detections()
    counted = duckdb.sql("SELECT system, count(*) FROM detections GROUP BY system").fetchall()
    assert detections.schema.names[:3] == ["system", "query", "document"]
    assert dict(counted) == {run.system: run.rows for run in archive.archive.runs}


@pytest.mark.parametrize("form", FORMS)
def test_rows_do_not_become_python_objects(form: str) -> None:
    rows = 200_000
    rng = np.random.default_rng(0)
    names = {column: pa.array(["a", "b"]).take(pa.array(rng.integers(0, 2, rows))) for column in ("query", "document")}
    numbers = {"start": rng.random(rows) * 20, "duration": np.full(rows, 0.5), "score": rng.random(rows)}
    table = FORMS[form](pa.table({**names, **numbers}))
    documents = [{"document": "a", "duration": 30.0}, {"document": "b", "duration": 30.0}]
    spoken = [{"query": q, "document": "a", "start": 1.0, "duration": 1.0} for q in ("a", "b")]
    evaluation = sws.open(documents=documents, occurrences=spoken)
    sws.score(evaluation, "mtwv", runs=table[:10])
    before = sys.getallocatedblocks()
    most = 0

    def look(frame: Any, event: str, argument: Any) -> None:
        nonlocal most
        if event == "c_return":
            most = max(most, sys.getallocatedblocks())

    sys.setprofile(look)
    try:
        result = sws.score(evaluation, "n_detections", runs=table)
    finally:
        sys.setprofile(None)
    assert result.scores["value"].max() == rows
    assert most - before < rows / 10


def test_numbers_of_a_table_are_not_copied() -> None:
    score = np.random.default_rng(0).random(1000)
    for table in (
        pa.table({"score": score}),
        pl.DataFrame({"score": pl.Series(score)}),
        pd.DataFrame({"score": score}),
    ):
        (run,) = given_runs({"x": table}).sources
        assert isinstance(run, TableRun)
        (chunk,) = run.table["score"].chunks
        held = table["score"].to_numpy() if not isinstance(table, pa.Table) else score
        assert chunk.buffers()[1].address == held.__array_interface__["data"][0]


def test_arguments_of_a_wrong_kind_are_named(demo: Path, tmp_path: Path) -> None:
    evaluation = sws.open(demo / "archive")
    table = pd.DataFrame({"query": ["a"], "document": ["b"], "score": [1.0]})
    wrong: list[tuple[str, Callable[[], object]]] = [
        ("expected files; found a table in memory", lambda: sws.validate(table)),
        ("expected names and measures; found \\['atwv'\\]", lambda: sws.score(evaluation, [["atwv"]])),
        ("expected names; found None", lambda: sws.score(evaluation, "atwv", by=[None])),
        (
            "expected a Result, .*; found DataFrame",
            lambda: sws.write(table, tmp_path / "out"),
        ),
        ("expected a frame shift in seconds, e.g. 0.01; found '0.01'", lambda: sws.validate([], frame_shift="0.01")),
    ]
    for message, call in wrong:
        with pytest.raises(sws.SettingsError, match=message):
            call()
    with pytest.raises(sws.ArchiveError, match="expected an archive; found none"):
        sws.history(tmp_path / "nowhere")
