"""Layers of settings: files, presets and explicit settings, which are merged; and the settings that an archive keeps.

A settings file is TOML with the tables of `model.settings`, and may begin with `notes`, sentences that are shown beside
the numbers. A preset is such a file in `conf/`, installed with the package. The layers are defaults, preset, the
settings that `compat` implies, and explicit settings; later ones win. A fault of a file is one error that names the
line.
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from swsdask.model.discovery import DiscoverySettings
from swsdask.model.errors import SettingsError
from swsdask.model.settings import EvaluationSettings, Settings
from swsdask.model.settings_table import MOST_NAMED, PLAINLY, fault_text, faults_of, flat
from swsdask.model.wording import cut, nearest

GivenSettings = Mapping[str, object] | EvaluationSettings | Settings
"""Settings as the Python interface takes them: a dictionary shaped as a settings file, or an object."""

COMPAT_IMPLIES: dict[str, dict[str, object]] = {
    "none": {},
    "kwseval": {
        "outside": "drop",
        "unknown_documents": "outside",
        "unknown_queries": "error",
        "average_precision": {"ties": "worst", "interpolation": "none", "score_order": "text"},
    },
    "stdeval": {
        "outside": "false_alarm",
        "unknown_documents": "outside",
        "unknown_queries": "drop",
        "score_scale": "run",
    },
    "mediaeval": {"impute": "error", "outside": "false_alarm"},
}
"""Settings that an official tool's compatibility mode sets unless they are given explicitly."""

KEPT_NONE = "The archive keeps no settings: an earlier release made it."
_KWSEVAL_INC = {"average_precision": {"no_relevant": "zero"}}
"""The settings that KWSEval's -inc implies beside `no_targets`: every query without targets has AP = 0."""

_INTEGERS = range(-(1 << 63), 1 << 63)
"""The integers of TOML; Python cannot print ones of thousands of digits."""

_PACKAGE = Path(__file__).resolve().parents[1]


TomlTable = dict[str, Any]
"""A table as `tomllib` reads it. Its values are of any type until a model has checked them."""


_BETWEEN = re.compile(r"[^,\[\]{}=\n]+")
"""A stretch of text between the separators of TOML, such as a key."""

_MOST_DOTS = 10_000_000
"""The maximum sum of the squares of the numbers of dots in stretches. tomllib takes some 10 bytes of memory for each,
because it stores every prefix of a dotted key."""


def read_toml(content: bytes) -> TomlTable:
    """Return the content of a TOML file.

    Parameters
    ----------
    content : bytes
        The file. A byte order mark is ignored.

    Returns
    -------
    dict
        The tables and values, with integers of 64 bits.

    Raises
    ------
    ValueError
        If it is not TOML, or nested so deeply that it cannot be read.

    Examples
    --------
    >>> read_toml(b"workers = 2")
    {'workers': 2}
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"Not text in UTF-8 (at line {line})") from None
    dots = 0
    for part in _BETWEEN.finditer(text):
        dots += 0 if part[0].lstrip().startswith("#") else part[0].count(".") ** 2
        if dots > _MOST_DOTS:
            raise ValueError(f"Nested too deeply (at line {text.count(chr(10), 0, part.start()) + 1})")
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ValueError(f"Nested too deeply {_where(text, RecursionError)}") from None
    except ValueError:  # of int(), which limits digits
        raise ValueError(f"An integer of more than 64 bits {_where(text, ValueError)}") from None
    if (key := _long_integer(found)) is not None:
        raise ValueError(f"An integer of more than 64 bits (key {key})")
    return found


def toml_value(value: object) -> str:
    """Return a value in TOML, in one line. Numbers keep every digit."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return repr(value)


def _where(text: str, kind: type[Exception]) -> str:
    """The line of the error: the text up to it raises this kind of error, the text up to any earlier line does not."""
    lines = text.split("\n")

    def raises(number: int) -> bool:
        try:
            tomllib.loads("\n".join(lines[:number]))
        except tomllib.TOMLDecodeError:
            return False
        except kind:
            return True
        return False

    return f"(at line {bisect_left(range(len(lines)), True, key=raises)})"


def _long_integer(table: TomlTable) -> str | None:
    """Return the key of an integer that has more than 64 bits."""
    waiting: list[tuple[str, object]] = list(table.items())
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.items()
        elif isinstance(value, list):
            waiting += [(key, each) for each in value]
        elif isinstance(value, int) and value not in _INTEGERS:
            return key
    return None


def settings_of(content: bytes, file: str) -> TomlTable:
    """Return the content of a settings file as a dictionary. Raises `SettingsError` if it is not TOML."""
    try:
        return read_toml(content)
    except ValueError as error:
        raise SettingsError(f"{file}: not a TOML file: {error}") from None


def check_keys(given: Mapping[str, object], file: str) -> None:
    """Raise `SettingsError` for unknown keys, and values of a wrong type, in a settings file; it names the file.

    Whether a value is possible can depend on other layers, so `build_settings` checks that.
    """
    try:
        Settings.model_validate(given)
    except ValidationError as error:
        wrong = [each for each in error.errors() if each["type"] not in ("value_error", "missing")]
        if wrong:
            said = (f"{file}: {fault_text(Settings, each)}" for each in wrong[:MOST_NAMED])
            raise SettingsError("\n".join(said)) from None


def conf_directory() -> Path:
    """Return the directory `conf/`: inside an installed package, beside the package in a checkout."""
    installed = _PACKAGE / "conf"
    return installed if installed.is_dir() else _PACKAGE.parent / "conf"


def preset_names() -> list[str]:
    """Return the names of all presets, sorted."""
    return sorted(path.stem for path in conf_directory().glob("*.toml"))


def load_preset(name: str) -> TomlTable:
    """Return the content of a preset's file, or of several, joined by commas; later ones win.

    Raises `SettingsError` with the nearest name if a preset does not exist.
    """
    if not isinstance(name, str):
        raise SettingsError(f"preset: expected a name, or several joined by commas; found {cut(repr(name))}.")
    return reduce(merge_layers, map(_load_one, name.split(",")))


def _load_one(name: str) -> TomlTable:
    names = preset_names()
    if name not in names:
        raise SettingsError(f"preset {name!r} is unknown. Nearest: {nearest(name, names)}. Known: {', '.join(names)}.")
    path = conf_directory() / f"{name}.toml"
    return settings_of(path.read_bytes(), str(path))


def matching_presets(evaluation: Mapping[str, object]) -> list[str]:
    """The presets all of whose values the settings of an evaluation have; of these, those with the most values."""
    values = {*_texts(evaluation)}
    wanted = {name: {*_texts(load_preset(name).get("evaluation", {}))} for name in preset_names()}
    found = {name: len(own) for name, own in wanted.items() if own and own <= values}
    return [name for name, number in found.items() if number == max(found.values())]


def _texts(settings: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    return ((name, str(value)) for name, value in flat(settings))


def build_settings(
    preset: Mapping[str, object] | None = None, compat: str | None = None, explicit: Mapping[str, object] | None = None
) -> Settings:
    """Settings from their layers: defaults, `preset`, implied by `compat`, `explicit` (both shaped as a TOML file).

    Raises `SettingsError` naming every wrong key or value, with the nearest valid key.
    """
    explicit = explicit or {}
    layers: list[Mapping[str, object]] = [preset or {}]
    said = (compat, _at(explicit, "compat"), _at(preset or {}, "compat"))
    chosen = next((tool for tool in said if tool is not None), "none")
    if isinstance(chosen, str) and chosen in COMPAT_IMPLIES:
        layers.append({"evaluation": COMPAT_IMPLIES[chosen]})
    no_targets = _at(explicit, "no_targets") or _at(preset or {}, "no_targets")
    if (chosen, no_targets) == ("kwseval", "false_alarms_only"):
        layers.append({"evaluation": _KWSEVAL_INC})
    layers.append(explicit)
    layers.append({"evaluation": {"compat": chosen}})
    merged: dict[str, object] = {}
    for layer in layers:
        merged = merge_layers(merged, layer)
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise faults_of(Settings, error) from None


def explicit_settings(given: GivenSettings | None) -> Mapping[str, object]:
    """Explicit settings in the shape of a settings file: of settings objects, the fields that were set.

    Raises `SettingsError` for anything else.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return given
    if isinstance(given, Settings):
        return given.model_dump(exclude_unset=True, exclude={"notes"})
    if isinstance(given, EvaluationSettings):
        return {"evaluation": given.model_dump(exclude_unset=True)}
    raise SettingsError(
        "settings: expected a dictionary shaped as a settings file, EvaluationSettings, or the settings of an "
        f"evaluation; found the type {type(given).__name__}."
    )


def _at(layer: Mapping[str, object], key: str) -> object:
    evaluation = layer.get("evaluation", {})
    return evaluation.get(key) if isinstance(evaluation, Mapping) else None


def merge_layers(below: Mapping[str, Any], above: Mapping[str, object]) -> TomlTable:
    """Merge two layers, shaped as a TOML file: values of `above` win, key by key; notes of both are kept.

    Raises `SettingsError` for a value in `below` where `above` has a table.
    """
    merged = dict(below)
    for key, value in above.items():
        if key == "operating_point" and isinstance(value, Mapping) and isinstance(below.get(key), Mapping):
            merged[key] = _merge_point(below[key], value)
        elif isinstance(value, Mapping) and isinstance(below.get(key), Mapping):
            merged[key] = merge_layers(below[key], value)
        elif isinstance(value, Mapping) and key in below:
            raise SettingsError(f"setting {key}: {PLAINLY['model_type']}; found {cut(repr(below[key]))}.")
        elif key == "notes" and isinstance(value, list) and isinstance(below.get(key), list):
            merged[key] = [*below[key], *(note for note in value if note not in below[key])]
        else:
            merged[key] = value
    return merged


def _merge_point(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    """Merge operating points: costs refine costs; any other way of giving the point replaces the lower layer.

    Raises `SettingsError` for some of the costs where the lower layer has no costs to refine.
    """
    costs = {"p_target", "c_miss", "c_fa"}
    if set(above) <= costs and set(below) <= costs:
        return {**below, **above}
    if set(above) == {"alpha"} and "from_data" in below:
        return {**below, **above}
    if above and set(above) < costs:
        raise SettingsError(
            f"setting evaluation.operating_point: {', '.join(sorted(above))} would replace {', '.join(below)}, "
            "which the preset or the settings file gives. Give p_target, c_miss and c_fa together, or beta."
        )
    return dict(above)


@dataclass(frozen=True)
class Layers:
    """The settings that a user gives: the content of a preset, a `compat`, and explicit settings, which win.

    If documents are `judged`, trials are documents unless a layer says otherwise.
    """

    preset: Mapping[str, object] | None = None
    compat: str | None = None
    explicit: Mapping[str, Any] = field(default_factory=dict)
    judged: bool = False

    def settings(self) -> Settings:
        """Return the settings.

        Raises `SettingsError` if they are wrong, or if documents are judged but are not the trials.
        """
        below: dict[str, object] = {"evaluation": {"trials": "document"}} if self.judged else {}
        resolved = build_settings(merge_layers(below, self.preset or {}), self.compat, self.explicit)
        if self.judged and resolved.evaluation.trials != "document":
            raise SettingsError(
                f"qrels judge documents: trials = {resolved.evaluation.trials!r} cannot be scored with them."
            )
        return resolved

    def over(self, kept: Layers) -> Layers:
        """These layers over those that an archive keeps: a preset replaces the kept ones, anything else goes on top.

        For term discovery, kept settings that the definition in use does not have are left out.
        """
        judged = self.judged or kept.judged
        if self.preset is not None:
            return Layers(self.preset, self.compat, self.explicit, judged)
        evaluation = self.explicit.get("evaluation", {})
        compat = self.compat or evaluation.get("compat") or kept.compat
        explicit = dict(kept.explicit)
        if "discovery" in explicit and (definition := self.explicit.get("discovery", {}).get("definition")):
            explicit["discovery"] = DiscoverySettings.taken_by(definition, explicit["discovery"])
        return Layers(kept.preset, compat, merge_layers(explicit, self.explicit), judged)

    def to_store(self) -> dict[str, object]:
        """Return the settings as an archive stores them: all but those of execution."""
        layers = {
            **asdict(self),
            "preset": None if self.preset is None else _without_engine(self.preset),
            "explicit": _without_engine(self.explicit),
        }
        plain: dict[str, object] = json.loads(json.dumps(layers, default=float))
        return plain


def _without_engine(layer: Mapping[str, object]) -> dict[str, object]:
    return {name: table for name, table in layer.items() if name != "engine"}


@dataclass(frozen=True)
class Override:
    """A setting whose value differs from the one that an archive keeps."""

    setting: str
    kept: str
    used: str

    def __str__(self) -> str:
        return f"{self.setting} is {self.used}; the archive keeps {self.kept}."


def overrides(kept: Settings, used: Settings) -> tuple[Override, ...]:
    """Return the settings that can change a number and whose values differ, in order."""
    before, now = dict(_values(kept)), dict(_values(used))
    names = dict.fromkeys((*before, *now))
    return tuple(
        Override(name, _text(before.get(name)), _text(now.get(name)))
        for name in names
        if before.get(name) != now.get(name)
    )


@dataclass(frozen=True)
class Settled:
    """The settings that are used, and which of them differ from those that an archive keeps."""

    settings: Settings
    overridden: tuple[Override, ...] = ()
    notes: tuple[str, ...] = ()
    judged: bool = False

    @classmethod
    def of_files(cls, given: Layers) -> Self:
        """Return the settings that are given, where there is no archive."""
        settings = given.settings()
        return cls(settings, notes=settings.notes, judged=given.judged)

    @classmethod
    def of_archive(cls, given: Layers, kept: Layers | None) -> Self:
        """Return the settings that are given for an archive that keeps some, or none."""
        if kept is None:
            settings = given.settings()
            return cls(settings, notes=(*settings.notes, KEPT_NONE), judged=given.judged)
        layers = given.over(kept)
        settings = layers.settings()
        changes = overrides(kept.settings(), settings)
        return cls(settings, changes, (*settings.notes, *(f"Setting {each}" for each in changes)), layers.judged)


def _values(settings: Settings) -> Iterator[tuple[str, object]]:
    yield from flat(settings.evaluation.model_dump(mode="json"))
    yield from flat(settings.discovery.model_dump(mode="json"), "discovery.")


def _text(value: object) -> str:
    """Return a value in the form of `--set`."""
    if value is None:
        return "not set"
    return value if isinstance(value, str) else json.dumps(value)
