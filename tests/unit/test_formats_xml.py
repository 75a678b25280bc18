from __future__ import annotations

import codecs
import gzip
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest

from swsdask.formats.xml_stream import End, Start, read_elements
from swsdask.model.errors import InputError
from tests.compression import zstd


@pytest.fixture
def xml(tmp_path: Path) -> Path:
    return tmp_path / "x.xml"


def events(path: Path, content: str | bytes) -> list[Start | End]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_elements(str(path)))


def test_tags_in_order_with_paths_lines_attributes_and_text(xml: Path) -> None:
    prolog = '<?xml version="1.0"?>\n<!-- note -->\n'
    body = "<a x=\"1 &amp; &#50;\"\n y='2'>\n<n:b> one <![CDATA[<two>]]></n:b>\n<c/></a>"
    assert events(xml, prolog + body) == [
        Start(("a",), 3, {"x": "1 & 2", "y": "2"}),
        Start(("a", "b"), 5, {}),
        End(("a", "b"), 5, " one <two>"),
        Start(("a", "c"), 6, {}),
        End(("a", "c"), 6, ""),
        End(("a",), 6, ""),
    ]


def test_text_beside_elements_is_not_lost(xml: Path) -> None:
    assert [event.text for event in events(xml, "<a>\n <b/>  first <b/> second </a>") if isinstance(event, End)] == [
        "",
        "",
        "first",
    ]


def test_lines_far_down(xml: Path) -> None:
    found = events(xml, b"<a>\n" + b"<b/>\n" * 100_000 + b"</a>")
    assert [event.line for event in found if isinstance(event, Start)] == list(range(1, 100_002))


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-15", "windows-1252", "euc-jp", "gb18030", "utf-16"])
def test_declared_encodings(xml: Path, encoding: str) -> None:
    text = "日本" if encoding in ("euc-jp", "gb18030", "utf-16") else "größer"
    content = f'<?xml version="1.0" encoding="{encoding}"?>\n<a x="{text}">{text}</a>'.encode(encoding)
    assert events(xml, content) == [Start(("a",), 2, {"x": text}), End(("a",), 2, text)]


def test_byte_order_marks(xml: Path) -> None:
    assert events(xml, codecs.BOM_UTF8 + b"<a/>")[0] == Start(("a",), 1, {})
    assert events(xml, "<a/>".encode("utf-16"))[0] == Start(("a",), 1, {})


FAULTS = {
    "cut off": (b"<a>\n<b>", ":2: expected more XML; found the end of the file inside <b>"),
    "cut off in a tag": (b"<a>\n<b c='1", ":2: expected more XML; found the end of the file inside <a>"),
    "cut off in a character": (b"<a>\n\xc3", ":2: expected text in utf-8; found the byte 0xc3"),
    "no element": (b"<!-- x -->\n", ":2: expected more XML; found the end of the file."),
    "other end": (b"<a>\n\n</b>", ":3: expected well-formed XML; found mismatched tag"),
    "two roots": (b"<a/>\n<a/>", ":2: expected well-formed XML; found junk after document element"),
    "attribute twice": (b"<a>\n<b c='1' c='2'/></a>", ":2: expected well-formed XML; found duplicate attribute"),
    "control character": (b"<a>\n\x01</a>", ":2: expected well-formed XML"),
    "wrong encoding": ("<a>\n\n<b c='ä'/></a>".encode("latin-1"), ":3: expected text in utf-8; found the byte 0xe4"),
    "unknown encoding": (b"<?xml version='1.0' encoding='rot13'?><a/>", ":1: expected an encoding"),
    "unknown entity": (b"<a>\n&b;</a>", ":2: expected well-formed XML; found undefined entity"),
    "unknown entity in a value": (b"<a>\n<b c='&d;'/></a>", ":2: expected well-formed XML; found undefined entity"),
    "external document type": (b"<!DOCTYPE a SYSTEM 'file:///etc/passwd'>\n<a/>", ":1: expected no document type"),
    "external entity": (
        b"<?xml version='1.0'?>\n<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]>\n<a>&b;</a>",
        ":2: expected no document type declaration; found <!DOCTYPE a ...>",
    ),
    "entity bomb": (
        b"<?xml version='1.0'?>\n\n<!DOCTYPE a [<!ENTITY b 'bbbbbbbb'><!ENTITY c '&b;&b;&b;&b;'>]>\n<a>&c;</a>",
        ":3: expected no document type declaration",
    ),
    "parameter entity": (b"<!DOCTYPE a [<!ENTITY % b '<!ENTITY c \"d\">'>%b;]>\n<a>&c;</a>", ":1: expected no"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_faults_have_their_line(xml: Path, kind: str) -> None:
    content, message = FAULTS[kind]
    with pytest.raises(InputError) as caught:
        events(xml, content)
    assert str(caught.value).startswith(f"{xml}{message}")


def test_what_precedes_a_fault_is_read(xml: Path) -> None:
    xml.write_bytes(b"<a>\n<b/>\n<b/>\n</c>")
    stream = read_elements(str(xml))
    assert [event.path for event in (next(stream) for _ in range(5))][-1] == ("a", "b")
    with pytest.raises(InputError, match=r":4:"):
        next(stream)


LONG = {
    "attribute": (b"<a>\n<b c='", b"x", ":2: expected a tag or comment of at most 1048576 bytes"),
    "name": (b"<a>\n<", b"x", ":2: expected a tag"),
    "attributes": (b"<a>\n<b ", b" ", ":2: expected a tag"),
    "comment": (b"<!--", b"x\n", ":1: expected a tag or comment"),
    "instruction": (b"<a><?b ", b"x", ":1: expected a tag or comment"),
    "text": (b"<a>\n<b>", b"x", ":2: expected a text of at most 1048576 characters"),
    "CDATA": (b"<a>\n<b><![CDATA[", b"x", ":2: expected a text"),
    "blanks": (b"<a>\n", b" ", ":2: expected a text"),
    "reference": (b"<a>\n&", b"x", ":2: expected a tag"),
    "depth": (b"<a>\n", b"<b>", ":2: expected elements at most 64 deep"),
}


@pytest.mark.parametrize("kind", LONG)
def test_what_never_ends_fails_in_little_memory(xml: Path, kind: str) -> None:
    before, unit, message = LONG[kind]
    with pa.CompressedOutputStream(str(xml), "zstd") as packed:
        packed.write(before)
        for _ in range(100):
            packed.write(unit * (1 << 20))
    tracemalloc.start()
    with pytest.raises(InputError) as caught:
        list(read_elements(str(xml)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert str(caught.value).startswith(f"{xml}{message}")
    assert peak < 16 << 20


def test_names_without_end_fail(xml: Path) -> None:
    with pytest.raises(InputError, match="at most 10,000 names"):
        events(xml, b"<a>" + b"".join(b"<b%d/>" % number for number in range(100_000)) + b"</a>")


def test_many_elements_in_one_line_pass_in_little_memory(xml: Path) -> None:
    xml.write_bytes(gzip.compress(b"<a>" + b'<b c="d">e</b>' * 300_000 + b"</a>"))
    tracemalloc.start()
    assert sum(1 for _ in zip(range(100_000), read_elements(str(xml)), strict=False)) == 100_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 24 << 20


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_break_in_compressed_data_has_the_line_that_was_reached(xml: Path, pack: object) -> None:
    assert callable(pack)
    content = b"<a>\n" + b"".join(b'<b c="%d"/>\n' % (n * 7919 % 1_000_003) for n in range(60_000)) + b"</a>"
    xml.write_bytes(pack(content)[:-1000])
    seen: list[Start | End] = []
    with pytest.raises(InputError, match="break off") as caught:
        seen.extend(read_elements(str(xml)))
    assert (caught.value.problems[0].line or 0) - seen[-1].line in (0, 1)
