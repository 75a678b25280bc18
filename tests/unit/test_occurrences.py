from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.archive import occurrences
from swsdask.archive.occurrences import (
    FINDER_VERSION,
    find_detections,
    find_occurrences,
    kwseval_text,
    spelled,
    units,
)
from swsdask.archive.protocols import Finder, FindRule
from swsdask.model.errors import InputError
from swsdask.model.hashes import hash_tables
from swsdask.model.schemas import FOUND_OCCURRENCES, WORDS
from swsdask.model.settings import TextFilter
from tests.archives import queries, table, words

Found = tuple[int, str, int, int, int, int, int]


def found(word_table: pa.Table, query_table: pa.Table, gap: int = 5000, filters: Sequence[str] = ()) -> list[Found]:
    result = find_occurrences(word_table, query_table, FindRule(gap, tuple(filters)))
    assert result.schema.equals(FOUND_OCCURRENCES)
    return [tuple(row.values())[:-1] for row in result.to_pylist()]


def spans(
    word_table: pa.Table, text: str, gap: int = 5000, filters: Sequence[str] = (), **header: str
) -> list[tuple[int, int]]:
    return [(row[3], row[4]) for row in found(word_table, queries({"q": text}, **header), gap, filters)]


def test_the_gap_is_inclusive_and_may_be_negative() -> None:
    def two(start: int) -> pa.Table:
        return words([("why", 0, 10000, "lex"), ("not", start, start + 7000, "lex")])

    assert spans(two(15000), "why not") == [(0, 22000)]
    assert spans(two(15001), "why not") == []
    assert spans(two(9000), "why not") == [(0, 16000)]
    assert found(two(15000), queries({"x": "not", "q": "why not"})) == [
        (0, "d", 1, 15000, 22000, 22000, 15000),
        (1, "d", 1, 0, 22000, 10000, 15000),
    ]


def test_no_word_is_skipped_and_file_order_does_not_matter() -> None:
    assert spans(words([("not", 20, 30, "lex"), ("why", 0, 10, "lex")]), "why not") == [(0, 30)]
    assert spans(words([("why", 0, 10, "lex"), ("uh", 12, 14, "fp"), ("not", 20, 30, "lex")]), "why not") == []


@pytest.mark.parametrize(("subtype", "starts"), [("lex", True), ("frag", False), ("fp", False), ("un-lex", True)])
def test_fragments_and_filled_pauses_go_on_but_do_not_begin(subtype: str, starts: bool) -> None:
    assert spans(words([("ah", 0, 10, subtype), ("so", 10, 20, "lex")]), "ah so") == ([(0, 20)] if starts else [])
    assert spans(words([("so", 0, 10, "lex"), ("ah", 10, 20, subtype)]), "so ah") == [(0, 20)]


def test_words_of_other_speakers_channels_and_documents_are_not_next() -> None:
    rows = [("d", 1, "s", 0, 10, "a", "lex"), ("d", 1, "t", 10, 20, "b", "lex"), ("d", 2, "s", 10, 20, "b", "lex")]
    rows += [("e", 1, "s", 10, 20, "b", "lex")]
    assert spans(table(WORDS, rows), "a b") == []
    interleaved = [
        ("d", 1, "s", 0, 10, "a", "lex"),
        ("d", 1, "t", 5, 12, "x", "lex"),
        ("d", 1, "s", 10, 20, "b", "lex"),
    ]
    assert spans(table(WORDS, interleaved), "a b") == [(0, 20)]


def test_overlapping_occurrences_all_count() -> None:
    assert spans(words([("a", 0, 10, "lex"), ("a", 10, 20, "lex"), ("a", 20, 30, "lex")]), "a a") == [(0, 20), (10, 30)]


def test_case_is_folded_only_where_the_list_says_so() -> None:
    spoken = words([("ÉtÉ", 0, 10, "lex"), ("été", 20, 30, "lex")])
    assert spans(spoken, "Été") == []
    assert spans(spoken, "Été", compareNormalize="") == []
    assert spans(spoken, "Été", compareNormalize="lowercase") == [(0, 10), (20, 30)]
    with pytest.raises(InputError, match="compareNormalize"):
        spans(spoken, "été", compareNormalize="stem")


def test_occurrences_that_no_array_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    spoken, wanted = words([("a", 0, 10, "lex"), ("b", 20, 30, "lex")] * 2), queries({"q": "b", "r": "a", "s": "a"})
    monkeypatch.setattr(occurrences, "_MOST_BYTES", 3)
    assert len(found(spoken, wanted)) == 3
    monkeypatch.setattr(occurrences, "_MOST_BYTES", 2)
    with pytest.raises(InputError, match=r"found 3 occurrences, of which 1 of 'q'\. Leave out the queries"):
        found(spoken, wanted)


def test_text_is_not_normalised() -> None:
    assert spans(words([("e\u0301", 0, 10, "lex")]), "\u00e9") == []


def test_text_filters() -> None:
    assert units("ab-c中文d", "", ()) == ["ab-c中文d"]
    assert units("ab-c中文d", "", ("charsplit",)) == list("ab-c中文d")
    assert units("ab-c中文d", "", ("charsplit", "notascii")) == ["ab-c", "中", "文", "d"]
    assert units("ab-c中文d", "", ("charsplit", "notascii", "deletehyphens")) == ["abc", "中", "文", "d"]
    assert units("twenty-one", "", ("deletehyphens",)) == ["twentyone"]
    assert units("--", "", ("deletehyphens",)) == []
    assert units("中a", "", ("notascii",)) == ["中a"]


def test_characters_share_the_time_of_their_word() -> None:
    spoken = words([("中文字", 0, 100, "lex"), ("典", 100, 110, "lex")])
    assert spans(spoken, "文") == []
    assert spans(spoken, "文", filters=("charsplit",)) == [(33, 67)]
    assert (
        spans(spoken, "字 典", filters=("charsplit",)) == spans(spoken, "字典", filters=("charsplit",)) == [(67, 110)]
    )
    assert spans(words([("ab中d", 0, 8, "lex")]), "中", filters=("charsplit", "notascii")) == [(4, 6)]
    halves = words([("中文", 0, 5, "lex"), ("中文", 10, 17, "lex")])
    assert spans(halves, "中", filters=("charsplit",)) == [(0, 2), (10, 14)]


def test_a_word_of_hyphens_only_is_no_word() -> None:
    spoken = words([("a", 0, 10, "lex"), ("-", 10, 20, "lex"), ("b", 20, 30, "lex")])
    assert spans(spoken, "a b") == []
    assert spans(spoken, "a b", filters=("deletehyphens",)) == [(0, 30)]


def test_empty_tables() -> None:
    assert found(table(WORDS, []), queries({"q": "a"})) == []
    assert found(words([("a", 0, 10, "lex")]), queries({})) == []
    assert found(words([("a", 0, 10, "lex")]), queries({"q": "", "r": "  "})) == []


def oracle(
    rows: list[tuple[str, int, str, int, int, str, str]], texts: list[str], gap: int, filters: list[str]
) -> list[Found]:
    """Every query tried at every place, word by word."""
    tracks: dict[tuple[str, int, str], list[tuple[int, int, str, str]]] = {}
    for document, channel, speaker, start, end, word, subtype in sorted(dict.fromkeys(rows), key=lambda row: row[3]):
        for unit, first, last, length in cut(word, filters):
            begin = start + round(Fraction((end - start) * first, length))
            stop = start + round(Fraction((end - start) * last, length))
            tracks.setdefault((document, channel, speaker), []).append((begin, stop, unit, subtype))
    result = []
    for number, text in enumerate(texts):
        wanted = [unit for word in text.split() for unit, *_ in cut(word, filters)]
        for (document, channel, _), track in tracks.items():
            for at in range(len(track) - len(wanted) + 1):
                there = track[at : at + len(wanted)]
                if not wanted or [each[2] for each in there] != wanted or there[0][3] in ("frag", "fp"):
                    continue
                if all(after[0] - before[1] <= gap for before, after in pairwise(there)):
                    first, last = there[0], there[-1]
                    result.append((number, document, channel, first[0], last[1], first[1], last[0]))
    return sorted(result)


def cut(word: str, filters: list[str]) -> list[tuple[str, int, int, int]]:
    if "deletehyphens" in filters:
        word = "".join(letter for letter in word if letter != "-")
    if "charsplit" not in filters:
        return [(word, 0, len(word), len(word))] if word else []
    pieces: list[tuple[str, int, int, int]] = []
    for place, letter in enumerate(word):
        together = "notascii" in filters and pieces and letter.isascii() and pieces[-1][0].isascii()
        if together:
            pieces[-1] = (pieces[-1][0] + letter, pieces[-1][1], place + 1, len(word))
        else:
            pieces.append((letter, place, place + 1, len(word)))
    return pieces


WORD = st.sampled_from(["a", "b", "ab", "a-b", "-", "文", "文a", "ab文"])
ROW = st.tuples(
    st.sampled_from("de"),
    st.integers(1, 2),
    st.sampled_from("st"),
    st.integers(0, 60),
    st.integers(0, 9),
    WORD,
    st.sampled_from(["lex", "lex", "frag", "fp"]),
).map(lambda row: (*row[:4], row[3] + row[4], *row[5:]))
FILTERS = st.lists(st.sampled_from(["charsplit", "notascii", "deletehyphens"]), unique=True)


@given(
    st.lists(ROW, max_size=25),
    st.lists(st.lists(WORD, max_size=3).map(" ".join), max_size=4),
    st.integers(0, 30),
    FILTERS,
)
def test_equals_every_query_tried_at_every_place(rows, texts, gap, filters) -> None:
    query_table = queries({f"q{number}": text for number, text in enumerate(texts)})
    assert found(table(WORDS, rows), query_table, gap, filters) == oracle(rows, texts, gap, filters)


def test_a_change_of_the_rule_counts_its_version_up() -> None:
    """Archives hold occurrences by the version of the rule: when this digest changes, `FINDER_VERSION` must."""
    drawn = np.random.default_rng(10)
    spoken = ["a", "A", "b", "a-b", "ab", "\u4f60\u597d", "\u4f60", "\u039f\u03a3", "\u00c9"]
    rows = [
        (f"d{drawn.integers(2)}", 1 + drawn.integers(2), f"s{drawn.integers(2)}", start, start + drawn.integers(1, 90),
         spoken[drawn.integers(len(spoken))], ["lex", "frag", "fp"][drawn.integers(3)])
        for start in drawn.integers(0, 2000, 400).tolist()
    ]  # fmt: skip
    wanted = {
        f"q{number}": text
        for number, text in enumerate(["a", "b", "a b", "ab c", "a-b", "\u4f60\u597d", "\u03bf\u03c2", "\u00e9"])
    }
    chosen: list[tuple[TextFilter, ...]] = [(), ("charsplit",), ("deletehyphens", "notascii")]
    ways = [FindRule(gap, filters, finder) for finder in get_args(Finder) for gap in (0, 20) for filters in chosen]
    found = [
        find_occurrences(table(WORDS, rows), queries(wanted, compareNormalize=normalize), way)
        for way in ways
        for normalize in ("", "lowercase")
    ]
    given = table(WORDS, [("d0", 1, "s0", 5, 9, "\U000f0000", "lex")])
    found += [find_occurrences(given, queries({"q0": "\U000f0000"}), way) for way in ways]
    given = table(WORDS, [("d0", 1, "s0", 5, 9, "a&b", "lex"), ("d0", 1, "s0", 15, 19, "a&amp;b", "lex")])
    found += [find_occurrences(given, queries({"q0": "a&b"}), way) for way in ways]
    assert (FINDER_VERSION, hash_tables(*found)) == (6, "04c7dfc24f686c6b5a952515fdf4a5da")


def by_finder(
    finder: Finder, rows: list[tuple[str, int, int, str]], text: str, normalize: str = "", *filters: TextFilter
) -> list[tuple[int, int]]:
    wanted = queries({"q": text}, compareNormalize=normalize)
    result = find_occurrences(words(rows), wanted, FindRule(5000, filters, finder))
    return list(zip(result["start"].to_pylist(), result["end"].to_pylist(), strict=True))


def test_a_repeated_record_is_one_more_word_for_the_official_tools() -> None:
    rows = [("a", 0, 10, "lex"), ("a", 0, 10, "lex"), ("a", 20, 30, "lex")]
    assert by_finder("own", rows, "a") == [(0, 10), (20, 30)]
    assert by_finder("kwseval", rows, "a") == by_finder("stdeval", rows, "a") == [(0, 10), (0, 10), (20, 30)]


def test_case_by_finder() -> None:
    rows = [("Why", 0, 10, "lex"), ("Not", 10, 20, "lex"), ("why", 30, 40, "lex"), ("NOT", 40, 50, "lex")]
    assert by_finder("own", rows, "Why not") == []
    assert by_finder("kwseval", rows, "Why not") == [(0, 20)]
    assert (
        by_finder("stdeval", rows, "Why not") == by_finder("own", rows, "Why not", "lowercase") == [(0, 20), (30, 50)]
    )


def test_kwseval_filters() -> None:
    word = [("twenty-one\u4e2d", 0, 3000, "lex")]
    filters: tuple[TextFilter, ...] = ("charsplit", "notascii", "deletehyphens")
    assert by_finder("kwseval", word, "one", "", *filters) == [(1000, 2000)]
    assert by_finder("kwseval", word, "\u4e2d", "", *filters) == [(2000, 3000)]
    assert by_finder("kwseval", word, "twenty-one \u4e2d", "", *filters) == [(0, 3000)]
    assert by_finder("kwseval", word, "twenty-one\u4e2d", "", "notascii", "deletehyphens") == [(0, 3000)]
    assert spelled("ab cd", "", FindRule(0, filters, "kwseval")) == [("abc", "abc"), ("d", "d")]


@pytest.mark.parametrize(
    ("text", "by_kwseval"),
    [
        ("AT&T", "AT&amp;T"),
        ("a<b", "a&lt;b"),
        ("a>b", "a&gt;b"),
        ("don't", "don't"),
        ('"', '"'),
        ("&amp;", "&amp;amp;"),
    ],
)
def test_kwseval_leaves_some_escapes_of_xml_in_queries(text: str, by_kwseval: str) -> None:
    rows = [(text, 0, 10, "lex"), (by_kwseval, 20, 30, "lex")]
    decoded, escaped = [(0, 10)], [(20, 30)]
    if text == by_kwseval:
        decoded = escaped = [(0, 10), (20, 30)]
    assert by_finder("own", rows, text) == by_finder("stdeval", rows, text) == decoded
    assert by_finder("kwseval", rows, text) == escaped
    assert kwseval_text(text, ()) == by_kwseval


def test_kwseval_goes_on_by_the_place_in_the_file() -> None:
    backwards = [("b", 20, 30, "lex"), ("a", 0, 10, "lex"), ("c", 40, 50, "lex")]
    assert by_finder("own", backwards, "a b") == [(0, 30)]
    assert by_finder("kwseval", backwards, "a b") == []
    assert by_finder("kwseval", backwards, "a c") == [(0, 50)]


def test_stdeval_folds_the_case_of_ascii_only() -> None:
    """It compares bytes: Perl's `lc` of bytes leaves letters beyond ASCII as they are."""
    rows = [("\u00e9t\u00e9", 0, 10, "lex"), ("\u00c9T\u00c9", 20, 30, "lex"), ("\u00e9T\u00e9", 40, 50, "lex")]
    assert by_finder("stdeval", rows, "\u00e9t\u00e9") == [(0, 10), (40, 50)]
    assert by_finder("stdeval", rows, "\u00c9t\u00c9") == [(20, 30)]
    assert by_finder("kwseval", rows, "\u00e9t\u00e9", "lowercase") == [(0, 10), (20, 30), (40, 50)]
    assert by_finder("stdeval", rows, "T", "", "charsplit") == [(3, 7), (23, 27), (43, 47)]


def test_stdeval_goes_on_where_an_attempt_ended() -> None:
    rows = [("a", at, at + 10, "lex") for at in (0, 10, 20, 30)] + [("b", 40, 50, "frag"), ("a", 50, 60, "lex")]
    assert by_finder("stdeval", rows, "a a") == [(0, 20), (20, 40)]
    assert by_finder("own", rows, "a a") == [(0, 20), (10, 30), (20, 40)]
    assert by_finder("stdeval", rows, "b a") == [(40, 60)]
    assert by_finder("own", rows, "b a") == []
    assert by_finder("stdeval", [*rows[:3], rows[4]], "a a b") == []
    late = [("a", 0, 10, "lex"), ("a", 9000, 9010, "lex"), ("a", 9010, 9020, "lex"), ("a", 9020, 9030, "lex")]
    assert by_finder("stdeval", late, "a a") == [(9010, 9030)]
    assert by_finder("stdeval", [late[1], late[0]], "a a") == [(9000, 10)]


def test_detections_of_a_transcript_are_those_of_a_literal_search() -> None:
    """Every place at which the words of a query follow one another within the gap, and the lowest of their scores."""
    chosen = random.Random(0)
    for _ in range(200):
        words, scores = [], []
        for document in "ab":
            end = 0
            for _ in range(chosen.randrange(12)):
                start = end + chosen.choice([0, 0, 3000, 6000])
                end = start + 1000
                words.append((document, 1, "", start, end, chosen.choice("xyz"), "lex"))
                scores.append(chosen.random())
        texts = ["x", "x y", "y x x", "x x"]
        expected = []
        for text in texts:
            for first in range(len(words)):
                part = words[first : first + len(text.split())]
                near = all(one[0] == other[0] and other[3] - one[4] <= 5000 for one, other in pairwise(part))
                if [word[5] for word in part] == text.split() and near:
                    least = min(scores[first : first + len(part)])
                    expected.append((text, part[0][0], part[0][3] / 1e4, (part[-1][4] - part[0][3]) / 1e4, least))
        columns = list(zip(*words, strict=True)) or [[] for _ in WORDS]
        spoken = pa.table([list(values) for values in columns], schema=WORDS)
        listed = pa.table({"query": texts, "text": texts})
        detected = find_detections(spoken, np.array(scores), listed, FindRule(5000, (), "kwseval"))
        names = ("query", "document", "start", "duration", "score")
        assert sorted(zip(*(detected[name].to_pylist() for name in names), strict=True)) == sorted(expected)


def test_mediaevals_tool_looks_for_ids() -> None:
    rows = [("q", 0, 1, "frag"), ("Q", 1, 2, "lex"), ("a", 2, 3, "lex"), ("q", 3, 4, "<NA>")]
    assert by_finder("mediaeval", rows, "a", "lowercase") == [(0, 1), (3, 4)]
