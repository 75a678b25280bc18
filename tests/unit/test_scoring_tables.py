from __future__ import annotations

import math
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.execution.executor import SerialExecutor, Unseen
from swsdask.measures import MEASURES, select
from swsdask.measures.measure import Scored, Values
from swsdask.measures.mediaeval_tool import MediaEvalTool
from swsdask.measures.processing_load import ProcessingLoad
from swsdask.measures.retrieval import GradedRetrieval, JudgedRetrieval
from swsdask.model.name_columns import NAMES, coded, distinct_names, gathered, names_of, places_of, rows_with
from swsdask.model.resources import Phase, Resources
from swsdask.model.results import CURVES, SCORES, Note, Result, note_lines
from swsdask.scoring import score
from swsdask.scoring.result_tables import _in_order, name_column, result_tables
from swsdask.scoring.score import count_archive, score_archive
from swsdask.statistics.counts import Counts
from tests import engines

REFERENCE = engines.evaluation([(0, 0, 1, 10, 14), (1, 1, 1, 30, 34), (2, 1, 1, 5, 9)], [0, 1, 0], n_queries=3)
ROWS = [(0, 0, 1, 10, 4, 0.5, 1, 1), (1, 1, 1, 10, 4, 0.25, 0, 1), (1, 1, 1, 30, 4, 0.75, 1, 1)]
SETTINGS = engines.settings()


def values(condition: str, queries: list[int] | None, **columns: list[float]) -> Values:
    listed = None if queries is None else np.array(queries)
    return Values(condition, listed, {name: np.array(column) for name, column in columns.items()})


class Given:
    """A measure that says what it was given to say."""

    names = ("a", "b@", "c")
    needs = (Counts,)

    def __init__(self, *values: Values) -> None:
        self._values = values

    def values(self, scored: Scored) -> Any:
        yield from self._values


def test_order_of_rows() -> None:
    measures = [
        Given(
            values("first group", None, a=[1.0]),
            values("all", [2], a=[2.0]),
            values("all", [0], **{"b@0.5": [3.0]}),
            values("all", None, a=[math.nan]),
        ),
        Given(values("all", None, c=[4.0]), values("all", [0, 1], c=[5.0, 6.0], a=[7.0, 8.0])),
    ]
    table = result_tables("s", Scored({}, REFERENCE, SETTINGS.evaluation), measures, None)[0]
    rows = [(row["condition"], row["query"], row["measure"]) for row in table.to_pylist()]
    assert rows == [
        ("all", None, "a"),
        ("all", None, "c"),
        ("all", "q0", "b@0.5"),
        ("all", "q0", "c"),
        ("all", "q0", "a"),
        ("all", "q1", "c"),
        ("all", "q1", "a"),
        ("all", "q2", "a"),
        ("first group", None, "a"),
    ]
    assert table.cast(SCORES).num_rows == len(table)


def test_rows_of_one_system_do_not_depend_on_those_of_another() -> None:
    systems = [
        [values("all", [0, 1], a=[1.0, 2.0])],
        [values("all", [1, 0], a=[1.0, 2.0])],
        [values("first group", [0, 1], a=[1.0, 2.0])],
        [values("all", [0, 1], c=[1.0, 2.0])],
        [values("all", [0], a=[1.0]), values("all", [1], a=[2.0])],
        [],
    ]
    apart = []
    for own in systems:
        _in_order.cache_clear()
        apart.append(result_tables("s", Scored({}, REFERENCE, SETTINGS.evaluation), [Given(*own)], None)[0])
    _in_order.cache_clear()
    found = [
        result_tables("s", Scored({}, REFERENCE, SETTINGS.evaluation), [Given(*own)], None)[0]
        for own in [*systems, *systems]
    ]
    assert found == apart * 2
    other = engines.evaluation([(0, 0, 1, 10, 14)], [0, 1, 0], n_queries=2)
    renamed = replace(other, query_ids=("x", "y"))
    of_others = result_tables("s", Scored({}, renamed, SETTINGS.evaluation), [Given(*systems[0])], None)[0]
    assert of_others["query"].to_pylist() == ["x", "y"]


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (["a"], ["a"]),
        (["b@"], ["b@0.5"]),
        (["b@0.5"], ["b@0.5"]),
        (["b@1.0"], []),
        ([], []),
        (["a", "b@"], ["a", "b@0.5"]),
    ],
)
def test_tables_have_only_what_was_requested(names: list[str], kept: list[str]) -> None:
    measure = Given(values("all", None, **{"a": [1.0], "b@0.5": [2.0]}))
    table = result_tables("s", Scored({}, REFERENCE, SETTINGS.evaluation), [measure], names)[0]
    assert table["measure"].to_pylist() == kept
    assert table.cast(SCORES).num_rows == len(table)


def scored(*measures: str) -> Any:
    archive: Any = engines.archive_of({"s": ROWS, "r": []})
    return score_archive(archive, ["s", "r"], REFERENCE, select(measures), SETTINGS, SerialExecutor(), names=measures)


def test_names_are_coded_by_first_appearance_however_they_come() -> None:
    archive: Any = engines.archive_of({"s": ROWS, "r": []})
    tables = score_archive(archive, ["s", "r"], REFERENCE, select(["mtwv"]), SETTINGS, SerialExecutor())
    for table, schema in ((tables.scores.table, SCORES), (tables.curves.table, CURVES)):
        again = coded(table.cast(schema), schema)
        assert again.schema == table.schema
        assert again.equals(table.unify_dictionaries())
        assert {field.type for field in table.schema if field.type != pa.float64()} == {NAMES}
    result = Result(tables.scores, tables.curves, tables.overall, {})
    assert result.to_arrow().schema == SCORES
    assert result.scores.equals(result.to_arrow().to_pandas())


def test_a_column_of_names_from_their_codes() -> None:
    names, codes = ["a", "b", "c", "d"], np.array([2, -1, 0, 2, 0, 3])
    assert name_column(names, codes).type == NAMES
    assert name_column(names, codes).to_pylist() == ["c", None, "a", "c", "a", "d"]
    assert name_column(names, codes[:0]).to_pylist() == []


def test_no_curves_where_nothing_needed_them() -> None:
    tables = scored("n_hit")
    assert tables.curves.num_rows == tables.curves.table.num_rows == 0
    assert tables.alignment is None
    assert set(tables.scores.table["measure"].to_pylist()) == {"n_hit"}


def test_curves_go_from_the_highest_threshold_down_condition_by_condition() -> None:
    rows = [row for row in scored("mtwv").curves.table.to_pylist() if row["system"] == "s"]
    parts = list(dict.fromkeys((row["condition"], row["curve"]) for row in rows))
    names = [condition.name for condition in REFERENCE.conditions]
    kinds = (("det", "det_pooled"), ("precision_recall", "precision_recall_interpolated"))
    assert parts == [(name, curve) for kind in kinds for name in names for curve in kind]
    for part in parts:
        thresholds = [row["threshold"] for row in rows if (row["condition"], row["curve"]) == part]
        assert thresholds == sorted(thresholds, reverse=True)


def test_systems_stay_in_the_given_order_and_notes_name_them() -> None:
    rows = [(*row[:6], -1, row[7]) for row in ROWS]
    archive: Any = engines.archive_of({"z": ROWS, "a": rows})
    tables = score_archive(archive, ["z", "a"], REFERENCE, select(["atwv"]), SETTINGS, SerialExecutor())
    assert list(dict.fromkeys(tables.scores.table["system"].to_pylist())) == tables.scores.systems == ["z", "a"]
    assert [note.split(":")[0] for note in note_lines(tables.notes)] == ["a"]


def noted(n_undecided: int, n_decided: int, *, alike: bool) -> dict[str, Sequence[Note]]:
    """Notes on systems without a decision at all, or at one of their trials."""
    undecided = [[(*row[:6], -1, row[7]) for row in ROWS[: 3 if alike else 1 + number % 2]] for number in range(5)]
    systems = {f"u{number}": undecided[number] for number in range(n_undecided)}
    systems |= {f"d{number}": ROWS for number in range(n_decided)}
    archive: Any = engines.archive_of(systems)
    return score_archive(archive, list(systems), REFERENCE, select(["atwv"]), SETTINGS, SerialExecutor()).notes


def test_notes_on_many_systems_are_one_line() -> None:
    undefined = "without a YES/NO decision: ATWV and other measures of decisions are not defined."
    some = "5 of 6 systems (u0, u1, u2 and 2 more)"
    assert [*note_lines(noted(3, 1, alike=True))] == [f"u{number}: 3 of 3 trials {undefined}" for number in range(3)]
    assert [*note_lines(noted(4, 0, alike=True))] == [f"all 4 systems: 3 of 3 trials {undefined}"]
    assert [*note_lines(noted(4, 0, alike=False))] == [f"all 4 systems, together: 6 trials {undefined}"]
    assert [*note_lines(noted(5, 1, alike=True))] == [f"{some}: 3 of 3 trials {undefined}"]
    apart = noted(5, 1, alike=False)
    assert [*note_lines(apart)] == [f"{some}, together: 7 trials {undefined}"]
    assert [note.text for note in apart["u1"]] == [f"2 of 2 trials {undefined}"]


def test_notes_on_many_systems_may_have_braces() -> None:
    notes = {f"s{number}": [Note.of_count("q{2}{}: ", number, "queries", " {x}.")] for number in range(4)}
    assert [*note_lines(notes)] == ["all 4 systems, together: q{2}{}: 6 queries {x}."]


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_some_conditions_at_a_time_give_the_same_tables(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """Also with resources, which are of the whole evaluation, and a user's measure, which sees all conditions."""
    archive: Any = engines.archive_of({"s": ROWS})
    ((_, found),) = count_archive(archive, ["s"], REFERENCE, MEASURES, SerialExecutor(), SETTINGS.engine, Unseen())
    load = ProcessingLoad(Resources(indexing=Phase(cpu_hours=2)), Fraction(1))
    seen: list[int] = []

    class Own:
        names = ("own",)
        needs = ()

        def values(self, scored: Scored) -> Iterator[Values]:
            seen.append(len(scored.populations))
            for population in scored.populations:
                yield population.overall({"own": float(population.n_queries)})

    families = [*(load if isinstance(each, ProcessingLoad) else each for each in MEASURES), Own()]

    def tables() -> tuple[list[dict[str, object]], list[dict[str, object]]]:
        scores, curves = result_tables("s", Scored(found, REFERENCE, SETTINGS.evaluation), families, None)
        return scores.to_pylist(), curves.to_pylist()

    whole = repr(tables())
    monkeypatch.setattr("swsdask.scoring.result_tables._AT_ONCE", at_once)
    assert repr(tables()) == whole
    assert seen == [len(REFERENCE.conditions)] * 2
    assert "'isf'" in whole


def test_every_measure_is_in_the_table() -> None:
    archive: Any = engines.archive_of({"s": ROWS})
    ((_, found),) = count_archive(archive, ["s"], REFERENCE, MEASURES, SerialExecutor(), SETTINGS.engine, Unseen())
    measured = Scored(found, REFERENCE, SETTINGS.evaluation)
    table, drawn = result_tables("s", measured, MEASURES, None)
    named = {name for measure in MEASURES for name in measure.names if not name.endswith("@")}
    # of runs with resources, under compat mediaeval, and of judgments
    elsewhere = {*ProcessingLoad.names, *MediaEvalTool.names, *GradedRetrieval.names, *JudgedRetrieval.names}
    assert named - elsewhere <= set(table["measure"].to_pylist())
    assert drawn.num_rows > 0


def test_rows_are_found_by_names_whether_these_are_coded_or_not() -> None:
    names = ["a", None, "b", "a", "c"]
    plain = pa.table({"query": pa.array(names), "row": range(5)})
    in_parts = pa.concat_tables([coded(plain.slice(begin, 2), plain.schema) for begin in (0, 2, 4)])
    for table in (plain, in_parts, in_parts.unify_dictionaries()):
        assert places_of(table["query"], ["c", "a", "nobody"]).tolist() == [1, -1, -1, 1, 0]
        assert rows_with(table, query=["a", "b"])["row"].to_pylist() == [0, 2, 3]
        assert rows_with(table, query=[]).num_rows == 0
        assert distinct_names(table["query"]) == ["a", "b", "c"]
        assert names_of(table.filter(pc.is_valid(table["query"]))["query"]) == ["a", "b", "a", "c"]
    assert places_of(plain["query"].slice(0, 0), ["a"]).tolist() == []


def test_chunks_share_columns_of_names() -> None:
    archive: Any = engines.archive_of(dict.fromkeys("abc", ROWS) | {"d": [], "e": ROWS[:1]})
    tables = score_archive(archive, list("abcde"), REFERENCE, select(["mtwv"]), SETTINGS, SerialExecutor())
    scores = tables.scores.table
    scores.validate(full=True)
    measures = [chunk.indices.buffers()[1].address for chunk in scores["measure"].chunks]
    assert len(measures) == 5
    assert len(set(measures[:3])) == 1  # alike: held once
    assert len({chunk.indices.buffers()[1].address for chunk in scores["system"].chunks[:3]}) == 1


def test_results_travel_encoded() -> None:
    archive: Any = engines.archive_of(dict.fromkeys("abc", ROWS))
    tables = score_archive(archive, list("abc"), REFERENCE, select(["mtwv"]), SETTINGS, SerialExecutor())
    buffers: list[pickle.PickleBuffer] = []
    again = pickle.loads(pickle.dumps(tables, protocol=5, buffer_callback=buffers.append), buffers=buffers)
    assert sum(each.raw().nbytes for each in buffers) > sum(own.scores.size for own in tables.systems.values())
    for own, other in ((tables.scores, again.scores), (tables.curves, again.curves)):
        assert own.files == other.files
    assert again.overall.equals(tables.overall)
    assert (again.notes, again.observed, again.alignment) == (tables.notes, tables.observed, None)


def test_results_of_a_large_system_are_encoded_where_they_leave_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    archive: Any = engines.archive_of({"s": ROWS})
    small = score_archive(archive, ["s"], REFERENCE, select(["mtwv"]), SETTINGS, SerialExecutor())
    monkeypatch.setattr(score, "is_small", lambda _: False)
    large = score_archive(archive, ["s"], REFERENCE, select(["mtwv"]), SETTINGS, SerialExecutor())
    own, there = large.systems["s"], pickle.loads(pickle.dumps(large.systems["s"]))
    assert isinstance(own.scores, pa.Table)
    assert isinstance(there.scores, pa.Buffer)
    assert (there.scores, there.curves) == (small.systems["s"].scores, small.systems["s"].curves)
    for of_tables, of_files in ((large.scores, small.scores), (large.curves, small.curves)):
        assert of_tables.table.equals(of_files.table)
        assert of_tables.files == of_files.files


@given(st.lists(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([None, "x", "y"]), st.floats()), max_size=5)))
def test_gathered_tables_are_those_one_after_the_other(rows: list[list[tuple[str, str | None, float]]]) -> None:
    schema = pa.schema([("system", pa.string()), ("query", pa.string()), ("value", pa.float64())])
    plain = [
        pa.table([[row[place] for row in of_chunk] for place in range(3)], schema=schema) for of_chunk in [[], *rows]
    ]
    table = gathered([coded(each, schema) for each in plain])
    table.validate(full=True)
    whole = pa.concat_tables(plain)
    assert table.select(["system", "query"]).cast(pa.schema(list(schema)[:2])).equals(whole.drop_columns("value"))
    assert np.array_equal(table["value"].to_numpy(), whole["value"].to_numpy(), equal_nan=True)
