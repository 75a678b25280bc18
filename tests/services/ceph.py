"""Ceph's object gateway as a real S3 server: one monitor, one store in memory, one gateway, on the loopback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.services.programs import debian, free_port, wait_for

KEY, SECRET = "test", "testtest"
LIMIT_S = 120.0

_SETTINGS = """
[global]
fsid = {fsid}
mon host = v2:127.0.0.1:{monitor}/0
public network = 127.0.0.0/8
cluster network = 127.0.0.0/8
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pg autoscale mode = off
mon allow pool size one = true
osd crush chooseleaf type = 0
run dir = {folder}
admin socket = {folder}/$cluster-$name-$pid.asok
pid file = {folder}/$name.pid
log file = {folder}/$name.log
mon cluster log file = {folder}/cluster.log
keyring = {folder}/admin.keyring
[mon.a]
mon data = {folder}/mon
host = {host}
[osd.0]
osd data = {folder}/osd
osd objectstore = memstore
memstore device bytes = 4294967296
keyring = {folder}/osd/keyring
host = {host}
[client.admin]
rgw frontends = beast endpoint=127.0.0.1:{port}
rgw data = {folder}/gateway
"""


@contextmanager
def ceph(folder: Path) -> Iterator[str]:
    """The address of a gateway whose only user has `KEY` and `SECRET`."""
    debian("radosgw", "ceph-mon", "ceph-osd", "radosgw")
    monitor, port = free_port(), free_port()
    fsid, store = str(uuid.uuid4()), str(uuid.uuid4())
    for name in ("mon", "osd", "gateway"):
        (folder / name).mkdir()
    settings = _SETTINGS.format(folder=folder, fsid=fsid, monitor=monitor, port=port, host=socket.gethostname())
    (folder / "ceph.conf").write_text(settings)

    def run(program: str, *arguments: str) -> str:
        environment = {**os.environ, "CEPH_CONF": str(folder / "ceph.conf")}
        with (folder / "log").open("ab") as told:
            done = subprocess.run(
                [program, *arguments], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=told, timeout=120
            )
            told.write(done.stdout)
        done.check_returncode()
        return done.stdout.decode()

    def wait_for_store() -> None:
        began = time.monotonic()
        while "1 up" not in run("ceph", "osd", "stat"):
            assert time.monotonic() - began < LIMIT_S, (folder / "log").read_text()[-2000:]
            time.sleep(0.5)

    every = ["--cap", "mon", "allow *", "--cap", "osd", "allow *"]
    try:
        run("ceph-authtool", "--create-keyring", "admin.keyring", "--gen-key", "-n", "client.admin", *every)
        run("ceph-authtool", "admin.keyring", "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
        address = f"[v2:127.0.0.1:{monitor}]"
        run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", address, "monmap")
        run("ceph-mon", "--mkfs", "-i", "a", "--monmap", "monmap", "--keyring", "admin.keyring")
        run("ceph-mon", "-i", "a")
        run("ceph", "osd", "new", store, "0")
        may = ["mon", "allow profile osd", "osd", "allow *", "mgr", "allow profile osd"]
        run("ceph", "auth", "get-or-create", "osd.0", *may, "-o", "osd/keyring")
        run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", store)
        run("ceph-osd", "-i", "0")
        wait_for_store()
        run("ceph", "osd", "set-require-min-compat-client", "luminous")
        run("radosgw", "-n", "client.admin")
        wait_for(port, folder / "log")
        user = ["--uid=test", "--display-name=test", f"--access-key={KEY}", f"--secret-key={SECRET}"]
        run("radosgw-admin", "user", "create", *user)
        yield f"http://127.0.0.1:{port}"
    finally:
        for pid in sorted(folder.glob("*.pid")):
            with suppress(ProcessLookupError, ValueError):
                os.kill(int(pid.read_text()), signal.SIGTERM)
        time.sleep(1)
