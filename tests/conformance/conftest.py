from __future__ import annotations

from pathlib import Path

import pytest

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"
OWN_CASES = Path(__file__).resolve().parents[1] / "cases"


@pytest.fixture(scope="session")
def cases() -> Path:
    """The folder of files with the numbers that the official tools printed for them; not part of the product."""
    if not CASES.is_dir():
        pytest.skip(f"no official cases at {CASES}")
    return CASES


@pytest.fixture(scope="session")
def own_cases() -> Path:
    """The folder of the cases that are kept in the repository."""
    return OWN_CASES
