"""Layers of settings: what is given for an archive goes over what it keeps, as if all had been given at once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from swsdask.model.errors import SettingsError
from swsdask.model.layers import KEPT_NONE, Layers, Settled, build_settings, explicit_settings, load_preset, overrides
from swsdask.model.settings import EvaluationSettings


def given(preset: str | None = None, compat: str | None = None, **evaluation: Any) -> Layers:
    explicit = {"evaluation": evaluation} if evaluation else {}
    return Layers(load_preset(preset) if preset else None, compat, explicit)


@pytest.mark.parametrize(
    ("kept", "later", "at_once"),
    [
        (given("sws2013"), given(), given("sws2013")),
        (given("sws2013"), given(tolerance_s=1.0), given("sws2013", tolerance_s=1.0)),
        (given("sws2013", tolerance_s=1.0), given(), given("sws2013", tolerance_s=1.0)),
        (given("sws2013", tolerance_s=1.0), given("openkws13"), given("openkws13")),
        (given("sws2013"), given("openkws13", tolerance_s=1.0), given("openkws13", tolerance_s=1.0)),
        (given("sws2013"), given(compat="kwseval"), given("sws2013", "kwseval")),
        (given("sws2013", "kwseval"), given(compat="none"), given("sws2013")),
        (given("sws2013", "kwseval"), given(compat="stdeval"), given("sws2013", "stdeval")),
        (given("sws2013", "kwseval", outside="error"), given(), given("sws2013", "kwseval", outside="error")),
        (given("sws2013", "kwseval"), given(outside="error"), given("sws2013", "kwseval", outside="error")),
        (given(compat="kwseval"), given(compat="none"), given()),
        (
            given(operating_point={"beta": 5.0}),
            given(operating_point={"beta": 6.0}),
            given(operating_point={"beta": 6}),
        ),
        (given("sws2013"), given(operating_point={"c_miss": 9.0}), given("sws2013", operating_point={"c_miss": 9.0})),
        (
            given(gap={"penalty": "gaussian"}),
            given(gap={"sigma_s": 9.0}),
            given(gap={"penalty": "gaussian", "sigma_s": 9}),
        ),
    ],
)
def test_what_is_given_later_goes_over_what_is_kept(kept: Layers, later: Layers, at_once: Layers) -> None:
    read_back = Layers(**json.loads(json.dumps(kept.to_store())))
    assert read_back.settings() == kept.settings()
    over = later.over(read_back)
    assert over.settings() == at_once.settings()
    again = Layers(**json.loads(json.dumps(over.to_store())))
    assert again.settings() == at_once.settings()


def test_how_it_runs_is_not_kept() -> None:
    layers = Layers({"engine": {"workers": 3}}, None, {"engine": {"executor": "threads"}, "notes": ["One."]})
    assert layers.to_store() == {"preset": {}, "compat": None, "explicit": {"notes": ["One."]}, "judged": False}
    assert Layers(explicit={"engine": {"workers": 3}}).over(Layers()).settings().engine.workers == 3


def test_judged_documents_stay_the_trials_under_another_preset() -> None:
    kept = Layers(judged=True)
    assert given("kwseval").over(kept).settings().evaluation.trials == "document"
    with pytest.raises(SettingsError, match="qrels judge documents: trials = 'virtual' cannot be scored"):
        given("sws2013").over(kept).settings()


def test_every_setting_that_differs_is_named() -> None:
    used = given(tolerance_s=1.0, text_filters=["notascii"], operating_point={"beta": 5.0})
    used = Layers(explicit={**used.explicit, "discovery": {"definition": "tdev2"}})
    assert [(each.setting, each.kept, each.used) for each in overrides(Layers().settings(), used.settings())] == [
        ("tolerance_s", "0.5", "1.0"),
        ("text_filters", "[]", '["notascii"]'),
        ("operating_point.beta", "not set", "5.0"),
        ("discovery.definition", "document", "tdev2"),
    ]
    assert overrides(used.settings(), used.settings()) == ()


def test_notes_of_files_and_of_what_is_overridden() -> None:
    kept = Layers({"notes": ["One."], "evaluation": {"tolerance_s": 1.0}})
    settled = Settled.of_archive(Layers(explicit={"notes": ["One.", "Two."], "evaluation": {"tolerance_s": 2.0}}), kept)
    assert settled.notes == ("One.", "Two.", "Setting tolerance_s is 2.0; the archive keeps 1.0.")
    assert Settled.of_archive(kept, None).notes == ("One.", KEPT_NONE)
    assert Settled.of_files(kept).notes == ("One.",)


def test_objects_are_settings_of_the_fields_that_were_set():
    other = EvaluationSettings(trials="segment", operating_point={"beta": 20.0})
    assert explicit_settings(other) == {"evaluation": {"trials": "segment", "operating_point": {"beta": 20.0}}}
    whole = build_settings(load_preset("sws2013"), "kwseval", {"evaluation": {"tolerance_s": 0.25}})
    again = build_settings(None, None, explicit_settings(whole))
    assert again.evaluation == whole.evaluation
    assert again.engine == whole.engine
    assert not again.notes, "the sentences of a preset are not settings"
    assert explicit_settings(None) == {}
    with pytest.raises(SettingsError, match="EvaluationSettings, or the settings of an evaluation; found the type str"):
        explicit_settings("sws2013")  # type: ignore[arg-type]
