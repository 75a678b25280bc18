"""Tables of Kaldi's kws-search: times in frames, scores that are costs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import swsdask as sws
from tests.cli.conftest import Files, Outcome

Call = Callable[..., Outcome]
ROWS = [("K1", "a", 110, 190, "-0.90"), ("K2", "a", 500, 550, "+0.25"), ("K1", "b", 300_000, 300_050, "1e-3")]
"""Query, document, first and last frame of 10 ms, cost."""

FRAMES = ("--frame-shift", "0.01", "--negate-scores")
HOW = ("--set", "outside=false_alarm", "--measures", "atwv,mtwv,mtwv_threshold,cnxe", "--format", "json")


@pytest.fixture
def kaldi(files: Files) -> Path:
    return files.write("results.txt", "".join(f"{q} {d} {s} {e} {c}\n" for q, d, s, e, c in ROWS))


@pytest.fixture
def plain(files: Files) -> Path:
    """The same in seconds, with scores that rise."""
    lines = [f"{q} {d} {s / 100} {e / 100} {-float(c)!r}\n" for q, d, s, e, c in ROWS]
    return files.write("plain/results.txt", "".join(lines))


def test_frames_and_costs_are_read_as_seconds_and_scores(swsdask: Call, files: Files, kaldi: Path, plain: Path) -> None:
    expected = json.loads(swsdask("score", files.reference, plain, *HOW).out)
    assert json.loads(swsdask("score", files.reference, kaldi, *FRAMES, *HOW).out) == expected
    out = files.folder / "out"
    assert swsdask("score", files.reference, kaldi, *FRAMES, *HOW, "--out", out).code == 0
    run = json.loads((out / "manifest.json").read_text())["runs"]["results"]
    assert run["attributes"] == {"frame_shift": "0.01", "negated_scores": "yes"}
    assert run["rounded"] == 0
    archive = files.folder / "archive"
    assert swsdask("ingest", archive, files.reference, "--run", kaldi, *FRAMES, *HOW[:2]).code == 0
    assert json.loads(swsdask("score", archive, *HOW).out) == expected
    refused = swsdask("score", archive, *FRAMES, *HOW)
    assert refused.code == 2
    assert "an archive is already decoded" in refused.err


@pytest.mark.parametrize("name", ["kws.tsv", "kws.parquet"])
def test_other_tables(swsdask: Call, files: Files, plain: Path, name: str) -> None:
    query, document, start, end, cost = zip(*ROWS, strict=True)
    duration = [e - s for s, e in zip(start, end, strict=True)]
    path = files.folder / name
    if name.endswith(".tsv"):
        rows = zip(query, document, [f" {s}" for s in start], duration, cost, strict=True)
        lines = ["query\tdocument\tstart\tduration\tscore", *("\t".join(map(str, row)) for row in rows)]
        path.write_text("\n".join([*lines, ""]))
    else:
        columns = {"start": start, "duration": duration, "score": [float(c) for c in cost]}
        pq.write_table(pa.table({"query": query, "document": document, **columns}), path)
    of = {
        path.name: sws.score(str(files.reference), ["mtwv", "mtwv_threshold"], runs=path, **how)
        for path, how in ((path, {"frame_shift": 0.01, "negate_scores": True}), (plain, {}))
    }
    first, second = (result.table["value"].to_pylist() for result in of.values())
    assert first == second


def test_convert_and_calibrate_write_seconds_and_scores(
    swsdask: Call, files: Files, kaldi: Path, plain: Path, tmp_path: Path
) -> None:
    assert swsdask("convert", kaldi, tmp_path / "a.tsv", *FRAMES).code == 0
    assert swsdask("convert", plain, tmp_path / "b.tsv").code == 0
    assert (tmp_path / "a.tsv").read_bytes() == (tmp_path / "b.tsv").read_bytes()
    fitted = [
        swsdask(
            "calibrate", run, "--on", files.reference, *HOW[:2], "--method", "pav", *how, "--out", tmp_path / "c.toml"
        )
        for run, how in ((kaldi, FRAMES), (plain, ()))
    ]
    assert [each.code for each in fitted] == [0, 0], fitted[0].err
    assert fitted[0].out == fitted[1].out
    for run, how, out in ((kaldi, FRAMES, "x"), (plain, (), "y")):
        assert swsdask("calibrate", "--apply", tmp_path / "c.toml", run, *how, "--out", tmp_path / out).code == 0
    assert (tmp_path / "x" / "results.txt.tsv").read_bytes() == (tmp_path / "y" / "results.txt.tsv").read_bytes()


def test_what_is_no_frame_and_what_is_no_table(swsdask: Call, files: Files) -> None:
    bad = files.write("bad.txt", "K1 a 1 2 0.5\nK1 a 1 x 0.5\nK1 a 1 2 y\n")
    outcome = swsdask("score", files.reference, bad, *FRAMES)
    assert outcome.code == 2
    assert "bad.txt:2: expected a end in seconds; found 'x'" in outcome.err
    assert "bad.txt:3: expected a score; found '-y'" in outcome.err
    outcome = swsdask("score", files.reference, files.run, *FRAMES)
    assert outcome.code == 2
    assert "expected a table: only tables can have frames for times, or negated scores" in outcome.err
    outcome = swsdask("score", files.reference, files.run, "--frame-shift", "0")
    assert outcome.code == 2
    assert "expected a frame shift in seconds, e.g. 0.01; found 0.0." in outcome.err
