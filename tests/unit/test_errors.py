import pickle

import pytest

from swsdask.model.errors import SHOWN, InputError, Problem, Problems
from swsdask.model.wording import choices


def test_a_problem_says_where_what_and_what_to_do() -> None:
    problems = Problems()
    problems.add("run.xml", 12, "a finite score", "'nan'", "Remove the row.")
    with pytest.raises(InputError, match=r"^run\.xml:12: expected a finite score; found 'nan'\. Remove the row\.$"):
        problems.raise_if_any()


def test_no_problem_no_error() -> None:
    Problems().raise_if_any()


def test_long_lists_are_counted_not_printed() -> None:
    problems = Problems(limit=20)
    for line in range(1, 101):
        problems.add("run.xml", line, "a", "b", "c")
    with pytest.raises(InputError) as caught:
        problems.raise_if_any()
    assert len(problems) == 100
    assert len(list(problems)) == 20
    assert len(str(caught.value).splitlines()) == SHOWN + 1
    assert "and 90 more" in str(caught.value)


def test_of_many_names_the_nearest_are_printed() -> None:
    systems = [f"system-{number}" for number in range(300)]
    assert choices(systems, "sistem-123") == "system-123, system-23, system-13 and 297 more"
    assert choices(systems[:20], "another") == ", ".join(systems[:20])
    assert choices([], "any") == "none"


def test_an_input_error_survives_the_way_back_from_a_worker() -> None:
    problems = Problems()
    problems.add("run.xml", None, "a", "b", "c")
    with pytest.raises(InputError) as caught:
        problems.raise_if_any()
    back = pickle.loads(pickle.dumps(caught.value))
    assert str(back) == str(caught.value)
    assert back.problems == caught.value.problems


def test_a_problem_is_one_line_whatever_the_name_of_the_file() -> None:
    assert str(Problem("a\nb.xml", 3, "x", "'y\nz'", "Do.")) == r"a\nb.xml:3: expected x; found 'y\nz'. Do."
