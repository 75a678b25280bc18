"""SLURM on this machine: authentication, controller and one node, all below a folder, on the loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.services.programs import debian, free_port

LIMIT_S = 60.0

_SETTINGS = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory=16000 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


@contextmanager
def slurm(folder: Path, cores: int = 4) -> Iterator[dict[str, str]]:
    """The environment of a process that submits jobs to a node of `cores` cores, more than there may be."""
    debian("slurmctld", "slurm-wlm", "slurmctld", "slurmd", "munge")
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "munge").mkdir(mode=0o755)
    host = socket.gethostname().partition(".")[0]
    told = _SETTINGS.format(folder=folder, host=host, cores=cores, controller=free_port(), node=free_port())
    (folder / "slurm.conf").write_text(told)
    key = folder / "munge" / "key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    environment = {"SLURM_CONF": str(folder / "slurm.conf")}
    servers: list[subprocess.Popen[bytes]] = []

    def start(program: str, *options: str) -> None:
        with (folder / f"{program}.log").open("ab") as log:
            command = [debian(program, program), *options]
            servers.append(subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **environment}))

    def node_is_there() -> bool:
        done = subprocess.run(
            ["sinfo", "--noheader", "--format=%T"], env={**os.environ, **environment}, capture_output=True, timeout=30
        )
        return done.stdout.strip() == b"idle"

    try:
        below = f"{folder}/munge"
        start(
            "munged", "--foreground", "--force", f"--socket={below}/socket", f"--key-file={key}",
            f"--log-file={below}/log", f"--pid-file={below}/pid", f"--seed-file={below}/seed",
        )  # fmt: skip
        start("slurmctld", "-D")
        start("slurmd", "-D", "-N", host)
        deadline = time.monotonic() + LIMIT_S
        while not node_is_there():
            if time.monotonic() > deadline:
                logs = "\n".join(log.read_text()[-500:] for log in sorted(folder.glob("*.log")))
                raise TimeoutError(f"no node of SLURM is idle after {LIMIT_S:.0f} s: {logs}")
            time.sleep(0.5)
        yield environment
    finally:
        if shutil.which("scancel"):
            with suppress(subprocess.TimeoutExpired):
                subprocess.run(["scancel", "--user=root"], env={**os.environ, **environment}, timeout=30)
        for server in reversed(servers):
            server.terminate()
            with suppress(subprocess.TimeoutExpired):
                server.wait(20)
            server.kill()


if __name__ == "__main__":
    with TemporaryDirectory() as made, slurm(Path(made)) as reached:
        sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, **reached}).returncode)
