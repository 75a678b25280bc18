"""The samples that `make fuzz` mutates: without mutation they are read, and no format is missing among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.formats import case, fault, prepare


def test_every_format_has_a_sound_sample(tmp_path: Path) -> None:
    prepare(tmp_path)


def test_a_problem_of_a_sound_sample_is_found(tmp_path: Path) -> None:
    prepare(tmp_path)
    assert fault("run.tsv", b"system\tquery\n", tmp_path) is None
    assert "a sound file" in str(fault("run.tsv", b"system\tquery\n", tmp_path, sound=True))


@pytest.mark.parametrize("number", range(40))
def test_a_case_is_repeated_by_its_number(number: int) -> None:
    assert case(number) == case(number)
