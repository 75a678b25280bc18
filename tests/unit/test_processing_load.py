"""The processing load by hand, and by the example of the 2013 measures document, section 4.3."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.measures.measure import Scored
from swsdask.measures.processing_load import ProcessingLoad
from swsdask.model.errors import SettingsError
from swsdask.model.resources import Resources, times_of_list
from tests.worlds import make_reference, numbers, settings

REFERENCE = make_reference([[3], [9]], {"all": ([1, 1], [1], 60), "few": ([1, 0], [1], 30)})


def load(told: dict[str, Any] | None, audio_hours: int = 300) -> dict[str, float]:
    resources = None if told is None else Resources.model_validate(told)
    family = ProcessingLoad(resources, Fraction(audio_hours))
    values = list(numbers([family], Scored({}, REFERENCE, settings())))
    assert {(value.condition, value.query) for value in values} <= {("all", None)}
    return {value.measure: value.value for value in values}


def test_the_example_of_the_document() -> None:
    """14 h and 3 h on 16 cores, 300 h of audio, 900 s of queries. It prints .7467 and, by a slip, .8 for .64."""
    found = load(
        {
            "query_seconds": 900,
            "indexing": {"wall_hours": 14, "cores": 16},
            "searching": {"wall_hours": 3, "cores": 16},
        }
    )
    assert round(found["isf"], 4) == 0.7467
    assert found["ssf"] == 0.64


def test_load_by_hand() -> None:
    """PL = .1 * 2 * 4 + .9 * 5 * 8, memory the highest of each list."""
    found = load(
        {
            "audio_hours": 10,
            "query_hours": [0.01, 0.03],
            "indexing": {"cpu_hours": 20, "peak_memory_gb": [1, 4, 2.5]},
            "searching": {"cpu_seconds": 7200, "peak_memory_gb": 8},
        }
    )
    assert found == {"isf": 2.0, "ssf": 5.0, "pmu_index": 4.0, "pmu_search": 8.0, "pl": 0.1 * 2 * 4 + 0.9 * 5 * 8}


def test_units_say_the_same() -> None:
    hours = load({"query_hours": 0.1, "indexing": {"wall_hours": 0.7, "cores": 3}, "searching": {"cpu_hours": 1.1}})
    others = {
        "audio_seconds": 300 * 3600,
        "query_seconds": [120] * 3,
        "indexing": {"wall_seconds": 2520, "cores": 3},
        "searching": {"cpu_seconds": 3960},
    }
    assert {name: repr(value) for name, value in load(others).items()} == {n: repr(v) for n, v in hours.items()}


def test_a_load_that_is_not_given_is_not_defined() -> None:
    whole: dict[str, Any] = {
        "query_hours": 1,
        "indexing": {"cpu_hours": 1, "peak_memory_gb": 1},
        "searching": {"cpu_hours": 1, "peak_memory_gb": 1},
    }
    assert not any(math.isnan(value) for value in load(whole).values())

    def undefined(told: dict[str, Any], audio_hours: int = 300) -> set[str]:
        return {name for name, value in load(told, audio_hours).items() if math.isnan(value)}

    assert undefined(whole | {"query_hours": None}) == {"ssf", "pl"}
    assert undefined(whole | {"indexing": {"cpu_hours": 1}}) == {"pmu_index", "pl"}
    assert undefined(whole | {"indexing": {"peak_memory_gb": 1}}) == {"isf", "pl"}
    assert undefined({}) == {"isf", "ssf", "pmu_index", "pmu_search", "pl"}
    assert undefined(whole, audio_hours=0) == {"isf", "ssf", "pl"}


def test_no_indexing_is_reported_by_zeros() -> None:
    nothing = {"cpu_hours": 0, "peak_memory_gb": 0}
    found = load({"query_hours": 1, "indexing": nothing, "searching": {"cpu_hours": 600, "peak_memory_gb": 5}})
    assert (found["isf"], found["pl"]) == (0.0, 0.9 * 2 * 5)


def test_a_run_without_resources_has_no_load() -> None:
    assert load(None) == {}


amounts = st.floats(0, 1e15)
durations = st.floats(1e-9, 1e15)


@given(audio=durations, query=durations, times=st.tuples(amounts, amounts), memory=st.tuples(amounts, amounts))
def test_whatever_is_admitted_gives_the_nearest_number(
    audio: float, query: float, times: tuple[float, float], memory: tuple[float, float]
) -> None:
    found = load(
        {
            "audio_hours": audio,
            "query_seconds": query,
            "indexing": {"wall_hours": times[0], "cores": 10**9, "peak_memory_gb": memory[0]},
            "searching": {"cpu_hours": times[1], "peak_memory_gb": memory[1]},
        }
    )
    assert found["isf"] == pytest.approx(times[0] * 1e9 / audio, rel=1e-12)
    assert found["ssf"] == pytest.approx(times[1] / (query / 3600 * audio), rel=1e-12)
    assert found["pl"] == pytest.approx(0.1 * found["isf"] * memory[0] + 0.9 * found["ssf"] * memory[1], rel=1e-12)


def test_resources_travel() -> None:
    node = {"brand": "x", "cpu": "y", "cores": 1, "clock_ghz": 2, "ram_gb": 4, "os": "z", "phase": "indexing"}
    told = {"audio_hours": 0.1, "query_seconds": [1, 2], "searching": {"peak_memory_gb": 3}, "hardware": [node]}
    resources = Resources.model_validate(told)
    assert Resources.from_json(resources.to_json()) == resources
    assert pickle.loads(pickle.dumps(resources)) == resources
    again = Resources.model_validate(dict(reversed(told.items())))
    assert again.to_json() == resources.to_json()


def of_list(attributes: dict[str, str], **processing_load: float) -> dict[str, float]:
    family = ProcessingLoad(times_of_list(attributes), Fraction(2))
    asked = settings(processing_load=processing_load)
    return {value.measure: value.value for value in numbers([family], Scored({}, REFERENCE, asked))}


def test_the_times_of_a_list() -> None:
    """An hour of indexing and half an hour of searching, of 2 h of audio and a quarter of an hour of queries."""
    times = {"indexing_time": "3600", "search_time.a": "600", "search_time.b": "1200", "oov_count.a": "1"}
    found = of_list(times, query_seconds=900)
    assert (found["isf"], found["ssf"]) == (0.5, 1.0)
    assert math.isnan(of_list(times)["ssf"]), "nobody says how long the queries are"
    assert math.isnan(found["pl"]), "nor does a list say how much memory was used"


@pytest.mark.parametrize("said", ["", "-1", "nan", "inf", "unknown"])
def test_times_that_are_none(said: str) -> None:
    assert times_of_list({"indexing_time": said, "search_time.a": said}) is None
    assert times_of_list({"search_time.a": "1", "search_time.b": said}) is None
    assert times_of_list({"language": "english"}) is None


def test_the_weight_of_indexing() -> None:
    phase = {"cpu_hours": 4, "peak_memory_gb": 8}
    told = Resources.model_validate({"query_hours": 1, "indexing": phase, "searching": {**phase, "peak_memory_gb": 2}})

    def pl(**chosen: float) -> float:
        values = numbers([ProcessingLoad(told, Fraction(2))], Scored({}, REFERENCE, settings(processing_load=chosen)))
        return {value.measure: value.value for value in values}["pl"]

    assert pl() == 0.1 * 2 * 8 + 0.9 * 2 * 2
    assert pl(indexing_weight=0.5) == 0.5 * 2 * 8 + 0.5 * 2 * 2
    with pytest.raises(SettingsError, match="indexing_weight"):
        settings(processing_load={"indexing_weight": 1.5})
