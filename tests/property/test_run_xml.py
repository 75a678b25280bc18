"""The scanner and lxml are two ways of reading one file: their results are the same, whatever is in it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_HALF_EVEN, Decimal
from unittest.mock import patch

from fsspec import filesystem
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from swsdask.formats.runs import builder
from swsdask.formats.runs import read as run_parts
from swsdask.formats.runs.read import RunFile, read_run
from swsdask.formats.runs.xml import read_xml_run, xml_window
from swsdask.formats.text import read_blocks, utf8_blocks
from swsdask.kernels.xml import ODD
from swsdask.model.errors import Problem, Problems
from swsdask.model.schemas import RunPiece
from swsdask.model.units import document_id
from tests.conftest import examples

DIALECTS = {
    "kwslist": ("detected_kwlist", "kw", "kwid", "search_time", "oov_count"),
    "stdlist": ("detected_termlist", "term", "termid", "term_search_time", "oov_term_count"),
}


def read(content: bytes, block: int = 1 << 20, rows_per_piece: int = 1000) -> tuple[list[RunPiece], list[Problem]]:
    problems = Problems()
    window = xml_window(cut(utf8_blocks(read_blocks(io.BytesIO(content)), xml=True), block))
    pieces = list(read_xml_run(window, "f.xml", problems, rows_per_piece, None))
    return pieces, list(problems)


def cut(blocks: Iterator[bytes], size: int) -> Iterator[bytes]:
    for block in blocks:
        yield from (block[place : place + size] for place in range(0, len(block), size))


@contextmanager
def only_lxml() -> Iterator[None]:
    with patch.object(builder, "scan_rows", lambda *_: ODD):
        yield


def columns(piece: RunPiece) -> list[object]:
    arrays = (piece.query, piece.document, piece.channel, piece.start, piece.duration, piece.score, piece.decision)
    names = (piece.queries, piece.query_lines, piece.documents, piece.document_lines, piece.listed)
    return [piece.header, piece.rounded, *names, *((array.dtype, array.tobytes()) for array in arrays)]


NUMBERS = (
    "1e-5",
    "0e99",
    "+3",
    ".5",
    "5.",
    "-0.0",
    "0",
    "00012.50",
    "0.00005",
    "0.00015",
    "214748.3647",
    "12345678901234567890",
    "18446744073709551616",
    "9007199254740993",
    "0.1000000000000000055511151231257827",
    "1e-320",
    "4.9e-324",
    "1e22",
    "1e23",
)
NO_NUMBERS = (
    "-1",
    "nan",
    "NaN",
    "inf",
    "-Infinity",
    "",
    " 1.5 ",
    "1_0",
    "0x10",
    "1,5",
    "1e9",
    "1e400",
    "1e99999999",
    "-1e99999999",
    "1e-99999999",
    "\u0663",
    "1e",
    "e5",
    ".",
    "+",
    "--1",
    "214748.3648",
    "1.5&#32;",
    "1 5",
)
ODD_NAMES = (
    "../../x",
    "",
    "d&amp;1",
    "d&#49;",
    "a&lt;b",
    "\ue000",
    ".wav",
    "a\tb",
    "&#9;",
    "&unknown;",
    "a<b",
    "\uffff",
    "&#0;",
    "d\x01",
    "d&1",
)
OTHER_NAMES = ("other", "others", "files", "tbe", "d", "Score", "_a-b.c2", "xmlnsa", "du", "decisions")
"""Of attributes that rows do not have in the format, but that any document in XML may have."""

ODD_GAPS = (
    "<!-- a > comment </detected_kwlist> -->",
    "<!---->",
    "<?pi some > thing?>",
    "text",
    "<![CDATA[ ]]>",
    "<![CDATA[<kw/>]]>",
    "&#32;",
    "&amp;",
    "<other a='>'><kw/></other>",
    "<kw/>",
    "<term/>",
    "<n:kw xmlns:n='u'/>",
    "<x/>",
)
BAD_GAPS = ("</x>", "<", ">", "]]>", "\x00", "&nbsp;", "<?xml version='1.0'?>", "<!-- -- -->", "<n:kw/>", "&", "<kw")


class Writer:
    """Draws a document of which more or less is out of the ordinary."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.one_in = draw(st.sampled_from([0, 100, 30, 8]))
        self.broken = draw(st.integers(0, 3)) == 0
        root = draw(st.sampled_from(sorted(DIALECTS)))
        self.root, (self.list, self.row, self.query, self.time, self.oov) = root, DIALECTS[root]
        self.with_decision = draw(st.booleans())
        self.others = draw(st.sampled_from([(), (), OTHER_NAMES]))
        self.closed_by = draw(st.sampled_from(["/>", "/>", f"></{self.row}>"]))

    def odd(self) -> bool:
        return self.one_in > 0 and self.draw(st.integers(1, self.one_in)) == 1

    def pick(self, usual: tuple[str, ...], *others: str) -> str:
        return self.draw(st.sampled_from(others if others and self.odd() else usual))

    def number(self, signed: bool) -> str:
        if self.odd():
            return self.draw(st.sampled_from(NO_NUMBERS))
        text = self.draw(
            st.one_of(
                st.sampled_from(["1.25", "0.5", "3"]),
                st.decimals(0, 300, places=3).map(str),
                st.floats(0, 1e5).map(repr),
                st.sampled_from(NUMBERS[:9]),
            )
            if not signed
            else st.one_of(
                st.sampled_from(NUMBERS),
                st.floats(allow_nan=False).map(repr),
                st.from_regex(r"\A[0-9]{0,12}\.[0-9]{1,14}(e[+-]?[0-9]{1,2})?\Z"),
                st.from_regex(r"\A[0-9]{15,21}(\.[0-9]{0,6})?\Z"),
            )
        )
        return ("-" if signed and self.draw(st.booleans()) else "") + text

    def blank(self) -> str:
        return self.pick((" ", " ", "\n", "  ", "\t"), "\r\n ", " \n\n", "\r")

    def gap(self) -> str:
        usual = ("\n", "\n", "", " \n", "\r\n")
        return self.pick(usual, *BAD_GAPS) if self.broken else self.pick(usual, *ODD_GAPS)

    def attributes(self, values: dict[str, str], others: tuple[str, ...] = ()) -> str:
        more = self.draw(st.lists(st.sampled_from(others), max_size=3, unique=not self.odd())) if others else []
        names = list(self.draw(st.permutations([*values, *more])))
        if self.odd():
            names = names[: self.draw(st.integers(0, len(names)))]
        if self.odd():
            names.append(self.pick(("other", "xmlns:n", "xml:lang", "xmlns"), "n:file", "file", "-a", "2a", "\xe9"))
        parts = []
        for name in names:
            said = self.pick(("u", "", "a>b", "a/>"), "a\tb", "&amp;", "<", "\xef")
            quote = self.pick(('"', "'"), "") if self.broken else self.pick(('"', "'"))
            parts.append(f"{self.blank()}{name}{self.pick(('=',), ' = ')}{quote}{values.get(name, said)}{quote}")
        return "".join(parts)

    def a_row(self) -> str:
        values = {
            "file": self.pick(
                ("d1", "d2", "dir/d3.wav", "x y", "\xdcn\xefcode", "a>b", "d1.sph", "\u65e5"), *ODD_NAMES
            ),
            "channel": self.pick(("1", "2", "127", "01", "0"), "128", "-1", "1.0", "", "a", "0001", "1 ", "+1"),
            "tbeg": self.number(False),
            "dur": self.number(False),
            "score": self.number(True),
        }
        if self.with_decision != self.odd():
            values["decision"] = self.pick(("YES", "NO"), "yes", "", "Y", "YES ", "NO&#32;", "YESNO", "&#78;O")
        end = self.pick(
            (self.closed_by, self.closed_by, f" {self.closed_by}", f"\n{self.closed_by}"),
            f"></{self.row}>",
            f"> </{self.row}>",
            f"></{self.row} >",
            "></x>",
            ">",
            "><kw/>",
            "/ >",
            "/>x",
        )
        return f"<{self.row}{self.attributes(values, self.others)}{end}"

    def a_list(self) -> str:
        number = self.number(False)
        query = self.pick(("q1", "q2", "q3", "q4", "q5", "\xdcn\xef"), "", "a/b", "q&amp;1")
        start = self.attributes({self.query: query, self.time: number, self.oov: "0"})
        rows = "".join(self.gap() + self.a_row() for _ in range(self.draw(st.integers(0, 5))))
        end = self.pick((f"</{self.list}>",), f"</{self.list} >", f"</{self.list}\n>", f"</{self.root}>", "", "</>")
        return f"{self.gap()}<{self.list}{start}{self.pick(('>',), ' >', '/>')}{rows}{self.gap()}{end}"

    def document(self) -> bytes:
        header = {"system_id": self.pick(("s", ""), "a/b"), "language": self.pick(("x>y", "m"), "&unknown;")}
        if self.odd():
            header |= {"min_score": self.number(True), "max_score": self.number(True)}
        encoding = self.pick(("", "utf-8", "UTF-8"), "ISO-8859-1", "utf-16", "koi8-r", "no-such", "zlib_codec", "ascii")
        prolog = f'<?xml version="1.0" encoding="{encoding}"?>' if encoding else ""
        prolog += self.pick(
            ("", "\n"),
            "<!-- > -->\n",
            f"<!DOCTYPE {self.root} SYSTEM 'x.dtd'>",
            "<?pi?>",
            "junk",
            "\ufeff",
            f"<!DOCTYPE {self.root} [<!ENTITY unknown 'value'>]>",
        )
        opening = f"<{self.root}{self.attributes(header)}>"
        lists = "".join(self.a_list() for _ in range(self.draw(st.integers(0, 4))))
        end = f"{self.gap()}</{self.root}>" + self.pick(("\n", ""), "<!-- -->", "x", "<a/>", "<?pi?>", "</a>")
        codec = encoding if encoding in ("ISO-8859-1", "utf-16", "koi8-r") else "utf-8"
        return (prolog + opening + lists + end).encode(codec, "replace")


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    content = Writer(draw).document()
    harm = draw(st.sampled_from(["none"] * 8 + ["cut", "byte"]))
    place = draw(st.integers(0, len(content) - 1)) if harm != "none" else 0
    if harm == "cut":
        return content[:place]
    if harm == "byte":
        return content[:place] + bytes([draw(st.integers(0, 255))]) + content[place + 1 :]
    return content


def plainly_read(content: bytes) -> list[tuple[str, str, int, int, int, float, int]]:
    """The rows of a document without problems, as lxml's tree and Python's numbers give them."""

    def ticks(text: str) -> int:
        return int((Decimal(text.strip()) * 10_000).to_integral_value(ROUND_HALF_EVEN))

    root = etree.fromstring(content)
    list_, row, query, _, _ = DIALECTS[etree.QName(root).localname]
    return [
        (
            listed.get(query),
            document_id(values["file"]),
            int(values["channel"]),
            ticks(values["tbeg"]),
            ticks(values["dur"]),
            float(values["score"]),
            {"YES": 1, "NO": 0, None: -1}[values.get("decision")],
        )
        for listed in root.iter(f"{{*}}{list_}")
        for values in (dict(element.attrib) for element in listed.iter(f"{{*}}{row}"))
    ]


def rows_of(pieces: list[RunPiece]) -> list[tuple[str, str, int, int, int, float, int]]:
    return [
        (piece.queries[query], piece.documents[document], *values)
        for piece in pieces
        for query, document, *values in zip(
            piece.query.tolist(),
            piece.document.tolist(),
            piece.channel.tolist(),
            piece.start.tolist(),
            piece.duration.tolist(),
            piece.score.tolist(),
            piece.decision.tolist(),
            strict=True,
        )
    ]


@given(documents(), st.integers(1, 400), st.integers(1, 6))
@examples(100)
def test_scanner_and_lxml_read_the_same(content: bytes, block: int, rows_per_piece: int) -> None:
    scanned, scanner_problems = read(content, block, rows_per_piece)
    with only_lxml():
        parsed, lxml_problems = read(content, 1 << 20, rows_per_piece)
    assert scanner_problems == lxml_problems
    assert [columns(piece) for piece in scanned] == [columns(piece) for piece in parsed]
    if not scanner_problems:
        assert repr(rows_of(scanned)) == repr(plainly_read(content))
        assert all(len(piece) == rows_per_piece for piece in scanned[:-1])


@given(documents(), st.integers(2, 5))
@examples(100)
def test_parts_one_after_the_other_are_the_whole(content: bytes, n_parts: int) -> None:
    file = "memory://parts.kwslist.xml"
    filesystem("memory").pipe(file, content)
    whole, problems = Problems(), Problems()
    expected = list(read_run(file, whole))
    with patch.object(run_parts, "BLOCK", 256):
        parts = RunFile(file).parts(n_parts)
        found = [piece for part in parts for piece in part.read(problems, rows_per_piece=3)]
    assert 1 <= len(parts) <= n_parts
    if not whole:
        assert not problems
        assert repr(rows_of(found)) == repr(rows_of(expected))
        assert first_lines(found) == first_lines(expected)
        assert [query for piece in found for query in piece.listed] == [
            query for piece in expected for query in piece.listed
        ]
    elif any("decision, as in the rows before" not in problem.expected for problem in whole):
        assert problems


def first_lines(pieces: list[RunPiece]) -> dict[str, int | None]:
    lines: dict[str, int | None] = {}
    for piece in pieces:
        for name, line in zip(piece.queries + piece.documents, piece.query_lines + piece.document_lines, strict=True):
            lines.setdefault(name, line)
    return lines
