from __future__ import annotations

import json
import math
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import swsdask as sws
import swsdask.render.outputs as outputs
from swsdask.model.errors import InputError
from swsdask.model.name_columns import rows_with
from swsdask.model.results import ALIGNMENT, CURVES, QUERY_TEXTS, SCORES, Result
from swsdask.model.system_rows import SystemRows
from swsdask.places.writing import replacing
from swsdask.render import number_lines
from swsdask.render.outputs import read_outputs, result_as, write_outputs
from tests.results import MANIFEST, table, three_systems

ODD = [
    ("a", "all", None, "n_hit", 3020.0),
    ("a", "all", None, "atwv", math.nan),
    ("a", "all", None, "mtwv_threshold", math.inf),
    ("a", "all", None, "x", -math.inf),
    ("a", "all", "q1", "p_fa", 1e-7),
    ("a", "all", "q2", "atwv", -0.0),
    ('q"\\uote\n', "langue=čeština", "ž", "mtwv", 0.1 + 0.2),
]

ALIGNED = table([("a", "q1", "d", 1, 0.5, 1.0, 0.4, 0.9, 2.5, "YES", "hit")], ALIGNMENT)


def rows(columns: pa.Table) -> list[str]:
    """NaN equals itself."""
    return [repr(row) for row in columns.to_pylist()]


def in_other_codes(numbers: pa.Table) -> pa.Table:
    """The same rows in two chunks, whose names have codes in an order of their own and one that no row has."""
    parts = []
    for part in (numbers.slice(0, 3), numbers.slice(3)):
        for place, name in enumerate(SCORES.names[:4]):
            texts = part[name].to_pylist()
            names = ["unused", *sorted({text for text in texts if text is not None}, reverse=True)]
            codes = pa.array([None if text is None else names.index(text) for text in texts], pa.int32())
            coded = pa.DictionaryArray.from_arrays(codes, pa.array(names))
            part = part.set_column(place, pa.field(name, coded.type, SCORES.field(name).nullable), coded)
        parts.append(part)
    return pa.concat_tables(parts)


def test_rows_are_selected_by_names_however_they_are_coded() -> None:
    numbers = odd().table
    for form in (numbers, in_other_codes(numbers)):
        for wanted in (
            {"system": ["a"]},
            {"query": ["q1", "ž"]},
            {"system": ["a"], "measure": ["atwv"]},
            {"query": []},
        ):
            found = rows(rows_with(form, **wanted))
            assert found == [
                repr(row) for row in numbers.to_pylist() if all(row[name] in among for name, among in wanted.items())
            ]


def odd() -> Result:
    return Result.of(table(ODD, SCORES), table([], CURVES), MANIFEST, ("A note.",))


def test_scores_json_is_the_long_form_with_one_number_per_line() -> None:
    text = "".join(result_as("json", odd()))
    lines = text.splitlines()
    assert lines[0] == "["
    assert lines[1] == '{"system": "a", "condition": "all", "query": null, "measure": "n_hit", "value": 3020.0},'
    assert lines[2] == '{"system": "a", "condition": "all", "query": null, "measure": "atwv", "value": null},'
    assert lines[-1] == "]"
    assert len(lines) == len(ODD) + 2
    words = {math.inf: "inf", -math.inf: "-inf"}
    names = ("system", "condition", "query", "measure", "value")
    expected = [
        dict(zip(names, (*row[:4], None if math.isnan(row[4]) else words.get(row[4], row[4])), strict=True))
        for row in ODD
    ]
    assert json.loads(text) == expected


@pytest.mark.parametrize("form", ["json", "csv"])
def test_slices_of_rows_give_the_same_text(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    result = three_systems()
    whole = "".join(result_as(form, result))
    for size in (1, 2, 7):
        monkeypatch.setattr(number_lines, "_AT_ONCE", size)
        assert "".join(result_as(form, result)) == whole


def test_scores_json_of_nothing_is_an_empty_list() -> None:
    assert json.loads("".join(result_as("json", Result.of(table([], SCORES), table([], CURVES), {})))) == []


def test_all_files_are_there_and_read_back_the_same(tmp_path: Path) -> None:
    texts = table([("q", "a word")], QUERY_TEXTS)
    result = replace(three_systems(), alignment_rows=SystemRows.of(ALIGNED, ALIGNMENT), text_table=texts)
    write_outputs(result, tmp_path / "new" / "out")
    names = {path.name for path in (tmp_path / "new" / "out").iterdir()}
    assert names == {
        "scores.parquet",
        "scores.json",
        "curves.parquet",
        "alignment.parquet",
        "query_texts.parquet",
        "manifest.json",
        "report.html",
    }
    back = read_outputs(tmp_path / "new" / "out")
    assert back.text_table is not None
    assert back.text_table.equals(texts)
    assert rows(back.table) == rows(result.table)
    assert back.to_arrow().schema == SCORES
    assert rows(back.curve_table) == rows(result.curve_table)
    assert back.alignment_table is not None
    assert back.alignment_table.equals(ALIGNED)
    assert (back.manifest, back.notes) == (MANIFEST, result.notes)
    assert (tmp_path / "new" / "out" / "scores.json").read_text(encoding="utf-8") == "".join(result_as("json", result))


def test_a_directory_is_given_in_place_of_its_result(tmp_path: Path) -> None:
    sws.write(three_systems(), tmp_path / "out")
    for number, given in enumerate((tmp_path / "out", str(tmp_path / "out"), sws.read_result(tmp_path / "out"))):
        sws.report(given, tmp_path / f"{number}.html")
        sws.plot(given, tmp_path / f"{number}.svg", "leaderboard")
    for ending in ("html", "svg"):
        assert len({(tmp_path / f"{number}.{ending}").read_bytes() for number in range(3)}) == 1


def test_json_of_many_numbers_is_written_where_it_is_requested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = odd()
    monkeypatch.setattr(outputs, "MOST_IN_JSON", result.table.num_rows)
    assert "scores.json" in write_outputs(result, tmp_path / "out")
    monkeypatch.setattr(outputs, "MOST_IN_JSON", result.table.num_rows - 1)
    assert "scores.json" not in write_outputs(result, tmp_path / "out")
    assert not (tmp_path / "out" / "scores.json").exists()
    assert "scores.json" in write_outputs(result, tmp_path / "out", outputs=outputs.OUTPUTS)


def test_chosen_outputs_alone_are_written_and_scores_alone_are_read_again(tmp_path: Path) -> None:
    result = three_systems()
    assert write_outputs(result, tmp_path / "page", outputs=["report"]) == ["manifest.json", "report.html"]
    assert write_outputs(result, tmp_path / "numbers", outputs=["scores"]) == ["scores.parquet", "manifest.json"]
    back = read_outputs(tmp_path / "numbers")
    assert rows(back.table) == rows(result.table)
    assert back.curve_table.cast(CURVES).equals(CURVES.empty_table())
    with pytest.raises(InputError, match=r"found results without it\. Score again with --outputs scores"):
        read_outputs(tmp_path / "page")


def test_parquet_bytes_depend_on_nothing_but_the_numbers(tmp_path: Path) -> None:
    plain = odd()
    numbers = plain.table
    other_nan = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]
    values = numbers["value"].to_numpy().copy()
    values[1] = other_nan
    chopped = pa.concat_tables([numbers.slice(0, 3), numbers.slice(3)])
    chopped = chopped.set_column(4, SCORES.field("value"), pa.chunked_array([values[:2], values[2:]]))
    odd_metadata = chopped.replace_schema_metadata({"made": "today"})
    assert np.isnan(values[1])
    write_outputs(plain, tmp_path / "a")
    write_outputs(Result.of(odd_metadata, plain.curve_table, plain.manifest, plain.notes), tmp_path / "b")
    write_outputs(Result.of(in_other_codes(numbers), plain.curve_table, plain.manifest, plain.notes), tmp_path / "c")
    for name in ("scores.parquet", "scores.json", "curves.parquet", "report.html", "manifest.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "c" / name).read_bytes(), name
    assert pq.read_schema(tmp_path / "a" / "scores.parquet") == SCORES
    back = pq.read_table(tmp_path / "a" / "scores.parquet")["value"].to_numpy()
    assert math.copysign(1.0, back[5]) == -1.0


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with replacing(path) as file:
        file.write(b"first")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.writelines(b"second" if number else b"%d" % (1 // number) for number in (2, 1, 0))
    assert path.read_bytes() == b"first"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("part", ["page", "json_parts", "_write_table"])
def test_a_failure_leaves_the_earlier_result_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    write_outputs(three_systems(), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(outputs, part, fail)
    with pytest.raises(RuntimeError):
        write_outputs(odd(), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_alignment_of_an_earlier_result_goes(tmp_path: Path) -> None:
    write_outputs(replace(odd(), alignment_rows=SystemRows.of(ALIGNED, ALIGNMENT)), tmp_path)
    (tmp_path / "mine.txt").write_text("kept")
    write_outputs(odd(), tmp_path)
    assert not (tmp_path / "alignment.parquet").exists()
    assert (tmp_path / "mine.txt").read_text() == "kept"
    assert read_outputs(tmp_path).alignment_table is None


def test_infinities_in_a_manifest_are_words(tmp_path: Path) -> None:
    manifest = {**MANIFEST, "runs": {"a": {"scores": {"run": (math.inf, -math.inf), "declared": math.nan}}}}
    write_outputs(replace(odd(), manifest=manifest), tmp_path)
    back = json.loads((tmp_path / "manifest.json").read_text())
    assert back["runs"]["a"]["scores"] == {"run": ["inf", "-inf"], "declared": None}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("scores.parquet", None),
        ("scores.parquet", b"PAR1 and no more"),
        ("curves.parquet", None),
        ("alignment.parquet", b""),
        ("manifest.json", None),
        ("manifest.json", b"{"),
        ("manifest.json", b"[]"),
        ("manifest.json", b'{"signature": "x"}'),
        ("manifest.json", b"\xff\xfe"),
    ],
)
def test_what_is_no_result_is_an_error_that_names_the_file(tmp_path: Path, name: str, content: bytes | None) -> None:
    write_outputs(replace(odd(), alignment_rows=SystemRows.of(ALIGNED, ALIGNMENT)), tmp_path)
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_outputs(tmp_path)
    assert str(tmp_path / name) in str(caught.value)
    assert "Score again" in str(caught.value)


def test_a_manifest_that_says_something_else_is_an_error_and_an_earlier_one_is_read(tmp_path: Path) -> None:
    write_outputs(odd(), tmp_path)
    file = tmp_path / "manifest.json"
    said = json.loads(file.read_text())
    assert read_outputs(tmp_path).manifest["signature"] == said["signature"]
    file.write_text(json.dumps(said))
    assert read_outputs(tmp_path).manifest["signature"] == said["signature"], "what it says counts, not its form"
    file.write_text(json.dumps({**said, "signature": "another"}))
    with pytest.raises(InputError, match=r"manifest\.json: .* found one that is not what was written"):
        read_outputs(tmp_path)
    del said["hash"]
    file.write_text(json.dumps({**said, "signature": "of an earlier release"}))
    assert read_outputs(tmp_path).manifest["signature"] == "of an earlier release"


def test_a_table_of_other_columns_is_an_error(tmp_path: Path) -> None:
    write_outputs(odd(), tmp_path)
    pq.write_table(pa.table({"x": [1]}), tmp_path / "scores.parquet")
    with pytest.raises(InputError, match=r"scores\.parquet"):
        read_outputs(tmp_path)
