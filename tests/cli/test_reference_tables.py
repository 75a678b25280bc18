"""A reference in tables of its own: the same bits from every format as from memory, and problems with their lines."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import swsdask as sws
from tests.command_line import Outcome

Swsdask = Callable[..., Outcome]

DOCUMENTS = pd.DataFrame({"document": ["a", "b"], "duration": [60.0, 30.0], "source_type": ["bnews", "cts"]})
OCCURRENCES = pd.DataFrame(
    {
        "query": ["dog", "dog", "cat"],
        "document": ["a", "b", "b"],
        "start": [1.0, 7.55555, 1.0],
        "duration": [0.4, 0.4, 0.5],
        "speaker": ["ann", "bob", "bob"],
    }
)
QUERIES = pd.DataFrame({"query": ["cat", "dog", "eel"], "length": ["short", "long", ""]})
RUN = pd.DataFrame(
    {
        "query": ["dog", "dog", "cat"],
        "document": ["a", "a", "b"],
        "start": [1.1, 20.0, 1.1],
        "duration": [0.4, 0.4, 0.4],
        "score": [0.9, 0.3, 0.8],
        "decision": ["YES", "NO", "YES"],
    }
)
WRITERS: dict[str, Callable[[pd.DataFrame, Path], None]] = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "csv.gz": lambda frame, path: path.write_bytes(gzip.compress(frame.to_csv(index=False).encode())) and None,
    "jsonl": lambda frame, path: (
        path.write_text("".join(f"{json.dumps(row)}\n" for row in frame.to_dict("records"))) and None
    ),
    "parquet": lambda frame, path: frame.to_parquet(path, index=False),
}


@pytest.fixture
def printed(swsdask: Swsdask) -> Callable[..., str]:
    """What a command that succeeds prints."""

    def call(*arguments: str) -> str:
        found = swsdask(*arguments)
        assert found.code == 0, found.err
        return found.out

    return call


@pytest.fixture
def failing(swsdask: Swsdask) -> Callable[..., str]:
    """What a command says of bad input."""

    def call(*arguments: str) -> str:
        found = swsdask(*arguments)
        assert found.code == 2, found.out
        return found.err

    return call


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A reference in tables, and a run beside it."""
    DOCUMENTS.to_csv(tmp_path / "documents.csv", index=False)
    OCCURRENCES.to_csv(tmp_path / "occurrences.csv", index=False)
    RUN.to_csv(tmp_path / "run.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("ending", WRITERS)
def test_every_format_has_the_tables_of_memory(ending: str, tmp_path: Path) -> None:
    for name, frame in {"documents": DOCUMENTS, "occurrences": OCCURRENCES, "queries": QUERIES}.items():
        WRITERS[ending](frame, tmp_path / f"{name}.{ending}")
    named = {name: tmp_path / f"{name}.{ending}" for name in ("documents", "occurrences", "queries")}
    of_memory = sws.open(documents=DOCUMENTS, occurrences=OCCURRENCES, queries=QUERIES)
    for evaluation in (sws.open(tmp_path), sws.open(**named)):
        assert evaluation.archive.inputs == of_memory.archive.inputs
        for table in ("documents", "queries", "occurrences"):
            assert evaluation.table(table) == of_memory.table(table)


def test_commands_take_them(folder: Path, printed: Callable[..., str]) -> None:
    options = ("--documents", str(folder / "documents.csv"), "--occurrences", str(folder / "occurrences.csv"))
    asked = ("--measures", "atwv,mtwv,stwv,map")
    of_folder = printed("score", str(folder), str(folder), *asked)
    assert of_folder.splitlines()[-1].split() == ["run", "0.7500", "0.7500", "0.7500", "0.7500"]
    assert printed("score", *options, str(folder / "run.csv"), *asked) == of_folder
    archive = str(folder / "archive")
    assert "run: 3 detections" in printed("ingest", archive, *options, "--run", str(folder / "run.csv"))
    assert "already there" in printed("ingest", archive, str(folder), "--run", str(folder / "run.csv"))
    assert printed("score", archive, *asked).splitlines()[-1] == of_folder.splitlines()[-1]
    checked = printed("validate", str(folder))
    assert "documents.csv: a table of documents: 2 excerpts, 2 documents" in checked
    assert "occurrences.csv: a table of occurrences: 3 occurrences, 2 queries, 1 rounded time" in checked


def test_reports_of_official_tools_name_the_queries(folder: Path, printed: Callable[..., str]) -> None:
    asked = ("--compat", "kwseval", "--kwseval-output", "--alignment", "--out", str(folder / "out"))
    printed("score", str(folder), str(folder / "run.csv"), *asked)
    rows = (folder / "out/run.bsum.txt").read_text().splitlines()
    assert [row.split("|")[1].strip() for row in rows if row[9:12] in ("cat", "dog")] == ["cat", "dog"]


def test_queries_without_occurrences_and_attributes(folder: Path, printed: Callable[..., str]) -> None:
    QUERIES.to_csv(folder / "queries.csv", index=False)
    shown = printed("score", str(folder), str(folder / "run.csv"), "--measures", "atwv,n_queries", "--by", "length")
    assert "length=long" in shown
    assert "a table of queries: 3 queries" in printed("validate", str(folder))


def test_what_is_wrong_has_its_line(folder: Path, failing: Callable[..., str]) -> None:
    (folder / "documents.csv").write_text("document,duration\na,60\n\nb,-1\nc,x\n")
    (folder / "occurrences.csv").write_text("query,document,start,duration\ndog,a,one,.4\ndog,b,7.5\ndog,b,1,1\n")
    found = failing("score", str(folder), str(folder / "run.csv"))
    assert "documents.csv:4: expected a duration of 0 or more seconds; found '-1'" in found
    assert "documents.csv:5: expected a duration in seconds; found 'x'" in found
    assert "occurrences.csv:2: expected a start in seconds; found 'one'" in found
    assert "occurrences.csv:3: expected 4 values; found 3 in 'dog,b,7.5'" in found


@pytest.mark.parametrize("name", ["documents.tsv", "documents.csv.gz"])
def test_two_tables_of_a_kind(folder: Path, name: str, failing: Callable[..., str]) -> None:
    (folder / name).write_bytes((folder / "documents.csv").read_bytes())
    expected = "expected one file in the folder that is a table of documents; found"
    assert expected in failing("score", str(folder), str(folder / "run.csv"))


def test_a_missing_column_and_a_missing_table(folder: Path, failing: Callable[..., str]) -> None:
    run, documents, occurrences = (str(folder / name) for name in ("run.csv", "documents.csv", "occurrences.csv"))
    (folder / "lengths.csv").write_text("document,length\na,60\n")
    lengths = str(folder / "lengths.csv")
    assert "a column duration or end" in failing("score", "--documents", lengths, "--occurrences", occurrences, run)
    assert "documents need occurrences" in failing("score", "--documents", documents, run)
    both = ("--documents", documents, "--occurrences", occurrences)
    assert "remove the other reference arguments" in failing("score", *both, "--rttm", run, run)


def test_nothing_beside_a_reference_in_tables_is_passed_over(folder: Path, failing: Callable[..., str]) -> None:
    run = str(folder / "run.csv")
    both = ("--documents", str(folder / "documents.csv"), "--occurrences", str(folder / "occurrences.csv"))
    (folder / "words.txt").write_text("dog\n")
    (folder / "judged.qrels").write_text("dog 0 a 1\n")
    for command in (("score", *both, run), ("ingest", str(folder / "archive"), *both, "--run", run)):
        for option in (("--vocabulary", str(folder / "words.txt")), ("--lexicon", str(folder / "words.txt"))):
            assert "remove the other reference arguments" in failing(*command, *option)
        assert "do not give another one" in failing(*command, "--qrels", str(folder / "judged.qrels"))
    sws.ingest(folder / "archive", folder)
    with pytest.raises(sws.SettingsError, match="is an archive with its own reference"):
        sws.open(folder / "archive", documents=DOCUMENTS, occurrences=OCCURRENCES)


def test_an_occurrence_in_a_document_that_is_not_listed_is_counted(folder: Path, printed: Callable[..., str]) -> None:
    with (folder / "occurrences.csv").open("a") as file:
        file.write("dog,c,1,.5,ann\n")
    shown = printed("score", str(folder), str(folder / "run.csv"), "--measures", "atwv")
    assert "Not counted: 1 occurrence outside the evaluated excerpts" in shown


def test_official_files_win_over_tables(folder: Path, failing: Callable[..., str]) -> None:
    (folder / "sim.rttm").write_text("LEXEME a 1 1.0 0.4 dog lex ann 0.5\n")
    found = failing("score", str(folder), str(folder / "run.csv"))
    assert "an ECF in the folder" in found
