"""Files of term discovery are read the same all at once, line by line, and by a literal reading of the format."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from swsdask.formats import discovery
from swsdask.formats import text as run_text
from swsdask.formats.discovery import read_classes, read_folds
from swsdask.formats.text import Lines, tidy
from swsdask.formats.values import FormatError
from swsdask.model.errors import Problems

BLANKS = st.sampled_from([" ", " ", " ", "  ", "\t", " \t "])
NAMES = st.sampled_from(["s01a", "s01b", "ä", "<NA>", '"x', "NA", "null", "Classic"])
LABELS = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=4)
ODD = st.sampled_from(["x", "-1", "a/b", "nan", "inf", "1e400", "0x2", "1_0", "1,5", "99e9", "1 2"])
NAMES_OF_COLUMNS = ["file", "start", "end", "label"]
MOST = 2**31 - 1


@st.composite
def seconds(draw: st.DrawFn, least: int = 0, most: int = 3_000) -> str:
    whole, decimals = draw(st.integers(least, most)), draw(st.sampled_from([0, 1, 2, 3, 4, 4, 5, 9, 18, 22]))
    digits = draw(st.text("0123456789", min_size=decimals, max_size=decimals))
    if draw(st.integers(0, 3)):
        digits = digits[:4] + "0" * len(digits[4:])
    return draw(st.sampled_from([f"{whole}.{digits}", f"{whole}", f"+{whole}.{digits}", f"0{whole}", f"{whole}e0"]))


@st.composite
def rows(draw: st.DrawFn, labelled: bool) -> list[str]:
    last = [draw(LABELS)] if labelled else []
    return [draw(NAMES), draw(seconds(0, 1_000)), draw(seconds(1_001)), *last]


@st.composite
def line(draw: st.DrawFn, labelled: bool, faulty: bool) -> str:
    fields = draw(rows(labelled))
    if faulty and draw(st.integers(0, 3)) == 0:
        fields[draw(st.integers(0, len(fields) - 1))] = draw(ODD)
    text = "".join(field + draw(BLANKS) for field in fields).rstrip(" \t")
    return draw(st.sampled_from(["", "", " ", "\t"])) + text + draw(st.sampled_from(["", "\r", " "]))


def literal_row(text: str) -> tuple[str, int, int, int, list[str]]:
    """File, onset, offset in ticks, how many of the two are no whole ticks even as doubles, and the rest."""
    file, onset, offset, *rest = text.split()
    ticks = [int((Decimal(t) * 10_000).to_integral_value(ROUND_HALF_EVEN)) for t in (onset, offset)]
    finer = sum(float(t) != whole / 10_000 for t, whole in zip((onset, offset), ticks, strict=True))
    return file, *ticks, finer, rest


@given(st.lists(line(True, False), min_size=1, max_size=12))
def test_right_lines_are_read_as_the_format_says(texts: list[str]) -> None:
    problems = Problems()
    data = tidy("".join(f"{text}\n\n" for text in texts).encode())
    table = discovery.read_timed(Lines(5, data), "x", problems, label="label")
    assert not list(problems)
    for number, (text, row) in enumerate(zip(texts, table.to_pylist(), strict=True)):
        assert [row[name] for name in ("file", "start", "end", "rounded")] == list(literal_row(text)[:4])
        assert [row["label"]] == literal_row(text)[4]
        assert row["line"] == 5 + 2 * number


@given(st.lists(line(True, True), min_size=1, max_size=8))
def test_lines_are_read_the_same_together_and_singly(texts: list[str]) -> None:
    lines, problems = Lines(3, tidy("".join(f"{text}\n" for text in texts).encode())), Problems()
    singly = discovery._read_singly(lines, NAMES_OF_COLUMNS, "label", "x", problems)
    try:
        together = discovery._read_together(lines, NAMES_OF_COLUMNS)
    except (ValueError, FormatError):
        return
    assert not list(problems)
    assert together.schema == singly.schema
    assert together.to_pylist() == singly.to_pylist()


@given(st.lists(rows(False), min_size=1, max_size=8))
def test_most_files_are_read_all_at_once(fields: list[list[str]]) -> None:
    plain = [[name, *(time[:12].removeprefix("+") for time in times)] for name, *times in fields]
    text = "".join(" ".join(row) + "\n" for row in plain)
    assert len(discovery._read_together(Lines(1, text.encode()), NAMES_OF_COLUMNS[:3])) == len(fields)


@st.composite
def class_files(draw: st.DrawFn) -> tuple[str, list[tuple[str, list[str]]]]:
    """A class file and what it says: the names of classes and their lines."""
    classes, text = [], draw(st.sampled_from(["", "\n"]))
    for number in range(draw(st.integers(1, 6))):
        name = f"{number}" + draw(st.sampled_from(["", " two words", ":", " [i,j]"]))
        members = draw(st.lists(line(False, False), max_size=4))
        classes.append((name, members))
        text += f"Class {name}\n" + "".join(f"{member}\n" for member in members)
        text += draw(st.sampled_from(["\n", "\n", "\n\n", " \n"]))
    return text.rstrip("\n") if draw(st.booleans()) else text, classes


@given(class_files(), st.sampled_from([30, 1 << 20]))
def test_class_files_say_what_was_written(file: tuple[str, list[tuple[str, list[str]]]], block: int) -> None:
    text, classes = file
    problems = Problems()
    with TemporaryDirectory() as folder:
        path = Path(folder, "x")
        path.write_bytes(text.encode())
        whole, run_text.BLOCK = run_text.BLOCK, block
        try:
            found = read_classes(str(path), problems)
        finally:
            run_text.BLOCK = whole
    assert not list(problems)
    assert found.classes["class"].to_pylist() == [name for name, _ in classes]
    written = [(number, *literal_row(member)[:3]) for number, (_, lines) in enumerate(classes) for member in lines]
    columns = [found.fragments[name].to_pylist() for name in ("cluster", "file", "start", "end")]
    assert list(zip(*columns, strict=True)) == written
    finer = sum(literal_row(member)[3] for _, lines in classes for member in lines)
    assert found.fragments.schema.metadata == {b"rounded": str(finer).encode()}
    numbered = [each.strip() for each in text.split("\n")]
    assert [numbered[at - 1] for at in found.classes["line"].to_pylist()] == [f"Class {name}" for name, _ in classes]
    of_rows = [numbered[at - 1] for at in found.fragments["line"].to_pylist()]
    assert of_rows == [member.strip() for _, lines in classes for member in lines]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.integers(0, 3))
def test_folds_are_numbered_in_the_order_of_the_file(sizes: list[int], blanks_behind: int) -> None:
    text = "\n".join("f 0 1\n" * size for size in sizes) + "\n" * blanks_behind
    problems = Problems()
    with TemporaryDirectory() as folder:
        path = Path(folder, "x")
        path.write_text(text)
        table = read_folds(str(path), problems)
    assert not list(problems)
    assert table["fold"].to_pylist() == [number for number, size in enumerate(sizes) for _ in range(size)]
