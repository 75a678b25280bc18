"""Evaluations and runs in memory: the same numbers as from files, and messages that name the row."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import swsdask as sws
from swsdask.formats.reference.nist_xml import MOST_TOKENS, token
from swsdask.model.system_rows import SystemRows
from swsdask.model.units import INFINITE
from tests import engines
from tests.results import made_up, made_up_result
from tests.small_evaluation import Files

DOCUMENTS = pd.DataFrame(
    {"document": ["a.wav", "b"], "duration": [30.0, 30.0], "source_type": ["bnews", "cts"], "language": "english"}
)
OCCURRENCES = pd.DataFrame(
    {
        "query": ["K1", "K1", "K2"],
        "document": ["a", "b", "a"],
        "start": [1.0, 2.0, 5.0],
        "duration": [1.0, 1.0, 0.5],
        "speaker": ["ann", "bob", "ann"],
    }
)
QUERIES = ["K3", "K2", "K1"]
RUN = pd.DataFrame(
    {
        "query": ["K1", "K1", "K2", "K2"],
        "document": ["a", "b", "a", "b"],
        "start": [1.1, 20.0, 5.0, 9.0],
        "duration": [0.8, 0.5, 0.5, 0.5],
        "score": [0.9, 0.2, 0.7, 0.6],
        "decision": ["YES", "NO", "YES", "YES"],
    }
)


class Exported:
    """A table of another library: it can do nothing but export itself."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._table = pa.Table.from_pandas(frame, preserve_index=False)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


FORMS = {
    "pandas": lambda frame: frame,
    "categories": lambda frame: frame.astype({"document": "category"}),
    "many unused categories": lambda frame: frame.assign(
        document=pd.Categorical(frame["document"], [*map("unused {}".format, range(99)), *frame["document"].unique()])
    ),
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "large strings": lambda frame: pa.Table.from_pandas(frame, preserve_index=False).cast(
        pa.schema([(name, pa.large_string() if name == "document" else kind) for name, kind in _types(frame)])
    ),
    "capsule": Exported,
    "polars": lambda frame: pl.from_arrow(pa.Table.from_pandas(frame, preserve_index=False)),
    "nullable": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "dictionaries": lambda frame: frame.to_dict("records"),
    "rows drawn once": lambda frame: iter(frame.to_dict("records")),
    "columns": lambda frame: frame.to_dict("list"),
    "series": dict,
    "arrays": lambda frame: {name: frame[name].to_numpy() for name in frame},
}


def _types(frame: pd.DataFrame) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in pa.Schema.from_pandas(frame)]


def in_memory(**more: Any) -> sws.Evaluation:
    return sws.open(documents=DOCUMENTS, occurrences=OCCURRENCES, queries=QUERIES, **more)


@pytest.mark.parametrize("form", FORMS)
def test_the_same_numbers_as_from_files(files: Files, form: str) -> None:
    expected = sws.score(files.reference, runs={"first": files.run}, by="source_type")
    evaluation = sws.open(
        documents=FORMS[form](DOCUMENTS), occurrences=FORMS[form](OCCURRENCES), queries=["K1", "K2", "K3"]
    )
    result = sws.score(evaluation, runs={"first": FORMS[form](RUN)}, by="source_type")
    assert engines.parquet(result.table) == engines.parquet(expected.table)
    assert engines.parquet(result.curve_table) == engines.parquet(expected.curve_table)


@pytest.mark.parametrize("filters", [["charsplit"], ["charsplit", "notascii"], ["charsplit", "deletehyphens"]])
@pytest.mark.parametrize("compat", ["none", "kwseval", "stdeval"])
def test_no_setting_of_the_term_finder_moves_an_occurrence(filters: list[str], compat: str) -> None:
    renamed = {"K1": "one two", "K2": "One-two", "K3": "ONE"}
    evaluation = sws.open(
        documents=DOCUMENTS,
        occurrences=OCCURRENCES.replace(renamed),
        queries=list(renamed.values()),
        compat=compat,
        settings={"evaluation": {"text_filters": filters}},
    )
    scores = sws.score(evaluation, ["n_target"], runs=RUN.replace(renamed)).scores
    counted = dict(zip(scores["query"], scores["value"], strict=True))
    assert {name: count for name, count in counted.items() if isinstance(name, str) and count} == {
        "one two": 2,
        "One-two": 1,
    }


def test_the_rule_of_mediaeval_finds_them_too() -> None:
    """It looks for ids among the words, and these words are none."""
    own, theirs = (in_memory(preset="quesst2014", compat=compat) for compat in ("none", "mediaeval"))
    counted = sws.score(theirs, ["n_target"], runs=RUN).scores["value"].tolist()
    assert counted == sws.score(own, ["n_target"], runs=RUN).scores["value"].tolist()
    assert counted[0] == len(OCCURRENCES[["query", "document"]].drop_duplicates()) > 0


def test_occurrences_that_are_given_twice_are_noted() -> None:
    twice = pd.concat([OCCURRENCES, OCCURRENCES[:1]])
    for compat, targets, fate in (("none", 3, "they count once"), ("kwseval", 4, "compat=kwseval counts them again")):
        evaluation = sws.open(documents=DOCUMENTS, occurrences=twice, queries=QUERIES, compat=compat)
        result = sws.score(evaluation, ["n_target"], runs=RUN)
        assert result.scores["value"][0] == targets
        assert f"The reference repeats 1 record of words: {fate}." in result.notes
    assert not [note for note in sws.score(in_memory(), runs=RUN).notes if "repeats" in note]


def test_names_of_one_document_and_rounded_times_of_the_reference_are_noted(tmp_path: Path) -> None:
    names = {"b": "dev/b.wav", "a.wav": "a.wav"}
    documents = DOCUMENTS.replace(names)
    documents = pd.concat([documents, documents[1:].replace({"dev/b.wav": "eval/b.sph"}), documents[:1]])
    documents["duration"] += [0.0, 0.00004, 0.00004, 0.0]
    evaluation = sws.open(documents=documents, occurrences=OCCURRENCES, queries=QUERIES)
    joined = (
        "Names of one document in the reference, which differ only in folder or extension: dev/b.wav and eval/b.sph."
    )
    rounded = "Times of the reference that are finer than 0.1 ms and were rounded: 2."
    archive = sws.ingest(tmp_path / "archive", documents=documents, occurrences=OCCURRENCES, runs=RUN)
    for source, runs in ((evaluation, RUN), (archive.storage.url, None)):
        notes = sws.score(source, "n_target", runs=runs).notes
        assert joined in notes
        assert rounded in notes
    assert not [note for note in sws.score(in_memory(), runs=RUN).notes if "Names of one" in note or "finer" in note]


def test_names_of_one_document_in_a_run_are_noted(tmp_path: Path) -> None:
    several = pd.concat([RUN, RUN.assign(document="eval/" + RUN["document"] + ".wav")])
    several.to_csv(tmp_path / "run.csv", index=False)
    several.to_parquet(tmp_path / "run.parquet")
    rows = [
        f'<term file="{row.document}" channel="1" tbeg="{row.start}" dur="{row.duration}" score="{row.score}" '
        'decision="YES"/>'
        for row in several.itertuples()
    ]
    lists = "".join(
        f'<detected_termlist termid="{query}" term_search_time="1" oov_term_count="0">{"".join(rows)}'
        "</detected_termlist>"
        for query in several["query"][:1]
    )
    (tmp_path / "run.stdlist.xml").write_text(
        f'<stdlist termlist_filename="t" indexing_time="1" language="english" index_size="1" system_id="s">{lists}'
        "</stdlist>"
    )
    runs = {"memory": several, **{end: f"{tmp_path}/run.{end}" for end in ("csv", "parquet", "stdlist.xml")}}
    archive = sws.ingest(tmp_path / "a", documents=DOCUMENTS, occurrences=OCCURRENCES, queries=QUERIES, runs=runs)
    for notes in (
        sws.score(in_memory(), "n_target", runs=runs).notes,
        sws.score(archive.storage.url, "n_target").notes,
    ):
        (joined,) = (note for note in notes if "names of one document" in note)
        assert "in the run, which differ only in folder or extension" in joined
        assert "4 systems" in joined
    (one,) = (note for note in sws.score(in_memory(), "n_target", runs={"m": several}).notes if "names of one" in note)
    assert one.startswith("m: names of one document in the run, which differ only in folder or extension: ")
    first = RUN["document"].iloc[0]
    assert f"{first} and eval/{first}.wav" in one


def test_a_run_without_detections_and_one_that_is_wholly_outside_are_noted() -> None:
    outside = RUN.assign(start=25.0, duration=100.0)
    runs = {"none": RUN[:0], "outside": outside, "partly": RUN.assign(start=[1.1, 20.0, 5.0, 99.0])}
    notes = sws.score(in_memory(), "atwv", runs=runs).notes
    assert "none: the run has no detections." in notes
    assert "outside: dropped: 4 detections outside the evaluated excerpts, all that the run has." in notes
    assert "partly: dropped: 1 detection outside the evaluated excerpts." in notes


def test_ids_of_documents_with_folder_and_extension_in_a_table_without_times() -> None:
    trials = pd.DataFrame({"query": ["K1"], "document": ["audio/a.wav"], "score": [0.5]})
    evaluation = sws.open(documents=DOCUMENTS, occurrences=OCCURRENCES, settings={"evaluation": {"trials": "document"}})
    with pytest.raises(sws.InputError, match=r"have no folder and no extension: write a for audio/a\.wav"):
        sws.score(evaluation, "map", runs=trials)


def test_the_name_of_a_system_that_is_no_id() -> None:
    with pytest.raises(sws.InputError, match="or name the system of the file: NAME=FILE"):
        sws.score(in_memory(), "mtwv", runs=RUN.assign(system="a/b"))


def test_several_tables_and_systems_in_one() -> None:
    both = pd.concat([RUN.assign(system="x"), RUN.assign(system="y", score=-RUN["score"])])
    by_name = sws.score(in_memory(), ["mtwv"], runs={"x": RUN, "y": RUN.assign(score=-RUN["score"])})
    for runs in (both, [both], (RUN.assign(system="x"), RUN.assign(system="y", score=-RUN["score"]))):
        assert sws.score(in_memory(), ["mtwv"], runs=runs).table.equals(by_name.table)


def test_a_plan_of_many_systems_counts_those_that_it_does_not_name() -> None:
    lines = sws.plan(in_memory(), ["mtwv"], runs={f"s{number:02}": RUN for number in range(25)}).splitlines()
    assert [line for line in lines if line.startswith("s19")] == [f"s19: {len(RUN)} detections"]
    assert f"and 5 systems more: {5 * len(RUN)} detections" in lines
    assert not any("s20" in line for line in lines)


def test_runs_by_column_of_several_systems() -> None:
    """A dictionary of columns is a table wherever a DataFrame is."""
    frames = {"x": RUN, "y": RUN.assign(score=-RUN["score"])}
    expected = sws.score(in_memory(), ["mtwv"], runs=frames)
    columns = {name: frame.to_dict("list") for name, frame in frames.items()}
    for runs in (columns, [frame.assign(system=name).to_dict("list") for name, frame in frames.items()]):
        assert sws.score(in_memory(), ["mtwv"], runs=runs).table.equals(expected.table)


@pytest.mark.parametrize("queries", [pd.Series(QUERIES), pl.Series(QUERIES), pa.array(QUERIES), iter(QUERIES)])
def test_the_ids_of_queries_may_be_any_column(queries: Any) -> None:
    evaluation = sws.open(documents=DOCUMENTS, occurrences=OCCURRENCES, queries=queries)
    assert evaluation.table("queries")["query"].to_pylist() == sorted(QUERIES)


def test_more_queries_than_there_are_private_characters() -> None:
    queries = [f"q{number:06d}" for number in range(140_000)]
    chosen = [queries[number] for number in (0, 65_533, 65_534, 131_068, 139_999)]
    occurrences = pd.concat([OCCURRENCES[:1].assign(query=query) for query in chosen])
    evaluation = sws.open(documents=DOCUMENTS, occurrences=occurrences, queries=queries)
    assert evaluation.table("occurrences")["query"].to_pylist() == chosen


@pytest.mark.parametrize("number", [0, 65_533, 65_534, 131_067, 131_068, MOST_TOKENS - 1])
def test_no_text_has_the_character_of_a_query(number: int) -> None:
    text = token(number)
    assert unicodedata.category(text) in ("Co", "Cn")
    assert text.split() == [text.lower()] == [text.casefold()] == [text]
    assert text.encode().decode() == text


def test_attributes_of_queries_make_conditions() -> None:
    queries = pd.DataFrame({"query": ["K1", "K2", "K3"], "kind": ["long", "short", None]})
    evaluation = sws.open(documents=DOCUMENTS, occurrences=OCCURRENCES, queries=queries)
    result = sws.score(evaluation, ["n_target"], runs=RUN, by="kind")
    assert set(result.scores["condition"]) >= {"all", "kind=long", "kind=short"}


def test_ingest_and_other_calls_take_tables(tmp_path: Path, files: Files) -> None:
    archive = sws.ingest(tmp_path / "archive", files.reference, runs={"first": RUN})
    assert [run.rows for run in archive.runs] == [4]
    stored = sws.score(tmp_path / "archive", ["mtwv"])
    assert stored.table.equals(sws.score(in_memory(), ["mtwv"], runs={"first": RUN}).table)
    assert sws.calibrate(files.reference, RUN)([0.9])[0] > sws.calibrate(files.reference, RUN)([0.2])[0]


def test_an_archive_of_tables(tmp_path: Path) -> None:
    """The reference in tables is written as it is opened; given again, nothing changes."""
    given = {"documents": DOCUMENTS, "occurrences": OCCURRENCES, "queries": QUERIES}
    for _ in range(2):
        archive = sws.ingest(tmp_path / "archive", **given, runs={"first": RUN})
        assert archive.version == 1
    stored = sws.score(tmp_path / "archive", by="source_type")
    assert engines.parquet(stored.table) == engines.parquet(
        sws.score(in_memory(), runs={"first": RUN}, by="source_type").table
    )
    with pytest.raises(sws.ArchiveError, match="the reference that this archive was made with"):
        sws.ingest(tmp_path / "archive", **(given | {"occurrences": OCCURRENCES[:2]}))
    judged = sws.ingest(tmp_path / "judged", qrels={"q": {"d1": 1, "d2": 0}}, runs={"a": {"q": {"d1": 0.5, "d2": 0.7}}})
    assert sws.score(tmp_path / "judged", "map").scores["value"].tolist() == [0.5]
    assert judged.version == 1


def test_the_end_of_a_detection_in_place_of_its_duration(tmp_path: Path) -> None:
    """The end is start + duration in decimal digits; beside a duration it does not count."""
    ends = RUN.drop(columns="duration").assign(end=[1.9, 20.5, 5.5, 9.5])
    both = RUN.assign(end=0.0)
    expected = sws.score(in_memory(), ["atwv", "mtwv"], runs=RUN, alignment=True)
    ends.to_csv(tmp_path / "run.csv", index=False)
    for run in (ends, both, tmp_path / "run.csv"):
        found = sws.score(in_memory(), ["atwv", "mtwv"], runs=run, alignment=True)
        assert found.table.equals(expected.table)
        assert found.alignment_table == expected.alignment_table


def test_scores_by_query_and_document() -> None:
    """As other tools take runs: the same numbers as of a table."""
    scores = {"q1": {"d1": 0.3, "d2": 0.2}, "q2": {"d3": 0.1, "d1": 0.9}}
    evaluation = sws.open(qrels={"q1": {"d2": 1, "d1": 0}, "q2": {"d3": 2, "d1": 0}}, preset="trec")
    rows = [{"query": q, "document": d, "score": s} for q, given in scores.items() for d, s in given.items()]
    by_pair = sws.score(evaluation, ["map", "ndcg"], runs={"a": scores})
    assert by_pair.table.equals(sws.score(evaluation, ["map", "ndcg"], runs={"a": rows}).table)
    assert by_pair.scores["value"][0] == 0.5
    alone = sws.score(evaluation, ["map", "ndcg"], runs=scores).scores
    assert alone["value"].tolist() == by_pair.scores["value"].tolist()


class Qrel(NamedTuple):
    """A judgment as ir_measures has it."""

    query_id: str
    doc_id: str
    relevance: int


class ScoredDoc(NamedTuple):
    """A document of a run as ir_measures has it."""

    query_id: str
    doc_id: str
    score: float


def test_judgments_and_runs_as_ranx_and_ir_measures_name_them() -> None:
    """ranx has q_id, doc_id, score, in judgments too; ir_measures query_id, doc_id, and named tuples."""
    judged = [Qrel("q1", "d1", 0), Qrel("q1", "d2", 1), Qrel("q2", "d3", 2)]
    found = [ScoredDoc("q1", "d1", 0.3), ScoredDoc("q1", "d2", 0.2), ScoredDoc("q2", "d3", 0.1)]
    in_ranx = {"query_id": "q_id", "relevance": "score"}
    pairs = [
        (judged, found),
        (pd.DataFrame(judged), pd.DataFrame(found)),
        (pd.DataFrame(judged).rename(columns=in_ranx), pd.DataFrame(found).rename(columns=in_ranx)),
    ]
    for qrels, run in pairs:
        scores = sws.score(sws.open(qrels=qrels, preset="trec"), ["map"], runs=run).scores
        assert scores["value"].tolist() == [0.75]


def test_judgments_in_memory() -> None:
    qrels = {"q1": {"d/1": 1, "d/2": 0}, "q2": {"d/3": 2}}
    rows = [{"query": q, "document": d, "relevance": r} for q, judged in qrels.items() for d, r in judged.items()]
    run = pd.DataFrame({"query": ["q1", "q1", "q2"], "document": ["d/1", "d/2", "d/4"], "score": [0.1, 0.2, 0.3]})
    for judged in (qrels, rows, pd.DataFrame(rows)):
        evaluation = sws.open(qrels=judged, collection=run, preset="trec")
        assert sws.score(evaluation, ["map"], runs=run).scores["value"].tolist() == [0.25]
    graded = pd.DataFrame(rows).assign(relevance=["1", "high", "2"])
    with pytest.raises(sws.InputError, match=r"qrels:2: expected a whole number as relevance; found 'high'"):
        sws.open(qrels=graded)


def test_rows_as_dictionaries_need_not_have_the_same_keys() -> None:
    """A key that the first row lacks is a column all the same, empty in that row."""
    rows = [dict(row) for row in RUN.to_dict("records")]
    evaluation = sws.open(documents=DOCUMENTS, occurrences=OCCURRENCES, queries=QUERIES)
    with pytest.raises(sws.InputError, match="run: expected a channel; found a row without channel in row 1"):
        sws.score(evaluation, runs=[rows[0], *({**row, "channel": 1} for row in rows[1:])])
    later = [{"query": "K1"}, {"query": "K2", "oov": True}, {"query": "K3", "oov": False}]
    evaluation = sws.open(documents=DOCUMENTS, occurrences=OCCURRENCES, queries=later)
    found = sws.score(evaluation, ["n_queries"], runs=rows, by=["oov"]).scores
    assert set(found["condition"]) == {"all", "oov=true", "oov=false"}


def test_systems_may_have_numbers_as_names() -> None:
    """Seeds and folds, as the keys of a groupby are."""
    evaluation = sws.open(documents=DOCUMENTS, occurrences=OCCURRENCES, queries=QUERIES)
    runs: dict[Any, Any] = {0: RUN, np.int64(1): RUN}
    assert sws.score(evaluation, "mtwv", runs=runs).leaderboard().index.tolist() == ["0", "1"]
    with pytest.raises(sws.SettingsError, match="two are named '1'"):
        sws.score(evaluation, runs={1: RUN, "1": RUN[:1]})  # type: ignore[dict-item]
    for key in (None, "", True):
        with pytest.raises(sws.SettingsError, match="expected the name of a system"):
            sws.score(evaluation, runs={key: RUN})


def test_arguments_of_other_types_are_named() -> None:
    given: dict[str, Any] = {"documents": DOCUMENTS, "occurrences": OCCURRENCES, "queries": QUERIES}
    evaluation = sws.open(**given)
    for wrong, message in (
        ({"preset": ["sws2013"]}, "preset: expected a name"),
        ({"preset": ""}, "preset '' is unknown"),
        ({"compat": ""}, "compat"),
        ({"settings": "sws2013"}, "settings: expected a dictionary"),
        ({"settings": {"evaluation": {"compat": ["kwseval"]}}}, "compat"),
    ):
        with pytest.raises(sws.SettingsError, match=message):
            sws.open(**given, **wrong)
    with pytest.raises(
        sws.SettingsError, match=r"expected an executor, its name, its file or the address of a scheduler .*; found 4"
    ):
        sws.score(evaluation, runs=RUN, executor=4)  # type: ignore[arg-type]
    with (
        pytest.raises(sws.SettingsError, match=r"of a Dask client: client\.scheduler\.address\); found 4"),
        sws.cluster(4),  # type: ignore[arg-type]
    ):
        pass
    with pytest.raises(sws.SettingsError, match="No measure is named"):
        sws.score(evaluation, [], runs=RUN)
    with pytest.raises(sws.SettingsError, match=r"engine\.workers"), sws.cluster("threads", workers=0):
        pass
    with pytest.raises(sws.SettingsError, match="definition is 'foo'"):
        sws.validate("x", definition="foo")  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [[["a"], [], ["b"]], [{"a": 1}] * 3, [b"\xff"] * 3])
def test_an_attribute_that_has_no_text(values: list[object]) -> None:
    queries = pa.table({"query": ["K1", "K2", "K3"], "examples": values})
    with pytest.raises(
        sws.InputError, match=r"queries: expected text or numbers in column 'examples'; .* Leave it out"
    ):
        sws.open(documents=DOCUMENTS, occurrences=OCCURRENCES, queries=queries)


UNKNOWN = RUN.replace("K1", "K9")
MESSAGES = {
    "run: expected a score; found a row without score in row 2": {"runs": RUN.assign(score=[1, None, 2, 3])},
    "run: expected a score below 1.797e308; found '-1.79.*' in row 4": {"runs": RUN.assign(score=[1, 2, 3, -INFINITE])},
    "run x: expected the columns .*, no start": {"runs": {"x": RUN.drop(columns="start")}},
    "run 2: expected a query of the list; found 'K9' in 2 rows": {"runs": [RUN.assign(system="a"), UNKNOWN]},
    "run: expected text or numbers in column score": {"runs": RUN.assign(score=pd.Timestamp("2026-01-01"))},
    "occurrences:3: expected a start of 0 or more seconds": {"occurrences": OCCURRENCES.assign(start=[1, 2, -5.0])},
    "occurrences: expected a column duration or end": {"occurrences": OCCURRENCES.drop(columns="duration")},
    "occurrences:2: expected a query; found a row without query": {
        "occurrences": OCCURRENCES.assign(query=["K1", None, "K2"])
    },
    "occurrences:3: expected a document; found a row without document": {
        "occurrences": OCCURRENCES.assign(document=["a", "b", None])
    },
    "documents:1: expected a document; found a row without document": {
        "documents": DOCUMENTS.assign(document=[None, "b"])
    },
    "run: expected each column once; found 'score' twice. Leave one out": {
        "runs": pa.Table.from_pandas(RUN).append_column("score", pa.array([1.0, 2.0, 3.0, 4.0]))
    },
    "run: expected .* one type each.*; found float in row 3 after str in column 'score'": {
        "runs": [
            {**row, "score": score} for row, score in zip(RUN.to_dict("records"), (None, "1", 2.0, 3), strict=True)
        ]
    },
    "occurrences:1: expected a query of the list; found 'K1'": {"queries": ["K2"]},
    "documents:2: expected a duration of more than 0 seconds": {"documents": DOCUMENTS.assign(duration=[1.0, 0.0])},
    "documents: expected the columns document; found 'file, .*, no document. Name the columns so": {
        "documents": DOCUMENTS.rename(columns=str.upper).rename(columns={"DOCUMENT": "file"})
    },
    "run: expected the columns .*, no score. Rename 'Scroe' to score": {"runs": RUN.rename(columns={"score": "Scroe"})},
    "occurrences: .*Rename 'querys' to query, 'Documents' to document": {
        "occurrences": OCCURRENCES.rename(columns={"query": "querys", "document": "Documents"}).assign(x=1)
    },
    "run: expected an end; found a row without end in row 3": {
        "runs": RUN.drop(columns="duration").assign(end=[2.0, 21.0, None, 10.0])
    },
    "run: expected an end after the start; found end 0.1 with start 1.1 in row 1": {
        "runs": RUN.drop(columns="duration").assign(end=[0.1, 21.0, 6.0, 10.0])
    },
    "run: expected the decision YES or NO; found '1' in row 1.* may have booleans": {"runs": RUN.assign(decision=1)},
    "run 1: expected a DataFrame, .*; found the type int": {"runs": 3},
    "run 1: expected a DataFrame, .*; found the type ndarray": {"runs": RUN.to_numpy()},
    "run: expected .* equally long; found .*expected length 4 but got length 3": {
        "runs": {**RUN.to_dict("list"), "score": [0.1, 0.2, 0.3]}
    },
    "run: expected .*; found str in row 2 after float in column 'score'": {
        "runs": {**RUN, "score": [0.1, "high", 0.3, 0.2]}
    },
    "run x: expected each column once; found 'score' twice. Leave one out": {
        "runs": {"x": pd.concat([RUN, RUN["score"]], axis=1)}
    },
    "occurrences: expected each column once; found 'start' twice": {
        "occurrences": pd.concat([OCCURRENCES, OCCURRENCES["start"]], axis=1)
    },
    "run 1: expected a DataFrame, .* or a dictionary of columns; found the type Series": {"runs": [RUN["score"]]},
    "documents: expected at least one document; found none": {"documents": DOCUMENTS[:0]},
    "queries: expected a DataFrame, .*; found the type dict": {"queries": {"K1": "one", "K2": "two", "K3": "three"}},
    "run x: expected {query: {document: score}}, .*; found": {"runs": {"x": {"K1": 0.5}, "y": RUN}},
    "documents: expected a DataFrame, .*; found a list with .*'a'": {"documents": ["a", "b"]},
    "queries:2: expected a query once; found 'K1' again": {"queries": pd.DataFrame({"query": ["K1", "K1", "K2"]})},
}


@pytest.mark.parametrize("message", MESSAGES)
def test_what_is_wrong_is_named_with_its_row(message: str) -> None:
    given: dict[str, Any] = {"documents": DOCUMENTS, "occurrences": OCCURRENCES, "queries": QUERIES, "runs": RUN}
    given |= MESSAGES[message]
    with pytest.raises(sws.InputError, match=message):
        sws.score(
            sws.open(**{name: given[name] for name in ("documents", "occurrences", "queries")}), runs=given["runs"]
        )


def test_tables_and_files_of_a_reference_do_not_mix(files: Files) -> None:
    with pytest.raises(sws.SettingsError, match="documents need occurrences, a table of query, document, start"):
        sws.open(documents=DOCUMENTS)
    with pytest.raises(sws.SettingsError, match="occurrences need documents, a table of document and duration"):
        sws.open(occurrences=OCCURRENCES)
    with pytest.raises(sws.SettingsError, match="remove the other reference arguments"):
        sws.open(files.reference, documents=DOCUMENTS, occurrences=OCCURRENCES)
    with pytest.raises(sws.SettingsError, match="queries in memory"):
        sws.open(ecf="x", rttm="y", queries=QUERIES)


def test_a_table_in_place_of_an_evaluation(tmp_path: Path) -> None:
    for call in (sws.open, sws.score, sws.ingest, partial(sws.ingest, tmp_path / "archive")):
        with pytest.raises(sws.SettingsError, match=r"found the type DataFrame\. Tables are given by name: documents"):
            call(DOCUMENTS)


def test_a_leaderboard_is_wide_and_ranked() -> None:
    result = sws.score(in_memory(), runs={"worse": RUN.assign(score=-RUN["score"]), "better": RUN})
    board = result.leaderboard(["mtwv", "mtwv_p_fa", "map"])
    assert board.index.tolist() == ["better", "worse"]
    assert board.columns.tolist() == ["mtwv", "mtwv_p_fa", "map"]
    overall = result.scores[result.scores["query"].isna()]
    for system, row in board.iterrows():
        for measure, value in row.items():
            same = (overall["system"] == system) & (overall["measure"] == measure)
            assert overall.loc[same, "value"].item() == value
    assert set(result.leaderboard().columns) == set(overall["measure"])


def test_tables_for_papers() -> None:
    result = sws.score(in_memory(), ["mtwv", "map"], runs={"worse_one": RUN.assign(score=-RUN["score"]), "better": RUN})
    board = result.leaderboard().map("{:.4f}".format)
    assert result.to_markdown().splitlines() == [
        "| System | MTWV | MAP |",
        "| --- | ---: | ---: |",
        f"| better | **{board['mtwv']['better']}** | **{board['map']['better']}** |",
        f"| worse_one | {board['mtwv']['worse_one']} | {board['map']['worse_one']} |",
    ]
    latex = result.to_latex()
    assert r"\toprule" in latex
    assert r"worse\_one" in latex
    assert rf"\textbf{{{board['mtwv']['better']}}}" in latex
    shown = result._repr_html_()
    assert "<table" in shown
    assert "MTWV" in shown
    assert "worse_one" in shown


def test_a_notebook_shows_the_first_systems_and_conditions() -> None:
    targets = [3, 2]
    systems = [made_up(f"s{k:02}", 1.0, targets, k) for k in range(61)]
    shown = made_up_result(systems, targets, {f"part={k:02}": [k % 2] for k in range(20)})._repr_html_()
    assert (shown.count("<table"), shown.count("<tr>")) == (12, 12 * 61)
    assert "<p>60 of 61 systems and 12 of 21 conditions; <code>" in shown
    whole = made_up_result(systems[:60], targets)._repr_html_()
    assert (whole.count("<tr>"), "has all" in whole) == (61, False)


def test_names_are_escaped_in_markdown_and_latex() -> None:
    """Markdown takes _ between letters as it is; LaTeX's < and > are other signs in its old encoding of fonts."""
    result = sws.score(in_memory(), ["mtwv"], runs={"_a_b*<i>|50%&x": RUN})
    assert result.to_markdown().splitlines()[2].startswith(r"| \_a_b\*\<i>\|50%\&x | ")
    assert r"\_a\_b*\textless{}i\textgreater{}\textbar{}50\%\&x & " in result.to_latex()


def test_names_are_escaped_in_html() -> None:
    result = sws.score(in_memory(), ["mtwv"], runs={"<script>": RUN})
    assert "<script>" not in result._repr_html_()
    assert "&lt;script&gt;" in result._repr_html_()


def test_every_table_is_a_data_frame_and_arrow(files: Files) -> None:
    result = sws.score(files.reference, runs={"a": files.run, "b": files.run}, alignment=True)
    compared = sws.compare(files.reference, "atwv", runs={"a": files.run, "b": files.run}, replicates=50)
    for given, names in (
        (result, ("scores", "curves", "alignment", "query_texts")),
        (compared, ("intervals", "differences")),
        (sws.errors(files.reference, runs=files.run), ("queries", "events")),
    ):
        for name in names:
            frame = getattr(given, name)
            assert isinstance(frame, pd.DataFrame)
            assert len(frame)
            assert given.to_arrow(name).to_pandas().equals(frame)
            assert not any(pa.types.is_dictionary(field.type) for field in given.to_arrow(name).schema)
        first = getattr(given, names[0])
        assert given.to_arrow().to_pandas().equals(first)
        assert pa.table(given).to_pandas().equals(first)
    parts = sws.score(files.reference, runs=files.run, by=["source_type", "n_words"])
    assert parts.table.to_pandas()["measure"].tolist() == parts.scores["measure"].tolist()
    assert len(parts.curve_table.to_pandas()) == len(parts.curves)
    with pytest.raises(sws.SettingsError, match=r"no table 'curve' here\. There are: scores, curves, alignment"):
        result.to_arrow("curve")
    plain = sws.score(files.reference, runs=files.run)
    assert plain.alignment is None
    with pytest.raises(sws.SettingsError, match="no table 'alignment'"):
        plain.to_arrow("alignment")


@pytest.mark.parametrize(
    ("tool", "how"),
    [
        ("kwseval", {}),
        ("mediaeval", {"preset": "quesst2014"}),
        ("mediaeval", {"preset": "quesst2014", "compat": "mediaeval", "settings": {"evaluation": {"impute": -1.5}}}),
        ("trec_eval", {"preset": "trec"}),
    ],
)
def test_files_of_tools_are_written_system_by_system(
    tool: str, how: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file of one system is made from the rows of all: with hundreds, each would go through millions."""
    evaluation = in_memory(**how)
    result = sws.score(evaluation, runs={"x": RUN, "y": RUN})
    monkeypatch.setattr(SystemRows, "table", property(lambda _: pytest.fail("all rows were decoded")))
    written = sws.write(result, tmp_path, tool=tool, evaluation=evaluation)
    assert {name.partition(".")[0] for name in written} >= {"x", "y"}


@pytest.mark.parametrize("make", [pd.DataFrame, dict, lambda columns: pd.DataFrame(columns).to_dict("records")])
def test_columns_of_mixed_types_are_named(make: Callable[[dict[str, Any]], Any]) -> None:
    columns = {name: RUN[name].tolist() for name in RUN.columns}
    for column, value, found in (("comment", 3, "int in row 2 after str"), ("query", 1, "int in row 2 after str")):
        mixed = make({**columns, column: ["K1", value, *["K1"] * (len(RUN) - 2)]})
        with pytest.raises(sws.InputError, match=f"found {found} in column '{column}'"):
            sws.score(in_memory(), "n_target", runs={"m": mixed})


def test_a_stream_that_breaks_is_named() -> None:
    class Broken:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise ValueError("the stream broke")

    with pytest.raises(sws.InputError, match="found 'the stream broke'"):
        sws.score(in_memory(), "n_target", runs={"m": Broken()})


def test_names_of_one_document_in_a_table_of_several_systems_are_noted() -> None:
    several = pd.concat([RUN, RUN.assign(document="eval/" + RUN["document"] + ".wav")])
    table = pd.concat([several.assign(system=system) for system in ("a", "b")])
    notes = sws.score(in_memory(), "n_target", runs=table).notes
    assert any(note.startswith("both systems: names of one document in the run, which differ only") for note in notes)


@pytest.mark.parametrize("empty", [[], (), {}])
def test_an_empty_list_is_a_system_without_detections(empty: object) -> None:
    none = RUN[:0].drop(columns="decision")
    expected = sws.score(in_memory(), ["mtwv", "map"], runs={"m": none, "n": RUN}).table
    assert sws.score(in_memory(), ["mtwv", "map"], runs={"m": empty, "n": RUN}).table.equals(expected)
    alone = sws.score(in_memory(), ["mtwv", "map"], runs={"m": none}).table
    assert sws.score(in_memory(), ["mtwv", "map"], runs={"m": empty}).table.equals(alone)
    judged = sws.open(qrels={"q1": {"d2": 1}}, preset="trec")
    assert sws.score(judged, runs={"m": empty}).scores.equals(sws.score(judged, runs={"m": none}).scores)


def test_columns_without_rows_are_a_table() -> None:
    """Their names are not taken for systems."""
    with pytest.raises(sws.InputError, match="no document or duration or score"):
        sws.score(in_memory(), "n_target", runs={"query": [], "start": []})
    columns = RUN[:0].to_dict("list")
    assert set(sws.score(in_memory(), "n_target", runs=columns).table["system"].to_pylist()) == {"run"}
