"""Leases of writers: how files of a writer at work are distinguished from abandoned ones (`archive.cleaning`).

Every writer has a name, which is part of the names of the files that it writes, and a lease: a file in a folder of its
own below `temporary`, made before anything else and removed at the end, after the commit. Whoever cleans lists the
files first, then the leases, then the manifests. A file without a version is then known to be abandoned: were its
writer still at work, its lease would have been there; had the writer committed, a manifest would name the file. No
clock is needed but for leases of writers that were stopped, which expire when they have not been renewed for a day.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from swsdask.archive.storage import Storage
from swsdask.archive.versions import TEMPORARY, new_token, writer_of
from swsdask.model.errors import ArchiveError

RENEW_S = 600.0

_LEASE = "lease"


@dataclass
class Lease:
    """The right of a writer to files that no version names yet."""

    storage: Storage
    writer: str = field(default_factory=new_token)
    may_withdraw: bool = True
    """Whether no version can name a file of the writer: until a commit is tried, of which the answer may be lost."""
    _renewed: float = 0.0

    @property
    def folder(self) -> str:
        """The folder of the writer's temporary files."""
        return f"{TEMPORARY}/{self.writer}"

    @property
    def place(self) -> str:
        """The file of the lease, where workers that write see it."""
        return self.storage.place(f"{self.folder}/{_LEASE}")

    def renew(self) -> None:
        """Say that the writer is still at work, at most every ten minutes."""
        now = time.monotonic()
        if not self._renewed or now - self._renewed > RENEW_S:
            self.storage.write_temporary(f"{self.folder}/{_LEASE}", b"")
            self._renewed = now

    def check(self) -> None:
        """Raise `ArchiveError` if the lease has been taken away: then files may be gone."""
        if not self.storage.exists(f"{self.folder}/{_LEASE}"):
            raise ArchiveError(
                f"{self.storage.url}: expected the lease of this writer; found it removed, by a `swsdask vacuum` that "
                "took it for one of a writer that was stopped. Nothing was committed: write again."
            )

    def withdraw(self) -> None:
        """Remove the writer's files, unless a version may name them."""
        if self.may_withdraw:
            for name in self.storage.modified():
                if writer_of(name) == self.writer:
                    self.storage.remove(name)


@contextmanager
def leased(storage: Storage) -> Iterator[Lease]:
    """Hold a lease from before the first file is written until after the commit; what fails is withdrawn."""
    lease = Lease(storage)
    lease.renew()
    try:
        yield lease
    except BaseException:
        lease.withdraw()
        raise
    finally:
        with suppress(ArchiveError):  # After a commit this is no failure; `archive.cleaning` removes what is left.
            storage.remove(lease.folder)


def held_by(storage: Storage, before: float) -> set[str | None]:
    """The writers that are at work: those with a temporary file that was changed at a time, or later."""
    temporary = storage.modified(TEMPORARY)
    return {writer_of(name) for name, changed in temporary.items() if changed >= before}
