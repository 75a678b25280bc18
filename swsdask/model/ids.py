"""Identifiers of systems, queries and documents."""

from __future__ import annotations

import re

AUDIO_EXTENSIONS = (".sph", ".wav", ".flac", ".mp3", ".ogg")
MAX_ID_LENGTH = 500

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def id_fault(identifier: str) -> str | None:
    """Why a system or query id is not acceptable, or None.

    An id is 1 to 500 characters without control characters, path separators, and is not `.` or `..`: ids end up in
    reports, file names and URLs of others, so none may reach outside a folder.
    """
    if not identifier.strip():
        return "an empty id"
    if len(identifier) > MAX_ID_LENGTH:
        return f"an id of {len(identifier)} characters"
    if _CONTROL.search(identifier):
        return f"a control character in the id {identifier!r}"
    if "/" in identifier or "\\" in identifier or identifier in (".", ".."):
        return f"a path in the id {identifier!r}"
    return None


def document_id(filename: str) -> str:
    """The document id of an audio file name: without its directory and one known audio extension."""
    name = filename.rsplit("/", 1)[-1]
    for extension in AUDIO_EXTENSIONS:
        if name.lower().endswith(extension) and len(name) > len(extension):
            return name[: -len(extension)]
    return name


def document_fault(filename: str) -> str | None:
    """Why an audio file name cannot name a document, or None. Directories are fine, `..` is not."""
    if ".." in filename.split("/"):
        return f"a path that climbs out of its folder, {filename!r}"
    return id_fault(document_id(filename))
