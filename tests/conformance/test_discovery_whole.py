"""`swsdask.discover` against the official tools, from their files to theirs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import swsdask as sws
from swsdask.model.results import Result
from tests.conformance.test_discovery_folds import CONDITIONS, PAIRS


def of_sample(cases: Path, classes: str, definition: Any) -> Result:
    folder = cases / "discovery/tde_sample"
    return sws.discover(
        {"sample": folder / classes},
        phones=folder / "sample.phn",
        words=folder / "sample.wrd",
        split=folder / "sample.split",
        folds=folder / "sample.intervals.cross",
        within=folder / "sample.intervals.within",
        definition=definition,
    )


def values(result: Result) -> dict[tuple[str, str], float]:
    return {(row["condition"], row["measure"]): row["value"] for row in result.table.to_pylist()}


def test_the_files_of_tde_to_the_byte(cases: Path, tmp_path: Path) -> None:
    sws.write(of_sample(cases, "sample.classes.example", "tde2015"), tmp_path, tool="tde")
    theirs = {path.name: path.read_bytes() for path in (cases / "discovery/tde_sample/peer_output_example").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "tde").iterdir()} == theirs


@pytest.mark.parametrize("name", ["sample_example", "sample_jitA"])
def test_every_number_of_every_fold_of_tde(cases: Path, name: str) -> None:
    classes = "sample.classes.example" if name == "sample_example" else f"{name}.classes"
    ours = values(of_sample(cases, classes, "tde2015"))
    text = (cases / f"discovery/tde_sample/{name}.out").read_text()
    compared = 0
    for condition, kind, lists in re.findall(r"^(cross|within) (\w+)(?: P,R.*?)? (\[\[.*\]\])$", text, re.MULTILINE):
        families = [kind] if kind in ("ned", "coverage") else PAIRS.get(kind, ())
        ends = ("",) if kind in ("ned", "coverage") else ("_precision", "_recall")
        names = [family + end for family in families for end in ends]
        for measure, row in zip(names, json.loads(lists), strict=bool(names)):
            for number, theirs in enumerate(row, 1):
                assert ours[f"{CONDITIONS[condition]}/{number}", measure] == pytest.approx(theirs, rel=1e-9)
                compared += 1
    assert compared == 6 * 12


@pytest.mark.parametrize(
    ("folder", "classes", "out"),
    [
        ("tde_sample", "sample.classes.example", "sample_example.tdev2.out"),
        ("tde_sample", "sample_jitA.classes", "sample_jitA.tdev2.out"),
        ("tdev2_mandarin", "ZR17_mandarin.class", "ZR17.out"),
        ("tdev2_mandarin", "mand_jit.class", "mand_jit.out"),
        ("micro", "micro.disc", "tdev2.out"),
    ],
)
def test_every_number_of_tdev2(cases: Path, folder: str, classes: str, out: str) -> None:
    here = cases / "discovery" / folder
    stem = {"tde_sample": "sample", "tdev2_mandarin": "mandarin", "micro": "micro"}[folder]
    phones, words = here / f"{stem}.phn", here / f"{stem}.wrd"
    ours = values(sws.discover(here / classes, phones=phones, words=words, definition="tdev2"))
    theirs: dict[str, dict[str, Any]] = {}
    for name, told in re.findall(r"^(\w+) (\{.*\})$", (here / out).read_text(), re.MULTILINE):
        theirs[name] = json.loads(told)
    expected = {
        "ned": theirs["ned"]["ned"],
        "n_pairs": theirs["ned"]["n_pairs"],
        "coverage": theirs["coverage"]["coverage"],
        **_prf("boundary", theirs["boundary"], "P", "R"),
        **_prf("token", theirs["token_type"], "tokP", "tokR"),
        **_prf("type", theirs["token_type"], "typP", "typR"),
        **_prf("grouping", theirs["grouping"], "P", "R"),
    }
    for measure, value in expected.items():
        found = ours["all", measure]
        assert found == pytest.approx(float("nan") if value is None else value, rel=1e-9, nan_ok=True), measure


def _prf(family: str, of: dict[str, Any], precision: str, recall: str) -> dict[str, Any]:
    return {f"{family}_precision": of[precision], f"{family}_recall": of[recall]}


@pytest.mark.parametrize("definition", ["tde2015", "tdev2"])
def test_folds_in_which_nothing_is_found_or_nothing_is_to_find(own_cases: Path, definition: Any) -> None:
    folder = own_cases / "tde/folds"
    corpus = {"phones": folder / "world.phn", "words": folder / "world.wrd"}
    told = json.loads((folder / f"{definition}.json").read_text())
    if definition == "tde2015":
        corpus |= {name: folder / f"world.{name}" for name in ("split", "folds", "within")}
    ours = values(sws.discover(folder / "world.classes", **corpus, definition=definition))
    for condition, numbers in told.items():
        for measure, value in numbers.items():
            assert ours[condition, measure] == pytest.approx(value, rel=1e-9, nan_ok=True), (condition, measure)
