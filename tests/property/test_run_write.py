"""What is written and read again is the same run, in every form."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.formats.runs.read import read_run
from swsdask.formats.runs.write import convert, write_run_table
from swsdask.formats.runs.write_xml import write_kwslist, write_stdlist
from swsdask.model.errors import InputError, Problems
from swsdask.model.resources import times_of_list
from swsdask.model.schemas import RunHeader, RunPiece
from swsdask.model.units import INFINITE, MAX_TICKS, document_fault, document_id, id_fault
from tests.archives import rows_of
from tests.conftest import examples

texts = st.sampled_from(['"', '"a', 'a"b', '"a"', ",", "a,b"]) | st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), min_size=1, max_size=8
)
ids = texts.filter(lambda text: not id_fault(text))
documents = st.one_of(texts, st.sampled_from(["a.wav", "b.SPH.wav", "<&>\"'"])).filter(
    lambda text: "/" not in text and not document_fault(text) and document_id(text) == text
)
WRITERS = {
    "run.kwslist.xml": write_kwslist,
    "run.stdlist.xml.gz": write_stdlist,
    "run.tsv": write_run_table,
    "run.csv.zst": write_run_table,
    "run.parquet": write_run_table,
}


@st.composite
def pieces(draw: st.DrawFn, header: RunHeader, decided: bool) -> RunPiece:
    queries = tuple(draw(st.lists(ids, min_size=1, max_size=4, unique=True)))
    names = tuple(draw(st.lists(documents, min_size=1, max_size=4, unique=True)))
    size = draw(st.integers(0, 6))

    def column(values: st.SearchStrategy[float], dtype: type[np.generic]) -> np.ndarray:
        return np.array(draw(st.lists(values, min_size=size, max_size=size)), dtype)

    end = column(st.integers(0, MAX_TICKS), np.int32)
    start = np.array([draw(st.integers(0, last)) for last in end.tolist()], np.int32)
    return RunPiece(
        header=header,
        file="memory",
        queries=queries,
        query_lines=(None,) * len(queries),
        documents=names,
        document_lines=(None,) * len(names),
        query=column(st.integers(0, len(queries) - 1), np.int32),
        document=column(st.integers(0, len(names) - 1), np.int32),
        channel=column(st.integers(0, 127), np.int8),
        start=start,
        duration=end - start,
        score=column(st.floats(allow_nan=False).filter(lambda score: abs(score) != INFINITE), np.float64),
        decision=column(st.integers(0, 1) if decided else st.just(-1), np.int8),
        listed=queries,
    )


@st.composite
def runs(draw: st.DrawFn) -> list[RunPiece]:
    scores = draw(st.none() | st.tuples(st.floats(-9, 0), st.floats(0, 9)))
    header = RunHeader(draw(ids).strip() or "s", scores, {"language": draw(texts)})
    decided = draw(st.booleans())
    return [draw(pieces(header, decided)) for _ in range(draw(st.integers(1, 3)))]


@given(runs())
@examples(60)
def test_rows_survive(run: list[RunPiece]) -> None:
    by_query: dict[str, list[tuple[object, ...]]] = {query: [] for piece in run for query in piece.queries}
    for row in rows_of(run):
        by_query[str(row[0])].append(row)
    for name, write in WRITERS.items():
        problems = Problems()
        with TemporaryDirectory() as folder:
            write(run, f"{folder}/{name}")
            found = list(read_run(f"{folder}/{name}", problems))
        assert not list(problems)
        if write is write_run_table:
            assert rows_of(found) == rows_of(run)
        else:
            assert rows_of(found) == [row for listed in by_query.values() for row in listed]
            assert [query for piece in found for query in piece.listed] == list(by_query)
        if rows_of(run) or write is not write_run_table:
            assert found[0].header.system == run[0].header.system
        if not name.startswith(("run.tsv", "run.csv")):
            assert found[0].header.declared_scores == run[0].header.declared_scores
            assert found[0].header.attributes["language"] == run[0].header.attributes["language"]


ROW = "system\tquery\tdocument\tstart\tduration\tscore\tdecision\ns\tq\td\t1\t1\t0.5\tYES\n"
REQUIRED = {
    "kwslist": ({"kwlist_filename", "language", "system_id"}, {"kwid", "search_time", "oov_count"}),
    "stdlist": (
        {"termlist_filename", "indexing_time", "language", "index_size", "system_id"},
        {"termid", "term_search_time", "oov_term_count"},
    ),
}


@pytest.mark.parametrize("first", REQUIRED)
@pytest.mark.parametrize("second", REQUIRED)
def test_a_list_has_the_attributes_that_its_schema_requires_and_no_other(
    tmp_path: Path, first: str, second: str
) -> None:
    table = tmp_path / "s.tsv"
    table.write_text(ROW)
    one, two = tmp_path / f"one.{first}.xml", tmp_path / f"two.{second}.xml"
    convert(str(table), str(one))
    convert(str(one), str(two))
    root = ElementTree.parse(two).getroot()
    (list_,) = root
    assert (set(root.attrib), set(list_.attrib)) == REQUIRED[second]
    (piece,) = read_run(str(two), Problems())
    assert times_of_list(piece.header.attributes) is None
    assert rows_of([piece]) == rows_of(list(read_run(str(table), Problems())))


def test_another_dialect_keeps_the_name_of_the_file_of_queries(tmp_path: Path) -> None:
    source = tmp_path / "s.kwslist.xml"
    source.write_text(
        '<kwslist kwlist_filename="a.kwlist.xml" language="zulu" system_id="s"><detected_kwlist kwid="q" '
        'search_time="2" oov_count="1"/></kwslist>'
    )
    convert(str(source), str(tmp_path / "s.stdlist.xml"))
    root = ElementTree.parse(tmp_path / "s.stdlist.xml").getroot()
    assert root.attrib["termlist_filename"] == "a.kwlist.xml"
    assert root[0].attrib == {"termid": "q", "term_search_time": "2", "oov_term_count": "1"}


def test_a_list_is_of_one_system(tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("system,query,document,start,duration,score\na,q,d,1,1,1\nb,q,d,1,1,1\n")
    two = list(read_run(str(tmp_path / "two.csv"), Problems()))
    with pytest.raises(InputError, match="rows of one system; found rows of 'a' and 'b'"):
        write_kwslist(two, str(tmp_path / "two.xml"))
    write_run_table(two, str(tmp_path / "again.tsv"))
    assert [piece.header.system for piece in read_run(str(tmp_path / "again.tsv"), Problems())] == ["a", "b"]


@pytest.mark.parametrize("name", ["run.txt", "run.parquet.gz", "run"])
def test_a_table_has_a_known_ending(name: str) -> None:
    with pytest.raises(InputError, match=r"a name that ends in \.tsv, \.csv or \.parquet"):
        write_run_table([], name)


def test_a_folder_that_is_not_there() -> None:
    with pytest.raises(InputError):
        write_run_table([], "/no/such/folder/run.tsv")
