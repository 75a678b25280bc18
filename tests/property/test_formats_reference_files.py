"""What is written in any encoding, order of attributes and compression is read back."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar
from xml.sax.saxutils import escape, quoteattr

from hypothesis import given
from hypothesis import strategies as st

from swsdask.formats.reference.nist_xml import read_ecf, read_queries
from swsdask.formats.reference.rttm import read_rttm
from swsdask.model.errors import Problems
from tests.compression import zstd

Read = TypeVar("Read")

PACKS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstd}
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252", "ascii"]
LATIN = st.characters(codec="iso-8859-1", exclude_categories=["C"], exclude_characters="/\\")
WORLD = st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="/\\")
IDS = st.text(LATIN, min_size=1, max_size=12).filter(lambda name: name.strip() and name not in (".", ".."))
WORDS = st.text(WORLD, min_size=1, max_size=5)
TEXTS = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
CHANNELS = st.integers(0, 127)
SPANS = st.tuples(st.integers(0, 10**8), st.integers(1, 10**8)).map(lambda span: (span[0], sum(span)))


def element(data: st.DataObject, name: str, attributes: Mapping[str, str], inside: str = "") -> str:
    """An element, its attributes in any order."""
    order = data.draw(st.permutations(sorted(attributes)))
    start = "".join(
        data.draw(st.sampled_from([" ", "\n ", "\t"])) + f"{key}={quoteattr(attributes[key])}" for key in order
    )
    return f"<{name}{start}>{inside}</{name}>"


def seconds(ticks: int) -> str:
    return str(Decimal(ticks) / 10_000)


def read_back(data: st.DataObject, text: str, reader: Callable[[str, Problems], Read], *, xml: bool) -> Read:
    """What `reader` makes of `text` in some encoding (which XML declares) and compression."""
    encoding = data.draw(st.sampled_from(ENCODINGS)) if xml else "utf-8"
    if xml:
        declared = encoding.removesuffix("-sig")
        text = f'<?xml version="1.0" encoding="{declared}"?>\n{text}'
    suffix = data.draw(st.sampled_from(sorted(PACKS)))
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"x{suffix}"
        path.write_bytes(PACKS[suffix](text.encode(encoding, "xmlcharrefreplace")))
        problems = Problems()
        read = reader(str(path), problems)
        assert list(problems) == []
        return read


@given(st.data())
def test_ecf(data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(IDS, CHANNELS, SPANS, IDS, IDS), min_size=1, max_size=5))
    excerpts = [
        element(
            data,
            "excerpt",
            {
                "audio_filename": f"audio/{document}.sph",
                "channel": str(channel),
                "tbeg": seconds(start),
                "dur": seconds(end - start),
                "source_type": source_type,
                "language": language,
            },
        )
        for document, channel, (start, end), source_type, language in rows
    ]
    text = element(data, "ecf", {"version": "1", "source_signal_duration": "x"}, "\n".join(excerpts))
    table = read_back(data, text, read_ecf, xml=True)
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        (document, channel, *span, source_type, language) for document, channel, span, source_type, language in rows
    ]


@given(st.data(), st.sampled_from(["kw", "term"]))
def test_query_lists(data: st.DataObject, kind: str) -> None:
    attributes = st.dictionaries(WORDS, TEXTS | st.just(""), max_size=3)
    queries = data.draw(st.dictionaries(IDS, st.tuples(TEXTS, attributes), min_size=1, max_size=5))
    header = {"language": data.draw(TEXTS), "ecf_filename": data.draw(IDS), "compareNormalize": "lowercase"}
    inside = []
    for identifier, (text, named) in queries.items():
        pairs = [f"<attr><name>{escape(n)}</name><value>{escape(v)}</value></attr>" for n, v in named.items()]
        body = [f"<{kind}text>\n {escape(text)}\t</{kind}text>", f"<{kind}info>{' '.join(pairs)}</{kind}info>"]
        inside.append(element(data, kind, {f"{kind}id": identifier}, "".join(data.draw(st.permutations(body)))))
    table = read_back(data, element(data, f"{kind}list", header, "".join(inside)), read_queries, xml=True)
    assert table.to_pylist() == [
        {"query": identifier, "text": text, "attributes": list(named.items())}
        for identifier, (text, named) in queries.items()
    ]
    assert {key.decode(): value.decode() for key, value in table.schema.metadata.items()} == header


@given(st.data())
def test_rttm(data: st.DataObject) -> None:
    fields = WORDS.filter(lambda field: not field.startswith(";;"))  # which begins a comment
    names = fields.filter(lambda name: name not in (".", ".."))
    rows = data.draw(st.lists(st.tuples(names, CHANNELS, SPANS, fields, fields, fields), min_size=1, unique=True))
    text = "".join(
        f"LEXEME {document}.wav {channel} {seconds(start)} {seconds(end - start)} {word} {subtype} {speaker} 0.5\n"
        for document, channel, (start, end), word, subtype, speaker in rows
    )
    words, _ = read_back(data, text, read_rttm, xml=False)
    assert [tuple(row.values()) for row in words.to_pylist()] == [
        (document, channel, speaker, *span, word, subtype) for document, channel, span, word, subtype, speaker in rows
    ]
