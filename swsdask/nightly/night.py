"""A night of an evaluation: its settings, the history before it, and where its work runs."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from swsdask.api.manifest import signatures_of
from swsdask.api.opening import Evaluation
from swsdask.api.opening import open as open_evaluation
from swsdask.api.scoring import resolve_measures
from swsdask.archive.nights import History
from swsdask.archive.storage import Storage
from swsdask.archive.store import StoredArchive, is_archive
from swsdask.execution.executor import Executor, Progress
from swsdask.execution.open import open_executor
from swsdask.model.errors import SettingsError
from swsdask.model.layers import build_settings
from swsdask.nightly.settings import NightlyEvaluation


@dataclass(eq=False)
class Night:
    """A night of an evaluation.

    Parameters
    ----------
    job : NightlyEvaluation
        The evaluation.
    past : History
        Its history: before the night, and with it once it is committed.
    progress : Progress
        Receives the phases of the work.
    stack : ExitStack
        Closes the executor at the end of the night.
    """

    job: NightlyEvaluation
    past: History
    progress: Progress
    stack: ExitStack

    @cached_property
    def executor(self) -> Executor | None:
        """The executor of all steps, opened on first use; None without a cluster: each step chooses by its work."""
        if not self.job.cluster:
            return None
        engine = build_settings(explicit=self.given_settings).engine
        return self.stack.enter_context(open_executor(engine, progress=self.progress))

    @property
    def storage(self) -> Storage:
        """The storage of the archive."""
        return Storage(self.job.archive)

    @property
    def given_settings(self) -> dict[str, object]:
        """The settings that the file of the night gives, and where the work runs."""
        engine = {"engine": {"executor": self.job.cluster}} if self.job.cluster else {}
        return {**self.job.given_settings, **engine}

    @property
    def opening(self) -> dict[str, Any]:
        """The arguments with which the evaluation is opened and ingested, besides places."""
        return {"preset": self.job.preset, "compat": self.job.compat, "settings": self.given_settings}

    def open_archive(self, version: int | None = None) -> Evaluation:
        """Open a version of the archive, by default the newest."""
        return open_evaluation(self.job.archive, version=version, **self.opening)

    def open_existing(self) -> Evaluation | None:
        """Open the archive as it is; return None if there is none."""
        return self.open_archive() if is_archive(self.job.archive) else None

    def read_reference(self) -> Evaluation:
        """Read the evaluation from the files of its reference."""
        places = self.job.reference_places
        return open_evaluation(places.pop("reference", None), **places, **self.opening)

    def signatures(self, evaluation: Evaluation) -> dict[str, str]:
        """Return the signature of each system's numbers."""
        names, _, settings = resolve_measures(self.job.scored, evaluation.settings)
        return signatures_of(evaluation.archive, settings, names, self.job.by)


def stored_archive(evaluation: Evaluation) -> StoredArchive:
    """Return the archive of an evaluation on storage."""
    if not isinstance(evaluation.archive, StoredArchive):
        raise SettingsError("a night needs an archive.")
    return evaluation.archive
