from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from swsdask.model.leaderboard import LEADERBOARD, leaderboard_of
from swsdask.model.measures import describe, written
from swsdask.model.results import SCORES, Result
from swsdask.render import outputs
from swsdask.render.pages import mark
from swsdask.render.terminal import print_leaderboard
from tests.results import MANIFEST, made_up, made_up_result, table, three_systems


def on_terminal(result: Result, width: int, top: int | None = None) -> str:
    console = Console(file=io.StringIO(), width=width, height=25, force_terminal=True, color_system=None)
    print_leaderboard(result, console, top)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def of(*rows: tuple[Any, ...], manifest: dict[str, Any] = MANIFEST) -> Result:
    return Result.of(table(rows, SCORES), three_systems().curve_table.slice(0, 0), manifest)


def test_piped_output_has_every_number_of_a_system_on_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    result = three_systems()
    print_leaderboard(result)
    lines = capsys.readouterr().out.splitlines()
    found = leaderboard_of(result.table)
    for system in found.systems:
        line = next(line for line in lines if line.startswith(system))
        expected = [
            written(measure, found.value("all", system, measure))
            for group in LEADERBOARD
            for measure in group
            if measure in found.measures
        ]
        assert line.split() == [system, *expected]
    assert "all  5 queries  22 targets" in lines


@pytest.mark.parametrize("name", ["a", "ž 日本", "n" * 40, "n" * 41, "日" * 21, "two\nlines"])
def test_a_table_in_full_width_is_that_of_a_wide_terminal(name: str) -> None:
    printed = []
    for width in (9_999, 10_000):
        console = Console(file=io.StringIO(), width=width, color_system=None, highlight=False, markup=False)
        print_leaderboard(three_systems((name, "b", "c")), console)
        printed.append(console.file.getvalue())  # type: ignore[attr-defined]
    assert printed[0] == printed[1]


def test_a_terminal_shows_the_first_conditions_unless_a_number_of_systems_is_requested() -> None:
    targets = [3, 2]
    systems = [made_up(f"s{k}", 1.0, targets, k) for k in range(2)]
    result = made_up_result(systems, targets, {f"part={k:02}": [k % 2] for k in range(20)})
    shown = on_terminal(result, 200)
    assert ("part=10 " in shown, "part=11 " in shown) == (True, False)
    assert shown.endswith("12 of 21 conditions; --top 2 shows all.\n")
    assert on_terminal(result, 200, top=2).count("part=") == 20


def test_the_conditions_of_a_single_system_are_the_lines_of_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    targets = [3, 2]
    conditions = {f"part={k:02}": [k % 2] for k in range(40)}
    result = made_up_result([made_up("alone", 1.0, targets, 1)], targets, conditions)
    print_leaderboard(result)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["alone"] in lines
    numbers = {line[0]: line[1:] for line in lines if line and line[0] in ("all", *conditions)}
    assert [*numbers] == ["all", *conditions]
    found = result.numbers
    for condition, printed in numbers.items():
        assert written("atwv", found.value(condition, "alone", "atwv")) in printed
    shown = on_terminal(result, 200)
    assert shown.count("part=") == 25 - 8 - 1
    assert shown.endswith("17 of 41 conditions; --top 1 shows all.\n")
    assert on_terminal(result, 200, top=1).count("part=") == 40


@pytest.mark.parametrize(
    ("requested", "line"), [(None, ["all", "3", "3.0000"]), (["atwv", "n_queries"], ["all", "3.0000", "3"])]
)
def test_counts_of_queries_are_the_first_columns_unless_they_are_requested(
    capsys: pytest.CaptureFixture[str], requested: list[str] | None, line: list[str]
) -> None:
    rows = [("s", name, None, measure, 3.0) for name in ("all", "oov=true") for measure in ("atwv", "n_queries")]
    print_leaderboard(of(*rows, manifest={**MANIFEST, "measures": requested}))
    assert line in [line.split() for line in capsys.readouterr().out.splitlines()]


def test_every_condition_has_a_section(capsys: pytest.CaptureFixture[str]) -> None:
    print_leaderboard(three_systems())
    out = capsys.readouterr().out
    assert out.index("all  5") < out.index("oov=true  2") < out.index("oov=false  3")


def test_the_best_comes_first_and_mtwv_ranks_where_atwv_is_not_defined(capsys: pytest.CaptureFixture[str]) -> None:
    result = of(
        ("none", "all", None, "atwv", math.nan),
        ("none", "all", None, "mtwv", math.nan),
        ("low", "all", None, "atwv", -3.5),
        ("low", "all", None, "mtwv", 0.9),
        ("undecided", "all", None, "atwv", math.nan),
        ("undecided", "all", None, "mtwv", 0.4),
        ("high", "all", None, "atwv", 0.6),
        ("high", "all", None, "mtwv", 0.6),
        ("equal", "all", None, "atwv", 0.6),
        ("equal", "all", None, "mtwv", 0.7),
    )
    print_leaderboard(result)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    names = ("none", "low", "undecided", "high", "equal")
    assert [row[0] for row in rows if row and row[0] in names] == ["equal", "high", "undecided", "low", "none"]
    assert ["none", "-", "-"] in rows
    assert ["low", "-3.5000", "0.9000"] in rows


@pytest.mark.parametrize(
    ("width", "dropped"),
    [
        (50, ["n_hit", "n_miss", "n_false_alarm", "p_miss", "p_fa", "stwv"]),
        (80, ["n_hit", "n_miss", "n_false_alarm"]),
        (300, []),
    ],
)
def test_the_least_important_columns_are_left_out_where_the_terminal_is_narrow(width: int, dropped: list[str]) -> None:
    result = three_systems()
    out = on_terminal(result, width)
    assert max(len(line.rstrip()) for line in out.splitlines()) <= width
    named = " ".join(out.split()).split("Not shown, the terminal is too narrow (--wide shows them): ")[1:]
    assert [name for name in dropped if name not in "".join(named)] == []
    assert bool(named) == bool(dropped)
    found = leaderboard_of(result.table)
    table = out[out.index("\nall") :].split()
    for measure in (measure for group in LEADERBOARD for measure in group):
        if measure in found.measures and measure not in dropped:
            assert written(measure, found.value("all", "good", measure)) in table


@pytest.mark.parametrize("width", [50, 60, 80, 100, 300])
def test_requested_measures_go_on_below_where_the_terminal_is_narrow(width: int) -> None:
    asked = ["n_hit", "n_miss", "p_miss", "p_fa", "atwv", "mtwv", "stwv"]
    result = replace(three_systems(), manifest={**MANIFEST, "measures": asked})
    out = on_terminal(result, width)
    assert max(len(line.rstrip()) for line in out.splitlines()) <= width
    found = leaderboard_of(result.table)
    for measure in asked:
        assert written(measure, found.value("all", "good", measure)) in out.split()


def test_the_variable_columns_bounds_the_table_and_wide_does_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    print_leaderboard(three_systems())
    whole = capsys.readouterr().out
    assert "--wide" not in whole
    monkeypatch.setenv("COLUMNS", "80")
    print_leaderboard(three_systems())
    assert "Not shown, the terminal is too narrow (--wide shows them): n_hit" in capsys.readouterr().out
    print_leaderboard(three_systems(), wide=True)
    assert capsys.readouterr().out == whole


def result_as(form: str, result: Result) -> str:
    return "".join(outputs.result_as(form, result))


def test_a_result_as_markdown_latex_and_csv() -> None:
    result = replace(three_systems(), manifest={**MANIFEST, "measures": ["atwv", "mtwv"]})
    markdown = result_as("markdown", result)
    assert markdown.startswith(f"**all**\n\n{result.to_markdown(['atwv', 'mtwv'])}\n\n**oov=true**\n\n| System |")
    assert result_as("latex", result).count("% oov=") == 2
    assert result_as("csv", result) == result.to_csv()
    assert result_as("spreadsheet", result) == result.to_csv()
    odd = three_systems(('a,"b"', " ", "two\nlines"))
    assert result_as("csv", odd) == odd.to_csv()
    formula = replace(three_systems(("=1+1", "b", "c")), manifest=result.manifest)
    assert "\n=1+1," in result_as("csv", formula)
    assert "\n=1+1," not in result_as("spreadsheet", formula)
    assert "\n'=1+1,all,," in result_as("spreadsheet", formula)


def test_the_conditions_of_a_single_system_are_one_table_in_every_markup() -> None:
    rows = [("s", name, None, "atwv", value) for name, value in (("all", 0.5), ("oov=true", 0.25), ("oov=false", 0.75))]
    result = of(*rows, manifest={**MANIFEST, "measures": ["atwv"]})
    assert result.to_markdown(condition=None) == (
        "**s**\n\n| Condition | ATWV |\n| --- | ---: |\n| all | 0.5000 |\n| oov=true | 0.2500 |\n| oov=false | 0.7500 |"
    )
    assert result.to_markdown() == "| System | ATWV |\n| --- | ---: |\n| s | **0.5000** |"
    assert result.to_latex(condition=None).count("toprule") == 1
    assert result._repr_html_().count("<table") == 1
    assert result_as("markdown", result) == result.to_markdown(condition=None) + "\n"


def test_ids_are_not_markup(capsys: pytest.CaptureFixture[str]) -> None:
    name = "[bold]a[/bold] :smile: [link=x]"
    print_leaderboard(three_systems((name, "b", "c")))
    assert name in capsys.readouterr().out


def test_signature_notes_and_other_measures_are_above(capsys: pytest.CaptureFixture[str]) -> None:
    print_leaderboard(three_systems())
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        f"Signature: {MANIFEST['signature']}",
        "Also scored: mtwv_p_miss, mtwv_p_fa",
        "Note: One query has no targets.",
    ]


def test_a_terminal_shows_a_screen_and_top_what_is_requested(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"s{number:03}" for number in range(300)]
    result = of(*((name, "all", None, "atwv", 1 - at / 300) for at, name in enumerate(names)))

    def systems(out: str) -> list[str]:
        return [word[0] for line in out.splitlines() if (word := line.split()) and word[0] in names]

    on_screen = on_terminal(result, 80)
    assert len(on_screen.splitlines()) <= 25
    assert systems(on_screen) == names[: len(systems(on_screen))]
    assert len(systems(on_screen)) >= 10
    assert on_screen.rstrip().endswith(f"{len(systems(on_screen))} of 300 systems; --top 300 shows all.")
    assert systems(on_terminal(result, 80, top=300)) == names
    print_leaderboard(result)
    assert systems(capsys.readouterr().out) == names
    print_leaderboard(result, top=2)
    assert systems(capsys.readouterr().out) == names[:2]


def test_measures_that_were_requested_are_columns(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("s", "all", None, "eer", 0.25), ("s", "all", None, "p_miss@0.001", 0.5)]
    print_leaderboard(of(*rows, manifest={**MANIFEST, "measures": ["eer", "p_miss@"]}))
    out = capsys.readouterr().out
    assert ["s", "0.2500", "0.5000"] in [line.split() for line in out.splitlines()]
    assert "Also scored" not in out


def test_a_result_without_numbers_prints(capsys: pytest.CaptureFixture[str]) -> None:
    print_leaderboard(replace(of(), notes=("Nothing was scored.",)))
    assert "Nothing was scored." in capsys.readouterr().out


def test_numbers_are_shown_as_their_measure_wants() -> None:
    assert written("n_hit", 1234567.0) == "1,234,567"
    assert written("atwv", -1.12345) == "-1.1235"
    assert written("mtwv_threshold", math.inf) == "inf"
    assert written("p_fa", 0.0000123) == "0.000012"
    assert written("something_new", 0.123456789) == "0.123457"
    assert written("n_something", 12.0) == "12"
    assert written("atwv", math.nan) == "-"
    assert describe("twv@2.5").heading == "TWV at 2.5"


def test_a_leaderboard_ranks_each_condition_by_itself() -> None:
    found = leaderboard_of(
        table(
            [
                ("a", "all", None, "atwv", 0.9),
                ("b", "all", None, "atwv", 0.8),
                ("a", "x", None, "atwv", 0.1),
                ("b", "x", None, "atwv", 0.2),
                ("b", "y", None, "atwv", 0.2),
                ("a", "all", "q1", "atwv", 0.0),
            ],
            SCORES,
        )
    )
    assert found.systems == ("a", "b")
    assert found.ranked("x") == ("b", "a")
    assert found.ranked("y") == ("b",)
    assert found.value("all", "a", "atwv") == 0.9
    assert math.isnan(found.value("y", "a", "atwv"))
    assert [mark(found, system)["number"] for system in found.systems] == [1, 2]
