"""A night whose work runs on a scheduler and workers that were there before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from swsdask.execution.dask import DaskExecutor
from tests.cluster.conftest import Elsewhere
from tests.faults.nights import WORKED, Place, differing, night, prepare

pytestmark = pytest.mark.cluster


def test_a_night_on_a_cluster_ends_with_the_bytes_of_one_in_this_process(
    tmp_path: Path, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheduler file is named relative to the night's settings, in another folder than the current one."""
    place = Place(str(tmp_path / "there"))
    prepare(tmp_path, place)
    before = place.contents()
    assert night(tmp_path) == WORKED
    expected = place.state()
    place.become(before)
    settings = tmp_path / "nightly.toml"
    settings.write_text(f'{settings.read_text()}cluster = "{elsewhere.file.name}"\n')
    maps: list[int] = []
    inner = DaskExecutor.map

    def counting(self: DaskExecutor, *arguments: Any, **named: Any) -> Any:
        maps.append(self.workers)
        return inner(self, *arguments, **named)

    monkeypatch.setattr(DaskExecutor, "map", counting)
    assert night(tmp_path) == WORKED
    assert differing(expected, place.state()) == []
    assert maps
