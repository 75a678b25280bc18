from __future__ import annotations

from pathlib import Path

import pytest

from swsdask.formats.reference.nist_xml import read_queries
from swsdask.model.errors import Problem, Problems
from swsdask.model.schemas import QUERIES

KWLIST = """<?xml version="1.0" encoding="UTF-8"?>
<kwlist ecf_filename="x.ecf.xml" language="english" encoding="UTF-8" compareNormalize="lowercase" version="3">
<kw kwid="KW-1" language="fr" oov="true">
  <kwtext>
    big\tred
    bus </kwtext>
  <kwinfo><attr><name>NGram</name><value>3-grams</value></attr>
    <attr><value></value><name>Note</name></attr></kwinfo>
</kw>
<kw oov="no" kwid="KW 2"><audio file="x"><start>1</start></audio><kwtext>&#201;t\u00e9&amp;</kwtext></kw>
</kwlist>
"""


def read(path: Path, content: str) -> tuple[list[dict[str, object]], list[Problem]]:
    path.write_text(content, encoding="utf-8")
    problems = Problems()
    table = read_queries(str(path), problems)
    assert table.schema.equals(QUERIES)
    return table.to_pylist(), list(problems)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.kwlist.xml"


EXPECTED = [
    {
        "query": "KW-1",
        "text": "big red bus",
        "attributes": [("language", "fr"), ("oov", "true"), ("NGram", "3-grams"), ("Note", "")],
    },
    {"query": "KW 2", "text": "Été&", "attributes": [("oov", "no")]},
]


def test_kwlist(path: Path) -> None:
    assert read(path, KWLIST) == (EXPECTED, [])


def test_termlist(path: Path) -> None:
    assert read(path, KWLIST.replace("kw", "term")) == (EXPECTED, [])


def test_the_header_is_metadata(path: Path) -> None:
    path.write_text(KWLIST, encoding="utf-8")
    table = read_queries(str(path), Problems())
    assert table.schema.metadata == {
        b"ecf_filename": b"x.ecf.xml",
        b"language": b"english",
        b"encoding": b"UTF-8",
        b"compareNormalize": b"lowercase",
        b"version": b"3",
    }


def test_texts_may_be_equal(path: Path) -> None:
    rows, problems = read(path, "<kwlist>" + "".join(query(f"K{n}") for n in range(3)) + "</kwlist>")
    assert [row["query"] for row in rows] == ["K0", "K1", "K2"]
    assert not problems


def query(identifier: str, inside: str = "<kwtext>x</kwtext>") -> str:
    return f'<kw kwid="{identifier}">{inside}</kw>'


FAULTS = {
    "id again": (query("K1"), "one query of an id", "the id 'K1' of line 2 again"),
    "climbing id": (query("../../x"), "a query id", "a path in the id '../../x'"),
    "empty id": (query(" "), "a query id", "an empty id"),
    "no id": ("<kw><kwtext>x</kwtext></kw>", "a query id", "an empty id"),
    "empty text": (query("K2", "<kwtext> \t</kwtext>"), "one kwtext", "none"),
    "no text": (query("K2", ""), "one kwtext", "none"),
    "two texts": (query("K2", "<kwtext>x</kwtext><kwtext>y</kwtext>"), "one kwtext", "2 of them"),
    "text beside": (query("K2", "y<kwtext>x</kwtext>"), "text only within kwtext", "'y'"),
    "other element": ("<term/>", "the element 'kw'", "the element 'term'"),
    "nameless attr": (
        query("K2", "<kwtext>x</kwtext><kwinfo><attr><value>1</value></attr></kwinfo>"),
        "a name and a value",
        "without",
    ),
    "attr without value": (
        query("K2", "<kwtext>x</kwtext><kwinfo><attr><name>1</name></attr></kwinfo>"),
        "a name and a value",
        "without",
    ),
    "two values": (
        query(
            "K2",
            "<kwtext>x</kwtext><kwinfo>"
            "<attr><name>n</name><value>1</value></attr><attr><name>n</name><value>2</value></attr></kwinfo>",
        ),
        "one value of 'n'",
        "'1' and '2'",
    ),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_faults_with_their_line_and_the_others_are_read(path: Path, kind: str) -> None:
    line, expected, found = FAULTS[kind]
    rows, problems = read(path, f"<kwlist>\n{query('K1')}\n{line}\n{query('K9')}</kwlist>")
    assert [rows[0]["query"], rows[-1]["query"]] == ["K1", "K9"]
    (problem,) = problems
    assert (problem.file, problem.line) == (str(path), 3)
    assert problem.expected.startswith(expected)
    assert found in problem.found


def test_the_same_id_in_one_line(path: Path) -> None:
    _, problems = read(path, f"<kwlist>{query('K1')}{query('K1')}</kwlist>")
    assert [problem.found for problem in problems] == ["the id 'K1' of line 1 again"]


def test_every_fault_is_reported(path: Path) -> None:
    _, problems = read(path, f"<kwlist>\n{query('a/b', '')}\n{query('K1')}\n{query('K1', '')}\n</kwlist>")
    assert [problem.line for problem in problems] == [2, 2, 4, 4]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<kwlist compareNormalize='upper'>" + query("K") + "</kwlist>", ':1: expected compareNormalize="lowercase"'),
        ("<kwlist>\n</kwlist>", ":1: expected at least one query"),
        ("<ecf/>", ":1: expected a query list; found an ECF. Give an ECF with --ecf."),
        ("<kwlist>\n" + query("K") + "\n<kw", ":3: expected more XML"),
        ("<kwlist>\n<!-- -- -->\n" + query("K") + "</kwlist>", ":2: expected well-formed XML"),
        ('<!DOCTYPE kwlist [<!ENTITY a "b">]>\n<kwlist>&a;</kwlist>', ":1: expected no document type declaration"),
    ],
)
def test_files_that_are_no_whole_list(path: Path, content: str, message: str) -> None:
    _, problems = read(path, content)
    (problem,) = problems
    assert str(problem).startswith(f"{path}{message}")


def test_a_declared_encoding(path: Path) -> None:
    path.write_bytes(
        f'<?xml version="1.0" encoding="ISO-8859-1"?><kwlist>{query("Ä", "<kwtext>ö</kwtext>")}</kwlist>'.encode(
            "latin-1"
        )
    )
    problems = Problems()
    assert read_queries(str(path), problems).select(["query", "text"]).to_pylist() == [{"query": "Ä", "text": "ö"}]
    assert not problems
