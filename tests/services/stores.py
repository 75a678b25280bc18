"""Object stores that are started for a test: real ones, emulators, and ones that overwrite what they must not."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import fsspec

from tests.services import ceph as ceph_cluster
from tests.services.programs import free_port, npm, python, serving

BUCKET = "evals"

_AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The key of Azurite's account, which its manual publishes."""


@dataclass(frozen=True)
class Store:
    """A store that runs, and what fsspec needs to reach it."""

    protocol: str
    address: str
    options: dict[str, Any]

    @property
    def root(self) -> str:
        """The URL of its bucket."""
        return f"{self.protocol}://{BUCKET}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process that reaches it."""
        return {f"FSSPEC_{self.protocol.upper()}": json.dumps(self.options)}

    @property
    def port(self) -> int:
        """The port it listens on."""
        port = urlsplit(self.address).port
        assert port
        return port

    def at(self, port: int) -> Store:
        """The same store as a proxy at another port shows it."""
        address = f"http://127.0.0.1:{port}"
        options = {
            name: value.replace(self.address, address) if isinstance(value, str) else value
            for name, value in self.options.items()
        }
        return Store(self.protocol, address, options)

    def make_bucket(self) -> None:
        """Make the bucket unless it is there."""
        filesystem = fsspec.filesystem(self.protocol, **self.options)
        if not filesystem.exists(BUCKET):
            filesystem.mkdir(BUCKET)


def _s3(address: str, key: str, secret: str) -> Store:
    return Store("s3", address, {"endpoint_url": address, "key": key, "secret": secret})


@contextmanager
def ceph(folder: Path) -> Iterator[Store]:
    with ceph_cluster.ceph(folder) as address:
        yield _s3(address, ceph_cluster.KEY, ceph_cluster.SECRET)


@contextmanager
def azurite(folder: Path) -> Iterator[Store]:
    port = free_port()
    command = [npm("azurite-blob", "azurite"), "--silent", "--disableTelemetry", "--skipApiVersionCheck"]
    with serving([*command, "--location", str(folder), "--blobPort", str(port)], port, folder):
        address = f"http://127.0.0.1:{port}"
        account = f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={_AZURE_KEY};"
        yield Store("az", address, {"connection_string": f"{account}BlobEndpoint={address}/devstoreaccount1;"})


@contextmanager
def google(folder: Path) -> Iterator[Store]:
    port = free_port()
    with serving([sys.executable, "-m", "tests.services.google", str(port)], port, folder, {"PYTHONPATH": _HERE}):
        address = f"http://127.0.0.1:{port}"
        yield Store("gs", address, {"endpoint_url": address, "token": "anon", "project": "test"})


_HERE = str(Path(__file__).parents[2])


@contextmanager
def s3rver(folder: Path) -> Iterator[Store]:
    """A server of S3 that overwrites whatever the condition of a put."""
    port = free_port()
    command = [npm("s3rver", "s3rver"), "-d", str(folder), "-a", "127.0.0.1", "-p", str(port)]
    with serving(command, port, folder):
        yield _s3(f"http://127.0.0.1:{port}", "S3RVER", "S3RVER")


@contextmanager
def rclone(folder: Path) -> Iterator[Store]:
    """Another one."""
    port = free_port()
    served = folder / "served"
    served.mkdir()
    command = [python("rclone"), "serve", "s3", "--addr", f"127.0.0.1:{port}", "--auth-key", "test,testtest"]
    with serving([*command, str(served)], port, folder):
        yield _s3(f"http://127.0.0.1:{port}", "test", "testtest")


STORES: dict[str, Callable[[Path], AbstractContextManager[Store]]] = {
    "ceph": ceph,
    "azurite": azurite,
    "google": google,
}
OVERWRITING: dict[str, Callable[[Path], AbstractContextManager[Store]]] = {"s3rver": s3rver, "rclone": rclone}
