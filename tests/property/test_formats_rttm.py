"""An RTTM is read the same all at once, line by line, and by a literal reading of the format."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given
from hypothesis import strategies as st

from swsdask.formats import text as run_text
from swsdask.formats.reference import rttm
from swsdask.formats.reference.rttm import read_records, read_rttm
from swsdask.formats.text import Lines
from swsdask.formats.values import FormatError
from swsdask.model.errors import Problems

BLANKS = st.sampled_from([" ", " ", " ", "  ", "\t", " \t "])
TYPES = st.sampled_from(["LEXEME", "LEXEME", "LEXEME", "SPEAKER", "NOSCORE", "SPKR-INFO", "A/P"])
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=6).filter(
    lambda text: not text.startswith(";;")
)
NAMES = st.sampled_from(["a", "a.wav", "audio/b.SPH", "ä", "<NA>", '"x', "y;;y"])
ODD = st.sampled_from(["x", "-1", "", "<NA>", "nan", "1e400", "0x2", "../a", "1_0"])
CHANNELS = st.integers(0, 127).map(str)


@st.composite
def seconds(draw: st.DrawFn, most_decimals: int = 20) -> str:
    whole, decimals = draw(st.integers(0, 100_000)), draw(st.integers(0, most_decimals))
    digits = draw(st.text("0123456789", min_size=decimals, max_size=decimals))
    return draw(st.sampled_from([f"{whole}.{digits}", f"{whole}", f"+{whole}.{digits}", f"{whole}e-1", f"0{whole}"]))


@st.composite
def records(draw: st.DrawFn, most_decimals: int = 20) -> list[str]:
    times = seconds(most_decimals)
    n_fields = draw(st.sampled_from([9, 9, 9, 10]))
    fields = [draw(TYPES), draw(NAMES), draw(CHANNELS), draw(times), draw(times)]
    fields += [draw(TEXTS) for _ in range(n_fields - len(fields))]
    if fields[0] == "SPKR-INFO":
        fields[3] = fields[4] = "<NA>"
    return fields


@st.composite
def texts(draw: st.DrawFn, faulty: bool) -> str:
    """Lines of an RTTM; if `faulty`, some may have a field that is not right."""
    lines = []
    for fields in draw(st.lists(records(), min_size=1, max_size=12)):
        if faulty and draw(st.integers(0, 3)) == 0:
            fields[draw(st.integers(0, len(fields) - 1))] = draw(ODD)
        line = "".join(field + draw(BLANKS) for field in fields)
        lines.append(
            draw(st.sampled_from(["", "", " ", "\t"]))
            + line.rstrip(" \t")
            + draw(st.sampled_from(["", "\r", " ;; x", "\t;;x y\r"]))
        )
        lines.extend(draw(st.lists(st.sampled_from(["", " ", ";; x", "  ;;LEXEME a 1 2"]), max_size=2)))
    return "".join(f"{line}\n" for line in lines)


def half_even(seconds: Fraction) -> tuple[int, bool]:
    return round(seconds * 10_000), (seconds * 10_000).denominator != 1


Genders = dict[tuple[str, str], str]


def literal_reading(text: str) -> tuple[list[dict[str, object]], Counter[str], Genders]:
    rows: list[dict[str, object]] = []
    skipped: Counter[str] = Counter()
    genders: Genders = {}
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.replace("\t", " ").replace("\r", " ").split(" ")
        fields = [field for field in fields if field]
        comment = next((place for place, field in enumerate(fields) if field.startswith(";;")), len(fields))
        fields = fields[:comment]
        if not fields:
            continue
        document = {"a.wav": "a", "audio/b.SPH": "b"}.get(fields[1], fields[1])
        if fields[0] == "SPKR-INFO" and fields[6] not in ("<NA>", "unknown"):
            genders.setdefault((document, fields[7]), fields[6])
        if fields[0] not in ("LEXEME", "SPEAKER"):
            skipped[fields[0]] += 1
            continue
        start, start_rounded = half_even(Fraction(fields[3]))
        end, end_rounded = half_even(Fraction(fields[3]) + Fraction(fields[4]))
        rows.append(
            {
                "type": fields[0],
                "document": document,
                "channel": int(fields[2]),
                "start": start,
                "end": end,
                "word": fields[5],
                "subtype": fields[6],
                "speaker": fields[7],
                "line": number,
                "rounded": start_rounded + end_rounded,
            }
        )
    return rows, skipped, genders


@given(texts(faulty=False))
def test_a_right_file_is_read_as_the_format_says(text: str) -> None:
    problems = Problems()
    table, skipped, genders = read_records(Lines(1, text.encode()), "x", problems)
    assert list(problems) == []
    assert (table.to_pylist(), skipped, genders) == literal_reading(text)


@given(texts(faulty=True))
def test_all_at_once_and_line_by_line_agree(text: str) -> None:
    lines = Lines(7, text.encode())
    problems = Problems()
    singly = rttm._read_singly(lines, "x", problems)
    try:
        together = rttm._read_together(lines)
    except (ValueError, FormatError):
        return
    assert not problems
    assert together.table.equals(singly.table.combine_chunks())
    assert together.skipped == singly.skipped
    assert together.genders == singly.genders


@given(st.lists(records(17).map(lambda fields: " ".join([*fields[:8], "1"])), min_size=1, max_size=30))
def test_most_files_are_read_all_at_once(rows: list[str]) -> None:
    table, *_ = rttm._read_together(Lines(1, "".join(f"{row}\n" for row in rows).encode()))
    assert len(table) == sum(row.startswith(("LEXEME", "SPEAKER")) for row in rows)


@example("LEXEME a 1 0 1 b lex s <NA>\r\nLEXEME a x 0 1 b lex s <NA>\r\n", 28)  # cut inside the end of the line
@given(texts(faulty=True), st.integers(1, 50))
def test_blocks_do_not_show(text: str, block: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.rttm"
        path.write_bytes(text.encode())
        whole, parts = Problems(), Problems()
        expected = read_rttm(str(path), whole)
        before, run_text.BLOCK = run_text.BLOCK, block
        try:
            found = read_rttm(str(path), parts)
        finally:
            run_text.BLOCK = before
    assert list(whole) == list(parts)
    assert [table.to_pylist() for table in found] == [table.to_pylist() for table in expected]
    assert [table.schema.metadata for table in found] == [table.schema.metadata for table in expected]
