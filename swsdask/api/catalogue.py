"""The catalogue: measures with their definitions, settings with their defaults."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module

from pydantic import BaseModel

from swsdask.discovery.measures import home_of
from swsdask.measures import MEASURES, select
from swsdask.model.discovery import DISCOVERY
from swsdask.model.errors import SettingsError
from swsdask.model.layers import TomlTable, conf_directory, preset_names, toml_value
from swsdask.model.measures import TABLE, Description, parse_name
from swsdask.model.settings import Settings
from swsdask.model.wording import nearest

_SECTION = re.compile(r"^(.+)\n---+\n", re.MULTILINE)
"""An underlined title, in the docstring of a module with measures of several kinds."""


@dataclass(frozen=True)
class SettingDescription:
    """One setting.

    Attributes
    ----------
    setting : str
        The name for ``--set``, such as ``evaluation.gap.width_s``.
    type : str
        The values that it accepts.
    default : str
        The default, as TOML; "" if it is not set by default.
    meaning : str
        The meaning of the setting.
    presets : dict of str to str
        The presets that set it, and the values that they set, as TOML.
    """

    setting: str
    type: str
    default: str
    meaning: str
    presets: dict[str, str] = field(default_factory=dict)


def list_measures() -> tuple[Description, ...]:
    """List the measures of detections, then those of term discovery.

    Returns
    -------
    tuple of Description
        Each has a name, heading, title, direction, and the equation that defines it. A name that ends in ``@`` needs a
        point, such as ``twv@0.5``. ``pandas.DataFrame`` makes a table of them.

    Examples
    --------
    >>> import swsdask as sws
    >>> next(measure.title for measure in sws.list_measures() if measure.name == "mtwv")
    'Maximum term-weighted value: at the best single threshold'
    """
    return (*TABLE, *DISCOVERY)


def define_measure(name: str) -> str:
    """Return the definition of a measure: its formula, when it is undefined, and how official tools differ.

    Parameters
    ----------
    name : str
        The name of a measure. It may include a point.

    Returns
    -------
    str
        The definition of its family of measures: the docstring of its module, or a section of it.

    Raises
    ------
    SettingsError
        There is no such measure.

    Examples
    --------
    >>> import swsdask as sws
    >>> "AP = (1/R) sum" in sws.define_measure("map")
    True
    """
    home, names = home_of(name), [name]
    if not home:
        (family,) = select([name])
        home = type(family).__module__
        names = [parse_name(name).family, *(family.names if describe_measure(name).quotient else ())]
    whole = inspect.cleandoc(import_module(home).__doc__ or "")
    _, *parts = _SECTION.split(whole)
    sections = list(zip(parts[::2], parts[1::2], strict=True))
    marks = [f"`{name}" if name.endswith("@") else f"`{name}`" for name in names]
    found = ((title, text) for mark in marks for title, text in sections if mark in text)
    return next((f"{title}.\n\n{text.strip()}" for title, text in found), whole)


def describe_measure(name: str) -> Description:
    """Return the row of a measure in `list_measures`; the `SettingsError` for an unknown name has the nearest name."""
    if not home_of(name):
        select([name])
        name = parse_name(name).family
    return next(row for row in (*TABLE, *DISCOVERY) if row.name == name)


def families() -> Iterator[tuple[Description, ...]]:
    """Yield the measures that share a definition, in canonical order; those of term discovery come last."""
    rows = {row.name: row for row in TABLE}
    own = [rows[name] for family in MEASURES for name in family.names if name in rows]
    by_definition: dict[str, list[Description]] = {}
    for row in (*own, *DISCOVERY):
        by_definition.setdefault(define_measure(row.name), []).append(row)
    yield from map(tuple, by_definition.values())


def list_settings(name: str = "") -> tuple[SettingDescription, ...]:
    """List the settings, with their defaults and the presets that set them.

    Parameters
    ----------
    name : str, default ""
        A setting, such as ``evaluation.gap.width_s`` or ``width_s``, or a table of settings, such as ``gap``. Default:
        all settings.

    Returns
    -------
    tuple of SettingDescription
        The settings, in the order of a settings file.

    Raises
    ------
    SettingsError
        There is no such setting.

    Examples
    --------
    >>> import swsdask as sws
    >>> (setting,) = sws.list_settings("tolerance_s")
    >>> setting.default, setting.meaning
    ('0.5', 'How far the middle of a detection may lie outside the occurrence that it detects.')
    """
    presets = {name: tomllib.loads((conf_directory() / f"{name}.toml").read_text("utf-8")) for name in preset_names()}
    every = tuple(_settings(Settings, "", presets))
    wanted = name.strip().rstrip(".")
    chosen = tuple(each for each in every if not wanted or f".{wanted}." in f".{each.setting}.")
    if not chosen:
        names = [each.setting.rpartition(".")[2] for each in every]
        near = nearest(wanted.rpartition(".")[2], names)
        raise SettingsError(f"setting {wanted!r} is unknown. Nearest: {near}.")
    return chosen


def _settings(model: type[BaseModel], path: str, presets: Mapping[str, TomlTable]) -> Iterator[SettingDescription]:
    documented = dict(_attributes(model))
    for name, info in model.model_fields.items():
        setting, kind = f"{path}{name}", info.annotation
        own = {preset: found[name] for preset, found in presets.items() if name in found}
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _settings(kind, f"{setting}.", own)
        elif path:
            values, meaning = documented[name]
            default = "" if info.default is None else toml_value(info.default)
            yield SettingDescription(
                setting, values, default, meaning, {preset: toml_value(value) for preset, value in own.items()}
            )


def _attributes(model: type[BaseModel]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the entries of the section "Attributes" of a docstring: name, type and meaning."""
    if model.__doc__ is None:
        raise SettingsError("Docstrings explain the settings, and python -OO (PYTHONOPTIMIZE=2) leaves them out.")
    text = inspect.cleandoc(model.__doc__).partition("\nAttributes\n----------\n")[2]
    for name, values, meaning in re.findall(r"^(\w+) : (.*)\n((?:    .*\n?)+)", text, re.MULTILINE):
        yield name, (values.removesuffix(", optional"), " ".join(meaning.split()))
