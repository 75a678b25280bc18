"""The lease of a night: if two hosts begin it, only the holder works; the lease of a dead process is taken over.

    nightly/lease-00000001.json        the highest number is the lease that counts

A lease is created only if its name is free, so one of two hosts wins. It names its holder and the time when it expires,
and is removed at the end. A process that finds an expired lease, or one whose process on this machine is gone, creates
the lease with the next number. A host that was paused meanwhile finds, before it commits, that its lease no longer
counts. The clocks of hosts must agree to within minutes. If they do not, there are still no two commits of a night: a
night is committed only if its number is free.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from swsdask.archive.storage import Storage
from swsdask.archive.versions import new_token
from swsdask.model.errors import ArchiveError, SwsdaskError

HOLDS_S = 3600.0
"""The number of seconds that a lease holds without renewal; it is renewed after a quarter of that time."""

POLL_S = 10.0
"""The number of seconds between two looks at a lease that is waited for."""

LOG = logging.getLogger("swsdask")

FOLDER = "nightly"
_LEASE = re.compile(rf"{FOLDER}/lease-(\d{{8}})\.json")


class BusyError(SwsdaskError):
    """Another process works on the same evaluation. This is no failure: there is nothing to do."""

    exit_code = 0


@dataclass(frozen=True)
class Holder:
    """The holder of a lease: a unique token, host, machine and process; and when the lease expires (Unix time)."""

    token: str
    host: str
    machine: str
    process: int
    until: float

    @classmethod
    def me(cls) -> Holder:
        """Return the current process, with a lease that begins now."""
        return cls(new_token(), socket.gethostname(), _machine(), os.getpid(), time.time() + HOLDS_S)

    @property
    def is_dead(self) -> bool:
        """Whether the lease has expired, or its process ran on this machine and is gone."""
        if time.time() > self.until:
            return True
        if not self.machine or self.machine != _machine() or self.process == os.getpid():
            return False
        try:
            os.kill(self.process, 0)  # sends nothing; /proc may hide processes of other users
        except (OSError, OverflowError) as error:
            return not isinstance(error, PermissionError)
        return False


@dataclass
class NightLease:
    """The right to work on an archive's night."""

    storage: Storage
    number: int
    holder: Holder
    _renewed: float

    def renew(self) -> None:
        """Extend the lease if a quarter of its time has passed."""
        if time.time() - self._renewed > HOLDS_S / 4:
            self.check()
            self.holder = Holder(**{**asdict(self.holder), "until": time.time() + HOLDS_S})
            self.storage.replace(_name(self.number), _serialise(self.holder))
            self._renewed = time.time()

    def check(self) -> None:
        """Raise `BusyError` if another process has taken the lease over."""
        now = _highest(self.storage)
        if now is None or now[1] is None or now[1].token != self.holder.token:
            raise BusyError(
                f"{self.storage.url}: expected the lease of this night; another process has taken it over, because it "
                "was not renewed in time. What was done so far is kept; the other process continues."
            )


@contextmanager
def night_lease(storage: Storage, wait_s: float = 0.0) -> Iterator[NightLease]:
    """Hold the lease of an archive's night.

    Raises `BusyError` if another process holds it that may be alive, and still does so after `wait_s` seconds.
    """
    lease = _wait_for_lease(storage, time.monotonic() + wait_s)
    try:
        yield lease
    finally:
        # A lease that cannot be removed expires.
        with suppress(ArchiveError):
            if (highest := _highest(storage)) and highest[1] and highest[1].token == lease.holder.token:
                storage.remove(_name(lease.number))


def _wait_for_lease(storage: Storage, until: float) -> NightLease:
    told = False
    while True:
        try:
            return _acquire(storage)
        except BusyError as busy:
            left = until - time.monotonic()
            if left <= 0:
                raise
            if not told:
                LOG.info("waiting: %s", busy)
                told = True
            time.sleep(min(POLL_S, left))


def _acquire(storage: Storage) -> NightLease:
    highest = _highest(storage)
    number, holder = highest or (0, None)
    if highest is not None and (holder is None or not holder.is_dead):
        raise _busy(storage, holder)
    me = Holder.me()
    if not storage.write_new(_name(number + 1), _serialise(me)):
        raise _busy(storage, None)
    for name, found in _leases(storage):
        if found <= number:
            storage.remove(name)
    return NightLease(storage, number + 1, me, time.time())


def _busy(storage: Storage, holder: Holder | None) -> BusyError:
    who = "another process" if holder is None else f"process {holder.process} on {holder.host}"
    return BusyError(f"{storage.url}: {who} is working on this night. There is nothing to do here.")


def _highest(storage: Storage) -> tuple[int, Holder | None] | None:
    """The lease that counts; its holder is None if it cannot be read, for example because it was just removed."""
    found = sorted(_leases(storage), key=lambda each: each[1])
    if not found:
        return None
    name, number = found[-1]
    content = storage.read_all([name]).get(name)
    try:
        return number, None if content is None else Holder(**json.loads(content))
    except (ValueError, TypeError, RecursionError):
        raise ArchiveError(f"{storage.url}/{name}: expected a lease; found something else. Remove the file.") from None


def _leases(storage: Storage) -> Iterator[tuple[str, int]]:
    for name in storage.modified(FOLDER):
        if found := _LEASE.fullmatch(name):
            yield name, int(found[1])


def _name(number: int) -> str:
    return f"{FOLDER}/lease-{number:08d}.json"


def _serialise(holder: Holder) -> bytes:
    return (json.dumps(asdict(holder), sort_keys=True) + "\n").encode()


def _machine() -> str:
    """Identify the current boot of this machine and its namespace of process ids; empty if that is impossible."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""
