"""The settings of nights: a TOML file with a table `[[evaluation]]` for each evaluation.

Relative paths are relative to the file's folder (local or in a store), so that a scheduler may start the command
anywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from swsdask.comparison.gates import Gate, parse_gate
from swsdask.measures.names import name_in_gate, written_name
from swsdask.model.errors import SettingsError
from swsdask.model.layers import TomlTable, conf_directory, settings_of
from swsdask.model.settings_table import PLAINLY
from swsdask.model.wording import cut, nearest
from swsdask.places.reading import is_local, join_path, local_path, parted, read_small

Text = Annotated[str, Field(min_length=1)]

_FILES_OF_NIST = {"ecf", "rttm", "queries"}
_TABLES = {"documents", "occurrences"}
_JUDGMENTS = {"qrels"}
_OF_QUERIES = ("lexicon", "vocabulary")
_REFERENCE = ("reference", "ecf", "rttm", "queries", "documents", "occurrences", "qrels", *_OF_QUERIES)
_PLACES = ("archive", "out", *_REFERENCE)
_FILES = (".json", ".toml")
"""The suffixes of files that describe a cluster; other values are words or addresses."""


class NightlyEvaluation(BaseModel):
    """One evaluation: where its archive, reference and runs are, how it is scored, and where its board goes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Text
    archive: Text
    out: Text
    inbox: Annotated[tuple[Text, ...], Field(min_length=1)]
    pattern: str | None = None
    reference: Text | None = None
    ecf: Text | None = None
    rttm: Text | None = None
    queries: Text | None = None
    documents: Text | None = None
    occurrences: Text | None = None
    qrels: Text | None = None
    lexicon: Text | None = None
    vocabulary: Text | None = None
    preset: Text | None = None
    compat: Text | None = None
    settings: TomlTable = {}
    measures: tuple[Text, ...] | None = Field(default=None, min_length=1)
    by: tuple[Text, ...] = ()
    baseline: Text = "previous"
    gates: tuple[Text, ...] = ()
    cluster: Text | None = None

    @field_validator("pattern")
    @classmethod
    def _names_the_system(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                groups = set(re.compile(pattern).groupindex)
            except re.error as error:
                raise ValueError(f"not a regular expression: {error}") from None
            if "system" not in groups or groups - {"system", "date", "tag"}:
                raise ValueError("expected the group (?P<system>...), and no others but date and tag")
        return pattern

    @field_validator("gates")
    @classmethod
    def _can_be_read(cls, gates: tuple[str, ...]) -> tuple[str, ...]:
        for gate in gates:
            try:
                parse_gate(gate, name_in_gate)
            except SettingsError as error:
                raise ValueError(str(error).removesuffix(".")) from None
        return gates

    @model_validator(mode="after")
    def _one_reference(self) -> Self:
        given = self.reference_places.keys() - _OF_QUERIES
        in_tables = given - {"queries"} == _TABLES
        if not in_tables and given not in ({"reference"}, _FILES_OF_NIST, _JUDGMENTS):
            raise ValueError(
                "expected reference, all three of ecf, rttm and queries, documents and occurrences, or qrels alone"
            )
        if (in_tables or given == _JUDGMENTS) and any(getattr(self, name) is not None for name in _OF_QUERIES):
            raise ValueError("lexicon and vocabulary go with NIST's files: a table of queries has columns for that")
        return self

    @property
    def parsed_gates(self) -> tuple[Gate, ...]:
        """The gates."""
        return tuple(parse_gate(gate, name_in_gate) for gate in self.gates)

    @property
    def scored(self) -> list[str] | None:
        """The measures to score, including those of the gates, named as in results; None: all."""
        gates = (gate.measure for gate in self.parsed_gates)
        return None if self.measures is None else list(dict.fromkeys(map(written_name, (*self.measures, *gates))))

    @property
    def reference_places(self) -> dict[str, Any]:
        """The places of the reference, as the arguments of `ingest`."""
        named = {name: getattr(self, name) for name in _REFERENCE}
        return {name: place for name, place in named.items() if place is not None}

    @property
    def given_settings(self) -> TomlTable:
        """The explicit settings, in the shape of a settings file."""
        return {"evaluation": self.settings} if self.settings else {}

    def at(self, folder: str) -> NightlyEvaluation:
        """Return a copy with its relative paths below a folder, a path or URL."""
        own = _PLACES if self.cluster is None or not self.cluster.endswith(_FILES) else (*_PLACES, "cluster")
        places = {name: _at(getattr(self, name), folder) for name in own if getattr(self, name) is not None}
        return self.model_copy(update={**places, "inbox": tuple(_at(each, folder) for each in self.inbox)})


class NightlySettings(BaseModel):
    """All evaluations of a file, the place of the page of all, and the command that runs after every night."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    evaluation: Annotated[tuple[NightlyEvaluation, ...], Field(min_length=1)]
    out: Text | None = None
    notify: tuple[Text, ...] = ()

    def only(self, name: str | None) -> tuple[NightlyEvaluation, ...]:
        """Return all evaluations, or the one with this name. Raises `SettingsError` for an unknown name."""
        names = [each.name for each in self.evaluation]
        if name is not None and name not in names:
            raise SettingsError(f"no evaluation is named {name!r}. There are: {', '.join(names)}.")
        return tuple(each for each in self.evaluation if name in (None, each.name))


def load_nightly(path: str | os.PathLike[str]) -> NightlySettings:
    """Return the settings of a file.

    Raises
    ------
    SettingsError
        If it cannot be read, is not TOML, or has invalid content. The error names the file, the evaluation and the key.
    """
    place = os.fspath(path)
    try:
        content = read_small(local_path(place) or place)
    except OSError as error:
        found = "none" if isinstance(error, FileNotFoundError) else getattr(error, "strerror", None) or str(error)
        remedy = "`swsdask nightly --example` prints one."
        raise SettingsError(f"{place}: expected a file with the settings of nights; found {found}. {remedy}") from None
    given = settings_of(content, place)
    try:
        settings = NightlySettings.model_validate(given)
    except ValidationError as error:
        raise SettingsError("\n".join(f"{place}: {_explain_fault(each, given)}" for each in _causes(error))) from None
    here = local_path(place)
    folder = parted(place)[0] if here is None else str(Path(here).resolve().parent)
    evaluations = tuple(each.at(folder) for each in settings.evaluation)
    out = None if settings.out is None else _at(settings.out, folder)
    if (shared := _find_shared(evaluations)) is not None:
        raise SettingsError(f"{place}: {shared}: each needs its own.")
    for each in evaluations:
        if (shared := _find_shared_folder(each)) is not None:
            raise SettingsError(f"{place}: evaluation {each.name!r}: {shared}; give each its own folder.")
    for each in evaluations:
        if out is not None and _normalise(each.out) == _normalise(out):
            same = f"the overview page and evaluation {each.name!r} have the same out {out!r}"
            raise SettingsError(f"{place}: {same}; give each its own directory.")
    return settings.model_copy(update={"evaluation": evaluations, "out": out})


def example() -> str:
    """Return a commented file of settings."""
    return (conf_directory() / "nightly" / "example.toml").read_text(encoding="utf-8")


def _find_shared(evaluations: Sequence[NightlyEvaluation]) -> str | None:
    """Describe a name, archive or board that two evaluations share in any spelling; None if they share none."""
    for what in ("name", "archive", "out"):
        values = [getattr(each, what) for each in evaluations]
        places = values if what == "name" else [*map(_normalise, values)]
        repeated = [value for value, place in zip(values, places, strict=True) if places.count(place) > 1]
        if repeated:
            return f"two evaluations have the {what} {repeated[-1]!r}"
    return None


def _find_shared_folder(evaluation: NightlyEvaluation) -> str | None:
    """Describe a folder of an evaluation that is two of archive, board and inbox, or lies in an inbox that is a folder.

    Files of a board or an archive would be taken for runs. A glob selects files, and may lie anywhere.
    """
    inboxes = {_normalise(each): each for each in evaluation.inbox if not re.search(r"[*?\[]", each)}
    archive, out = _normalise(evaluation.archive), _normalise(evaluation.out)
    if archive == out:
        return f"archive and out are both {evaluation.out!r}"
    for name, folder in (("archive", archive), ("out", out)):
        inbox = inboxes.get(folder) or inboxes.get(folder.rpartition("/")[0])
        if inbox is not None:
            return f"{name} {getattr(evaluation, name)!r} lies in the inbox {inbox!r}"
    return None


def _normalise(place: str) -> str:
    """One spelling of a path or URL."""
    path = local_path(place)
    return place.rstrip("/") if path is None else os.path.normpath(path)


def _at(place: str, folder: str) -> str:
    return place if not is_local(place) or os.path.isabs(place) else join_path(folder, place)


def _causes(error: ValidationError) -> list[ErrorDetails]:
    """Return the errors, without those of a list whose items have errors: pydantic counts only valid items."""
    errors = error.errors()
    within = {each["loc"][:length] for each in errors for length in range(len(each["loc"]))}
    return [each for each in errors if each["loc"] not in within]


def _explain_fault(error: ErrorDetails, given: TomlTable) -> str:
    where, model = [], NightlySettings
    path = list(error["loc"])
    if path[:1] == ["evaluation"] and len(path) > 1:
        tables = given["evaluation"]
        number = int(path[1])
        name = tables[number].get("name", number + 1) if isinstance(tables[number], dict) else number + 1
        where.append(f"evaluation {name!r}")
        path, model = path[2:], NightlyEvaluation  # type: ignore[assignment]
    key = ".".join(map(str, path))
    where += [key] if key else []
    if error["type"] == "extra_forbidden":
        if model is NightlySettings and path[-1] in NightlyEvaluation.model_fields:
            return f"{', '.join(where)}: unknown key. Write it below [[evaluation]]."
        return f"{', '.join(where)}: unknown key. Nearest valid key: {nearest(str(path[-1]), model.model_fields)}."
    if error["type"] == "missing":
        return f"{', '.join(where)}: expected a value; found none. `swsdask nightly --example` prints a whole file."
    if error["type"] == "value_error":
        return f"{', '.join([*where, str(error['ctx']['error'])])}."
    return f"{', '.join(where)}: {PLAINLY.get(error['type'], error['msg'])}; found {cut(repr(error['input']))}."
