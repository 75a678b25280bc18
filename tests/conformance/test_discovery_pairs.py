"""NED and grouping as the two tools of the Zero Resource challenge printed them: every fold, and counts of pairs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from swsdask.discovery.corpus import read_fragments
from swsdask.discovery.measures.clustering import Grouping, GroupingTde, PairSets
from swsdask.discovery.measures.ned import EditDistances, Ned
from swsdask.discovery.placing import locate
from swsdask.model.discovery import Corpus, Discovered
from tests.corpora import read_corpus
from tests.discoveries import whole

WORK = 5_000

TDE = (
    ("micro/micro", "micro", "micro.disc", "tde.out"),
    ("tde_sample/sample", "sample.intervals", "sample.classes.example", "sample_example.out"),
    ("tde_sample/sample", "sample.intervals", "sample_jitA.classes", "sample_jitA.out"),
)
TDEV2 = (
    ("micro/micro", "micro.disc", "tdev2.out"),
    ("tde_sample/sample", "sample.classes.example", "sample_example.tdev2.out"),
    ("tde_sample/sample", "sample_jitA.classes", "sample_jitA.tdev2.out"),
    ("tdev2_mandarin/mandarin", "ZR17_mandarin.class", "ZR17.out"),
    ("tdev2_mandarin/mandarin", "mand_jit.class", "mand_jit.out"),
)


def placed(cases: Path, stem: str, folds: str, classes: str) -> tuple[Corpus, Discovered]:
    """The corpus under tde2015 with its folds, and what was found."""
    at = cases / "discovery" / stem
    names = {"split": ".split", "folds": ".cross", "within": ".within"}
    files = {name: str(at.parent / (at.name if name == "split" else folds)) + end for name, end in names.items()}
    corpus = read_corpus(f"{at}.phn", f"{at}.wrd", "tde2015", **files)
    return corpus, locate(read_fragments(str(at.parent / classes), corpus), corpus)


@pytest.mark.parametrize(("stem", "folds", "classes", "printed"), TDE)
def test_tde(cases: Path, stem: str, folds: str, classes: str, printed: str) -> None:
    corpus, discovered = placed(cases, stem, folds, classes)
    text = ((cases / "discovery" / stem).parent / printed).read_text()
    ned, pairs = whole(EditDistances, corpus, discovered, WORK), whole(PairSets, corpus, discovered, WORK)
    for number, condition in enumerate(("cross", "within")):
        [(of_ned, p_and_r)] = re.findall(
            rf"^{condition} ned (.*)\n(?:.*\n)*?{condition} group P,R (.*)", text, re.MULTILINE
        )
        [expected] = json.loads(of_ned)
        values = {**Ned().values(ned, corpus, number), **GroupingTde().values(pairs, corpus, number)}
        np.testing.assert_allclose(values["ned"], expected, rtol=1e-9)
        precision, recall = np.array(json.loads(p_and_r), np.float64)
        np.testing.assert_allclose(values["grouping_precision"], precision, rtol=1e-9)
        np.testing.assert_allclose(values["grouping_recall"], recall, rtol=1e-9)


@pytest.mark.parametrize(
    ("stem", "folds", "classes", "printed"),
    [(*TDE[0][:3], "micro.literal.out"), (*TDE[2][:3], "sample_jitA.literal.out")],
)
def test_the_fragments_of_the_sets_of_tde(cases: Path, stem: str, folds: str, classes: str, printed: str) -> None:
    corpus, discovered = placed(cases, stem, folds, classes)
    text = ((cases / "discovery" / stem).parent / printed).read_text()
    expected = re.findall(r"group literal .*\(flat (\d+) (\d+) (\d+)\)", text)
    pairs = whole(PairSets, corpus, discovered, WORK)
    counts = [pairs.n_flat(one, corpus, 0).tolist() for one in (pairs.both, pairs.found, pairs.gold)]
    assert list(zip(*counts, strict=True)) == [tuple(map(int, row)) for row in expected]


@pytest.mark.parametrize(("stem", "classes", "printed"), TDEV2)
def test_tdev2(cases: Path, stem: str, classes: str, printed: str) -> None:
    at = cases / "discovery" / stem
    corpus = read_corpus(f"{at}.phn", f"{at}.wrd", "tdev2")
    discovered = locate(read_fragments(str(at.parent / classes), corpus), corpus)
    text = (at.parent / printed).read_text()
    told = {name: json.loads(numbers) for name, numbers in re.findall(r"^(ned|grouping) (\{.*\})$", text, re.MULTILINE)}
    pairs = whole(PairSets, corpus, discovered, WORK)
    values = {
        **Ned().values(whole(EditDistances, corpus, discovered, WORK), corpus, 0),
        **Grouping().values(pairs, corpus, 0),
    }
    own, group = told["ned"], told["grouping"]
    assert values["n_pairs"][0] == own["n_pairs"]
    np.testing.assert_allclose(values["ned"][0], own["ned"], rtol=1e-9)
    np.testing.assert_allclose(values["grouping_precision"][0], group["P"], rtol=1e-9)
    np.testing.assert_allclose(values["grouping_recall"][0], group["R"], rtol=1e-9)
    assert [pairs.n_pairs(one, corpus, 0)[0] for one in pairs.sets[:2]] == [group["found_pairs"], group["gold_pairs"]]
    flats = [pairs.n_flat(one, corpus, 0)[0] for one in pairs.sets]
    assert flats == [group["tok_found"], group["tok_gold"], group["tok_both"]]
