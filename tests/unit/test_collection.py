"""What a collection holds: the counts of the thesis's table 5.5."""

from __future__ import annotations

from swsdask.archive.memory import MemoryArchive
from swsdask.archive.reference import build_reference, collection_statistics
from swsdask.model.schemas import WORDS
from swsdask.model.settings import EvaluationSettings
from tests.archives import excerpt, queries, table, tables


def archive(attributes: dict[str, dict[str, str]]) -> MemoryArchive:
    spoken = [("a", 1, "s", 0, 10, "one", "lex"), ("a", 1, "s", 50_000, 50_010, "one", "lex")]
    spoken += [
        ("b", 1, "s", 0, 10, "two", "lex"),
        ("c", 1, "s", 0, 10, "two", "lex"),
        ("d", 1, "s", 0, 9, "two", "lex"),
    ]
    return MemoryArchive(
        tables(
            [excerpt(document, 0, 100_000) for document in "abc"],
            queries({"q1": "one", "q2": "two", "q3": "three"}, attributes),
            table(WORDS, spoken),
        ),
        (),
        {},
    )


def test_counts() -> None:
    held = archive({"q2": {"OOV": "Yes"}, "q3": {"oov": "0"}})
    assert collection_statistics(held.queries, build_reference(held, EvaluationSettings())) == {
        "documents": 3,
        "queries": 3,
        "events": 9,
        "relevant_events": 3,
        "occurrences": 4,
        "oov_queries": 1,
        "oov_events": 3,
        "relevant_oov_events": 2,
        "oov_occurrences": 2,
    }


def test_nothing_is_said_of_a_vocabulary_that_is_not_given() -> None:
    held = archive({})
    found = collection_statistics(held.queries, build_reference(held, EvaluationSettings()))
    assert not any("oov" in name for name in found)
