from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import swsdask.render.html as html
import swsdask.render.pages as cubes
from swsdask.model.leaderboard import LEADERBOARD, leaderboard_of
from swsdask.model.measures import written
from swsdask.model.results import CURVES, QUERY_TEXTS, SCORES, Result
from swsdask.model.safe_text import visible
from swsdask.render.det import figures
from swsdask.render.html import page, write_report
from tests.results import MANIFEST, made_up, made_up_result, table, three_systems

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><script>alert(1)</script>",
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }} <!-- ]]> &amp; --> \u2028",
)


class Page(HTMLParser):
    """What a browser would see: every element with its attributes, and the text of cells and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text: list[str] = []
        self._in_script = self._in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self._in_cell = True
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
            self._in_script = True

    def handle_data(self, data: str) -> None:
        if self._in_script:
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
            return
        self.text.append(data)
        if self._in_cell:
            self.rows[-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._in_script = False
        if tag in ("td", "th"):
            self._in_cell = False

    def data(self) -> dict[str, Any]:
        text = next(text for attributes, text in self.scripts if attributes.get("id") == "data")
        found: dict[str, Any] = json.loads(text)
        return found


def test_every_number_of_the_leaderboard_is_in_its_row() -> None:
    result = three_systems()
    seen = Page(page(result))
    found = leaderboard_of(result.table)
    columns = [measure for group in LEADERBOARD for measure in group if measure in found.measures]
    for condition in found.conditions:
        for system in found.systems:
            expected = [written(measure, found.value(condition, system, measure)) for measure in columns]
            assert any(system in row[0] and row[-len(columns) :] == expected for row in seen.rows if row)
    leaders = [row[0] for row in seen.rows if row and any(name in row[0] for name in found.systems)]
    assert [re.sub(r"^\s*\d+\s*", "", row).strip() for row in leaders[:3]] == list(found.systems)


def test_the_page_has_signature_settings_inputs_notes_and_what_was_dropped() -> None:
    runs = {
        "good": {
            "rows": 1234,
            "outside": 5,
            "unknown_documents": {"a": 1, "b": 2},
            "unknown_queries": {"q": 4},
            "files": ["g.xml"],
        },
        "weak": {"rows": 7, "outside": 0, "rounded": 1},
    }
    seen = Page(page(replace(three_systems(), manifest={**MANIFEST, "runs": runs})))
    text = " ".join(seen.text)
    assert MANIFEST["signature"] in text
    assert "One query has no targets." in text
    assert "Detections outside the evaluated excerpts are dropped." in text
    rows = [[cell.strip() for cell in row] for row in seen.rows]
    assert ["good", "1,234", "5", "3", "4", "0", "g.xml"] in rows
    assert ["weak", "7", "0", "0", "0", "1", ""] in rows
    assert ["operating_point.p_target", "0.00015"] in rows
    assert ["ecf", "aa11"] in rows
    assert ["executor", "Serial"] in rows


def test_queries_are_in_the_page_with_all_their_numbers() -> None:
    result = three_systems()
    queries = pc.unique(result.table["query"].drop_null()).to_pylist()
    texts = table([(name, f"text of {name}") for name in queries[1:]], QUERY_TEXTS)
    cube = Page(page(replace(result, text_table=texts))).data()["by_query"]
    assert cube["texts"] == ["", *(f"text of {name}" for name in cube["rows"][1:])]
    expected = {
        (row["measure"], row["system"], row["query"]): row["value"]
        for row in result.table.to_pylist()
        if row["query"] is not None
    }
    assert cube["systems"] == list(leaderboard_of(result.table).systems)
    found = {
        (measure, system, query): math.nan if value is None else value
        for measure, by_system in cube["values"].items()
        for system, values in zip(cube["systems"], by_system, strict=True)
        for query, value in zip(cube["rows"], values, strict=True)
    }
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert found[key] == pytest.approx(value, rel=1e-5, nan_ok=True)


@pytest.mark.parametrize("name", HOSTILE)
def test_ids_cannot_become_markup_or_script(name: str) -> None:
    targets = [3, 2]
    result = made_up_result(
        [made_up(name, 2.0, targets, 1), made_up("plain", 1.0, targets, 2)],
        targets,
        {name: [0]},
        query_ids=[name, "q"],
        manifest={**MANIFEST, "signature": name, "settings": {name: name}, "runs": {name: {"files": [name]}}},
        notes=(name,),
    )
    plain = made_up_result(
        [made_up("x", 2.0, targets, 1), made_up("plain", 1.0, targets, 2)],
        targets,
        {"y": [0]},
        query_ids=["z", "q"],
        manifest={**MANIFEST, "settings": {"k": "v"}, "runs": {"x": {"files": ["f"]}}},
        notes=("n",),
    )
    seen, harmless = Page(page(result)), Page(page(plain))
    assert [tag for tag, _ in seen.elements] == [tag for tag, _ in harmless.elements]
    assert [sorted(attributes) for _, attributes in seen.elements] == [
        sorted(attributes) for _, attributes in harmless.elements
    ]
    assert seen.data()["by_query"]["rows"] == [visible(name), "q"]
    assert visible(name) in seen.text


def test_only_the_pages_own_script_may_run() -> None:
    seen = Page(page(three_systems()))
    policy = next(a["content"] for t, a in seen.elements if t == "meta" and "http-equiv" in a)
    assert policy is not None
    running = [text for attributes, text in seen.scripts if attributes.get("type") != "application/json"]
    assert len(running) == 1
    digest = base64.b64encode(hashlib.sha256(running[0].encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    assert not any(name.startswith("on") for _, attributes in seen.elements for name in attributes)


def test_nothing_in_the_page_points_elsewhere() -> None:
    text = page(three_systems())
    assert not re.search(r"(?i)https?:|\bsrc\s*=|@import|//[a-z0-9.-]+\.[a-z]{2,}", text)
    urls = re.findall(r"url\(([^)]*)\)", text)
    assert urls
    assert all(url.startswith("#") for url in urls)
    elements = Page(text).elements
    assert all(tag not in ("link", "img", "iframe", "object", "base") for tag, _ in elements)
    assert {attributes["href"] for tag, attributes in elements if tag == "a"} == {"#by-query"}


def test_the_same_result_gives_the_same_page() -> None:
    assert page(three_systems()) == page(three_systems())


def test_a_big_result_stays_small(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    targets = rng.integers(0, 9, 500).tolist()
    names = [f"system-{k}" for k in range(5)]
    result = made_up_result([made_up(name, 2.0, targets, 3, 2) for name in names[:1]], targets)
    scores = [(name, *list(row.values())[1:]) for name in names for row in result.table.to_pylist()]
    n = 50_000
    points = pa.concat_tables(
        pa.table(
            {
                "system": [name] * n,
                "condition": ["all"] * n,
                "curve": [kind] * n,
                "threshold": np.sort(rng.normal(size=n))[::-1],
                "x": np.sort(10 ** rng.uniform(-7, -0.5, n)),
                "y": np.sort(rng.beta(0.6, 0.6, n))[::-1],
            }
        ).cast(CURVES)
        for name in names
        for kind in ("det", "det_pooled")
    )
    write_report(Result.of(table(scores, SCORES), points, MANIFEST), tmp_path / "deep" / "report.html")
    text = (tmp_path / "deep" / "report.html").read_text(encoding="utf-8")
    plots = figures(points, leaderboard_of(table(scores, SCORES)))["all"]
    assert text.count('class="curve c') == sum(len(plot["systems"]) for plot in plots)
    assert 100_000 < len(text) < 3_000_000


def test_systems_beyond_the_limit_are_left_out_of_the_table_of_queries_and_it_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cubes, "MOST_NUMBERS", 2 * 6 * 6)
    seen = Page(page(three_systems()))
    assert seen.data()["by_query"]["systems"] == list(leaderboard_of(three_systems().table).systems[:2])
    assert any("shows the first 2 of 3 systems" in text for text in seen.text)


def test_without_room_for_one_system_the_table_of_queries_has_the_ranking_measure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = Page(page(three_systems())).data()["by_query"]
    found = leaderboard_of(three_systems().table)
    monkeypatch.setattr(cubes, "MOST_NUMBERS", 2 * len(whole["rows"]))
    seen = Page(page(three_systems()))
    cube = seen.data()["by_query"]
    assert cube["measures"] == [next(name for name in found.by if name in whole["measures"])] == ["atwv"]
    assert cube["systems"] == list(found.systems[:2])
    assert (cube["rows"], cube["values"]["atwv"]) == (whole["rows"], whole["values"]["atwv"][:2])
    left_out = f"shows the first 2 of 3 systems and 1 of {len(whole['measures'])} measures"
    assert any(left_out in text for text in seen.text)

    monkeypatch.setattr(cubes, "MOST_NUMBERS", 2)
    seen = Page(page(three_systems()))
    cube = seen.data()["by_query"]
    assert (cube["systems"], cube["rows"]) == (list(found.systems[:1]), whole["rows"][:2])
    assert cube["values"] == {"atwv": [whole["values"]["atwv"][0][:2]]}
    assert any(f"and the first 2 of {len(whole['rows'])} queries" in text for text in seen.text)


def test_the_first_screen_says_who_won_and_by_how_much() -> None:
    result = three_systems()
    found = leaderboard_of(result.table)
    first, second = found.ranked("all")[:2]
    values = [found.value("all", system, "atwv") for system in (first, second)]
    ahead = written("atwv", values[0] - values[1])
    said = f"{first} is first by ATWV with {written('atwv', values[0])}, {ahead} ahead of {second}."
    assert f'<p class="first">{said}</p>' in page(result)


def test_systems_with_equal_numbers_share_the_first_place() -> None:
    values = {"a": 0.5, "b": 0.25, "c": 0.5}
    rows = [(name, "all", None, "atwv", value) for name, value in values.items()]
    result = Result.of(table(rows, SCORES), table([], CURVES), {})
    assert '<p class="first">a, c share the first place by ATWV with 0.5000.</p>' in page(result)


def test_the_leaderboard_has_the_requested_measures_in_their_order() -> None:
    rows = [(system, "all", None, measure, 0.5) for measure in ("map", "stwv") for system in "ab"]
    result = Result.of(table(rows, SCORES), table([], CURVES), {"measures": ["stwv", "map"]})
    headings = [row for row in Page(page(result)).rows if "MAP" in row]
    assert [cell for cell in headings[0] if cell in ("MAP", "STWV")] == ["STWV", "MAP"]


def test_notes_are_folded_under_their_count() -> None:
    many = page(replace(three_systems(), notes=tuple(f"Note {k}." for k in range(30))))
    assert '<details class="notes"><summary>30 notes</summary>' in many
    assert all(f"<li>Note {k}.</li>" in many for k in range(30))


def test_many_systems_are_not_all_drawn_at_once() -> None:
    targets = [3]
    result = made_up_result([made_up(f"s{k:02}", 1.0, targets, k) for k in range(20)], targets)
    seen = Page(page(result))
    boxes = [a for tag, a in seen.elements if tag == "input" and "data-system" in a]
    plots = figures(result.curve_table, leaderboard_of(result.table))["all"]
    assert [("checked" in box) for box in boxes] == ([True] * 12 + [False] * 8) * len(plots)
    assert any("8 further systems" in text for text in seen.text)
    curves = [a["class"] or "" for tag, a in seen.elements if tag == "path" and "data-system" in a]
    colours = {name.removesuffix(" off") for name in curves}
    assert len(curves) == 20 * len(plots)
    assert len(colours) == 18


def test_curves_and_all_measures_of_many_systems_are_of_the_first_ones_and_the_page_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cubes, "MOST_DRAWN", 2)
    monkeypatch.setattr(html, "MOST_MEASURED", 1)
    targets = [3]
    result = made_up_result([made_up(f"s{k}", 1.0, targets, k) for k in range(4)], targets)
    seen, found = Page(page(result)), leaderboard_of(result.table)
    for plot in figures(result.curve_table, found)["all"]:
        assert [system["name"] for system in plot["systems"]] == list(found.ranked("all")[:2])
    assert any("Not drawn: 2 further systems; curves.parquet" in text for text in seen.text)
    assert any("Not shown: 3 further systems; scores.parquet has all." in text for text in seen.text)


def test_of_many_conditions_the_first_have_sections_and_the_table_has_as_many_as_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    targets = [3, 2]
    systems = [made_up(f"s{k}", 1.0, targets, k) for k in range(2)]
    result = made_up_result(systems, targets, {f"part={k}": [k % 2] for k in range(9)})
    found = leaderboard_of(result.table)
    whole = Page(page(result)).data()["by_condition"]
    assert (whole["rows"], whole["systems"]) == (list(found.conditions), list(found.systems))

    monkeypatch.setattr(html, "MOST_PLACES", 3 * (32 + len(systems)))
    monkeypatch.setattr(cubes, "MOST_NUMBERS", len(systems) * len(found.columns) * len(found.conditions))
    seen = Page(page(result))
    titles = [a["data-condition"] for tag, a in seen.elements if tag == "div" and "data-condition" in a]
    assert titles == ["0", "1", "2"]
    assert any("The first 3 of 10 conditions have sections above." in text for text in seen.text)
    cube = seen.data()["by_condition"]
    assert (cube["rows"], cube["systems"]) == (whole["rows"], whole["systems"])
    assert cube["values"] == {name: whole["values"][name] for name in found.columns}
    left_out = f"This table shows {len(found.columns)} of {len(found.measures)} measures; scores.parquet"
    assert any(left_out in text for text in seen.text)

    monkeypatch.setattr(cubes, "MOST_NUMBERS", len(found.conditions))
    seen = Page(page(result))
    cube = seen.data()["by_condition"]
    assert cube["values"] == {"atwv": whole["values"]["atwv"][:1]}
    assert any("This table shows the first 1 of 2 systems and 1 of " in text for text in seen.text)

    monkeypatch.setattr(cubes, "MOST_NUMBERS", 4)
    cube = Page(page(result)).data()["by_condition"]
    assert (cube["measures"], cube["rows"]) == (["atwv"], whole["rows"][:4])


def undecided() -> Result:
    result = three_systems()
    by_decision = ("n_hit", "n_miss", "n_false_alarm", "p_miss", "p_fa", "atwv", "actual_threshold")
    rows = [
        (*list(row.values())[:4], math.nan if row["measure"] in by_decision else row["value"])
        for row in result.table.to_pylist()
    ]
    return Result.of(table(rows, SCORES), result.curve_table, result.manifest)


def not_defined() -> Result:
    result = three_systems()
    points = [(*list(row.values())[:4], math.nan, math.nan) for row in result.curve_table.to_pylist()]
    rows = [(*list(row.values())[:4], math.nan) for row in result.table.to_pylist()]
    return Result.of(table(rows, SCORES), table(points, CURVES), result.manifest)


@pytest.mark.parametrize(
    "result",
    [
        Result.of(table([], SCORES), table([], CURVES), {}),
        Result.of(three_systems().table, table([], CURVES), MANIFEST),
        replace(three_systems(), manifest={}, notes=()),
        Result.of(table([("s", "all", None, "eer", 0.1)], SCORES), table([], CURVES), MANIFEST),
        Result.of(table([("s", "all", "q", "ap", 0.1)], SCORES), table([], CURVES), MANIFEST),
        undecided(),
        not_defined(),
    ],
    ids=["empty", "no curves", "no manifest", "one measure", "only queries", "no decisions", "not defined"],
)
def test_a_result_that_lacks_something_still_makes_a_page(result: Result) -> None:
    text = page(result)
    seen = Page(text)
    assert not re.search(r"\bnan\b", re.sub(r"<script.*?</script>|<style.*?</style>", "", text, flags=re.DOTALL))
    for attributes, script in seen.scripts:
        if attributes.get("type") == "application/json":
            json.loads(script)
    assert ("tr" in dict(seen.elements)) == (result.table.num_rows > 0 or bool(result.manifest))


SIGHT = {
    "full": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
"""What is left of linear RGB (Machado, Oliveira and Fernandes 2009, severity 1.0)."""


def lightness_and_hue(linear_rgb: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """CIE L*a*b* under D65."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(np.clip(linear_rgb, 0, 1) @ to_xyz.T / (0.9505, 1.0, 1.089)).T
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)]).T


@pytest.mark.parametrize("sight", SIGHT)
def test_the_colours_of_systems_stay_apart_for_every_kind_of_sight(sight: str) -> None:
    colours = re.findall(r"--c(\d): #([0-9a-f]{6});", page(three_systems()))
    assert [number for number, _ in colours] == list("012345") * 2
    for theme in (colours[:6], colours[6:]):
        rgb = np.array([[int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)] for _, colour in theme])
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        seen = lightness_and_hue(linear @ np.array(SIGHT[sight]).T)
        apart = np.linalg.norm(seen[:, None] - seen[None], axis=-1)[np.triu_indices(6, 1)]
        assert apart.min() > 25


def test_long_headings_of_a_leaderboard_break() -> None:
    """At 1400 px all columns of the default leaderboard are seen."""
    text = page(three_systems())
    assert '">actual_<wbr>threshold</th>' in text
    assert '">P_miss</th>' in text
