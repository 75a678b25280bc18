"""Text in blocks is the text, wherever the blocks are cut."""

from __future__ import annotations

import io
from unittest.mock import patch

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from swsdask.formats import text as run_text
from swsdask.formats.text import Window, read_blocks, utf8_blocks
from swsdask.formats.values import FormatError
from swsdask.model.errors import InputError, Problem

texts = st.text(st.characters(codec="utf-8"), max_size=60)


def decoded(content: bytes, block: int, xml: bool = False) -> tuple[bytes, str | None]:
    """What comes out, and what is found at the end if that is too early."""
    good = b""
    with patch.object(run_text, "BLOCK", block):
        try:
            for text in utf8_blocks(read_blocks(io.BytesIO(content)), xml=xml):
                text.decode()
                good += text
        except FormatError as fault:
            return good, fault.found
    return good, None


@given(texts.filter(lambda text: not text.startswith("\ufeff")), st.integers(1, 50))
def test_utf8_is_cut_between_characters(text: str, block: int) -> None:
    assert decoded(text.encode(), block) == (text.encode(), None)


@given(texts, st.sampled_from(["utf-8-sig", "utf-16", "utf-32"]), st.integers(4, 50))
def test_a_byte_order_mark_gives_the_encoding(text: str, encoding: str, block: int) -> None:
    assume(not (encoding == "utf-16" and text.startswith("\0")))  # begins as UTF-32 does
    assert decoded(text.encode(encoding), block) == (text.encode(), None)


@given(texts.filter(lambda text: not text.startswith("\ufeff")), texts, st.integers(1, 50))
def test_what_is_before_a_wrong_byte_comes_out(text: str, rest: str, block: int) -> None:
    content = text.encode() + b"\xff" + rest.encode()
    if text:
        assert decoded(content, block) == (text.encode(), "the byte 0xff")


def test_a_declared_encoding_is_made_utf8() -> None:
    text = "<?xml version='1.0' encoding='KOI8-R' ?><a>\u0436</a>"
    assert decoded(text.encode("koi8-r"), 1 << 20, xml=True) == (text.replace("KOI8-R", "UTF-8").encode(), None)
    assert decoded(text.encode(), 1 << 20) == (text.encode(), None)


@pytest.mark.parametrize("name", ["zlib_codec", "rot13", "no-such", "unicode_escape", "idna"])
def test_only_encodings_of_text_are_known(name: str) -> None:
    assert decoded(f"<?xml version='1.0' encoding='{name}'?><a/>".encode(), 1 << 20, xml=True) == (b"", f"'{name}'")


def test_what_was_read_before_a_fault_comes_out() -> None:
    class Broken(io.RawIOBase):
        pieces = iter([b"abc", b"d"])

        def read(self, size: int = -1) -> bytes:
            piece = next(self.pieces, None)
            if piece is None:
                raise InputError(Problem("f", None, "more", "nothing", "Copy it again."))
            return piece

    window = Window(utf8_blocks(read_blocks(Broken()), xml=False), padding=4)
    assert window.more()
    assert window.data == b"abcd" + bytes(4)
    assert not window.more()
    assert window.fault is not None
    assert (window.fault.expected, window.fault.found) == ("more", "nothing")
    assert window.data[: window.end] == b"abcd"


@given(st.lists(st.text("a>\n", min_size=1, max_size=5), max_size=8))
def test_a_window_passes_one_tag_end_at_a_time(blocks: list[str]) -> None:
    text = "".join(blocks)
    window = Window(iter([block.encode() for block in blocks]), padding=1)
    passed = []
    while found := window.next_tag_end():
        passed.append(found.decode())
        before = "".join(passed)
        assert window.offset == len(before)
        assert window.line == 1 + before.count("\n")
    assert passed == [f"{part}>" for part in text.split(">")[:-1]]
    assert window.data[window.position : window.end].decode() == text.rpartition(">")[2]
