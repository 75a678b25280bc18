from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from swsdask.formats.files import file_size, open_bytes
from swsdask.model.errors import InputError
from swsdask.places import reading
from swsdask.places.reading import Pipe, read_small, readable

TEXT = b"one line\nand another\n" * 10_000


@contextmanager
def pipe(path: Path, content: bytes = TEXT) -> Iterator[str]:
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(content,))
    writer.start()
    yield str(path)
    writer.join()


def read(url: str) -> bytes:
    with open_bytes(url) as source:
        return source.read()


def test_a_pipe_is_read_once_and_opened_as_often_as_needed(tmp_path: Path) -> None:
    with pipe(tmp_path / "x") as path:
        given = readable(path)
    assert given == path
    assert isinstance(given, Pipe)
    assert [read(given), read(readable(given))] == [TEXT, TEXT]
    assert file_size(given) == len(TEXT)
    assert read(pickle.loads(pickle.dumps(given))) == TEXT


def test_the_copy_is_gone_when_nobody_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pipe(tmp_path / "x") as path:
        given = readable(path)
    assert os.listdir(tmp_path) == ["x"]
    sent = pickle.dumps(given)
    del given
    with pytest.raises(InputError, match="x: expected"):
        read(pickle.loads(sent))


def test_another_file_in_place_of_the_copy_is_never_read(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(TEXT)
    with pytest.raises(InputError, match="x: expected a pipe whose copy is on this machine"):
        read(Pipe("x", str(other), (0, 0, len(TEXT))))


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null"])
def test_devices(name: str) -> None:
    with pytest.raises(InputError, match=f"{name}: expected a regular file; found a device or a pipe"):
        read(readable(name))


def test_a_pipe_that_a_glob_found_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")
    with pytest.raises(InputError, match="a device or a pipe"):
        read(str(tmp_path / "x"))


@pytest.mark.parametrize("take", [readable, read_small])
def test_a_pipe_that_nobody_writes_into_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, take: Callable[[str], object]
) -> None:
    monkeypatch.setattr(reading, "WRITER_S", 0.3)
    os.mkfifo(tmp_path / "x")
    with pytest.raises(
        InputError, match=r"x: expected a pipe that a program opens .* that none opened within 0\.3 sec"
    ):
        take(str(tmp_path / "x"))


@pytest.mark.parametrize("pauses", [(0.3, 0.0, 0.0), (0.1, 0.5, 0.0), (None, 0.5, 0.0), (None, 0.0, 0.5)])
def test_a_slow_writer_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: tuple[float | None, float, float]
) -> None:
    """Before it opens the pipe, before its first bytes, and between these and the last.

    The last two pauses may be longer than the time for a writer, which is short only if there is one from the start.
    """
    path = tmp_path / "x"
    os.mkfifo(path)
    before, *later = pauses
    another = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    opened = os.open(path, os.O_WRONLY) if before is None else None  # which waits for a reader
    monkeypatch.setattr(reading, "WRITER_S", 60.0 if opened is None else 0.3)

    def write() -> None:
        time.sleep(before or 0.0)
        with open(path if opened is None else opened, "wb", buffering=0) as file:
            for pause in later:
                time.sleep(pause)
                file.write(TEXT)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        given = readable(str(path))
    finally:
        os.close(another)
    writer.join()
    assert read(given) == 2 * TEXT


def test_a_writer_that_writes_nothing_is_the_end(tmp_path: Path) -> None:
    with pipe(tmp_path / "x", b"") as path:
        given = readable(path)
    with pytest.raises(InputError, match="x: expected a file with content; found an empty file"):
        read(given)
    with pipe(tmp_path / "y", b"threads = 1") as path:
        assert read_small(path) == b"threads = 1"
    with pipe(tmp_path / "z", b"#" * (reading.SMALL + 1)) as path, pytest.raises(InputError, match="a longer one"):
        read_small(path)


def test_other_places_stay_as_they_are(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "absent", "memory://x", "a\0b"):
        assert readable(place) == str(place)
