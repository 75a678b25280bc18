"""Processing load: the time and memory that a system used (2013 measures document, section 4.3, Eq. 46-48).

Computed from the `model.resources.Resources` of a run; CPU time is wall time times cores, as if on a single core.

- `isf`, indexing speed factor: CPU time of indexing over the duration of the audio documents. A real-time factor
  without unit. 14 hours on 16 cores for 300 hours of audio: ISF = 224 / 300 = .7467, as the document prints.
- `ssf`, searching speed factor: CPU time of searching over T_Q T_Omega (Eq. 46). T_Omega is the duration of the audio
  documents, T_Q that of all examples of all queries (Eq. 47). Its unit is 1 / time; by convention all three are in
  HOURS, so SSF is per hour. 3 hours on 16 cores for .25 hours of queries in 300 hours of audio: SSF = 48 / 75 = .64.
  The document prints .8 for this example: an arithmetic error, since its own formula gives .64.
- `pmu_index`, `pmu_search`, peak memory usage of each phase in GB: the highest of all steps and nodes.
- `pl`, processing load: lambda ISF PMU_i + (1 - lambda) SSF PMU_s (Eq. 48) with lambda = .1, as the document suggests,
  or `processing_load.indexing_weight`.

Each is one number, in the condition "all". The audio is the union of the excerpts of the ECF
(`archive.reference_tables`), unless the resources give its duration. A number is not defined (NaN) if the resources
lack what it needs; a run without resources has none of these numbers. If no `resources.toml` is beside a run, only the
numbers that follow from the CPU seconds `indexing_time` and `search_time` of its kwslist or stdlist are given. T_Q is
`processing_load.query_seconds` if the resources do not give it. Official tools do not compute these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from swsdask.measures.measure import Scored, Values
from swsdask.model.resources import ProcessingLoadSettings, Resources
from swsdask.statistics.statistic import Statistic


@dataclass(frozen=True)
class ProcessingLoad:
    """The processing load of the run that used `resources`; no numbers if they are None.

    `audio_time` is the duration of the evaluated audio in hours. `only_defined`: numbers that are not defined are left
    out.
    """

    resources: Resources | None = None
    audio_time: Fraction = Fraction(0)
    only_defined: bool = False

    names: ClassVar[tuple[str, ...]] = ("isf", "ssf", "pmu_index", "pmu_search", "pl")
    needs: ClassVar[tuple[type[Statistic], ...]] = ()

    def values(self, scored: Scored) -> Iterator[Values]:
        """Yield numbers overall, for the condition "all" only."""
        if self.resources is None or scored.populations[0] is not scored.whole:
            return
        figures = self._figures(self.resources, scored.settings.processing_load)
        yield scored.whole.overall(
            {
                name: math.nan if value is None else float(value)
                for name, value in zip(self.names, figures, strict=True)
                if value is not None or not self.only_defined
            }
        )

    def _figures(self, reported: Resources, settings: ProcessingLoadSettings) -> tuple[Fraction | None, ...]:
        """Return the exact figures in the order of `names`; None for a figure that is not reported."""
        audio = reported.audio_time or self.audio_time
        isf = _over(reported.indexing.cpu_time, audio)
        ssf = _over(_over(reported.searching.cpu_time, reported.query_time or settings.query_time), audio)
        pmu_index, pmu_search = reported.indexing.peak_memory, reported.searching.peak_memory
        if isf is None or ssf is None or pmu_index is None or pmu_search is None:
            return isf, ssf, pmu_index, pmu_search, None
        weight = Fraction(repr(settings.indexing_weight))
        return isf, ssf, pmu_index, pmu_search, weight * isf * pmu_index + (1 - weight) * ssf * pmu_search


def _over(time: Fraction | None, duration: Fraction | None) -> Fraction | None:
    return time / duration if time is not None and duration else None
