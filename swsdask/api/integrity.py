"""Verification and cleaning of archives."""

from __future__ import annotations

import os

from swsdask.api.arguments import Location
from swsdask.archive import cleaning
from swsdask.archive import verify as verification
from swsdask.archive.cleaning import Expired
from swsdask.archive.verify import Verified
from swsdask.execution.executor import Executor, Progress


def verify(
    archive: Location,
    *,
    repair: Location | None = None,
    adopt: bool = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Verified:
    """Verify every file of an archive, of detections or of term discovery, by the hashes that it keeps.

    Parameters
    ----------
    archive : path or URL
        The archive. All its versions are verified.
    repair : path or URL, optional
        A copy of the archive. A damaged file is replaced by the copy's, if that is what was written.
    adopt : bool, default False
        Give hashes to the files of an archive that an earlier release wrote, if nothing is found damaged. It makes a
        new version.
    executor : Executor, optional
        Where the files are read, see `cluster`. Default: here, one after the other.
    progress : Progress, optional
        Receives the files that are done.

    Returns
    -------
    Verified
        What is damaged, and what was done.

    Raises
    ------
    ArchiveError
        If there is no archive, or none of its manifests can be read.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> sws.verify("demo/archive").damaged
    {}
    """
    if progress is not None:
        progress.begin("verifying", 0)
    return verification.verify(
        os.fspath(archive),
        repair=None if repair is None else os.fspath(repair),
        adopt=adopt,
        executor=executor,
        progress=None if progress is None else lambda _: progress.advance(1),
    )


def vacuum(archive: Location, *, older_than_s: float = cleaning.DAY_S, dry_run: bool = False) -> list[str]:
    """Remove the files of an archive that no version names, left by writers that were stopped. Others may write.

    Parameters
    ----------
    archive : path or URL
        The archive, of detections or of term discovery.
    older_than_s : float, default 86400
        After how many seconds without a sign of life a writer counts as stopped.
    dry_run : bool, default False
        Remove nothing.

    Returns
    -------
    list of str
        The names of the files that were removed, or would be.

    Raises
    ------
    ArchiveError
        If there is no archive, or one of its versions cannot be read: then nothing is removed.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> sws.vacuum("demo/archive", dry_run=True)
    []
    """
    return cleaning.vacuum(os.fspath(archive), older_than_s=older_than_s, dry_run=dry_run)


def expire(
    archive: Location, *, keep: int | None = None, older_than_s: float | None = None, dry_run: bool = False
) -> Expired:
    """Remove old versions of an archive, and the files that no version names without them. Others may write.

    Parameters
    ----------
    archive : path or URL
        The archive, of detections or of term discovery.
    keep : int, optional
        How many of the newest versions stay, whatever their age. Default: the newest.
    older_than_s : float, optional
        The age, in seconds since the commit, up to which versions stay. Default: only `keep` decides.
    dry_run : bool, default False
        Remove nothing.

    Returns
    -------
    Expired
        The versions and the files that were removed, or would be.

    Raises
    ------
    SettingsError
        If neither `keep` nor `older_than_s` is given.
    ArchiveError
        If there is no archive, or one of its versions cannot be read: then nothing is removed.

    Notes
    -----
    The newest version always stays. Whoever has an expired version open can read it no longer. The time of a commit is
    that of the manifest's file.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> sws.expire("demo/archive", keep=10, dry_run=True)
    Expired(versions=(), files=())
    """
    return cleaning.expire(os.fspath(archive), keep=keep, older_than_s=older_than_s, dry_run=dry_run)
