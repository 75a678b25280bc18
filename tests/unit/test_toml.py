"""TOML that nobody would write on purpose."""

from __future__ import annotations

import pytest

from swsdask.model.layers import read_toml


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a = 1\nb = " + b"[" * 5000 + b"]" * 5000, r"Nested too deeply \(at line 2\)"),
        (b"a = 1\n\nb = " + b"{a = " * 5000 + b"1" + b"}" * 5000, r"Nested too deeply \(at line 3\)"),
        (b"a = 1\n" + b"a." * 4000 + b"b = 1", r"Nested too deeply \(at line 2\)"),
        (b"[a]\nb = {" + b"a." * 4000 + b"b = 1}", r"Nested too deeply \(at line 2\)"),
        (b"\n".join(b"a%d" % n + b".a" * 900 + b" = 1" for n in range(20)), r"Nested too deeply \(at line 13\)"),
        (b"a = 1\nb = " + b"1" * 5000 + b"\nc = 2\n", r"An integer of more than 64 bits \(at line 2\)"),
        (b"a = 0x" + b"f" * 5000, r"An integer of more than 64 bits \(key a\)"),
        (b"[a]\nb = [{c = 9223372036854775808}]", r"An integer of more than 64 bits \(key c\)"),
        (b"a = 1\nb = '\xff'", r"Not text in UTF-8 \(at line 2\)"),
        (b"a = 1\nb = \0", r"at line 2"),
        (b"a = 1\na = 2\n", r"at line 2"),
    ],
)
def test_what_is_wrong_and_where(content: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_toml(content)


def test_arrays_over_many_lines_are_too_deep_in_a_line_within_them() -> None:
    with pytest.raises(ValueError, match="Nested too deeply") as raised:
        read_toml(b"a = 1\nb = " + b"[\n" * 5000 + b"]\n" * 5000)
    line = int(str(raised.value).rstrip(")").split()[-1])
    assert 100 < line < 5000


def test_what_is_right_is_read() -> None:
    assert read_toml(b"\xef\xbb\xbfa = -9223372036854775808\r\n") == {"a": -(1 << 63)}
    assert read_toml(b"") == {}
    deep = read_toml(b".".join([b"a"] * 900) + b" = 1")
    assert list(deep) == ["a"]
