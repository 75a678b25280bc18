"""Numbers of things, in sentences."""

from __future__ import annotations

import pytest

from swsdask.model.errors import counted


@pytest.mark.parametrize(
    ("number", "things", "form", "said"),
    [
        (0, "rows", ",", "0 rows"),
        (1, "rows", ",", "1 row"),
        (1234, "rows", ",", "1,234 rows"),
        (1, "queries without targets", ",", "1 query without targets"),
        (2, "queries without targets", ",", "2 queries without targets"),
        (1, "rounded times", ",", "1 rounded time"),
        (1, "records of other types", ",", "1 record of other types"),
        (1.0000001, "false alarms", ".6g", "1 false alarm"),
        (1.5, "seconds", "g", "1.5 seconds"),
        (1, "classes", ",", "1 class"),
        (2, "classes", ",", "2 classes"),
    ],
)
def test_one_thing_and_more(number: float, things: str, form: str, said: str) -> None:
    assert counted(number, things, form) == said
