from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.archive.reference import build_reference
from swsdask.archive.reference_tables import HALF_TICKS_PER_SECOND, ReferenceTables, audio_time, n_virtual_trials
from swsdask.model.errors import SettingsError
from swsdask.model.schemas import DOCUMENTS, WORDS
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Reference
from tests.archives import excerpt, queries, table, tables, without_runs, words

SECOND = 10_000


def build(reference: ReferenceTables, by: Sequence[Sequence[str]] = (), **settings: Any) -> Reference:
    return build_reference(without_runs(reference), EvaluationSettings(**settings), by)


def audio(*excerpts: tuple, compat: str = "none") -> Fraction:
    return Fraction(int(audio_time(table(DOCUMENTS, excerpts), compat).sum()), HALF_TICKS_PER_SECOND)


class TestAudioTime:
    def test_excerpts_of_a_document_are_united_whatever_their_channels(self) -> None:
        both = [excerpt("d", 0, 10 * SECOND, 1), excerpt("d", 0, 10 * SECOND, 2), excerpt("e", 0, 5 * SECOND)]
        assert audio(*both) == 15
        assert audio(excerpt("d", 5 * SECOND, 9 * SECOND), excerpt("d", 0, 6 * SECOND)) == 9

    def test_splitcts_counts_half_where_nothing_else_covers_the_time(self) -> None:
        assert audio(excerpt("d", 0, 10 * SECOND, source_type="splitcts")) == 5
        mixed = [excerpt("d", 0, 10 * SECOND, source_type="splitcts"), excerpt("d", 0, 4 * SECOND, source_type="cts")]
        assert audio(*mixed) == 7

    def test_kwseval_cuts_at_the_next_start(self) -> None:
        nested = [excerpt("d", 0, 10 * SECOND), excerpt("d", 2 * SECOND, 3 * SECOND)]
        assert audio(*nested) == 10
        assert audio(*nested, compat="kwseval") == 3
        overlapping = [excerpt("d", 2 * SECOND, 9 * SECOND), excerpt("d", 0, 4 * SECOND), excerpt("e", 0, SECOND)]
        assert audio(*overlapping, compat="kwseval") == audio(*overlapping) == 10
        assert audio(excerpt("d", 0, 4 * SECOND), excerpt("d", 0, 7 * SECOND, 2), compat="kwseval") == 7
        assert audio(excerpt("d", 0, 10 * SECOND, source_type="splitcts"), compat="kwseval") == 5

    def test_stdeval_adds_up_channel_1(self) -> None:
        excerpts = [excerpt("d", 0, 4 * SECOND, 1), excerpt("d", 2 * SECOND, 5 * SECOND, 1), excerpt("d", 0, SECOND, 2)]
        assert audio(*excerpts, compat="stdeval") == 7
        assert audio(*excerpts) == 5

    @given(
        st.lists(
            st.tuples(st.sampled_from("de"), st.integers(0, 40), st.integers(0, 15), st.booleans(), st.integers(1, 2)),
            max_size=9,
        )
    )
    def test_equals_counting_ticks(self, rows) -> None:
        excerpts = [excerpt(d, a, a + n, channel, "splitcts" if half else "") for d, a, n, half, channel in rows]
        weight = {(d, tick): Fraction(1, 2) for d, a, n, half, _ in rows for tick in range(a, a + n) if half}
        weight |= {(d, tick): Fraction(1) for d, a, n, half, _ in rows for tick in range(a, a + n) if not half}
        assert audio(*excerpts) == sum(weight.values(), Fraction(0)) / SECOND

    @pytest.mark.parametrize(
        ("rate", "seconds", "trials"), [(1.0, "975.382", 975), (1.0, "2.5", 2), (1.0, "3.5", 4), (0.1, "25", 2)]
    )
    def test_trials_are_rounded_half_to_even(self, rate: float, seconds: str, trials: int) -> None:
        assert n_virtual_trials(rate, int(Fraction(seconds) * HALF_TICKS_PER_SECOND)) == trials


WHERE = [excerpt("d", 1000, 5000), excerpt("d", 6000, 9000), excerpt("e", 0, 5000)]
SPOKEN = pa.concat_tables(
    [
        words([("a", 1000, 5000, "lex"), ("b", 999, 1500, "lex"), ("c", 4000, 5000, "lex"), ("c2", 5000, 6000, "lex")]),
        words([("e", 4500, 6500, "lex")], speaker="t"),
    ]
)
SEARCHED = queries({"qa": "a", "qb": "b", "qc": "c c2", "qe": "e", "none": "z"})


class TestEvaluatedOccurrences:
    def found(self, **settings: Any) -> list[tuple[int, int]]:
        spoken = pa.concat_tables([SPOKEN, words([("z", 0, 1, "lex")], document="elsewhere")])
        reference = build(tables(WHERE, SEARCHED, spoken), **settings)
        return list(zip(reference.query.tolist(), reference.start.tolist(), strict=True))

    def test_the_first_word_decides(self) -> None:
        assert self.found() == [(0, 1000), (2, 4000)]
        assert self.found(compat="kwseval", outside="false_alarm") == [(0, 1000), (2, 4000)]

    def test_stdeval_keeps_all_even_in_documents_without_excerpts(self) -> None:
        assert self.found(compat="stdeval", outside="false_alarm") == [
            (0, 1000),
            (1, 999),
            (2, 4000),
            (3, 4500),
            (4, 0),
        ]

    def test_stdeval_with_drop_keeps_what_is_entirely_inside(self) -> None:
        assert self.found(compat="stdeval", outside="drop") == [(0, 1000)]

    def test_columns(self) -> None:
        reference = build(tables(WHERE, SEARCHED, SPOKEN), thresholds=(0.5,))
        assert reference.query_ids == ("qa", "qb", "qc", "qe", "none")
        assert reference.document_ids == ("d", "e")
        assert [reference.end.tolist(), reference.first_word_end.tolist()] == [[5000, 6000], [5000, 5000]]
        assert [reference.last_word_start.tolist(), reference.channel.tolist()] == [[1000, 5000], [1, 1]]
        assert reference.targets.tolist() == [[1], [0], [1], [0], [0]]
        empty = np.flatnonzero(reference.targets.sum(axis=1) == 0)
        assert [reference.query_ids[query] for query in empty] == ["qb", "qe", "none"]
        assert (reference.rule.tolerance, reference.rule.trials) == (5000, "virtual")
        assert reference.thresholds == (0.5,)
        assert reference.prior_log_odds == pytest.approx(-6.907655, abs=1e-6), "-log(999.9)"
        for name in ("query", "document", "start", "end"):
            assert getattr(reference, name).dtype == np.int32
        assert reference.channel.dtype == np.int8
        assert reference.group_of_document.dtype == np.int16
        assert reference.targets.dtype == np.int64

    @pytest.mark.parametrize("name", ["tolerance_s", "find_gap_s"])
    def test_times_between_ticks_are_refused(self, name: str) -> None:
        with pytest.raises(SettingsError, match=name):
            build(tables(WHERE, SEARCHED, SPOKEN), **{name: 0.00005})


class TestTrials:
    """Two documents of 14 s and 5 s; speech in d: 0-5 (two speakers), 10-11, 11.2-12.2; in e: 1-5."""

    def reference(self, **settings: Any) -> Reference:
        spoken = [
            ("d", 1, "w", 0, 10000, "yes", "lex"),
            ("d", 1, "w", 10000, 20000, "yes", "lex"),
            ("d", 1, "w", 20000, 25000, "why", "lex"),
            ("d", 1, "w", 25000, 30000, "not", "lex"),
            ("d", 1, "m", 30000, 40000, "yes", "lex"),
            ("d", 1, "w", 105000, 110000, "why", "lex"),
            ("d", 1, "w", 112000, 117000, "not", "lex"),
            ("d", 1, "w", 117000, 122000, "yes", "lex"),
            ("d", 1, "m", 150000, 160000, "yes", "lex"),
        ]
        speakers = [("d", 1, 0, 50000, "w"), ("d", 1, 30000, 40000, "m"), ("d", 1, 100000, 110000, "w")]
        speakers += [("d", 1, 112000, 122000, "w"), ("d", 1, 150000, 200000, "m"), ("e", 1, 10000, 50000, "m")]
        evaluation = tables(
            [excerpt("d", 0, 140000, source_type="bnews"), excerpt("e", 0, 50000, source_type="cts")],
            queries({"yes": "yes", "why not": "why not", "hm": "hm"}),
            table(WORDS, spoken),
            speakers,
        )
        return build(evaluation, [["source_type"]], **settings)

    def counts(self, reference: Reference) -> dict[str, tuple[int, list[int]]]:
        return {c.name: (c.n_trials, reference.condition_targets(c).tolist()) for c in reference.conditions}

    def test_virtual(self) -> None:
        found = self.counts(self.reference())
        assert found["all"] == (19, [4, 2, 0])
        assert found["source_type=bnews"] == (14, [4, 2, 0])
        assert found["source_type=cts"] == (5, [0, 0, 0])
        assert self.counts(self.reference(trials_per_second=0.5))["all"] == (10, [4, 2, 0])

    def test_segments(self) -> None:
        reference = self.reference(trials="segment")
        assert self.counts(reference)["all"] == (8, [2, 1, 0])
        assert self.counts(reference)["source_type=bnews"] == (6, [2, 1, 0])
        assert self.counts(reference)["source_type=cts"] == (2, [0, 0, 0])
        assert reference.segments is not None
        assert len(reference.segments.start) == 8

    def test_documents(self) -> None:
        found = self.counts(self.reference(trials="document"))
        assert found == {
            "all": (2, [1, 1, 0]),
            "source_type=bnews": (1, [1, 1, 0]),
            "source_type=cts": (1, [0, 0, 0]),
        }


class TestConditions:
    def evaluation(self) -> ReferenceTables:
        excerpts = [
            excerpt("d1", 0, 100 * SECOND, source_type="cts", language="basque"),
            excerpt("d2", 0, 50 * SECOND, source_type="bnews", language="czech"),
            excerpt("d1", 0, 100 * SECOND, channel=2, source_type="cts", language="basque"),
            excerpt("d3", 0, 20 * SECOND, source_type="cts", language="czech"),
            excerpt("d4", 0, 10 * SECOND),
        ]
        searched = queries(
            {"q1": "a", "q2": "b", "q3": "c", "q4": "d"},
            {
                "q1": {"NGram": "1", "oov": "yes", "language": "basque"},
                "q2": {"NGram": "2", "oov": "no"},
                "q3": {"NGram": "1"},
                "q4": {"NGram": "2", "oov": "no"},
            },
        )
        spoken = [
            words([("a", 0, 10, "lex"), ("a", 50, 60, "lex"), ("c", 20, 30, "lex")], document="d1"),
            words([("a", 0, 10, "lex"), ("b", 20, 30, "lex")], document="d2"),
            words([("b", 0, 10, "lex"), ("c", 0, 10, "lex")], document="d3"),
            words([("a", 0, 10, "lex")], document="d4"),
        ]
        return tables(excerpts, searched, pa.concat_tables(spoken))

    def test_all_alone_is_one_group(self) -> None:
        reference = build(self.evaluation())
        assert [condition.name for condition in reference.conditions] == ["all"]
        assert reference.group_of_document.tolist() == [0, 0, 0, 0, 0]
        assert reference.conditions[0].queries.tolist() == [True, True, True, False]
        assert reference.conditions[0].n_trials == 180
        assert reference.class_of.tolist() == [[0], [1], [1], [-1]]
        assert reference.n_classes == 2

    def test_names_and_order(self) -> None:
        by = [
            ["NGram"],
            ["oov", "source_type"],
            ["query_pattern:[12]$"],
            ["document_pattern:^d[1-3]", "language"],
            ["document_language"],
        ]
        names = [condition.name for condition in build(self.evaluation(), by).conditions]
        assert names == [
            "all",
            "NGram=1",
            "NGram=2",
            "oov=no&source_type=bnews",
            "oov=no&source_type=cts",
            "oov=yes&source_type=bnews",
            "oov=yes&source_type=cts",
            "query~[12]$",
            "document~^d[1-3]&language=basque",
            "document_language=basque",
            "document_language=czech",
        ]

    def test_combinations_that_do_not_occur_make_no_condition(self) -> None:
        names = [
            condition.name
            for condition in build(self.evaluation(), [["NGram", "oov"], ["NGram"], ["NGram"]]).conditions
        ]
        assert names == ["all", "NGram=1&oov=yes", "NGram=2&oov=no", "NGram=1", "NGram=2"]

    def test_unknown_documents_belong_to_all_only(self) -> None:
        reference = build(self.evaluation(), [["source_type"]])
        whole, bnews, cts = reference.conditions
        assert reference.n_groups == 4
        unknown = reference.group_of_document[-1]
        assert (whole.groups[unknown], bnews.groups[unknown], cts.groups[unknown]) == (True, False, False)
        assert unknown not in reference.group_of_document[:-1]
        assert (whole.n_trials, bnews.n_trials, cts.n_trials) == (180, 50, 120)
        assert reference.condition_targets(whole).tolist() == [4, 2, 2, 0]
        assert reference.condition_targets(bnews).tolist() == [1, 1, 0, 0]
        assert reference.condition_targets(cts).tolist() == [2, 1, 2, 0]

    def test_queries_without_targets(self) -> None:
        by = [["source_type"]]
        counted = {c.name: c.queries.tolist() for c in build(self.evaluation(), by).conditions}
        assert counted["source_type=bnews"] == [True, True, False, False]
        counted = {
            c.name: c.queries.tolist() for c in build(self.evaluation(), by, no_targets="false_alarms_only").conditions
        }
        assert counted["source_type=bnews"] == [True, True, True, True]

    @pytest.mark.parametrize(
        ("key", "field"), [("source_type", "source_type"), ("document_language", "language")], ids=lambda value: value
    )
    def test_excerpts_of_a_document_must_agree(self, key: str, field: str) -> None:
        """A condition takes whole documents: any of the two values would be wrong for some of the audio."""
        excerpts = [excerpt("d", 0, SECOND, **{field: "x"}), excerpt("d", SECOND, 2 * SECOND, **{field: "y"})]
        mixed = tables(excerpts, queries({"q": "a"}), words([("a", 0, 10, "lex")]))
        assert len(build(mixed).conditions) == 1
        with pytest.raises(SettingsError, match=f"key '{key}': excerpts of document 'd' have 'x' and 'y'"):
            build(mixed, [[key]])

    @pytest.mark.parametrize("key", ["ngram", "source", "language_of"])
    def test_an_unknown_key_names_the_valid_ones(self, key: str) -> None:
        with pytest.raises(SettingsError, match=r"Known: NGram, document_language, .*, talker, query_pattern:REGEX"):
            build(self.evaluation(), [[key]])

    @pytest.mark.parametrize("key", ["query_pattern:[", "document_pattern:(", "query_pattern:x", "document_pattern:^q"])
    def test_a_pattern_must_be_one_and_match_something(self, key: str) -> None:
        with pytest.raises(SettingsError, match="condition key"):
            build(self.evaluation(), [[key]])

    @given(
        st.lists(
            st.lists(
                st.sampled_from(
                    ["NGram", "oov", "source_type", "document_language", "document_pattern:[12]", "query_pattern:[24]"]
                ),
                min_size=1,
                max_size=2,
            ),
            max_size=4,
        ),
        st.sampled_from(["exclude", "false_alarms_only"]),
        st.sampled_from(["virtual", "document"]),
    )
    def test_classes_are_what_conditions_distinguish(self, by, no_targets, trials) -> None:
        reference = build(self.evaluation(), by, no_targets=no_targets, trials=trials)
        said: dict[tuple, set[int]] = {}
        for query in range(reference.n_queries):
            for group in range(reference.n_groups):
                weights = tuple(
                    int(c.n_trials - reference.condition_targets(c)[query])
                    if c.queries[query] and c.groups[group]
                    else None
                    for c in reference.conditions
                )
                said.setdefault(weights, set()).add(int(reference.class_of[query, group]))
        assert all(len(classes) == 1 for classes in said.values())
        uncounted = said.pop((None,) * len(reference.conditions), {-1})
        assert uncounted == {-1}
        assert sorted(next(iter(classes)) for classes in said.values()) == list(range(reference.n_classes))


def test_conditions_of_hundreds_of_talkers_need_memory_for_their_own_strata() -> None:
    """Not for every condition as much as for all queries and talkers, which here are 160 MB."""
    n_talkers, n_queries = 500, 40
    names = [f"d{number:03}" for number in range(n_talkers)]
    spoken = [(name, 1, f"talker{name}", 0, SECOND, f"w{k % n_queries}", "lex") for k, name in enumerate(names)]
    reference = tables(
        [excerpt(name, 0, 100 * SECOND) for name in names],
        queries({f"q{k}": f"w{k}" for k in range(n_queries)}),
        table(WORDS, spoken),
    )
    tracemalloc.start()
    found = build(reference, by=[["talker"]])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(found.conditions), found.class_of.shape[0]) == (1 + n_talkers, n_queries)
    assert peak < 40e6
