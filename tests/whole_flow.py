"""What a user does with places that are URLs: everything is read from there and written there, to the same bits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from tests.command_line import Outcome
from tests.small_evaluation import Files

Call = Callable[..., Outcome]

DETECTIONS = [
    {"query": "K1", "document": "a", "start": 1.1, "duration": 0.8, "score": 0.9, "decision": True},
    {"query": "K1", "document": "b", "start": 20.0, "duration": 0.5, "score": 0.2, "decision": False},
    {"query": "K2", "document": "a", "start": 5.0, "duration": 0.5, "score": 0.7, "decision": True},
]

RESULT = ("scores.parquet", "scores.json", "curves.parquet")


def put(folder: Path, url: str) -> None:
    """Copy the files of a folder to a URL."""
    filesystem, root = fsspec.core.url_to_fs(url)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            filesystem.pipe_file(f"{root}/{path.relative_to(folder)}", path.read_bytes())


def content(url: str) -> bytes:
    filesystem, path = fsspec.core.url_to_fs(url)
    filesystem.invalidate_cache()
    read: bytes = filesystem.cat_file(path)
    return read


def names(url: str) -> list[str]:
    filesystem, root = fsspec.core.url_to_fs(url)
    filesystem.invalidate_cache()
    return sorted(path.removeprefix(root).lstrip("/") for path in filesystem.find(root))


def flow(swsdask: Call, files: Files, root: str) -> None:
    """Ingest, score, report, correlate, compare, calibrate, convert and discover, here and at a URL below `root`."""
    second = files.run.read_text().replace('"first"', '"second"').replace('score="0.6"', 'score="0.3"')
    files.write("runs/first.kwslist.xml", files.run.read_text())
    files.write("runs/second.kwslist.xml", second)
    files.write("settings.toml", "[evaluation]\ntolerance_s = 0.25\n")
    phones = "abcdeabcdfabcde"
    files.write("disc/sim.phn", "".join(f"x {at} {at + 1} {phone}\n" for at, phone in enumerate(phones)))
    files.write("disc/sim.wrd", "".join(f"x {at} {at + 5} {phones[at : at + 5]}\n" for at in range(0, 15, 5)))
    files.write("disc/first.classes", "Class 1\nx 0 5\nx 10 15\n\nClass 2\nx 0 4\nx 5 9\n\n")
    first = pa.Table.from_pylist(DETECTIONS)
    for number in range(len(first)):
        path = files.folder / f"folder.parquet/system=first/part.{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(first.slice(number, 1), path)
    put(files.folder, f"{root}/in")

    def done(*arguments: str | Path) -> str:
        ended = swsdask(*arguments)
        assert ended.code == 0, ended.err
        return ended.out

    made: dict[str, dict[str, Any]] = {}
    for there, out in ((str(files.folder), str(files.folder / "made")), (f"{root}/in", f"{root}/made")):
        runs, settings = f"{there}/runs", ["--settings", f"{there}/settings.toml"]
        done("ingest", f"{out}/archive", f"{there}/reference", "--run", runs, *settings)
        done("score", f"{out}/archive", "--out", f"{out}/results")
        done("score", f"{there}/reference", f"{runs}/*.xml", *settings, "--out", f"{out}/of-files")
        done("score", f"{there}/reference", f"{there}/folder.parquet", *settings, "--out", f"{out}/of-folder")
        done("report", f"{out}/results")
        done("report", f"{out}/results", f"{out}/page.html")
        done("correlate", f"{out}/results", "--measures", "atwv,mtwv", "--out", f"{out}/ranks")
        done("compare", f"{out}/results", "--measures", "atwv", "--replicates", "50", "--out", f"{out}/compared")
        run, fitted = f"{runs}/first.kwslist.xml", f"{out}/fitted.toml"
        done("calibrate", run, "--on", f"{there}/reference", "--method", "pav", *settings, "--out", fitted)
        done("calibrate", "--apply", fitted, run, f"{runs}/second.kwslist.xml", "--out", f"{out}/calibrated")
        done("convert", run, f"{out}/run.parquet")
        corpus = ["--phones", f"{there}/disc/sim.phn", "--words", f"{there}/disc/sim.wrd", "--n-folds", "1"]
        done("discover", f"{there}/disc/first.classes", *corpus, "--out", f"{out}/discovered")
        done("discover", f"{there}/disc/first.classes", *corpus, "--ingest", f"{out}/discoveries")
        done("discover", "--archive", f"{out}/discoveries", "--out", f"{out}/discovered-again")
        made[out] = {
            **{name: content(f"{out}/results/{name}") for name in RESULT},
            **{f"of files: {name}": content(f"{out}/of-files/{name}") for name in RESULT},
            **{f"of a folder: {name}": content(f"{out}/of-folder/{name}") for name in RESULT},
            "report": b"<html" in content(f"{out}/results/report.html") and b"<html" in content(f"{out}/page.html"),
            "listed": sorted(json.loads(content(f"{out}/results/manifest.json"))["files"]),
            "results": names(f"{out}/results"),
            "ranks": content(f"{out}/ranks/rank_correlation.parquet"),
            "compared": content(f"{out}/compared/intervals.parquet"),
            "fitted": content(fitted).partition(b"[fitted_on]")[0],
            "calibrated": [content(f"{out}/calibrated/{name}.kwslist.xml") for name in ("first", "second")],
            "converted": content(f"{out}/run.parquet"),
            "discovered": content(f"{out}/discovered/scores.parquet"),
            "discovered again": content(f"{out}/discovered-again/scores.parquet"),
        }
    here, elsewhere = made.values()
    assert here == elsewhere
    assert here["discovered"] == here["discovered again"]
    assert not [name for name in names(root) if "probe" in name or "temporary" in name]
