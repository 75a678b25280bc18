"""`swsdask measures` and `swsdask settings`: what there is, in the terminal."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import swsdask as sws
from swsdask.measures import MEASURES
from swsdask.model.discovery import DISCOVERY
from swsdask.model.measures import TABLE
from swsdask.model.settings import Settings
from tests.command_line import Outcome


def test_every_measure_is_listed_and_defined(swsdask: Callable[..., Outcome]) -> None:
    ended = swsdask("measures")
    listed = {line.split()[0] for line in ended.out.splitlines() if line}
    assert (ended.code, listed) == (
        0,
        {*(name for family in MEASURES for name in family.names), *(row.name for row in DISCOVERY)},
    )
    of_discovery = {row.name for row in DISCOVERY}
    by_formula = {row.name for row in TABLE if row.quotient and row.formula}
    for name in listed:
        assert f"`{name.rstrip('@')}" in sws.define_measure(name) or name in of_discovery | by_formula, name


def test_a_measure(swsdask: Callable[..., Outcome]) -> None:
    ended = swsdask("measures", "TWV@0.5")
    assert ended.code == 0
    assert ended.out.splitlines()[:2] == [
        "twv@: Term-weighted value at a given threshold",
        "heading TWV; higher is better; values .. 1; 2013 measures document, Eq. 6",
    ]
    defined = swsdask("measures", "mtwv").out
    assert "Formula: max over theta of TWV(theta)\nPrinted by: KWSEval: Maximum TWV; MediaEval: maxTWV" in defined
    assert "QUIRK" in defined
    assert swsdask("measures", "P@5").out.startswith("precision_at_rank@: ")
    assert swsdask("measures", "ned").out.startswith("ned: Mean normalised edit distance")
    assert "Where a system loses" not in defined
    assert "Where a system loses" in swsdask("measures", "loss_threshold").out
    wrong = swsdask("measures", "mtvw")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert "Nearest: mtwv" in wrong.err


def test_every_setting_has_its_default() -> None:
    for each in sws.list_settings():
        default: Any = Settings().model_dump(mode="json")
        for part in each.setting.split("."):
            default = default[part]
        assert each.meaning.endswith("."), each.setting
        assert default == (tomllib.loads(f"value = {each.default}")["value"] if each.default else None), each.setting


def test_every_setting_is_listed() -> None:
    def names(table: dict[str, Any], path: str) -> Iterator[str]:
        for name, value in table.items():
            yield from names(value, f"{path}{name}.") if isinstance(value, dict) else [f"{path}{name}"]

    listed = {each.setting for each in sws.list_settings()}
    assert listed == set(names(Settings().model_dump(exclude={"notes"}), ""))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("tolerance_s", ["evaluation.tolerance_s"]),
        ("evaluation.operating_point.beta", ["evaluation.operating_point.beta"]),
        ("engine", ["engine.executor", "engine.workers", "engine.rows_per_task", "engine.fan_in"]),
    ],
)
def test_settings_by_name(name: str, found: list[str]) -> None:
    assert [each.setting for each in sws.list_settings(name)] == found


def test_presets_of_a_setting(swsdask: Callable[..., Outcome]) -> None:
    (trials,) = sws.list_settings("trials")
    assert trials.presets["quesst2014"] == '"document"'
    ended = swsdask("settings", "trials")
    assert '"document" in quesst2014' in ended.out
    wrong = swsdask("settings", "gap.widht_s")
    assert (wrong.code, wrong.err) == (2, "swsdask: setting 'gap.widht_s' is unknown. Nearest: width_s.\n")
    assert swsdask("settings").out.splitlines()[0].split() == ["evaluation.trials", '"virtual"']


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(swsdask: Callable[..., Outcome], shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = swsdask("completion", shell)
    assert script.code == 0
    assert "_SWSDASK_COMPLETE=" in script.out
    monkeypatch.setenv("_SWSDASK_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "swsdask sco")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert swsdask().out.split() == ["plain,score"]
    monkeypatch.setenv("COMP_WORDS", "swsdask score --preset sws201")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert "plain,sws2013" in swsdask().out.split()
