"""Options of stores.

All options of stores, such as an endpoint or credentials, are in fsspec's own configuration. fsspec reads it from the
environment (`FSSPEC_S3_ENDPOINT_URL=...`, or `FSSPEC_S3` with all as JSON) and from files in `~/.config/fsspec`; in
Python it is `fsspec.config.conf["s3"]`. Client libraries also read their own environment variables, such as
`AWS_ACCESS_KEY_ID` and `AZURE_STORAGE_CONNECTION_STRING`. Worker processes get those of this process
(`execution.dask`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from swsdask.model.errors import SettingsError
from swsdask.model.safe_text import remember

OBJECT_STORES = ("s3", "gs", "abfs")
"""The protocols that an option without a protocol applies to: Amazon's, Google's and Azure's, with all their names."""


def set_option(key: str, value: object) -> None:
    """Set an option of all object stores or, if the key begins with a protocol and a dot, of that protocol.

    Further dots lead into dictionaries, as in s3.client_kwargs.region_name. Raises `SettingsError` if there is a value
    in place of such a dictionary.
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
    """Remember the secrets of all options, so that they are masked in all output."""
    from fsspec.config import conf

    remember(conf)


def options() -> dict[str, dict[str, object]]:
    """Return the options of all stores, to set them in another process."""
    from fsspec.config import conf

    return {name: dict(each) for name, each in conf.items() if isinstance(each, Mapping)}


def set_options(given: Mapping[str, Mapping[str, object]]) -> None:
    """Set the `options` of another process, instead of those of an earlier call.

    Own options of this process, from before its first call, stay unless the given ones replace them.
    """
    from fsspec.config import conf

    conf.update(_with_own(given))
    remember(given)


def unset_options(given: Mapping[str, Mapping[str, object]]) -> None:
    """Undo `set_options`, unless something else was set since."""
    if options() == _with_own(given):
        set_options({})


def _with_own(given: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, object]]:
    own = _own_options()
    return {name: {**own.get(name, {}), **given.get(name, {})} for name in dict.fromkeys((*options(), *own, *given))}


@cache
def _own_options() -> dict[str, dict[str, object]]:
    return options()
