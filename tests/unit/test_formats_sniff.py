from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from swsdask.formats.recognise import RUNS, Format, expect, sniff
from swsdask.formats.reference.rttm import read_rttm
from swsdask.formats.runs.lines import CTM, KALDI, LINE_FORMATS, TREC
from swsdask.formats.runs.read import RunFile
from swsdask.model.errors import InputError, Problems

CONTENTS = {
    "ecf": ("<!-- x --><ecf/>", Format.ECF),
    "kwlist": ('<?xml version="1.0"?>\n<kwlist>', Format.QUERIES),
    "termlist": (" \n<termlist>", Format.QUERIES),
    "kwslist": ("<kwslist>", Format.RUN_XML),
    "stdlist": ("\ufeff<stdlist>", Format.RUN_XML),
    "rttm": (";; x\n\nSPEAKER a 1 0 1 <NA> <NA> ann <NA>\n", Format.RTTM),
    "rttm with a faulty line": ("LEXEME a\n", Format.RTTM),
    "rttm of comments": (";; x\n", Format.RTTM),
    "tsv": ("system\tQuery\tdocument\tscore\n", Format.TABLE),
    "csv": ('"score","document","query"\n', Format.TABLE),
    "alignment": ("f 0.00 0.05 sil\n", Format.ALIGNMENT),
    "alignment, its label a number": ("f 0.0 0.05 1\n", Format.ALIGNMENT),
    "classes": ("\nClass 1 of words 3\nf 0 1\n", Format.CLASSES),
    "stretches": ("f 0.1 0.2\nf 0.3 0.4\n\n", Format.STRETCHES),
    "folds": ("f 0.1 0.2\r\n\r\nf 0.3 0.4\r\n", Format.FOLDS),
    "judgments": ("301 0 12345 1\n", Format.QRELS),
    "ctm": (";; x\na A 0.5 .25 word 0.9\n", CTM),
    "ctm without confidence": ("a 1 0.5 .25 word\n", CTM),
    "ctm with types": ("a 1 0.5 .25 word 0.9 lex ann\n", CTM),
    "kaldi": ("KW1 a 0.5 1 -3.5e2\nKW1 a 3 4 nan\n", KALDI),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "x"


@pytest.mark.parametrize("name", ["x", "x.rttm", "x.csv", "x.ecf.xml", "x.kwslist.xml.gz"])
@pytest.mark.parametrize("kind", CONTENTS)
def test_content_decides_whatever_the_name(tmp_path: Path, kind: str, name: str) -> None:
    content, expected = CONTENTS[kind]
    path = tmp_path / name
    path.write_bytes(gzip.compress(content.encode()) if name == "x.csv" else content.encode())
    assert sniff(str(path)) is expected


def test_a_line_of_several_formats(tmp_path: Path) -> None:
    """A word of a transcript that is a number makes its line one of Kaldi's too."""
    for name in ("x", "x.ctm"):
        (tmp_path / name).write_text("a 1 0.2 0.4 7\na 1 1.0 0.4 two\n")
    assert sniff(str(tmp_path / "x")) is KALDI
    assert expect(str(tmp_path / "x"), *RUNS) is KALDI
    assert sniff(str(tmp_path / "x.ctm")) is CTM
    problems = Problems()
    for name in ("x", "x.ctm"):
        words, _ = read_rttm(str(tmp_path / name), problems)
        assert words["word"].to_pylist() == ["7", "two"]
    assert not problems


def test_a_ctm_whose_first_line_is_one_of_trec(tmp_path: Path) -> None:
    """Other lines tell, and the name tells more than they do."""
    first = "a 1 0.20 1.00 7 0.9\n"
    for name, text, expected in (
        ("x", f"{first}a 1 1.20 0.31 two 0.8\na 1 1.51 0.20 8 0.8\n", CTM),
        ("long", first + "a 1 1.20 0.31 two 0.8\n" * 10_000, CTM),
        ("y", f"{first}a 1 1.20 1.00 8 0.8\na 1 2.20 0.31 two 0.8\n", TREC),
        ("y.ctm", f"{first}a 1 1.20 1.00 8 0.8\n", CTM),
    ):
        (tmp_path / name).write_text(text)
        assert sniff(str(tmp_path / name)) is expected
        assert expect(str(tmp_path / name), *RUNS) is expected
        assert expect(str(tmp_path / name), Format.RTTM, CTM) is CTM


def test_parquet_and_utf_16(file: Path) -> None:
    pq.write_table(pa.table({"query": ["a"]}), file)
    assert sniff(str(file)) is Format.PARQUET
    file.write_bytes('<?xml version="1.0" encoding="UTF-16"?><ecf/>'.encode("utf-16"))
    assert sniff(str(file)) is Format.ECF


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("x.rttm", Format.RTTM),
        ("x.RTTM.zst", Format.RTTM),
        ("x.tsv", Format.TABLE),
        ("x.csv.gz", Format.TABLE),
        ("x.speakers", Format.SPEAKERS),
    ],
)
def test_the_name_decides_where_content_does_not(tmp_path: Path, name: str, expected: Format) -> None:
    path = tmp_path / name
    path.write_text("what is this\n")
    assert sniff(str(path)) is expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"what is this\nthing",
            ":1: expected an ECF, an RTTM, a query list, a run or a file of term discovery; found 'what is this'.",
        ),
        (b"\x00\x01\xff\n", ":1: expected an ECF, an RTTM, a query list, a run or a file of term discovery; found "),
        (b"\n<html>\n", ":2: expected the root element ecf, kwlist, termlist, kwslist, stdlist; found 'html'"),
        (b"<?xml version='1.0'?>\n<!DOCTYPE kwslist [<!ENTITY a 'b'>]>\n<kwslist/>", ":2: expected no document type"),
        (b"<!-- nothing else", ":1: expected more XML"),
        (b"", ": expected a file with content"),
        (b"KW1 a 0.5 1 high\n", ":1: expected an ECF"),
        (
            b"# by hand\n\nKW1 a high 1 0.5\n",
            ":3: expected an ECF, an RTTM, a query list, a run or a file of term disco",
        ),
        (b"# by hand\n", ":1: expected an ECF, an RTTM, a query list, a run or a file of term discovery; found '# by"),
        (b"\xef\xbb\xbf", ":1: expected an ECF"),
    ],
)
def test_unknown_files(file: Path, content: bytes, message: str) -> None:
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        sniff(str(file))
    assert str(caught.value).startswith(f"{file}{message}")


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"ARROW1\0\0" + b"\xff" * 4, "an Arrow file"),
        (b"\xff\xff\xff\xff\x90\5\0\0", "an Arrow file"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (pickle.dumps({"query": ["a"]}), "a pickle"),
        (b'[{"query": "a", "document": "b", "score": 1}]', "a JSON array"),
    ],
)
def test_tables_that_are_not_read_have_a_name_and_a_remedy(file: Path, content: bytes, found: str) -> None:
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        sniff(str(file))
    assert str(caught.value) == (
        f"{file}: expected an ECF, an RTTM, a query list, a run or a file of term discovery; found {found}. Write the "
        "table as Parquet, CSV or JSON lines."
    )


@pytest.mark.parametrize("separator", [";", "|"])
def test_a_table_with_another_separator(tmp_path: Path, separator: str) -> None:
    (file := tmp_path / "run.csv").write_text(
        f"query{separator}document{separator}score\na{separator}b{separator}1,5\n"
    )
    problems = Problems()
    list(RunFile(str(file)).read(problems))
    with pytest.raises(InputError, match=r"Separate the columns by commas or tabs; decimals have a point\."):
        problems.raise_if_any()


def test_expect(file: Path) -> None:
    file.write_text(CONTENTS["kwslist"][0])
    assert expect(str(file), *RUNS) is Format.RUN_XML
    assert expect(str(file), Format.ECF, Format.RUN_XML) is Format.RUN_XML
    with pytest.raises(InputError) as caught:
        expect(str(file), Format.ECF, Format.RTTM)
    found = "a system's list of detections"
    assert str(caught.value) == f"{file}:1: expected an ECF or an RTTM reference; found {found}. Give {found} as a run."


@pytest.mark.parametrize(("kind", "option"), [("rttm", "--rttm"), ("ecf", "--ecf"), ("termlist", "--queries")])
def test_a_reference_where_a_run_was_expected(file: Path, kind: str, option: str) -> None:
    content, found = CONTENTS[kind]
    file.write_text(content)
    with pytest.raises(InputError) as caught:
        expect(str(file), *RUNS)
    names = [each.value for each in LINE_FORMATS]
    assert {KALDI.value, CTM.value, "a TREC run"} <= {*names}
    expected = f"a run (a list of detections, a table, JSON lines, Parquet, {', '.join(names[:-1])} or {names[-1]})"
    message = f"{file}:1: expected {expected}; found {found.value}. Give {found.value} with {option}."
    assert str(caught.value) == message
