"""Every mutant of `make mutants` can be applied: its line is still there, once, and its tests are."""

import re

import pytest

from tests.mutants.mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutants_can_be_applied(mutant: Mutant) -> None:
    source = (ROOT / mutant.file).read_text()
    assert mutant.applied(source) != source
    assert all((ROOT / name).is_file() for name in mutant.tests if name.startswith("tests/"))
    if "-k" in mutant.tests:
        assert re.search(rf"def test_\w*{mutant.tests[-1]}", (ROOT / mutant.tests[0]).read_text())
