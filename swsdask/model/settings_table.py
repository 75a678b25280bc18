"""Tables of settings, whose faults are a `SettingsError` that names every wrong key or value, with the nearest key."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from swsdask.model.errors import SettingsError
from swsdask.model.wording import cut

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

PLAINLY = {"tuple_type": 'Input should be a list, as ["a", "b"]', "model_type": "Input should be a table of keys"}
"""Plain words for messages of pydantic that use terms of Python."""

MOST_NAMED = 20
"""The number of wrong keys and values that an error names."""


class SettingsTable(BaseModel):
    """A table of settings. Making or copying one with wrong keys or values raises `SettingsError`.

    `model_validate` raises pydantic's error, from which a caller makes its own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, allow_inf_nan=False)

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise faults_of(type(self), error) from None

    # Tables in tables are then validated without __init__, so that the faults of all are collected with their paths.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with some values replaced, which are checked."""
        if not update:
            return super().model_copy(deep=deep)
        return type(self)(**{**{name: getattr(self, name) for name in self.model_fields_set}, **update})


def faults_of(model: type[BaseModel], error: ValidationError) -> SettingsError:
    """Return the error that names the wrong keys and values of a table of settings."""
    found = error.errors()
    more = [f"And {len(found) - MOST_NAMED:,} more."] if len(found) > MOST_NAMED else []
    return SettingsError("\n".join([*(fault_text(model, each) for each in found[:MOST_NAMED]), *more]))


def fault_text(model: type[BaseModel], error: ErrorDetails) -> str:
    """Return the sentence for a wrong key or value of a table of settings."""
    path = ".".join(str(part) for part in error["loc"])
    where = f"setting {path}" if path else model.__name__
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown key. {_remedy(model, error['loc'])}"
    if error["type"] == "value_error":
        return f"{where}: {error['ctx']['error']}."
    return f"{where}: {PLAINLY.get(error['type'], error['msg'])}; found {cut(repr(error['input']))}."


def _remedy(model: type[BaseModel], unknown: tuple[int | str, ...]) -> str:
    """Return the remedy for an unknown key: a setting that ends so, or the nearest key of its table or of all."""
    *parents, last = map(str, unknown)
    table: Any = model
    for parent in parents:
        table = table.model_fields[parent].annotation
    settings = [name for name, _ in flat(model().model_dump())]
    name = next((name for name in settings if f".{name}".endswith(f".{last}")), None)
    if name is None:
        by_end = {name.rpartition(".")[2]: name for name in reversed(settings)}
        near = difflib.get_close_matches(last.rpartition(".")[2], {**by_end, **table.model_fields}, n=1)
        if not near:
            return "`swsdask settings` lists all."
        if near[0] in table.model_fields:
            return f"Nearest valid key: {near[0]}."
        name = by_end[near[0]]
    nested = reduce(lambda inner, key: f'{{"{key}": {inner}}}', reversed(name.split(".")), "...")
    table, _, key = name.rpartition(".")
    return f"Write {key} below [{table}], in a dictionary {nested}."


def flat(settings: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield every setting by its dotted name."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
