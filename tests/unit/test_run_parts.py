from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import numpy as np
import pytest

from swsdask.formats.runs import read as run_parts
from swsdask.formats.runs.read import RunFile, read_run
from swsdask.model.errors import Problems

ROW = '<kw file="d{0}" channel="1" tbeg="{0}.5" dur="0.25" score="-{0}.5" decision="YES"/>\n'


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_parts, "BLOCK", 1024)


def lists(n: int = 40, between: str = "\n") -> str:
    return between.join(
        f'<detected_kwlist kwid="q{query}">\n'
        + "".join(ROW.format(query * 5 + row) for row in range(5))
        + "</detected_kwlist>"
        for query in range(n)
    )


def write(tmp_path: Path, body: str, head: str = '<?xml version="1.0"?>\n') -> str:
    file = tmp_path / "r.kwslist.xml"
    file.write_text(f'{head}<kwslist system_id="s">\n{body}\n</kwslist>\n')
    return str(file)


def table(n: int = 400) -> str:
    return "".join(f"q{row // 50}\td{row % 7}\t{row}.5\t0.25\t-{row}.5\ts{row // 300}\n" for row in range(n))


def write_table(tmp_path: Path, body: str) -> str:
    file = tmp_path / "r.tsv"
    file.write_text(f"query\tdocument\tstart\tduration\tscore\tsystem\n{body}")
    return str(file)


def test_parts_are_about_even_and_picklable(tmp_path: Path) -> None:
    file = write(tmp_path, lists())
    parts = pickle.loads(pickle.dumps(RunFile(file).parts(4)))
    problems = Problems()
    pieces = [piece for part in parts for piece in part.read(problems)]
    assert not problems
    assert [part.file for part in parts] == [file] * 4
    assert min(len(piece) for piece in pieces) >= 40
    assert np.concatenate([piece.score for piece in pieces]).tolist() == [-(row + 0.5) for row in range(200)]
    (whole,) = read_run(file, problems)
    assert sum((piece.query_lines for piece in pieces), ()) == whole.query_lines
    assert sum((piece.document_lines for piece in pieces), ()) == whole.document_lines
    assert {piece.header.system for piece in pieces} == {"s"}


def test_problems_have_their_line_in_the_whole_file(tmp_path: Path) -> None:
    body = lists().replace('score="-177.5"', 'score="high"')
    parts = RunFile(write(tmp_path, body)).parts(3)
    problems = Problems()
    assert sum(len(piece) for part in parts for piece in part.read(problems)) == 199
    line = 3 + body[: body.index('score="high"')].count("\n")
    assert [(problem.line, problem.found) for problem in problems] == [(line, "'high'")]


@pytest.mark.parametrize("n_parts", [2, 3, 7, 50, 1000])
@pytest.mark.parametrize("end", ["", "\n", "\n\n\n"])
def test_parts_of_a_table_one_after_the_other_are_the_whole(tmp_path: Path, n_parts: int, end: str) -> None:
    file = write_table(tmp_path, table().rstrip("\n") + end)
    parts = pickle.loads(pickle.dumps(RunFile(file).parts(n_parts)))
    problems = Problems()
    found = [piece for part in parts for piece in part.read(problems)]
    expected = list(read_run(file, problems))
    assert not problems
    assert 1 < len(parts) <= n_parts
    for system in ("s0", "s1"):
        ours, theirs = (
            [piece for piece in pieces if piece.header.system == system and len(piece)] for pieces in (found, expected)
        )
        for name in ("score", "start", "duration", "channel", "decision"):
            assert (
                np.concatenate([getattr(piece, name) for piece in ours]).tolist() == getattr(theirs[0], name).tolist()
            )
        for names, codes, lines in (("queries", "query", "query_lines"), ("documents", "document", "document_lines")):
            ids = [[getattr(p, names)[code] for p in each for code in getattr(p, codes)] for each in (ours, theirs)]
            assert ids[0] == ids[1]
            first = [
                {
                    name: line
                    for p in reversed(each)
                    for name, line in zip(getattr(p, names), getattr(p, lines), strict=True)
                }
                for each in (ours, theirs)
            ]
            assert first[0] == first[1]
    assert {piece.header.system for piece in found} == {"s0", "s1"}


def test_problems_of_a_table_have_their_line_in_the_whole_file(tmp_path: Path) -> None:
    body = table().replace("-377.5", "high")
    problems = Problems()
    parts = RunFile(write_table(tmp_path, body)).parts(3)
    assert sum(len(piece) for part in parts for piece in part.read(problems)) == 399
    assert [(problem.line, problem.found) for problem in problems] == [(379, "'high'")]


def test_an_end_tag_in_a_comment_is_no_end(tmp_path: Path) -> None:
    comment = "<!-- " + "</detected_kwlist> > " * 30 + "-->"
    file = write(tmp_path, lists(20, f"{comment}<?no </detected_kwlist> ?><!---->"))
    parts, problems = RunFile(file).parts(5), Problems()
    rows = [len(piece) for part in parts for piece in part.read(problems)]
    assert not problems
    assert len(parts) == 5
    assert sum(rows) == 100


@pytest.mark.parametrize("n_parts", [1, 0])
def test_one_part_is_the_file(tmp_path: Path, n_parts: int) -> None:
    file = write(tmp_path, lists())
    assert RunFile(file, "x").parts(n_parts) == [RunFile(file, "x")]


def test_what_is_not_divided(tmp_path: Path) -> None:
    other = tmp_path / "r.gz"
    other.write_bytes(gzip.compress(lists().encode()))
    quoted = write_table(tmp_path, 'q\t"d"\t1\t1\t1\ts\n' * 1000)
    files = [
        write(tmp_path, lists(1)),
        str(other),
        quoted,
        str(tmp_path / "nothing there"),
        str(tmp_path),
    ]
    for file in files:
        assert RunFile(file).parts(3) == [RunFile(file)]
    named = write_table(tmp_path, table())
    assert RunFile(named, "x").parts(3) == [RunFile(named, "x")]
    Path(named).write_text(Path(named).read_text().replace("\n", "\r"))
    assert RunFile(named).parts(3) == [RunFile(named)]
    latin = write(tmp_path, lists(), '<?xml version="1.0" encoding="ISO-8859-1"?>')
    assert RunFile(latin).parts(3) == [RunFile(latin)]


def test_a_file_that_breaks_off_is_reported_in_its_last_part(tmp_path: Path) -> None:
    file = write(tmp_path, lists())
    Path(file).write_text(Path(file).read_text()[:-50])
    parts, problems = RunFile(file).parts(3), Problems()
    for part in parts[:-1]:
        list(part.read(problems))
    assert not problems
    list(parts[-1].read(problems))
    assert [problem.found for problem in problems] == ["the end of the file"]
