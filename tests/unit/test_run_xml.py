from __future__ import annotations

import gzip
import re
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from swsdask.formats import text as run_text
from swsdask.formats.runs import xml
from swsdask.formats.runs.read import read_run
from swsdask.formats.runs.xml import read_xml_run, xml_window
from swsdask.formats.text import utf8_blocks
from swsdask.model.errors import Problem, Problems
from swsdask.model.schemas import RunPiece
from tests.compression import zstd

ROW = '<kw file="d1" channel="1" tbeg="1.5" dur="0.25" score="-0.5" decision="YES"/>\n'

Read = Callable[..., tuple[list[RunPiece], list[Problem]]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read_content(content: str | bytes, name: str = "sys.kwslist.xml") -> tuple[list[RunPiece], list[Problem]]:
        file = tmp_path / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        problems = Problems()
        return list(read_run(str(file), problems)), list(problems)

    return read_content


def kwslist(rows: str, query: str = "q1") -> str:
    return f'<kwslist system_id="s">\n<detected_kwlist kwid="{query}">\n{rows}</detected_kwlist>\n</kwslist>\n'


def test_a_run_is_read_as_written(read: Read) -> None:
    (piece,), problems = read(
        '<?xml version="1.0" encoding="UTF-8"?>\n<!-- made by hand -->\n'
        '<stdlist termlist_filename="t.tlist.xml" indexing_time="1.00" language="m" index_size="7" system_id="s 1">\n'
        '<detected_termlist termid="q1" term_search_time="2.50" oov_term_count="0">\n'
        "<term decision='NO' score='1e-3' dur='0.00005' tbeg='3' channel='2' file='audio/d2.WAV'/>\n"
        '<term file="d1.sph" channel="1" tbeg="0.00015" dur="10" score="-2.25" decision="YES" />\n'
        '</detected_termlist><detected_termlist termid="q2" oov_term_count="1"/></stdlist>'
    )
    assert not problems
    assert piece.header.system == "s 1"
    assert piece.header.declared_scores is None
    assert piece.header.attributes == {
        "termlist_filename": "t.tlist.xml",
        "indexing_time": "1.00",
        "language": "m",
        "index_size": "7",
        "search_time.q1": "2.50",
        "oov_count.q1": "0",
        "oov_count.q2": "1",
    }
    assert (piece.queries, piece.query_lines, piece.listed) == (("q1", "q2"), (4, 7), ("q1", "q2"))
    assert (piece.documents, piece.document_lines) == (("d2", "d1"), (5, 6))
    assert piece.query.tolist() == [0, 0]
    assert piece.document.tolist() == [0, 1]
    assert piece.channel.tolist() == [2, 1]
    assert piece.start.tolist() == [30_000, 2]
    assert piece.duration.tolist() == [0, 100_000]
    assert piece.rounded == 2
    assert piece.score.tolist() == [0.001, -2.25]
    assert piece.decision.tolist() == [0, 1]


@pytest.mark.parametrize(
    "row",
    [
        ROW,
        ROW.replace("/>", "></kw>"),
        ROW.replace(" file=", ' id="7" file='),
        ROW.replace("/>", " tbegin='a>b/>' sco=''></kw>"),
        ROW.replace(" score=", ' xmlnsa="" scores="1"\nfiles="x" score='),
    ],
)
def test_ordinary_rows_are_the_scanner_s(read: Read, monkeypatch: pytest.MonkeyPatch, row: str) -> None:
    expected = read(kwslist(ROW * 3))[0][0]
    monkeypatch.delattr(xml, "OddReader")
    (piece,), problems = read(kwslist(row * 3))
    assert not problems
    for name in ("query", "document", "channel", "start", "duration", "score", "decision"):
        assert getattr(piece, name).tolist() == getattr(expected, name).tolist()


@pytest.mark.parametrize("begin", ['<kwid="7" file', '<kw id="7"file', '<kw id="7"id2="8" file', '<kw n:id="7" file'])
def test_what_only_looks_like_another_attribute(read: Read, begin: str) -> None:
    _, problems = read(kwslist(ROW.replace("<kw file", begin)))
    assert problems


def test_a_row_that_names_an_attribute_twice(read: Read) -> None:
    for twice in (' id="7"', ' id="7" ids="7"'):
        _, (problem,) = read(kwslist(ROW + ROW.replace("/>", f'{twice} id="8"></kw>')))
        assert problem.line == 4
        assert "Attribute id redefined" in problem.found


@pytest.mark.parametrize("said", ['system_id=""', ""])
@pytest.mark.parametrize("name", ["a.b.kwslist.xml", "a.b.stdlist.xml.gz", "a.b.xml"])
def test_without_a_system_id_the_file_names_the_system(read: Read, said: str, name: str) -> None:
    content = f"<kwslist {said}></kwslist>".encode()
    (piece,), problems = read(gzip.compress(content) if name.endswith("gz") else content, name)
    assert not problems
    assert (piece.header.system, len(piece), piece.listed) == ("a.b", 0, ())


def test_a_given_name_wins(tmp_path: Path) -> None:
    file = tmp_path / "f.xml"
    file.write_text(kwslist(ROW))
    (piece,) = read_run(str(file), Problems(), system="other")
    assert piece.header.system == "other"


def test_declared_scores(read: Read) -> None:
    (piece,), problems = read('<kwslist system_id="s" min_score="-1" max_score="2.5"></kwslist>')
    assert not problems
    assert piece.header.declared_scores == (-1.0, 2.5)
    (piece,), _ = read('<kwslist system_id="s" min_score="-1"></kwslist>')
    assert (piece.header.declared_scores, piece.header.attributes) == (None, {"min_score": "-1"})
    _, (problem,) = read('<kwslist system_id="s" min_score="3" max_score="2.5"></kwslist>')
    assert problem.found == "'3' and '2.5'"


@pytest.mark.parametrize("compress", [gzip.compress, zstd])
def test_compression_is_reported_by_content(read: Read, compress: Callable[[bytes], bytes]) -> None:
    (piece,), problems = read(compress(kwslist(ROW * 3).encode()), "plain.xml")
    assert not problems
    assert len(piece) == 3


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "UTF-16", "utf-8-sig"])
def test_encodings(read: Read, encoding: str) -> None:
    declared = encoding if encoding != "utf-8-sig" else "UTF-8"
    text = f'<?xml version="1.0" encoding="{declared}"?>' + kwslist(ROW.replace("d1", "dé"), "qü")
    (piece,), problems = read(text.encode(encoding))
    assert not problems
    assert (piece.queries, piece.documents) == (("qü",), ("dé",))


def test_rows_without_decisions(read: Read) -> None:
    (piece,), problems = read(kwslist(ROW.replace(' decision="YES"', "") * 2))
    assert not problems
    assert piece.decision.tolist() == [-1, -1]
    _, (problem,) = read(kwslist(ROW * 2 + ROW.replace(' decision="YES"', "") + ROW))
    assert (problem.line, problem.expected) == (5, "a decision, as in the rows before")


@pytest.mark.parametrize(
    ("old", "new", "expected", "found"),
    [
        (' score="-0.5"', "", "a score", "a row without score"),
        ('"-0.5"', '"abc"', "a score", "'abc'"),
        ('"-0.5"', '"NaN"', "a score", "'NaN'"),
        ('"-0.5"', '"-infin"', "a score", "'-infin'"),
        ('"-0.5"', '"1e999"', "a score below 1.797e308", "'1e999'"),
        ('"0.25"', '"-0.25"', "a duration of 0 or more seconds", "'-0.25'"),
        ('"0.25"', '""', "a duration in seconds", "''"),
        (' dur="0.25"', "", "a dur", "a row without dur"),
        ('"1.5"', '"-1"', "a start of 0 or more seconds", "'-1'"),
        ('"1.5"', '"214748.3648"', "a start of at most 214748.3647 seconds", "'214748.3648'"),
        ('"1.5"', '"1e99999999"', "a start of at most 214748.3647 seconds", "'1e99999999'"),
        ('"1.5"', '"214748.3"', "start and duration of at most 214748.3647 seconds together", "214748.3 and 0.25"),
        ('"1"', '"1.0"', "a channel, a whole number from 0 to 127", "'1.0'"),
        ('"1"', '"128"', "a channel, a whole number from 0 to 127", "'128'"),
        ('"YES"', '"yes"', "the decision YES or NO", "'yes'"),
        ('"d1"', '"../../x"', "a file that names a document", "a path that climbs out of its folder, '../../x'"),
        ('"d1"', '""', "a file that names a document", "an empty id"),
        ("<kw ", "<word ", "kw elements", "the element 'word'"),
        ("<kw ", "lost <kw ", "only elements", "text between them"),
    ],
)
def test_faulty_rows(read: Read, old: str, new: str, expected: str, found: str) -> None:
    _, (problem, *others) = read(kwslist(ROW * 2 + ROW.replace(old, new) + ROW))
    assert not others
    assert (problem.line, problem.expected, problem.found) == (5, expected, found)
    assert problem.file.endswith("sys.kwslist.xml")
    assert problem.remedy


def test_all_faulty_rows_are_found_and_the_others_read(read: Read) -> None:
    bad = ROW.replace('"-0.5"', '"x"').replace('"YES"', '"Yes"')
    (piece,), problems = read(kwslist((ROW + bad) * 40 + ROW))
    assert len(piece) == 41
    assert [problem.line for problem in problems] == [line for line in range(4, 84, 2) for _ in range(2)]


def test_lists_of_one_query_add_up(read: Read) -> None:
    lists = "".join(f'<detected_kwlist kwid="{query}">\n{ROW}</detected_kwlist>\n' for query in ("q1", "q2", "q1"))
    (piece,), problems = read(f"<kwslist>\n{lists}</kwslist>")
    assert not problems
    assert (piece.queries, piece.query_lines, piece.query.tolist()) == (("q1", "q2"), (2, 5), [0, 1, 0])
    assert piece.listed == ("q1", "q2", "q1")


@pytest.mark.parametrize(("query", "found"), [("", "an empty id"), ("a/b", "a path in the id 'a/b'")])
def test_queries_that_are_no_ids(read: Read, query: str, found: str) -> None:
    _, (problem,) = read(kwslist(ROW, query))
    assert (problem.line, problem.expected, problem.found) == (2, "a query id", found)


def test_a_file_that_breaks_off(read: Read) -> None:
    (piece,), (problem,) = read(kwslist(ROW * 5)[:-30])
    assert len(piece) == 5
    assert (problem.expected, problem.found) == ("</kwslist>", "the end of the file")
    _, (problem,) = read(gzip.compress(kwslist(ROW * 100_000).encode())[:-100])
    assert (problem.expected, problem.found) == ("whole gzip data", "data that break off")
    assert problem.line > 1


def test_malformed_xml_is_reported_at_its_line(read: Read) -> None:
    (piece,), (problem,) = read(kwslist(ROW * 5 + "</kw>\n" + ROW))
    assert len(piece) == 5
    assert (problem.line, problem.expected) == (8, "well-formed XML")


def test_a_byte_that_is_no_utf8(read: Read) -> None:
    (piece,), (problem,) = read(kwslist(ROW + ROW.replace("d1", "d\udcff")).encode("utf-8", "surrogateescape"))
    assert len(piece) == 1
    assert (problem.line, problem.expected, problem.found) == (4, "text in utf-8", "the byte 0xff")


def test_nothing_is_expanded(read: Read) -> None:
    entities = '<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {name} "{10 * f"&{other};"}">' for other, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    tracemalloc.start()
    pieces, (problem,) = read(f"<!DOCTYPE kwslist [{entities}]>\n" + kwslist(ROW.replace("d1", "&i;")))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not pieces
    assert problem.line == 1
    assert peak < 10_000_000


@pytest.mark.parametrize("tag", ["kwslist", "kw"])
def test_a_tag_of_very_many_attributes_is_left_unread(read: Read, tag: str) -> None:
    many = " ".join(f'a{number}="1"' for number in range(100_000))
    _, (problem,) = read(kwslist(ROW).replace(f"<{tag} ", f"<{tag} {many} "))
    assert problem.line == {"kwslist": 1, "kw": 3}[tag]
    assert "at most 10,000" in problem.expected


@pytest.mark.parametrize("content", ["<ecf/>", '<termlist version="1"/>', "<html/>", "", " \n"])
def test_what_is_no_run(read: Read, content: str) -> None:
    pieces, (problem,) = read(content)
    assert not pieces
    assert problem.remedy


@pytest.mark.parametrize("tag", ['<kw file="', "<!--", "lost "])
def test_a_tag_without_end_is_refused_before_memory_is_full(monkeypatch: pytest.MonkeyPatch, tag: str) -> None:
    monkeypatch.setattr(run_text, "LONGEST", 1 << 16)
    passed = 0

    def endless() -> Iterator[bytes]:
        nonlocal passed
        yield kwslist(ROW).replace("</detected_kwlist>\n</kwslist>\n", tag).encode()
        while True:
            passed += 1
            yield b"x" * 4096

    problems = Problems()
    (piece,) = read_xml_run(xml_window(utf8_blocks(endless(), xml=True)), "f", problems, 1000, None)
    assert len(piece) == 1
    assert passed < 100
    assert [problem.line for problem in problems] == [4]


def test_rows_on_one_endless_line_are_rows() -> None:
    def one_line() -> Iterator[bytes]:
        yield b'<kwslist><detected_kwlist kwid="q">'
        for _ in range(100):
            yield ROW.strip().encode() * 100
        yield b"</detected_kwlist></kwslist>"

    problems = Problems()
    pieces = list(read_xml_run(xml_window(utf8_blocks(one_line(), xml=True)), "f", problems, 3000, None))
    assert not problems
    assert [len(piece) for piece in pieces] == [3000, 3000, 3000, 1000]
    assert [piece.listed for piece in pieces] == [("q",), (), (), ()]
    assert {piece.queries for piece in pieces} == {("q",)}


def test_many_documents_and_lists(read: Read) -> None:
    lists = "".join(
        f'<detected_kwlist kwid="q{query}">'
        + "".join(ROW.replace("d1", f"d{query * 7 + row}") for row in range(7))
        + "</detected_kwlist>"
        for query in range(5000)
    )
    (piece,), problems = read(f"<kwslist>{lists}</kwslist>")
    assert not problems
    assert piece.documents == tuple(f"d{number}" for number in range(35_000))
    assert piece.document.tolist() == list(range(35_000))
    assert piece.query.tolist() == [number // 7 for number in range(35_000)]


@pytest.mark.parametrize("ending", ["/>", " />", "></kwslist>", "/><!-- > -->\n"])
def test_a_root_that_closes_itself_is_a_list_without_detections(read: Read, ending: str) -> None:
    (piece,), problems = read(f'<kwslist system_id="s/>" language="x"{ending}'.replace("s/>", "s>"))
    assert not problems
    assert (piece.header.system, len(piece)) == ("s>", 0)
    _, (problem,) = read('<kwslist system_id="s"/><kwslist/>')
    assert problem.expected == "well-formed XML"


def test_lines_that_end_in_carriage_returns_alone(read: Read) -> None:
    text = kwslist(ROW * 3 + ROW.replace("-0.5", "x"))
    (piece,), problems = read(text)
    (same,), same_problems = read(text.replace("\n", "\r"))
    assert problems == same_problems
    assert problems[0].line == 6
    assert piece.document_lines == same.document_lines
    assert len(same) == 3


@pytest.mark.parametrize("root", ['xmlns:n="u"', 'xmlns:n="u" xmlns="u"', 'xmlns:n="u" xmlns="v"'])
def test_elements_with_a_prefix(read: Read, root: str) -> None:
    """The parser of a list with a prefix reads all its rows: without the prefix its end would not match."""
    lists = "".join(f'<detected_kwlist kwid="{query}">\n{ROW * 5}</detected_kwlist>\n' for query in ("q1", "q2"))
    plain = f"<kwslist>\n{lists}</kwslist>\n"
    prefixed = re.sub(r"<(/?)(\w)", r"<\1n:\2", plain).replace("<n:kwslist>", f"<n:kwslist {root}>")
    ((piece,), problems), ((expected,), _) = read(prefixed), read(plain)
    assert not problems
    assert piece.queries == expected.queries == ("q1", "q2")
    assert piece.query.tolist() == expected.query.tolist() == [0] * 5 + [1] * 5
