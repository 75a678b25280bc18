import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from swsdask.cli.options import EngineOptions, settings_of_options
from swsdask.model.discovery import DiscoverySettings
from swsdask.model.errors import SettingsError
from swsdask.model.layers import build_settings, load_preset, matching_presets, preset_names, settings_of
from swsdask.model.settings import EngineSettings, EvaluationSettings, OperatingPoint, Settings


@pytest.mark.parametrize(
    ("preset", "beta"),
    [
        ("std2006", 999.9),
        ("sws2011", 999.9),
        ("sws2012-african-dev-dev", 15.32),
        ("sws2012-indian-eval-eval", 21.59),
        ("sws2013", 66.65666666666667),
        ("openkws13", 999.9),
        ("quesst2014", 12.49),
        ("quesst2015", 12.49),
    ],
)
def test_presets_give_the_published_beta(preset: str, beta: float) -> None:
    point = build_settings(load_preset(preset)).evaluation.operating_point
    assert point.resolve(1, 100).beta == pytest.approx(beta, rel=1e-14)


def test_every_preset_is_valid() -> None:
    assert {"std2006", "sws2011", "sws2012", "sws2013", "openkws13", "quesst2014", "quesst2015"} <= set(preset_names())
    for name in preset_names():
        build_settings(load_preset(name))


@pytest.mark.parametrize("preset", preset_names())
def test_settings_of_a_manifest_may_be_given(preset: str) -> None:
    settings = build_settings(preset=load_preset(preset))
    for mode in ("python", "json"):
        assert build_settings(explicit=settings.model_dump(mode=mode)) == settings


def test_effective_prior_and_bayes_threshold_of_sws2013() -> None:
    weights = build_settings(load_preset("sws2013")).evaluation.operating_point.resolve(1, 100)
    assert weights.effective_prior == pytest.approx(0.0147805, abs=5e-8)
    assert weights.bayes_threshold == pytest.approx(4.199555, abs=5e-7)
    assert weights.prior_log_odds == -weights.bayes_threshold
    assert weights.exact_beta == Fraction(99985, 1500)


def test_operating_point_from_data() -> None:
    point = OperatingPoint(from_data="sws2012")
    assert point.resolve(60, 975).beta == pytest.approx((975 - 60) / 60, rel=1e-14)
    assert OperatingPoint(from_data="sws2012", alpha=2.0).resolve(60, 975).beta == pytest.approx(915 / 120, rel=1e-14)
    with pytest.raises(SettingsError, match="N_true = 0"):
        point.resolve(0, 975)


@pytest.mark.parametrize(("n_true", "n_trials", "alpha"), [(1, 3, None), (2, 3, 3.0), (60, 975, 0.7)])
def test_beta_from_data_is_exact(n_true: int, n_trials: int, alpha: float | None) -> None:
    weights = OperatingPoint(from_data="sws2012", alpha=alpha).resolve(n_true, n_trials)
    expected = Fraction(n_trials - n_true, n_true) / Fraction(str(alpha or 1))
    assert weights.exact_beta == expected
    assert weights.beta == float(expected)


def test_beta_beyond_all_use_is_refused() -> None:
    with pytest.raises(SettingsError, match="beta"):
        OperatingPoint(p_target=1e-300, c_miss=1.0, c_fa=1e300).resolve(1, 2)


@pytest.mark.parametrize("way", [{"beta": 12.5}, {"effective_prior": 1 / 13.5}])
def test_equivalent_ways_to_give_the_operating_point(way: dict[str, float]) -> None:
    assert OperatingPoint(**way).resolve(1, 2).beta == pytest.approx(12.5, rel=1e-14)


def test_two_ways_at_once_are_refused() -> None:
    with pytest.raises(SettingsError, match="give one of"):
        build_settings(None, None, {"evaluation": {"operating_point": {"beta": 1.0, "p_target": 0.1}}})


def test_another_way_replaces_the_presets_costs() -> None:
    settings = build_settings(load_preset("sws2013"), None, {"evaluation": {"operating_point": {"beta": 3.0}}})
    assert settings.evaluation.operating_point.resolve(1, 2).beta == pytest.approx(3.0)
    settings = build_settings(load_preset("sws2013"), None, {"evaluation": {"operating_point": {"c_miss": 10.0}}})
    assert settings.evaluation.operating_point.p_target == 0.00015


@pytest.mark.parametrize("costs", [{"c_fa": 15.32}, {"p_target": 0.5, "c_miss": 1.0}])
def test_some_costs_do_not_replace_another_way(costs: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match=r"would replace from_data.* Give p_target, c_miss and c_fa together"):
        build_settings(load_preset("sws2012"), None, {"evaluation": {"operating_point": costs}})
    whole = {"p_target": 0.5, "c_miss": 1.0, "c_fa": 15.32}
    settings = build_settings(load_preset("sws2012"), None, {"evaluation": {"operating_point": whole}})
    assert settings.evaluation.operating_point.resolve(1, 2).beta == 15.32


@pytest.mark.parametrize(
    ("bad", "reported"),
    [
        (
            {"impute": "abc"},
            "impute: Input should be 'min', 'error' or a finite number; found 'abc'.",
        ),
        ({"text_filters": "charsplit"}, 'text_filters: Input should be a list, as ["a", "b"]; found \'charsplit\'.'),
        ({"operating_point": 1}, "operating_point: Input should be a table of keys; found 1."),
    ],
)
def test_a_value_of_another_kind_is_reported_once_in_plain_words(bad: dict[str, object], reported: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build_settings(explicit={"evaluation": bad})
    assert reported in str(caught.value)
    assert "\n" not in str(caught.value)


def test_layers_preset_compat_explicit() -> None:
    assert build_settings(load_preset("sws2013")).evaluation.outside == "false_alarm"
    assert build_settings(load_preset("sws2013"), "kwseval").evaluation.outside == "drop"
    explicit = {"evaluation": {"outside": "drop"}}
    settings = build_settings(load_preset("sws2013"), "stdeval", explicit).evaluation
    assert (settings.outside, settings.unknown_queries, settings.score_scale) == ("drop", "drop", "run")


def test_unknown_keys_name_the_nearest() -> None:
    with pytest.raises(SettingsError, match=r"evaluation\.tolerence: unknown key\. Nearest valid key: tolerance_s"):
        build_settings(None, None, {"evaluation": {"tolerence": 1}})
    with pytest.raises(SettingsError, match="Nearest: sws2013"):
        load_preset("sws213")
    with pytest.raises(SettingsError, match=r"operating_point\.c_mis"):
        build_settings(None, None, {"evaluation": {"operating_point": {"c_mis": 1}}})


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        (
            {"tolerance_s": 1},
            "setting tolerance_s: unknown key. Write tolerance_s below [evaluation], in a dict",
        ),
        (
            {"evaluation": {"c_miss": 3}},
            'below [evaluation.operating_point], in a dictionary {"evaluation": {"operating_point": {"c_miss": ...}}}.',
        ),
        ({"evaluation.operating_point.c_miss": 3}, '{"evaluation": {"operating_point": {"c_miss": ...}}}.'),
        ({"operating_point.c_mis": 3}, 'Write c_miss below [evaluation.operating_point], in a dictionary {"evalu'),
        ({"evaluation": {"fan_in": 3}}, 'Write fan_in below [engine], in a dictionary {"engine": {"fan_in": ...}}.'),
        ({"qqq": 3}, "setting qqq: unknown key. `swsdask settings` lists all."),
    ],
)
def test_settings_outside_their_table_name_it(given: dict[str, object], reported: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(reported)):
        build_settings(None, None, given)


@pytest.mark.parametrize(
    "bad", [{"tolerance_s": -1}, {"tolerance_s": float("nan")}, {"trials": "x"}, {"compat": "perl"}]
)
def test_bad_values(bad: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=next(iter(bad))):
        build_settings(None, None, {"evaluation": bad})


def test_settings_files() -> None:
    assert settings_of(b"[evaluation]\ntolerance_s = 1", "x.toml") == {"evaluation": {"tolerance_s": 1}}
    for content in (b"[evaluation\n", b"\xff"):
        with pytest.raises(SettingsError, match=r"x\.toml: not a TOML file"):
            settings_of(content, "x.toml")


def test_a_byte_order_mark_begins_a_settings_file() -> None:
    assert settings_of(b"\xef\xbb\xbf[evaluation]\ntolerance_s = 1", "x.toml") == {"evaluation": {"tolerance_s": 1}}


@pytest.mark.parametrize("found", [3, [{"tolerance_s": 2}]])
def test_a_value_in_place_of_a_table_is_not_replaced_silently(found: object) -> None:
    with pytest.raises(SettingsError, match="setting evaluation: Input should be a table of keys; found"):
        build_settings(None, None, {"evaluation": found})


def test_assignments_to_a_value_in_place_of_a_table(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text("evaluation = 3\nengine = 4\n")
    with pytest.raises(SettingsError, match="setting evaluation: Input should be a table of keys; found 3"):
        settings_of_options(str(file))
    with pytest.raises(SettingsError, match="operating_point holds a value, not further keys"):
        settings_of_options(None, ["operating_point=1", "operating_point.c_miss=1"])
    with pytest.raises(SettingsError, match="setting engine: Input should be a table of keys; found 4"):
        settings_of_options(None, ["engine=4"], EngineOptions(workers=2))


def test_an_assignment_has_one_value() -> None:
    with pytest.raises(SettingsError, match="tolerance_s"):
        build_settings(None, None, settings_of_options(None, ["tolerance_s=1\nmore=2"]))


def test_of_many_faults_some_are_named() -> None:
    with pytest.raises(SettingsError, match=r"k0: unknown key[\s\S]*And 480 more\."):
        build_settings(None, None, {"evaluation": {f"k{number}": 1 for number in range(500)}})


def test_settings_are_frozen_and_hashable() -> None:
    assert hash(EvaluationSettings()) == hash(EvaluationSettings())


def test_compat_mediaeval_refuses_missing_trials_unless_their_score_is_given() -> None:
    quesst = load_preset("quesst2014")
    assert build_settings(quesst).evaluation.impute == "min"
    assert build_settings(quesst, "mediaeval").evaluation.impute == "error"
    given = build_settings(quesst, "mediaeval", {"evaluation": {"impute": -10}}).evaluation
    assert given.impute == -10.0


@pytest.mark.parametrize("explicit", [{"compat": "mediaeval", "impute": "min"}, {"impute": "error"}])
def test_missing_trials_are_an_error_among_document_trials_only(explicit: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match=r'^setting evaluation: .* requires trials = "document"'):
        build_settings(load_preset("sws2013"), None, {"evaluation": explicit})


def test_the_first_of_several_detections_is_for_trials_that_have_several() -> None:
    first = {"evaluation": {"average_precision": {"duplicates": "first"}}}
    with pytest.raises(SettingsError, match=r'^setting evaluation: average_precision\.duplicates = "first" requires'):
        build_settings(load_preset("sws2013"), None, first)
    assert build_settings(load_preset("quesst2014"), None, first).evaluation.average_precision.duplicates == "first"


@pytest.mark.parametrize(
    ("trials", "duplicates", "rule"),
    [
        ("virtual", "false-positive", None),
        ("virtual", "ignore", "ignore"),
        ("segment", "ignore", None),
        ("document", "false-positive", "false-positive"),
        ("document", "first", "first"),
    ],
)
def test_only_another_rule_for_several_detections_costs_anything(trials: str, duplicates: str, rule: str) -> None:
    chosen = {"trials": trials, "average_precision": {"duplicates": duplicates}}
    asked = build_settings(explicit={"evaluation": chosen}).evaluation
    assert asked.average_precision.rule(asked.trials).duplicates == rule


@pytest.mark.parametrize("name", ["ties", "duplicates"])
def test_an_unknown_rule_of_rankings_is_reported_once_with_all_that_there_are(name: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build_settings(explicit={"evaluation": {"average_precision": {name: "nonsense"}}})
    assert str(caught.value).startswith(f"setting evaluation.average_precision.{name}: Input should be '")
    assert str(caught.value).count("nonsense") == 1


@pytest.mark.parametrize("name", [name for name in preset_names() if name.startswith("sws2012-")])
def test_presets_of_2012_say_whose_meaning_of_two_options_they_have(name: str) -> None:
    (note,) = build_settings(load_preset(name)).notes
    assert note.startswith("The 2012 document swaps the meanings of -S and -F: ")
    assert note.endswith(" tolerance_s is its -S, find_gap_s its -F.")
    assert "\n" not in note
    assert "  " not in note


def test_kwseval_counts_queries_without_targets_as_zero_where_it_includes_them() -> None:
    def no_relevant(**evaluation: object) -> str:
        return build_settings(None, "kwseval", {"evaluation": evaluation}).evaluation.average_precision.no_relevant

    assert no_relevant() == "exclude"
    assert no_relevant(no_targets="false_alarms_only") == "zero"
    assert no_relevant(no_targets="false_alarms_only", average_precision={"no_relevant": "nan"}) == "nan"


def test_the_presets_whose_values_the_settings_have() -> None:
    for name, names in {"sws2013": ["sws2013"], "quesst2015": ["quesst2014", "quesst2015"]}.items():
        assert matching_presets(build_settings(load_preset(name)).evaluation.model_dump(mode="json")) == names
    other = build_settings(load_preset("sws2013"), explicit={"evaluation": {"operating_point": {"c_miss": 7.0}}})
    assert "sws2013" not in matching_presets(other.evaluation.model_dump(mode="json"))
    assert matching_presets({}) == []


def test_true_is_no_number() -> None:
    for wrong in ({"tolerance_s": True}, {"operating_point": {"beta": False}}):
        with pytest.raises(SettingsError, match="expected neither true nor false"):
            build_settings(explicit={"evaluation": wrong})
    assert build_settings(explicit={"evaluation": {"nonnegative_gamma": True}}).evaluation.nonnegative_gamma


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: EvaluationSettings(tolerance=1), "setting tolerance: unknown key. Nearest valid key: tolerance_s."),
        (
            lambda: EvaluationSettings(p_targt=1),
            "setting p_targt: unknown key. Write p_target below [operating_point], in a ",
        ),
        (lambda: EvaluationSettings(tolerance_s="a"), "setting tolerance_s: Input should be a valid number"),
        (lambda: EvaluationSettings(compat="mediaeval"), 'EvaluationSettings: compat = "mediaeval" requires trials ='),
        (
            lambda: EvaluationSettings(beta=2),
            'setting beta: unknown key. Write beta below [operating_point], in a dictionary {"operating_point": ',
        ),
        (lambda: EvaluationSettings().model_copy(update={"tolerance": 1}), "setting tolerance: unknown key. Nearest"),
        (lambda: EvaluationSettings().gap.model_copy(update={"width_s": 0}), "setting width_s: Input should be"),
        (lambda: EngineSettings(worker=1), "setting worker: unknown key. Nearest valid key: workers."),
        (lambda: DiscoverySettings(folds=1), "setting folds: unknown key. Nearest valid key: n_folds."),
    ],
)
def test_a_wrong_value_of_a_settings_object_is_a_settings_error(make: Callable[[], object], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        make()
    assert str(caught.value).startswith(said)


def test_all_faults_of_a_settings_object_are_named_by_their_paths() -> None:
    wrong = {"operating_point": {"bet": 1}, "gap": {"widht_s": 3}}
    with pytest.raises(SettingsError) as caught:
        EvaluationSettings(**wrong)
    assert str(caught.value).split("\n") == [
        "setting operating_point.bet: unknown key. Nearest valid key: beta.",
        "setting gap.widht_s: unknown key. Nearest valid key: width_s.",
    ]
    with pytest.raises(SettingsError, match=r"setting evaluation\.operating_point\.bet: unknown key"):
        Settings(evaluation=wrong)


def test_a_copy_keeps_which_settings_were_set() -> None:
    copy = EvaluationSettings(trials="segment").model_copy(update={"tolerance_s": 1})
    assert copy.model_dump(exclude_unset=True) == {"trials": "segment", "tolerance_s": 1.0}
    assert copy.model_copy() == copy
