import logging
import socket
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace

import fsspec
import pytest

from swsdask.execution import clusters
from swsdask.execution import open as opening
from swsdask.execution.clusters import LocalProcesses, RunningAt, RunningByFile
from swsdask.execution.executor import SerialExecutor, ThreadExecutor
from swsdask.execution.open import SMALL, engine_of, open_executor, read_cluster
from swsdask.model.errors import ClusterError, SettingsError
from swsdask.model.layers import conf_directory
from swsdask.model.settings import EngineSettings, Settings


def kind_of(name: str, workers: int | None = None, rows: int | None = None) -> type:
    with open_executor(EngineSettings(executor=name, workers=workers), rows) as executor:
        return type(executor)


def test_small_work_stays_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "cores", lambda: 8)
    assert kind_of("auto", rows=SMALL - 1) is SerialExecutor
    assert kind_of("auto") is SerialExecutor


def test_large_work_on_one_core_or_with_one_worker_stays_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kind_of("auto", workers=1, rows=10**9) is SerialExecutor
    monkeypatch.setattr(opening, "cores", lambda: 1)
    assert kind_of("auto", rows=10**9) is SerialExecutor


def test_distant_data_is_read_by_more_threads_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "cores", lambda: 8)
    for distant, threads in ((False, 8), (True, 16)):
        with open_executor(EngineSettings(), SMALL, distant=distant) as executor:
            assert executor.workers == threads
    with open_executor(EngineSettings(executor="threads", workers=3), SMALL, distant=True) as executor:
        assert executor.workers == 3


def test_names() -> None:
    assert kind_of("serial", rows=10**9) is SerialExecutor
    assert kind_of("threads") is ThreadExecutor
    with open_executor(EngineSettings(executor="threads", workers=3)) as executor:
        assert executor.workers == 3


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(
        SettingsError, match=r"'thread' is neither auto, serial.*kubernetes, local, scheduler-file, slurm"
    ):
        kind_of("thread")


def test_no_scheduler_at_an_address(tmp_path: Path) -> None:
    file = tmp_path / "gone.toml"
    file.write_text('kind = "address"\naddress = "tcp://127.0.0.1:9"\ntimeout_s = 0.3\n')
    with pytest.raises(ClusterError, match=r"no scheduler answers at tcp://127.0.0.1:9"):
        kind_of(str(file))


def test_a_server_of_another_kind_at_an_address(tmp_path: Path) -> None:
    """It answers like a web server. Dask takes the first bytes for a number of frames."""
    answers = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n" * 20
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        held: list[socket.socket] = []

        def answer() -> None:
            with suppress(OSError):
                while True:
                    held.append(server.accept()[0])
                    held[-1].sendall(answers)

        threading.Thread(target=answer, daemon=True).start()
        file = tmp_path / "other.toml"
        file.write_text(f'kind = "address"\naddress = "{address}"\ntimeout_s = 2\n')
        with pytest.raises(ClusterError, match=rf"no scheduler answers at {address}: something else does"):
            kind_of(str(file))
        server.shutdown(socket.SHUT_RDWR)
    for each in held:
        each.close()


def test_a_password_has_no_place_in_an_address(tmp_path: Path) -> None:
    file = tmp_path / "password.toml"
    file.write_text('kind = "address"\naddress = "tcp://me:hushhush@127.0.0.1:9"\ntimeout_s = 0.3\n')
    with pytest.raises(SettingsError, match=r"expected the address of a scheduler.*me:\*\*\*@127"):
        kind_of(str(file))


def test_no_scheduler_file(tmp_path: Path) -> None:
    file = tmp_path / "file.toml"
    file.write_text(f'kind = "scheduler_file"\npath = "{tmp_path}/none.json"\ntimeout_s = 0.3\n')
    with pytest.raises(ClusterError, match=r"no scheduler wrote .*none\.json within 0\.3 seconds"):
        kind_of(str(file))


def test_the_files_of_conf_are_valid_and_found_by_name() -> None:
    names = [path.stem for path in (conf_directory() / "cluster").glob("*.toml")]
    assert {"local", "slurm", "kubernetes", "scheduler-file"} <= set(names)
    for name in names:
        read_cluster(name)
    assert isinstance(read_cluster("scheduler-file.toml", workers=5), RunningByFile)
    assert read_cluster("slurm.toml", workers=5).workers == 5


def test_kubernetes_says_how_to_reach_its_service(tmp_path: Path) -> None:
    file = tmp_path / "there.toml"
    file.write_text('kind = "kubernetes"\nservice = "scoring"\nnamespace = "nowhere.invalid"\n')
    with pytest.raises(
        ClusterError, match=r"kubectl port-forward --namespace nowhere.invalid service/scoring 8786.*--c"
    ):
        kind_of(str(file))


def test_slurm_needs_sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    file = tmp_path / "jobs.toml"
    file.write_text('kind = "slurm"\nworkers = 2\n')
    with pytest.raises(ClusterError, match=r"sbatch was not found: run the command on a host"):
        kind_of(str(file))


def test_addresses_and_files() -> None:
    assert read_cluster("tcp://h:1", 2) == RunningAt(address="tcp://h:1", workers=2)
    assert read_cluster("x/s.json") == RunningByFile(path=Path("x/s.json"))


def test_more_workers_than_memory_has_room_for_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "MEMORY_LIMIT", 1 << 30)
    told = "a pool of 3 worker processes needs 1,536 MiB of memory; this machine has 1,024 MiB. Use fewer."
    with pytest.raises(ClusterError, match=told), LocalProcesses(workers=3).connect(lambda _: None):
        raise AssertionError("they were started")


@pytest.mark.parametrize(
    ("name", "found"), [("current_process", SimpleNamespace(daemon=True)), ("get_start_method", "loky")]
)
def test_a_worker_of_a_pool_starts_no_workers(monkeypatch: pytest.MonkeyPatch, name: str, found: object) -> None:
    monkeypatch.setattr(clusters, name, lambda **_: found)
    told = "this process is a worker of a pool, .* Use the executor serial or threads"
    with pytest.raises(ClusterError, match=told), LocalProcesses(workers=1).connect(lambda _: None):
        raise AssertionError("they were started")


def test_dask_logs_again_when_the_last_of_several_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    logger, handler = logging.getLogger("distributed"), logging.StreamHandler()
    monkeypatch.setattr(logger, "handlers", [handler])
    level = logger.level
    first, second = ExitStack(), ExitStack()
    for each in (first, second):
        each.enter_context(clusters.QUIET_LOG)
    first.close()
    assert handler.level > logging.CRITICAL
    assert not logger.isEnabledFor(logging.CRITICAL)
    second.close()
    assert (logger.level, handler.level) == (level, logging.NOTSET)


def test_a_cluster_file_may_be_anywhere(tmp_path: Path) -> None:
    fsspec.filesystem("memory").pipe("/clusters/c.toml", b'kind = "address"\naddress = "tcp://h:1"\n')
    (tmp_path / "c.toml").write_bytes(b'kind = "address"\naddress = "tcp://h:1"\n')
    for where in ("memory://clusters/c.toml", (tmp_path / "c.toml").as_uri()):
        assert read_cluster(where) == RunningAt(address="tcp://h:1")
    with pytest.raises(SettingsError, match="expected an address such as"):
        read_cluster("tcp://[::1:8786")
    assert engine_of(Settings(), tmp_path / "c.toml") == EngineSettings(executor=str(tmp_path / "c.toml"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'kind = "local"\nworker = 2\n',
            r"local\.worker: unknown key\. Keys of this kind: .*threads, memory\.",
        ),
        ('kind = "slurm"\nadapt = true\n', r"slurm\.adapt: unknown key\. Keys of this kind: .*minimum"),
        ('kind = "local"\nworkers = 0\n', r"local\.workers: .*greater than or equal to 1"),
        ('kind = "cloud"\n', r"file: .*'cloud'.*'local'"),
        ("workers = 2\n", r"expected the kind of cluster: local, .*; found none"),
        ("kind = ", r"c\.toml: not a TOML file"),
        ('kind = "local"\nmemory = "lots"\n', r'local\.memory: .*expected a size such as "4 GiB"; found .lots'),
        ('kind = "address"\naddress = "tcp://[::1:8786"\n', r"expected an address such as tcp://host:8786"),
    ],
)
def test_a_faulty_cluster_file_names_the_fault(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=message) as caught:
        read_cluster(str(file))
    assert str(file) in str(caught.value)


def test_local_processes_default_to_one_thread_each() -> None:
    assert LocalProcesses().threads == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('kind = "local"\ntimeout_s = inf', "timeout_s"),
        ('kind = "local"\ntimeout_s = 1e300', "timeout_s"),
        ('kind = "local"\nmemory = "-4 GiB"', "expected at least 512 MiB, which a worker needs; found '-4 GiB'"),
        ('kind = "local"\nmemory = "4 MiB"', "expected at least 512 MiB"),
        ('kind = "slurm"\nmemory = "four"', 'expected a size such as "4 GiB"'),
        ('kind = "local"\nmemory = "9e999 GiB"', 'expected a size such as "4 GiB"'),
        *(
            (
                f'kind = "address"\naddress = "{address}"',
                r"expected the address of a scheduler, such as tcp://host:8786",
            )
            for address in ("", "127.0.0.1", "tcp://", "foo://bar", "tcp://host:port")
        ),
    ],
)
def test_settings_of_clusters_that_cannot_work(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(content)
    with pytest.raises(SettingsError, match=said):
        read_cluster(str(tmp_path / "c.toml"))


def test_a_scheduler_file_without_an_address(tmp_path: Path) -> None:
    (tmp_path / "scheduler.json").write_text('{"address": 3}')
    with pytest.raises(SettingsError, match="expected the address of a scheduler, such as tcp://host:8786; found '3'"):
        kind_of(str(tmp_path / "scheduler.json"))
