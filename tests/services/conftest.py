"""Servers are started once, when a test first needs them, and stopped at the end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import fsspec.config
import pytest

from tests.services.stores import OVERWRITING, STORES, Store

os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"  # It asks Google over gRPC, whatever the endpoint.


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/services/" in item.nodeid:
            item.add_marker(pytest.mark.services)


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Store]]:
    faults: dict[str, str] = {}
    with ExitStack() as running:

        class Started(dict[str, Store]):
            def __missing__(self, name: str) -> Store:
                if name in faults:
                    pytest.skip(faults[name])
                try:
                    store = running.enter_context({**STORES, **OVERWRITING}[name](tmp_path_factory.mktemp(name)))
                except (OSError, subprocess.SubprocessError) as error:  # a time limit is an OSError too
                    faults[name] = f"{name} does not start on this machine: {error}"
                    pytest.skip(faults[name])
                store.make_bucket()
                return self.setdefault(name, store)

        yield Started()


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, started: dict[str, Store], monkeypatch: pytest.MonkeyPatch) -> Store:
    """Each of the stores that an archive can be written to, which this process and its children reach."""
    return reached(started[request.param], monkeypatch)


def reached(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(fsspec.config.conf, store.protocol, store.options)
    return store
