"""Legacy encodings that a query list declares: of the list itself and of the RTTM beside it."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

import swsdask as sws
from swsdask.archive.validate import validate
from swsdask.formats.text import read_lines
from swsdask.model.errors import InputError

TEXTS = {"GB2312": "听到 啊", "gb18030": "系㐀", "Big5": "聽到", "EUC-KR": "한국", "koi8-r": "Мир", "UTF-8": "听到 Мир"}
ECF = '<ecf><excerpt audio_filename="a.sph" channel="1" tbeg="0" dur="100"/></ecf>\n'


def reference(folder: Path, encoding: str, *, prolog: str = "", spoken_in: str | None = None) -> Path:
    """A folder in which the text of the one query is spoken once."""
    text = TEXTS[encoding]
    queries = f'{prolog}<kwlist encoding="{encoding}" compareNormalize="lowercase"><kw kwid="q"><kwtext>{text}</kwtext>'
    words = (f"LEXEME a 1 {at} 0.1 {word.upper()} lex x <NA>\n" for at, word in enumerate(text.split(), 1))
    spoken = "".join(words).replace(" 2 ", " 1.1 ")
    (folder / "t.ecf.xml").write_text(ECF)
    (folder / "t.kwlist.xml").write_bytes(f"{queries}</kw></kwlist>\n".encode(encoding))
    (folder / "t.rttm").write_bytes(spoken.encode(spoken_in or encoding))
    return folder


def run(folder: Path) -> Path:
    """One detection, of what `reference` has."""
    path = folder / "run.tsv"
    path.write_text("query\tdocument\tstart\tduration\tscore\tdecision\nq\ta\t1\t0.2\t1\tYES\n")
    return path


@pytest.mark.parametrize("prolog", ["", '<?xml version="1.0"?>\n<!-- what was searched -->\n'])
@pytest.mark.parametrize("encoding", TEXTS)
def test_the_list_gives_the_encoding_of_both(tmp_path: Path, encoding: str, prolog: str) -> None:
    evaluation = sws.open(reference(tmp_path, encoding, prolog=prolog))
    assert evaluation.archive.queries["text"].to_pylist() == [TEXTS[encoding]]
    table = sws.score(evaluation, ["n_hit", "n_target"], runs=run(tmp_path)).table.to_pylist()
    assert {row["measure"]: row["value"] for row in table if row["query"] is None}["n_hit"] == 1.0
    assert not any(validate([str(tmp_path)]).problems)


@pytest.mark.parametrize("encoding", [name for name in TEXTS if name != "UTF-8"])
def test_without_the_attribute_the_xml_declaration_gives_the_encoding(tmp_path: Path, encoding: str) -> None:
    folder = reference(tmp_path, encoding, prolog=f'<?xml version="1.0" encoding="{encoding}"?>\n')
    path = folder / "t.kwlist.xml"
    path.write_bytes(path.read_bytes().replace(f'<kwlist encoding="{encoding}"'.encode(), b"<kwlist"))
    result = sws.score(sws.open(folder), ["n_target"], runs=run(tmp_path))
    assert result.table["value"][0].as_py() == 1.0
    assert [note for note in result.notes if note.startswith("The RTTM was read as ")] == [
        f"The RTTM was read as {codecs.lookup(encoding).name}, the encoding that the query list declares."
    ]
    assert not any(validate([str(tmp_path)]).problems)


def test_the_attribute_comes_before_the_xml_declaration(tmp_path: Path) -> None:
    folder = reference(tmp_path, "GB2312", prolog='<?xml version="1.0" encoding="GB2312"?>\n')
    path = folder / "t.kwlist.xml"
    listed = path.read_bytes()
    path.write_bytes(listed.replace(b'<kwlist encoding="GB2312"', b'<kwlist encoding="UTF-8"'))
    with pytest.raises(InputError, match="expected text in UTF-8"):
        sws.open(folder)
    path.write_bytes(listed.replace(b'<kwlist encoding="GB2312"', b"<kwlist"))
    assert sws.open(folder).archive.words["word"].to_pylist() == ["听到", "啊"]


@pytest.mark.parametrize("declared", ["UTF-16", "ISO-8859-1"])
def test_an_rttm_in_utf_8_is_read_as_such_whatever_the_list_is_in(tmp_path: Path, declared: str) -> None:
    folder = reference(tmp_path, "UTF-8", prolog=f'<?xml version="1.0" encoding="{declared}"?>\n')
    path = folder / "t.kwlist.xml"
    path.write_bytes(path.read_text().replace(' encoding="UTF-8"', "").encode(declared, "xmlcharrefreplace"))
    result = sws.score(sws.open(folder), ["n_target"], runs=run(tmp_path))
    assert result.table["value"][0].as_py() == 1.0
    assert not [note for note in result.notes if "RTTM" in note]


def test_a_byte_that_is_not_of_the_encoding_is_reported_with_its_line(tmp_path: Path) -> None:
    folder = reference(tmp_path, "GB2312")
    path = folder / "t.rttm"
    path.write_bytes(path.read_bytes() + b"LEXEME a 1 5 1 \xff\xff lex x <NA>\n")
    with pytest.raises(InputError) as caught:
        sws.open(folder)
    (problem,) = caught.value.problems
    assert (problem.line, problem.expected, problem.found) == (3, "text in gb2312", "the byte 0xff")


def test_a_name_that_is_no_encoding_of_text_says_nothing(tmp_path: Path) -> None:
    folder = reference(tmp_path, "UTF-8")
    path = folder / "t.kwlist.xml"
    path.write_text(path.read_text().replace('"UTF-8"', '"binary"'))
    assert sws.open(folder).archive.queries["text"].to_pylist() == [TEXTS["UTF-8"]]


WIDE = {
    "UTF-16LE": codecs.BOM_UTF16_LE,
    "UTF-16BE": codecs.BOM_UTF16_BE,
    "UTF-32LE": codecs.BOM_UTF32_LE,
    "UTF-32BE": codecs.BOM_UTF32_BE,
}
TABLES = {
    "documents.csv": "document,duration\na,100\n",
    "occurrences.tsv": "query\tdocument\tstart\tduration\n听到\ta\t1\t0.2\n",
    "queries.jsonl": '{"query": "听到"}\n',
    "run.csv": "query,document,start,duration,score\n听到,a,1,0.2,1\n",
    "run.txt": "听到 a 1 1.2 -0.5\n",
    "qrels.txt": "听到 0 a 1\n",
}


@pytest.mark.parametrize("encoding", WIDE)
def test_text_with_a_byte_order_mark_is_read_as_that_encoding(tmp_path: Path, encoding: str) -> None:
    for name, text in TABLES.items():
        (tmp_path / name).write_bytes(WIDE[encoding] + text.encode(encoding))
    reference = {name: str(tmp_path / f"{name}.{end}") for name, end in (("documents", "csv"), ("occurrences", "tsv"))}
    evaluation = sws.open(**reference, queries=str(tmp_path / "queries.jsonl"))
    for run in ("run.csv", "run.txt"):
        table = sws.score(evaluation, ["mtwv"], runs=tmp_path / run).table.to_pylist()
        assert {row["measure"]: row["value"] for row in table if row["query"] is None}["mtwv"] == 1.0
    judged = sws.open(qrels=str(tmp_path / "qrels.txt"))
    assert judged.archive.queries["query"].to_pylist() == ["听到"]
    assert not any(validate([str(tmp_path / "run.csv"), str(tmp_path / "qrels.txt")]).problems)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("encoding", WIDE)
def test_without_a_byte_order_mark_it_is_refused_with_the_command_that_converts_it(
    tmp_path: Path, encoding: str, name: str
) -> None:
    path = tmp_path / name
    path.write_bytes(TABLES[name].replace("听到", "q").encode(encoding))
    (problem,) = validate([str(path)]).problems
    assert str(problem) == (
        f"{path}:1: expected text in UTF-8; found text in {encoding} without a byte order mark. "
        f"Save the file as UTF-8: iconv -f {encoding} -t UTF-8."
    )
    with pytest.raises(InputError) as caught:
        next(read_lines(str(path)))
    assert caught.value.problems == (problem,)
