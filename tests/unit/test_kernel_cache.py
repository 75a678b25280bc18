"""Compiled kernels find a place where nothing can be written, and the user is told that they are made."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from swsdask.kernels import cache


def refuse(function: object) -> None:
    raise RuntimeError("no locator available")


def test_a_place_is_found_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reread = []
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/nowhere")
    monkeypatch.setattr(cache._caching, "FunctionCache", refuse)
    monkeypatch.setattr(cache._config, "reload_config", lambda: reread.append(True))
    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path))
    cache.ensure_cache()
    (folder,) = tmp_path.iterdir()
    assert cache.os.environ["NUMBA_CACHE_DIR"] == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert reread


def test_the_place_lasts(tmp_path: Path) -> None:
    assert cache._private_folder(tmp_path) == cache._private_folder(tmp_path)


def test_a_place_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    cache._private_folder(tmp_path).chmod(0o777)
    assert cache._private_folder(tmp_path).parent != tmp_path


def test_compiling_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    announcement = cache._Announcement()
    with caplog.at_level(logging.WARNING, "swsdask"):
        for _ in range(3):
            announcement.on_start(None)
            announcement.on_end(None)
    assert [record.message for record in caplog.records] == [
        "swsdask: compiling kernels, once per installation: half a minute"
    ]
