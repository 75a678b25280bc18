"""Presets: the settings files in `conf/`, installed with the package."""

from __future__ import annotations

import difflib
import tomllib
from functools import reduce
from pathlib import Path
from typing import Any

from swsdask.errors import SettingsError
from swsdask.model.settings import merge_layers

_PACKAGE = Path(__file__).resolve().parents[1]


def conf_directory() -> Path:
    """Where `conf/` is: inside an installed package, beside the package in a checkout."""
    installed = _PACKAGE / "conf"
    return installed if installed.is_dir() else _PACKAGE.parent / "conf"


def preset_names() -> list[str]:
    """The names of all presets, sorted."""
    return sorted(path.stem for path in conf_directory().glob("*.toml"))


def load_preset(name: str) -> dict[str, Any]:
    """A preset as it stands in its file, or several joined by commas, of which later ones win.

    Raises `SettingsError` with the nearest name if there is none such.
    """
    return reduce(merge_layers, map(_load_one, name.split(",")))


def _load_one(name: str) -> dict[str, Any]:
    names = preset_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.0)
        raise SettingsError(f"preset {name!r} is unknown. Nearest: {near[0]}. Known: {', '.join(names)}.")
    return load_settings_file(conf_directory() / f"{name}.toml")


def load_settings_file(path: Path) -> dict[str, Any]:
    """A settings file as a dictionary. Raises `SettingsError` if it cannot be read or is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: the settings file cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: not a TOML file: {error}") from None
