"""tde's own files, to the byte, from the numbers of its folds."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from swsdask.discovery.placing import spreads, with_f_scores
from swsdask.render.short_outputs import tde_files

CONDITIONS = {"cross": "all", "within": "within_talker"}
PAIRS = {"boundary": ("boundary",), "token": ("token", "type"), "group": ("grouping",), "match": ("matching",)}
FOLDS = {"all": {"names": "1234", "stretches": 2000}, "within_talker": {"names": "12", "stretches": 1000}}


@pytest.fixture(scope="module")
def printed(cases: Path) -> dict[str, dict[str, np.ndarray]]:
    """The numbers of each fold that the tool printed, by condition and measure."""
    found: dict[str, dict[str, np.ndarray]] = {"all": {}, "within_talker": {}}
    text = (cases / "discovery/tde_sample/sample_example.out").read_text()
    for condition, name, lists in re.findall(r"^(cross|within) (\w+)(?: P,R.*?)? (\[\[.*\]\])$", text, re.MULTILINE):
        values = [np.array([math.nan if x is None else x for x in row]) for row in json.loads(lists)]
        of = found[CONDITIONS[condition]]
        if name in ("ned", "coverage"):
            of[name] = values[0]
        elif name in PAIRS:
            for place, family in enumerate(PAIRS[name]):
                of[f"{family}_precision"], of[f"{family}_recall"] = values[2 * place : 2 * place + 2]
    return found


def test_the_files_that_tde_wrote(cases: Path, printed: dict[str, dict[str, np.ndarray]]) -> None:
    values = {}
    for condition, numbers in printed.items():
        for name, spread in spreads(with_f_scores(numbers), "tde2015").items():
            four = (spread.mean, spread.std, spread.least, spread.most)
            values |= {(condition, name + end): x for end, x in zip(("", "_std", "_min", "_max"), four, strict=True)}
    theirs = cases / "discovery/tde_sample/peer_output_example"
    made = tde_files(values, FOLDS)
    assert set(made) == {path.name for path in theirs.iterdir() if not path.name.startswith("VERSION")}
    for name, text in made.items():
        assert text == (theirs / name).read_text(), name
