from __future__ import annotations

import gzip
import os
import tracemalloc
from pathlib import Path

import pytest

from swsdask import validate
from swsdask.formats import text
from swsdask.formats.text import MAX_LINE, Lines, read_lines
from swsdask.model.errors import InputError


def numbered(path: Path) -> list[tuple[int, bytes]]:
    return [
        (number, line)
        for block in read_lines(str(path))
        for number, line in enumerate(block.data.removesuffix(b"\n").split(b"\n"), block.first)
    ]


def test_lines_are_numbered_whatever_the_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"\xef\xbb\xbfa\n\nb\xc3\xa4\r\n" + b"c" * 30 + b"\nlast")
    expected = [(1, b"a"), (2, b""), (3, b"b\xc3\xa4\r"), (4, b"c" * 30), (5, b"last")]
    assert numbered(path) == expected
    monkeypatch.setattr(text, "BLOCK", 3)
    assert numbered(path) == expected


def test_lines_that_end_in_carriage_returns_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"\xef\xbb\xbfa\r\rb\xc3\xa4\rlast")
    expected = [(1, b"a"), (2, b""), (3, b"b\xc3\xa4"), (4, b"last")]
    assert numbered(path) == expected
    monkeypatch.setattr(text, "BLOCK", 5)
    assert numbered(path) == expected


@pytest.mark.parametrize("excess", [-1, 0, 1])
def test_the_longest_line(tmp_path: Path, excess: int) -> None:
    path = tmp_path / "x"
    for before in (b"", b"a\n" * 700_000):
        path.write_bytes(before + b"x" * (MAX_LINE + excess) + b"\nb\n")
        if excess <= 0:
            assert numbered(path)[-2:][0][0] == before.count(b"\n") + 1
            continue
        with pytest.raises(InputError) as caught:
            numbered(path)
        assert caught.value.problems[0].line == before.count(b"\n") + 1


def test_a_line_of_10_gb(tmp_path: Path) -> None:
    sparse, packed = tmp_path / "sparse", tmp_path / "packed"
    sparse.write_bytes(b"good\n")
    os.truncate(sparse, 10 << 30)
    packed.write_bytes(gzip.compress(b"good\n" + bytes(100 << 20)))
    for path in (sparse, packed):
        tracemalloc.start()
        with pytest.raises(InputError, match=r":2: expected a line of at most 1048576 bytes"):
            numbered(path)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 10 << 20


def test_wrong_encoding_is_reported_at_the_first_wrong_byte_behind_the_good_lines(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes("gut\nbesser\nschön\nam schönsten\n".encode("latin-1"))
    seen: list[Lines] = []
    with pytest.raises(InputError, match=r":3: expected text in UTF-8; found the byte 0xf6"):
        seen.extend(read_lines(str(path)))
    assert seen == [(1, b"gut\nbesser\n")]
    path.write_bytes("gut\n".encode("utf-16")[:-1])
    with pytest.raises(InputError, match=r":1: expected text in utf-16-le; found the byte 0x0a"):
        numbered(path)


def test_a_break_in_compressed_data_is_reported_at_the_line_that_was_reached(tmp_path: Path) -> None:
    path = tmp_path / "x"
    content = b"".join(b"%d\n" % (number * 7919 % 1_000_003) for number in range(1_000_000))
    path.write_bytes(gzip.compress(content, 1)[:-100_000])
    seen: list[Lines] = []
    with pytest.raises(InputError) as caught:
        seen.extend(read_lines(str(path)))
    reached = seen[-1].first + seen[-1].data.count(b"\n")
    assert caught.value.problems[0].line == reached
    assert reached > 100_000


def test_a_byte_order_mark_alone_is_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_bytes(b"\xef\xbb\xbf")
    with pytest.raises(InputError, match=r"x\.tsv: expected a file with content; found an empty file"):
        numbered(path)
    (problem,) = validate(path).problems
    assert problem.found == "an empty file"
