from __future__ import annotations

import gzip
from pathlib import Path

import fsspec
import pytest

from swsdask.formats.find import ReferenceFiles, find_reference
from swsdask.model.errors import InputError
from tests.compression import zstd

ECF = b"<ecf><excerpt audio_filename='a' channel='1' tbeg='0' dur='9'/></ecf>"
RTTM = b"LEXEME a 1 0 1 x lex ann <NA>\n"
QUERIES = b"<termlist><term termid='q'><termtext>x</termtext></term></termlist>"
RUN = b"<stdlist system_id='s'></stdlist>"


def fill(folder: Path, **files: bytes) -> str:
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_bytes(content)
    return str(folder)


def found(folder: Path) -> list[str]:
    files = find_reference(str(folder))
    return [Path(file).relative_to(folder).name for file in (files.ecf, files.rttm, files.queries)]


LAYOUTS = {
    "MediaEval": ["sws.ecf.xml", "sws.rttm", "sws.tlist.xml"],
    "kwlist": ["a.b.ecf.xml", "a.b.rttm", "a.b.kwlist.xml"],
    "bare names": ["ecf.xml", "ref.rttm", "kwlist.xml"],
    "capitals": ["X.ECF.XML", "X.RTTM", "X.termlist.xml"],
    "compressed": ["x.ecf.xml.gz", "x.rttm.zst", "x.tlist.xml.gz"],
    "content": ["what.xml", "spoken.txt", "asked.xml"],
    "one by content": ["x.ecf.xml", "x.rttm", "queries"],
    "compressed content": ["one.gz", "two.gz", "three.zst"],
}


@pytest.mark.parametrize("kind", LAYOUTS)
def test_one_of_each_is_found(tmp_path: Path, kind: str) -> None:
    names = LAYOUTS[kind]
    for name, content in zip(names, (ECF, RTTM, QUERIES), strict=True):
        packed = {".gz": gzip.compress(content), ".zst": zstd(content)}
        (tmp_path / name).write_bytes(packed.get(Path(name).suffix, content))
    fill(tmp_path, README=b"The reference.", a__stdlist__xml=RUN, plot__png=b"\x89PNG", empty=b"", __hidden=ECF)
    (tmp_path / "more.rttm").mkdir()
    assert found(tmp_path) == names


def test_names_outweigh_content(tmp_path: Path) -> None:
    fill(tmp_path, x__ecf__xml=ECF, x__rttm=RTTM, x__tlist__xml=QUERIES, older__xml=ECF, older__txt=RTTM)
    assert found(tmp_path) == ["x.ecf.xml", "x.rttm", "x.tlist.xml"]


def test_a_url(tmp_path: Path) -> None:
    storage = fsspec.filesystem("memory")
    for name, content in (("x.ecf.xml", ECF), ("x.rttm", RTTM), ("asked", QUERIES)):
        storage.pipe(f"/reference/{name}", content)
    expected = ReferenceFiles(*(f"memory:///reference/{name}" for name in ("x.ecf.xml", "x.rttm", "asked")))
    assert find_reference("memory://reference") == expected
    assert find_reference("memory://reference/") == expected


def test_a_missing_kind_of_file_is_an_error(tmp_path: Path) -> None:
    fill(tmp_path, x__ecf__xml=ECF, x__stdlist__xml=RUN)
    with pytest.raises(InputError) as caught:
        find_reference(str(tmp_path))
    assert [(problem.file, problem.expected, problem.found) for problem in caught.value.problems] == [
        (str(tmp_path), "an RTTM reference in the folder", "none"),
        (str(tmp_path), "a query list in the folder", "none"),
    ]


@pytest.mark.parametrize("names", [("x.ecf.xml", "y.ecf.xml.gz"), ("ecf.xml", "x.ecf.xml"), ("one", "two")])
def test_two_of_a_kind(tmp_path: Path, names: tuple[str, str]) -> None:
    fill(tmp_path, x__rttm=RTTM, x__tlist__xml=QUERIES)
    for name in names:
        (tmp_path / name).write_bytes(ECF)
    with pytest.raises(InputError) as caught:
        find_reference(str(tmp_path))
    (problem,) = caught.value.problems
    assert problem.expected == "one file in the folder that is an ECF"
    assert problem.found == ", ".join(str(tmp_path / name) for name in names)


def test_what_is_no_folder(tmp_path: Path) -> None:
    fill(tmp_path, x=ECF)
    for place in (tmp_path / "x", tmp_path / "absent", "memory://absent", "memory://reference/x.rttm", "nowhere://x"):
        with pytest.raises(InputError) as caught:
            find_reference(str(place))
        assert str(caught.value).startswith(f"{place}: expected a ")
