"""The worked examples of CONTRIBUTING.md, applied to a copy of the package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from swsdask.kernels.compilation import kept_in
from swsdask.measures import MEASURES
from swsdask.measures.measure import Measure
from swsdask.model.measures import TABLE

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(r"^```diff\n(.*?)^```$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE | re.DOTALL)
FAMILY = '''

class MissesPerHit:
    """misses_per_hit."""

    names: ClassVar[tuple[str, ...]] = ("misses_per_hit",)
    needs: ClassVar[tuple[type[Statistic], ...]] = (Counts,)

    def values(self, scored: Scored) -> Iterator[Values]:
        """Overall."""
        for population in scored.populations:
            counts = confusion_counts(scored, population)
            yield population.overall({"misses_per_hit": population.total(counts.miss) / population.total(counts.hit)})
'''
USE = """
import swsdask as sws
run = [dict(query="q", document="d", start=at, duration=1.0, score=1.0, decision="YES") for at in (5.0, 50.0)]
spoken = [dict(query="q", document="d", start=at, duration=1.0) for at in (5.0, 20.0, 30.0)]
evaluation = sws.open(documents=[dict(document="d", duration=100.0)], occurrences=spoken)
print(sws.score(evaluation, "misses_per_hit", runs=run).table["value"][0])
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in ("swsdask", "conf"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(copy: Path, *arguments: str) -> str:
    """The output of Python with the copy; its kernels are those that are compiled already."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "NUMBA_CACHE_DIR": str(kept_in().parent)}
    command = [sys.executable, *arguments]
    ended = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_both_are_quoted() -> None:
    assert len(EXAMPLES) == 2


@pytest.mark.parametrize("example", EXAMPLES, ids=["measure", "format"])
def test_an_example_is_two_files_and_its_test_passes(copy: Path, example: str) -> None:
    files = re.findall(r"^\+\+\+ b/(.*)$", example, re.MULTILINE)
    assert len(files) == 2
    subprocess.run(["git", "apply", "-"], cwd=copy, input=example, text=True, check=True)
    assert run(copy, "-c", "import swsdask; print(swsdask.__file__)").strip() == str(copy / "swsdask" / "__init__.py")
    out = run(
        copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(file for file in files if file.startswith("tests"))
    )
    assert re.search(r"^[1-9][0-9]* passed", out, re.MULTILINE), out


def test_a_class_and_its_line_make_a_family(copy: Path) -> None:
    measures = copy / "swsdask" / "measures"
    with (measures / "rates.py").open("a") as module:
        module.write(FAMILY)
    listed = (measures / "__init__.py").read_text()
    for place, added in (("    ErrorRates(),\n", "    MissesPerHit(),\n"), ("ErrorRates, Occ", "MissesPerHit, ")):
        assert place in listed
        listed = listed.replace(place, added + place, 1)
    (measures / "__init__.py").write_text(listed)
    assert float(run(copy, "-c", USE)) == 2.0


FOUND = """
import swsdask as sws
evaluation = sws.open(
    documents=[dict(document="d", duration=100.0)],
    occurrences=[dict(query="q", document="d", start=5.0, duration=1.0)],
)
print(sws.score(evaluation, "stwv", runs="run.FORM").table["value"][0])
"""
SPOTS = """<spots system="s"><phrase id="q">
<spot file="d" channel="1" tbeg="5" dur="1" score="2" decision="YES"/></phrase></spots>"""
ROWS = {
    "dialect": (
        "formats/runs/xml.py",
        '        Dialect("kwslist", ',
        '        Dialect("spots", "phrase", "spot", "id", "seconds", "unknown_words"),\n',
        SPOTS,
        "xml",
    ),
    "names of columns": (
        "formats/runs/table.py",
        '    "kwid": "query",\n',
        '    "phrase": "query",\n    "recording": "document",\n',
        "phrase,recording,tbeg,dur,score\nq,d,5,1,2\n",
        "csv",
    ),
}


@pytest.mark.parametrize(("file", "place", "row", "text", "form"), ROWS.values(), ids=ROWS)
def test_a_row_makes_another_form_readable(copy: Path, file: str, place: str, row: str, text: str, form: str) -> None:
    (copy / f"run.{form}").write_text(text)
    module = copy / "swsdask" / file
    source = module.read_text()
    assert place in source
    module.write_text(source.replace(place, row + place, 1))
    assert run(copy, "-c", FOUND.replace("FORM", form)).strip() == "1.0"


def test_families_are_in_the_order_of_the_table() -> None:
    order = [row.name for row in TABLE]
    ends = [max(map(order.index, family.names)) for family in MEASURES]
    assert ends == sorted(ends)
    assert all(isinstance(family, Measure) for family in MEASURES)
