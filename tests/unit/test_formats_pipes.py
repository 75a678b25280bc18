from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from swsdask.formats.files import file_size, open_bytes
from swsdask.model.errors import InputError
from swsdask.places.reading import Pipe, readable

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


def test_other_places_stay_as_they_are(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "absent", "memory://x", "a\0b"):
        assert readable(place) == str(place)
