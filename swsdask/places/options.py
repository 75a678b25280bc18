"""Options of stores, such as an endpoint or credentials: fsspec's own configuration, so that one place holds them all.

fsspec reads it from the environment (`FSSPEC_S3_ENDPOINT_URL=...`, or `FSSPEC_S3` with all as JSON) and from files in
`~/.config/fsspec`; in Python it is `fsspec.config.conf["s3"]`. Client libraries read their own environment besides,
such as `AWS_ACCESS_KEY_ID` and `AZURE_STORAGE_CONNECTION_STRING`. Worker processes get this process's
(`execution.dask`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from swsdask.model.errors import SettingsError
from swsdask.model.shown_text import remember

OBJECT_STORES = ("s3", "gs", "abfs")
"""The protocols of whose stores an option is that names none: Amazon's, Google's, Azure's, under any name."""


def set_option(key: str, value: Any) -> None:
    """Set an option of all object stores, or, where the key begins with a protocol and a dot, of that one's.

    Further dots lead into dictionaries, as in `s3.client_kwargs.region_name`. Raises `SettingsError` where a value is
    in the place of such a dictionary.
    """
    from fsspec import available_protocols
    from fsspec.config import conf

    first, dot, rest = key.partition(".")
    names, key = ((first,), rest) if dot and first in available_protocols() else (OBJECT_STORES, key)
    *parents, last = key.split(".")
    for name in names:
        table = conf.setdefault(name, {})
        for parent in parents:
            table = table.setdefault(parent, {})
            if not isinstance(table, dict):
                raise SettingsError(f"storage option {key}: {parent} holds a value, not further keys.")
        table[last] = value
    remember_all()


def remember_all() -> None:
    """Remember the secrets of all options, so that they are struck out of whatever is shown."""
    from fsspec.config import conf

    remember(conf)


def options() -> dict[str, dict[str, Any]]:
    """The options of all stores, to set them in another process."""
    from fsspec.config import conf

    return {name: dict(each) for name, each in conf.items() if isinstance(each, Mapping)}


def set_options(given: Mapping[str, Mapping[str, Any]]) -> None:
    """Set what `options` gave in another process; options that are here stay where they are not in it."""
    if given:
        from fsspec.config import conf

        for name, each in given.items():
            conf.setdefault(name, {}).update(each)
        remember(given)
