from __future__ import annotations

import io
import json
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pytest

import swsdask as sws
from swsdask.cli import main
from swsdask.model.errors import Problem
from swsdask.model.results import SCORES, Result
from swsdask.model.safe_text import styled, visible, without_formula
from swsdask.model.wording import LONGEST
from swsdask.render.html import page
from tests.results import three_systems
from tests.small_evaluation import ECF, QUERIES, RTTM, RUN

ACTING = ["\x1b[31m", "\x9b31m", "\u202ex\u202c", "\u200b", "\u2028", "\ufeff", "\r", "\udcff", "\U000e0041"]


@pytest.mark.parametrize("text", ACTING)
def test_what_acts_is_escaped_as_in_json(text: str) -> None:
    seen = visible(f"a{text}b")
    assert seen == visible(seen) != f"a{text}b"
    assert json.loads(f'"{seen}"') == f"a{text}b"
    assert not any(unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp") for each in seen)


def test_writing_of_every_script_stays() -> None:
    for text in ("sim-0001\tšelôthe\n", "\u0645\u06cc\u200c\u062e", "क्\u200dष", "東京 \U0001f600"):
        assert visible(text) == styled(text) == text


def test_colours_of_our_own_tables_stay_on_a_terminal() -> None:
    assert styled("\x1b[1;31mATWV\x1b[0m \x1b[2J \x9b1m") == "\x1b[1;31mATWV\x1b[0m \\u001b[2J \\u009b1m"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_ids_on_a_terminal_and_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: Callable[[], io.StringIO]
) -> None:
    for name, content in (("x.ecf.xml", ECF), ("x.rttm", RTTM), ("x.kwlist.xml", QUERIES)):
        (tmp_path / name).write_text(content)
    run = tmp_path / "run.kwslist.xml"
    run.write_text(RUN.replace('"first"', '"a\x9b2J\u202eb"'))
    out, err = stream(), stream()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    main(["score", str(tmp_path), str(run), "--measures", "atwv"])
    assert "a\\u009b2J\\u202eb" in out.getvalue()
    assert not set("\x9b\u202e") & set(out.getvalue())
    with pytest.raises(SystemExit):
        main(["score", str(tmp_path), "\x1b[31mred\x1b[0m\u202e.xml"])
    assert "\\u001b[31mred\\u001b[0m\\u202e.xml: expected" in err.getvalue()
    with pytest.raises(SystemExit):
        main(["score", str(tmp_path), "--nosuch\x9b1m"])
    assert not set("\x9b\u202e") & set(err.getvalue())


def test_ids_in_a_page() -> None:
    result = three_systems(("good", "a\u202eb\x9bc", "weak"))
    table = result.table.cast(SCORES)
    condition = pc.replace_substring(table["condition"], "all", "al\u2067l")
    table = table.set_column(table.schema.get_field_index("condition"), SCORES.field("condition"), condition)
    text = page(Result.of(table, result.curve_table, result.manifest, ("a note on \x1b[31m",)))
    assert "a\\u202eb\\u009bc" in text
    assert visible(text) == text
    for data in text.split('<script type="application/json"')[1:]:
        content = json.loads(data[data.index(">") + 1 : data.index("</script>")])
        assert visible(json.dumps(content, ensure_ascii=False)) == json.dumps(content, ensure_ascii=False)


def test_ids_and_notes_in_tables_for_papers_and_notebooks() -> None:
    result = replace(three_systems(("good", "a\u202eb\nc", "weak")), notes=("a note on \x1b[31m",))
    compared = replace(sws.compare(result, "atwv", replicates=50), notes=result.notes)
    for each in (result, compared):
        for text in (each._repr_html_(), each.to_markdown(), each.to_latex()):
            assert visible(text) == text
            assert "u202eb" in text
            assert "b\nc" not in text
    assert "a note on \\u001b[31m" in compared._repr_html_()


def test_long_values_are_cut_in_messages() -> None:
    message = str(Problem("x", 3, "a" * 10_000, "b" * 10_000 + "end", "Remedy."))
    assert len(message) < 3 * LONGEST
    assert "end. Remedy." in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [("=1+1", "'=1+1"), ("@x", "'@x"), ("-x", "'-x"), ("-1.5e3", "-1.5e3"), ("+2", "+2"), ("a=b", "a=b"), ("", "")],
)
def test_formulas(text: str, expected: str) -> None:
    assert without_formula(text) == expected


@pytest.mark.parametrize("source", ["run.kwslist.xml", "run.csv"])
def test_formulas_in_converted_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str) -> None:
    (tmp_path / "run.kwslist.xml").write_text(RUN.replace('"first"', '"=1+1,2"').replace('score="0.2"', 'score="-0.2"'))
    main(["convert", str(tmp_path / "run.kwslist.xml"), str(tmp_path / "run.csv")])
    assert '"=1+1,2",K1,b,1,20.0000,0.5000,-0.2,NO' in (tmp_path / "run.csv").read_text()
    main(["convert", str(tmp_path / source), str(tmp_path / "out.csv"), "--for-spreadsheets"])
    assert '"\'=1+1,2",K1,b,1,20.0000,0.5000,-0.2,NO' in (tmp_path / "out.csv").read_text()
    with pytest.raises(SystemExit):
        main(["convert", str(tmp_path / source), str(tmp_path / "out.parquet"), "--for-spreadsheets"])
    assert "only .tsv and .csv" in capsys.readouterr().err
