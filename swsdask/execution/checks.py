"""Checks of workers before they get work: the version of the code, temporary space, and the files to read.

One call checks all workers at once. The function is sent by value, so that it also runs, and reports, on workers
without swsdask. A call that exceeds its time limit (`within`) is abandoned in its own thread.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from swsdask.model.errors import ClusterError
from swsdask.places.writing import TEMPORARY

Answer = Mapping[str, Any] | BaseException
"""The answer of a worker, or the exception that the call raised."""


def looking(
    places: Sequence[str], options: Mapping[str, Mapping[str, object]] | None
) -> Callable[[], dict[str, object]]:
    """Return a function that collects the data for the checks on a worker.

    Parameters
    ----------
    places : sequence of str
        Files, by path or URL, that the worker must see.
    options : mapping, optional
        The options of stores (`places.store_options.options`) for the places. None: those of the worker.

    Returns
    -------
    callable
        It returns the version and the hash of the code of swsdask, or why it cannot be imported; the problem of the
        folder of temporary files, if any; and the first place that cannot be seen, with the reason.
    """

    def look() -> dict[str, object]:
        # All imports are local, because a worker may lack the modules.
        import hashlib
        import tempfile
        from pathlib import Path

        try:
            import swsdask
            from swsdask.places.reading import is_file, is_folder
            from swsdask.places.store_options import set_options
        except ImportError as error:
            return {"import": str(error)}
        folder = Path(swsdask.__file__).parent
        code = hashlib.blake2b(digest_size=8)
        for file in sorted(folder.rglob("*.py")):
            code.update(f"{file.relative_to(folder)}\n".encode() + file.read_bytes())
        found: dict[str, object] = {"version": swsdask.__version__, "code": code.hexdigest()}
        try:
            with tempfile.TemporaryFile() as file_of_ours:
                file_of_ours.write(bytes(1 << 16))
        except OSError as error:
            found["temporary"] = str(error)
        if options is not None:
            set_options(options)
        for place in places:
            try:
                reason = None if is_file(place) or is_folder(place) else "no such file or folder"
            except Exception as error:
                reason = str(error)
            if reason is not None:
                found["unseen"] = (place, reason)
                break
        return found

    return look


def check_answers(answers: Mapping[str, Answer]) -> None:
    """Raise `ClusterError` with a remedy for the first worker that lacks something.

    Parameters
    ----------
    answers : mapping
        What `looking` returned, by the address of the worker.
    """
    own = looking((), None)()
    for address, answer in sorted(answers.items()):
        fault = _fault(answer, own)
        if fault is not None:
            raise ClusterError(f"worker {address} {fault}")


def _fault(answer: Answer, own: Mapping[str, object]) -> str | None:
    if isinstance(answer, OSError):
        return None  # The worker was lost during the check; the executor handles this.
    if isinstance(answer, BaseException):
        return (
            f"cannot be checked: {type(answer).__name__}: {answer}. Install the same Python, Dask and swsdask on all "
            "workers."
        )
    if "import" in answer:
        return f"cannot import swsdask: {answer['import']}. Install swsdask {own['version']} on all workers."
    if answer["version"] != own["version"]:
        return f"has swsdask {answer['version']}; this process has {own['version']}. Install the same on all workers."
    if answer["code"] != own["code"]:
        return (
            f"has other code of swsdask {answer['version']} than this process: its hash is {answer['code']}, here "
            f"{own['code']}. Install the same on all workers."
        )
    if "temporary" in answer:
        return f"cannot write temporary files: {answer['temporary']}. Set TMPDIR of the workers to a writable folder."
    if "unseen" in answer:
        return _unseen(*answer["unseen"])
    return None


def _unseen(place: str, reason: str) -> str:
    if "://" in place:
        remedy = "Give its host access to that store, and the client library that reads it."
    elif not os.path.isabs(place):
        remedy = "Give the file by an absolute path or a URL: workers have a working directory of their own."
    elif place.startswith(os.path.join(tempfile.gettempdir(), TEMPORARY)):
        remedy = (
            "Runs read from files are kept there until they are scored: set TMPDIR here to a folder that all workers "
            "share, or ingest the runs into an archive that they see."
        )
    else:
        remedy = "Put it where all workers see it under the same path, or into a store."
    return f"does not see {place}: {reason}. {remedy}"


Returned = TypeVar("Returned")


def within(limit_s: float, call: Callable[[], Returned]) -> Returned:
    """Return what `call` returns.

    A scheduler or worker that is stopped keeps its connections open, so a call to it would wait forever.

    Raises
    ------
    TimeoutError
        If the call has not returned after `limit_s` seconds.
    Exception
        Any exception of the call.

    Examples
    --------
    >>> within(60, lambda: 2 + 2)
    4
    """
    ended: SimpleQueue[tuple[bool, Returned | Exception]] = SimpleQueue()

    def run() -> None:
        try:
            ended.put((True, call()))
        except Exception as error:
            ended.put((False, error))

    Thread(target=run, daemon=True, name="swsdask call").start()
    try:
        returned, value = ended.get(timeout=limit_s)
    except Empty:
        raise TimeoutError from None
    if not returned:
        raise value  # type: ignore[misc]
    return value  # type: ignore[return-value]
