"""Runs of cases written as the files of an official tool."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import swsdask as sws
from swsdask.api.official import measures_of_tool


def write_kwseval(
    folder: Path, settings: Mapping[str, Any], into: Path | str, names: list[str] | None = None, **how: Any
) -> list[str]:
    rttm = folder / "ref.rttm"
    evaluation = sws.open(
        ecf=folder / "ecf.xml",
        rttm=rttm if rttm.exists() else folder / "ref.rttm.gz",
        queries=folder / "kwlist.xml",
        preset="openkws13",
        compat="kwseval",
        settings={"evaluation": dict(settings)},
    )
    measures = measures_of_tool("kwseval", names)
    result = sws.score(evaluation, measures, runs={"x": str(folder / "kwslist.xml")}, alignment=True, **how)
    return sws.write(result, into, outputs=(), tool="kwseval", evaluation=evaluation)


def write_stdeval(
    folder: Path,
    settings: dict[str, Any],
    into: Path | str,
    name: str = "s",
    by: str | list[str] = "source_type",
    **how: Any,
) -> None:
    evaluation = sws.open(folder, preset="std2006", compat="stdeval", settings={"evaluation": settings})
    measures, runs = measures_of_tool("stdeval", None), {name: folder / "s.stdlist.xml"}
    result = sws.score(evaluation, measures, runs=runs, by=by, alignment=True, **how)
    sws.write(result, into, outputs=(), tool="stdeval", evaluation=evaluation)


def in_order(text: str) -> list[str]:
    return sorted(text.splitlines())
