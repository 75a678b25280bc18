"""Merged statistics kept in an archive: what was counted once is not counted again.

A statistic depends on the rows of a run, the reference, and what it was prepared with. The rules of a reference
(`model.trials.RULES`) shape only the statistics that follow them; everything else in a reference shapes all. Only
statistics of this package are kept: the version of others is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import fields
from typing import Any, Self

from swsdask.archive.kept_files import OF_STATISTICS, PACKAGE, KeptFiles, can_keep, digest_of, version
from swsdask.archive.store import StoredArchive
from swsdask.model.trials import RULES, Reference
from swsdask.statistics.as_arrow import from_arrow, to_arrow
from swsdask.statistics.statistic import Statistic

Found = Mapping[type[Statistic], Any]
"""Statistics of one system, or what they are prepared with, by their type."""

_OURS = f"{PACKAGE.name}.statistics."


class KeptStatistics:
    """The statistics that an archive keeps for one reference."""

    def __init__(self, archive: StoredArchive, reference: Reference) -> None:
        self.files = KeptFiles(archive.storage, version(OF_STATISTICS))
        self._runs = {stored.run.system: stored for stored in archive.stored_runs}
        values = {each.name: getattr(reference, each.name) for each in fields(reference)}
        self._rules = {name: digest_of(values.pop(name)) for name in RULES}
        self._shape = digest_of(values)

    def anew(self) -> Self:
        """The same with a tally of its own."""
        kept = copy(self)
        kept.files = self.files.anew()
        return kept

    def read(self, prepared: Mapping[str, Found]) -> dict[str, dict[type[Statistic], Any]]:
        """The statistics that are kept, of those that are prepared for some systems."""
        wanted = {place: (system, kind) for system, kind, place in self._places(prepared)}
        found: dict[str, dict[type[Statistic], Any]] = {system: {} for system in prepared}
        for place, row in self.files.read(wanted).items():
            system, kind = wanted[place]
            with suppress(ValueError):  # no row of this statistic
                found[system][kind] = from_arrow(kind, row)
        self.files.tally.used += sum(map(len, found.values()))
        self.files.tally.made += sum(len(of) - len(found[system]) for system, of in prepared.items())
        return found

    def write(self, prepared: Mapping[str, Found], found: Mapping[str, Found]) -> None:
        """Keep what was found of what was prepared."""
        places = ((system, kind, place) for system, kind, place in self._places(prepared) if kind in found[system])
        self.files.write({place: to_arrow(found[system][kind]) for system, kind, place in places})

    def _places(self, prepared: Mapping[str, Found]) -> Iterator[tuple[str, type[Statistic], str]]:
        """Every statistic that may be kept: its system, its type, and its place."""
        for system, of in prepared.items():
            for kind, given in of.items():
                if kind.__module__.startswith(_OURS):
                    rules = tuple(self._rules[name] for name in getattr(kind, "follows", ()))
                    yield system, kind, self.files.place(self._runs[system], kind.__name__, (self._shape, rules, given))


def kept_statistics(archive: object, reference: Reference) -> KeptStatistics | None:
    """Return the kept statistics of an archive for a reference; None where none can be kept."""
    return KeptStatistics(archive, reference) if isinstance(archive, StoredArchive) and can_keep(archive) else None
