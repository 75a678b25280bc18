"""The layers of the settings that a user gives, what an archive keeps of them, and where two settings differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from swsdask.model.errors import SettingsError
from swsdask.model.settings import Settings, build_settings, merge_layers

KEPT_NONE = "The archive keeps no settings: an earlier release made it."


@dataclass(frozen=True)
class Layers:
    """What a user gives as settings: the content of a preset, a `compat`, and explicit settings, which win.

    Of `judged` documents, trials are documents unless a layer says otherwise.
    """

    preset: Mapping[str, object] | None = None
    compat: str | None = None
    explicit: Mapping[str, Any] = field(default_factory=dict)
    judged: bool = False

    def settings(self) -> Settings:
        """The settings. Raises `SettingsError` for what is wrong with them, or for judged documents as other trials."""
        below: dict[str, object] = {"evaluation": {"trials": "document"}} if self.judged else {}
        resolved = build_settings(merge_layers(below, self.preset or {}), self.compat, self.explicit)
        if self.judged and resolved.evaluation.trials != "document":
            raise SettingsError(
                f"qrels judge documents: trials = {resolved.evaluation.trials!r} cannot be scored with them."
            )
        return resolved

    def over(self, kept: Layers) -> Layers:
        """These layers given for an archive that keeps others: a preset replaces those, all else goes on top."""
        judged = self.judged or kept.judged
        if self.preset is not None:
            return Layers(self.preset, self.compat, self.explicit, judged)
        evaluation = self.explicit.get("evaluation", {})
        compat = self.compat or evaluation.get("compat") or kept.compat
        return Layers(kept.preset, compat, merge_layers(kept.explicit, self.explicit), judged)

    def kept(self) -> dict[str, object]:
        """Return the settings that an archive keeps: all but those of execution."""
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
    """A setting that is used otherwise than an archive keeps it."""

    setting: str
    kept: str
    used: str

    def __str__(self) -> str:
        return f"{self.setting} is {self.used}; the archive keeps {self.kept}."


def overrides(kept: Settings, used: Settings) -> tuple[Override, ...]:
    """The settings that can move a number and whose values differ, in their order."""
    before, now = dict(_values(kept)), dict(_values(used))
    names = dict.fromkeys((*before, *now))
    return tuple(
        Override(name, _text(before.get(name)), _text(now.get(name)))
        for name in names
        if before.get(name) != now.get(name)
    )


@dataclass(frozen=True)
class Settled:
    """The settings that are used, and those of them that an archive keeps otherwise."""

    settings: Settings
    overridden: tuple[Override, ...] = ()
    notes: tuple[str, ...] = ()
    judged: bool = False

    @classmethod
    def of_files(cls, given: Layers) -> Self:
        """The settings that are given, where there is no archive."""
        settings = given.settings()
        return cls(settings, notes=settings.notes, judged=given.judged)

    @classmethod
    def of_archive(cls, given: Layers, kept: Layers | None) -> Self:
        """The settings that are given for an archive that keeps some, or none."""
        if kept is None:
            settings = given.settings()
            return cls(settings, notes=(*settings.notes, KEPT_NONE), judged=given.judged)
        layers = given.over(kept)
        settings = layers.settings()
        changes = overrides(kept.settings(), settings)
        return cls(settings, changes, (*settings.notes, *(f"Setting {each}" for each in changes)), layers.judged)


def _values(settings: Settings) -> Iterator[tuple[str, object]]:
    yield from _flat(settings.evaluation.model_dump(mode="json"))
    yield from _flat(settings.discovery.model_dump(mode="json"), "discovery.")


def _flat(settings: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Every setting by its dotted name."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _text(value: object) -> str:
    """A value as it is given to `--set`."""
    if value is None:
        return "not set"
    return value if isinstance(value, str) else json.dumps(value)
