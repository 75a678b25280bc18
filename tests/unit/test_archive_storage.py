"""The operation that commits stand on: a file is created only if it does not exist, or the store is refused."""

from __future__ import annotations

import errno
import os
import pickle
import threading
import uuid
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from swsdask.archive import change
from swsdask.archive.cleaning import expire, vacuum
from swsdask.archive.ingest import write_runs
from swsdask.archive.local import open_regular
from swsdask.archive.storage import Remote, Storage
from swsdask.archive.store import StoredArchive, is_archive, open_archive
from swsdask.archive.verify import verify
from swsdask.archive.version_list import list_versions
from swsdask.archive.versions import EvaluationManifest, open_version
from swsdask.model.errors import ArchiveError, StoreError
from swsdask.model.settings import EvaluationSettings
from swsdask.places.reading import all_matching, file_system, start_of
from tests.archives import COLUMNS, TABLES, as_rows, rows, source


@pytest.fixture(params=["local", "memory", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    if request.param == "s3":
        yield request.getfixturevalue("s3")
    else:
        yield Storage(str(tmp_path / "x") if request.param == "local" else f"memory://{tmp_path}")


@pytest.fixture
def s3(s3_server: dict[str, Any]) -> Storage:
    bucket = f"evals-{uuid.uuid4().hex}"
    fsspec.filesystem("s3", **s3_server).mkdir(bucket)
    return Storage(f"s3://{bucket}/a", s3_server)


def test_a_bucket_that_is_not_there_is_reported_with_what_to_do(s3_server: dict[str, object]) -> None:
    storage = Storage("s3://not-there/a", s3_server)
    for done in (storage.check_writable, storage.modified):
        with pytest.raises(ArchiveError, match=r"s3://not-there/a: cannot be .*: FileNotFoundError: .* Check the name"):
            done()


def test_a_store_that_lets_nobody_in_is_reported() -> None:
    class Locked(fsspec.AbstractFileSystem):  # type: ignore[misc]
        protocol = "s3"

        def pipe_file(self, *_: object, **__: object) -> None:
            raise RuntimeError("no credentials")

        def exists(self, *_: object, **__: object) -> bool:
            raise RuntimeError("no credentials")

    storage = Storage("memory://locked")
    storage.__dict__["_opened"] = (Locked(), "bucket/a")
    with pytest.raises(
        ArchiveError, match=r"cannot be written: RuntimeError: no credentials\. Check the name, the cred"
    ):
        storage.check_writable()
    with pytest.raises(ArchiveError, match="cannot be removed: RuntimeError: no credentials"):
        storage.remove("x")


def test_files(storage: Storage) -> None:
    storage.check_writable()
    assert storage.files(below=True) == []
    storage.write("a/b/one", b"1")
    storage.write("two", b"22")
    assert storage.files(below=True) == ["a/b/one", "two"]
    assert storage.files(below=False) == ["two"]
    assert storage.read("a/b/one") == b"1"
    assert pickle.loads(pickle.dumps(storage)).read("two") == b"22"
    with storage.open_parts("two", 2) as parts:
        assert parts.read(1, 1) == b"2"
    storage.remove("a")
    storage.remove("never there")
    assert storage.files(below=True) == ["two"]
    with pytest.raises(FileNotFoundError):
        storage.read("a/b/one")


def test_a_file_that_cannot_be_opened_is_named_with_its_folder(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    with pytest.raises(FileNotFoundError) as caught, open_regular(str(tmp_path), "tables/x"):
        pass
    assert caught.value.filename == str(tmp_path / "tables" / "x")


def test_of_many_writers_one_wins(storage: Storage) -> None:
    wins: list[int] = []
    start = threading.Barrier(8)

    def race(number: int) -> None:
        start.wait()
        if storage.write_new("manifest", str(number).encode()):
            wins.append(number)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wins) == 1
    assert storage.read("manifest") == str(wins[0]).encode()
    assert storage.files(below=True) == ["manifest"]


def test_an_archive_lives_there(storage: Storage) -> None:
    write_runs(storage, TABLES, [source(rows(200))], EvaluationSettings())
    archive = StoredArchive(storage, open_version(storage, None, EvaluationManifest))
    (cell,) = archive.cells("a", 1000)
    assert len(as_rows([pickle.loads(pickle.dumps(cell)).read(COLUMNS)])) == 200
    assert not [name for name in storage.files(below=True) if name.startswith("temporary")]


def test_a_relative_path_means_the_same_folder_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    storage = Storage("here/archive")
    storage.write("one", b"1")
    sent = pickle.dumps(storage)
    monkeypatch.chdir("/")
    assert pickle.loads(sent).read("one") == b"1"


def test_names_stay_inside(storage: Storage) -> None:
    for name in ("../x", "a/../../x", "/x"):
        with pytest.raises(ArchiveError, match="leads out"):
            storage.read(name)


class AnsweredError(Exception):
    """An error of a client library that has a cause's HTTP status, and says nothing."""

    def __init__(self, **told: object) -> None:
        super().__init__("None")
        self.__dict__.update(told)


REFUSALS = [
    AnsweredError(response={"ResponseMetadata": {"HTTPStatusCode": 412}}),
    AnsweredError(response={"ResponseMetadata": {"HTTPStatusCode": 409}}),
    AnsweredError(status_code=412, response=object()),
    AnsweredError(status=412),
    AnsweredError(code=412),
    FileExistsError("there"),
]


def store_of(answer: Exception | None, kept: bytes, monkeypatch: pytest.MonkeyPatch) -> Storage:
    """A store that keeps some bytes and answers a conditional put by an OSError caused by `answer`."""

    class Answering(MemoryFileSystem):
        protocol = "s3"
        cachable = False
        store: dict[str, Any] = {}  # noqa: RUF012

        def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **more: Any) -> None:
            super().pipe_file(path, kept, **more)
            raise OSError(22, None) from answer

    opened = Answering()
    monkeypatch.setattr("swsdask.archive.storage.file_system", lambda url, **options: (opened, "/root"))
    return Storage("s3://x")


@pytest.mark.parametrize("answer", REFUSALS, ids=str)
def test_a_refusal_is_known_by_its_status_or_type_whatever_it_says(
    answer: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not store_of(answer, b"another's", monkeypatch).write_new("name", b"ours")


def test_a_put_whose_answer_was_lost_and_that_was_tried_again_has_won(monkeypatch: pytest.MonkeyPatch) -> None:
    assert store_of(REFUSALS[0], b"ours", monkeypatch).write_new("name", b"ours")


@pytest.mark.parametrize(
    "answer", [AnsweredError(status=403), AnsweredError(code="412"), AnsweredError(response={}), None], ids=str
)
def test_any_other_answer_is_an_error(answer: Exception | None, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArchiveError, match="cannot be written: OSError"):
        store_of(answer, b"another's", monkeypatch).write_new("name", b"ours")


class Overwriting(MemoryFileSystem):
    """A store that says it is S3 but does not honour the condition of a put."""

    protocol = "s3"
    cachable = False
    store: dict[str, Any] = {}  # noqa: RUF012

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **more: Any) -> None:
        super().pipe_file(path, value, **more)


class Other(MemoryFileSystem):
    protocol = "other"
    cachable = False
    store: dict[str, Any] = {}  # noqa: RUF012


@pytest.mark.parametrize(("filesystem", "said"), [(Overwriting, "found one that overwrites"), (Other, "found other")])
def test_unsafe_stores_are_refused_before_anything_is_written(
    filesystem: type[MemoryFileSystem], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = filesystem()
    monkeypatch.setattr("swsdask.archive.storage.file_system", lambda url, **options: (opened, "/root"))
    with pytest.raises(ArchiveError, match=said):
        write_runs(Storage("other://x"), TABLES, [], EvaluationSettings())
    assert Storage("other://x").files(below=True) == []


def test_a_file_system_without_links_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*names: str) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(ArchiveError, match="cannot create a file only if it does not exist"):
        write_runs(Storage(str(tmp_path)), TABLES, [], EvaluationSettings())
    assert not list(tmp_path.glob("manifest*"))


def test_what_a_store_raises_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ArchiveError, match=r"cannot be written: (NotADirectory|FileExists)Error"):
        write_runs(Storage(str(tmp_path / "file")), TABLES, [], EvaluationSettings())


@pytest.mark.parametrize("url", ["nosuchprotocol://x/y", "memory"])
def test_urls_that_lead_nowhere(url: str) -> None:
    assert not is_archive(url)
    with pytest.raises(ArchiveError):
        open_archive(url)


def with_one_failure(monkeypatch: pytest.MonkeyPatch, method: str, after: int) -> list[str]:
    """Let a method of memory fail once, after so many calls, as stores do; return where it did."""
    failed: list[str] = []
    original = getattr(MemoryFileSystem, method)
    left = iter(range(after, -1, -1))

    def refused(self: MemoryFileSystem, path: str, *given: Any, **named: Any) -> Any:
        if next(left, -1) == 0:
            failed.append(path)
            raise PermissionError("The provided token has expired.")
        return original(self, path, *given, **named)

    monkeypatch.setattr(MemoryFileSystem, method, refused)
    return failed


def all_files(url: str) -> dict[str, bytes]:
    return {name: Storage(url).read(name) for name in Storage(url).files(below=True)}


LEFT = "tables/left-0123456789abcdef.parquet"


def of_two_versions(url: str) -> dict[str, bytes]:
    """Write an archive of two versions, and a file that no version names; return the content of all files."""
    write_runs(Storage(url), TABLES, [source(rows(9))], EvaluationSettings())
    write_runs(Storage(url), None, [source(rows(5), "b")], EvaluationSettings())
    Storage(url).write(LEFT, b"")
    return all_files(url)


def error_of(command: Callable[[str], object], url: str, kind: type[Exception]) -> str:
    """The message of the error of a kind that a command raises; empty if it raises none."""
    try:
        command(url)
    except kind as error:
        return str(error)
    return ""


COMMANDS: list[Any] = [
    partial(vacuum, older_than_s=0.0),
    partial(expire, keep=1),
    open_archive,
    is_archive,
    lambda url: list(list_versions(url)),
    verify,
    lambda url: write_runs(Storage(url), TABLES, [source(rows(5), "c")], EvaluationSettings()),
]


def failures(
    command: Callable[[str], object], method: str, kind: type[Exception], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, dict[str, bytes], str, str]]:
    """Run a command on new archives while each call of a method fails in turn, until it ends without that.

    Yields the archive, its files before, the place where the method failed and the message of the command's error, if
    it raised one. No archive may be damaged.
    """
    for after in range(100):
        url = f"memory://{folder}/{after}"
        before = of_two_versions(url)
        with monkeypatch.context() as patched:
            failed = with_one_failure(patched, method, after)
            said = error_of(command, url, kind)
        if not failed:
            assert not said
            return
        assert verify(url).damaged == {}
        yield url, before, failed[0], said


@pytest.mark.parametrize("command", COMMANDS)
def test_a_listing_that_fails_is_never_taken_for_an_empty_folder(
    command: Callable[[str], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that seems empty has no versions, so that no file of it is needed and the next version is the first."""
    tried = 0
    for url, before, place, said in failures(command, "ls", ArchiveError, tmp_path, monkeypatch):
        tried += 1
        if said:
            assert "cannot be listed: PermissionError: The provided token has expired" in said
        elif not Path(place).suffix:  # fsspec may list a file to remove it
            # After a commit, temporary files that cannot be removed are no failure.
            assert "c" in [run.system for run in open_archive(url).runs]
        if command is not COMMANDS[1]:  # `expire` removes versions before it lists what only they need.
            del before[LEFT]
            assert before.items() <= all_files(url).items()
    assert tried


def test_a_listing_that_s3_refuses_removes_nothing(
    s3: Storage, s3_server: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    from s3fs import S3FileSystem

    monkeypatch.setitem(fsspec.config.conf, "s3", s3_server)
    of_two_versions(s3.url)

    def would_remove(url: str) -> None:
        assert vacuum(url, older_than_s=0.0, dry_run=True) == [LEFT]

    original = S3FileSystem._lsdir
    for after in range(20):
        left = iter(range(after, -1, -1))

        async def refused(*given: Any, left: Iterator[int] = left, **named: Any) -> Any:
            if next(left, -1) == 0:
                raise PermissionError("Access Denied")
            return await original(*given, **named)

        with monkeypatch.context() as patched:
            patched.setattr(S3FileSystem, "_lsdir", refused)
            said = error_of(would_remove, s3.url, ArchiveError)
        if not said:
            break
        assert "cannot be listed: PermissionError: Access Denied. Check the name, the credentials" in said
    assert after > 2


PATTERNS = (
    "*",
    "*.tsv",
    "in/*",
    "in/*.tsv",
    "in/*/*.tsv",
    "*/of/?.tsv",
    "i[mn]/o*",
    "**",
    "in/**",
    "**/*.tsv",
    "none/*",
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_glob_matches_what_fsspec_matches(pattern: str, tmp_path: Path, s3_server: dict[str, object]) -> None:
    """In memory: its `glob` misses no folder. Other stores match the same."""
    memory, s3 = fsspec.filesystem("memory"), fsspec.filesystem("s3", **s3_server)
    s3.makedirs("globs", exist_ok=True)
    found = []
    for filesystem, root in ((memory, str(tmp_path)), (s3, "globs")):
        for name in ("a.tsv", "a.xml", "in/b.tsv", "in/of/c.tsv", "in/of/dd.tsv", "in/of/it/e.tsv", "im/of/f.tsv"):
            filesystem.pipe(f"{root}/{name}", b"x")
        infos = all_matching(filesystem, f"{root}/{pattern}")
        found.append({path.removeprefix(root): info["type"] for path, info in infos.items()})
    expected = memory.glob(f"{tmp_path}/{pattern}", detail=True)
    expected.pop(start_of(f"{tmp_path}/{pattern}"), None)  # fsspec's ** matches the folder itself too
    types = {path.removeprefix(str(tmp_path)): info["type"] for path, info in expected.items()}
    assert found == [types, types]
    assert bool(types) == (not pattern.startswith("none"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_read_that_fails_is_an_error_of_the_store_not_damage(
    command: Callable[[str], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = 0
    for _, _, place, said in failures(command, "cat_file", StoreError, tmp_path, monkeypatch):
        tried += 1
        assert f"memory://{place}: cannot be read: PermissionError: The provided token has expired" in said
    assert tried or command is is_archive


def test_slashes_of_an_url_are_single(
    s3: Storage, s3_server: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a name that begins with one, as `s3://$BUCKET//archive` has, the store's list knows nothing."""
    monkeypatch.setitem(fsspec.config.conf, "s3", s3_server)
    storage = Storage(s3.url.replace("/a", "//double//archive"))
    write_runs(storage, TABLES, [source(rows(9))], EvaluationSettings())
    assert is_archive(s3.url.replace("/a", "/double/archive"))
    assert write_runs(storage, TABLES, [source(rows(9))], EvaluationSettings()).version == 1
    assert file_system("http://host/a//b?signature=c//d")[1] == "http://host/a//b?signature=c//d"


def test_a_store_that_never_lists_what_it_has_ends_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change, "_LIST_S", 0.0)
    monkeypatch.setattr(Storage, "files", lambda *_, **__: [])
    url = "memory://blind/archive"
    write_runs(Storage(url), TABLES, [source(rows(9))], EvaluationSettings())
    with pytest.raises(ArchiveError, match=r"the store has manifest-00000001\.json and does not list it"):
        write_runs(Storage(url), TABLES, [source(rows(8))], EvaluationSettings())


def test_a_name_in_an_archive_file_comes_before_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("x/m.json", "{}")
    assert Storage(f"zip://::{tmp_path}/a.zip").place("m.json") == f"zip://m.json::{tmp_path}/a.zip"
    assert Storage(f"zip://x/::{tmp_path}/a.zip").place("m.json") == f"zip://x/m.json::{tmp_path}/a.zip"
    assert Storage("memory://x/").place("m.json") == "memory://x/m.json"


def test_a_server_that_sends_whole_files_whatever_is_requested() -> None:
    class Whole:
        def cat_ranges(self, paths: list[str], *_: object, **__: object) -> list[bytes]:
            return [bytes(range(100))] * len(paths)

        def cat_file(self, *_: object, **__: object) -> bytes:
            return bytes(range(100))

    file = Remote(Whole(), "x", 100, "x")  # type: ignore[arg-type]
    assert file.read(90, 5).to_pybytes() == bytes(range(90, 95))
    file.fetch([(10, 4), (80, 2)])
    assert file.read(80, 2).to_pybytes() == bytes((80, 81))
    assert file.read(0, 100).to_pybytes() == bytes(range(100))
