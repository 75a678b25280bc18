"""The report in a real browser that reaches no network. Skips, and says so, where there is no Chromium."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import swsdask as sws
from swsdask.model.results import Result
from swsdask.render.html import page
from tests.browser.chromium import CHROMIUM, POLICY, open_page, played
from tests.results import MadeUp, made_up, made_up_result, three_systems

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: the page is not opened")


def after(script: str, folder: Path, result: Result | None = None) -> str:
    """What a script that plays the reader finds, once the page is whole."""
    return played(script, page(three_systems() if result is None else result), folder)


def test_conditions_are_side_by_side(tmp_path: Path) -> None:
    """Bars of the chosen measure, 100 % from the least value or 0 to the greatest, and the DET plots when opened."""
    found = after(
        """
        const section = document.getElementById("by-condition");
        const texts = (selector) => [...section.querySelectorAll(selector)].map((each) => each.textContent);
        const before = section.querySelectorAll("svg.axes").length;
        section.querySelector("details").open = true;
        section.querySelector("details").dispatchEvent(new Event("toggle"));
        const clips = [...section.querySelectorAll("clipPath")].map((clip) => clip.id);
        const own = [...document.querySelectorAll(".det clipPath")].map((clip) => clip.id);
        const numbers = texts("table td");
        const widths = [...section.querySelectorAll(".lane i")].map((bar) => parseFloat(bar.style.width));
        return JSON.stringify([before, texts("figcaption"), texts("ol b").join() === numbers.join(),
          Math.max(...widths), clips.length, clips.some((clip) => own.includes(clip))]);
        """,
        tmp_path,
    )
    captions = ["all", "oov=true", "oov=false"]
    assert json.loads(found) == [0, captions + captions, True, 100, 3, False]


def test_small_rates_have_the_digits_of_the_tables(tmp_path: Path) -> None:
    """A rate that would be only zeros has three digits, in bars that the page's script writes too."""
    result = three_systems()
    table = result.table.filter(pc.equal(result.table["measure"], "p_fa"))
    smaller = table.set_column(4, "value", pc.multiply(table["value"], 1e-3))
    small = Result.of(smaller, result.curve_rows, {**result.manifest, "measures": ["p_fa"]})
    found = after(
        """
        const section = document.getElementById("by-condition");
        const texts = (selector) => [...section.querySelectorAll(selector)].map((each) => each.textContent);
        return JSON.stringify([texts("ol b"), texts("table td")]);
        """,
        tmp_path,
        small,
    )
    bars, cells = json.loads(found)
    assert bars == cells
    assert any(re.fullmatch(r"[1-9](\.\d+)?e-0\d", each) for each in bars), bars


def test_the_page_opens_without_a_network_and_without_complaint(tmp_path: Path) -> None:
    opened = open_page(page(three_systems()), tmp_path)
    assert opened.console == []
    assert '<html lang="en" class="scripted">' in opened.dom
    by_query = opened.dom[opened.dom.index('id="by-query"') :]
    assert all(f">q{number}</th>" in by_query for number in range(6))
    by_condition = opened.dom[opened.dom.index('id="by-condition"') :]
    assert by_condition.index(">all</th>") < by_condition.index(">oov=true</th>")
    assert opened.dom.count('class="curve c') == 18, "three conditions, two plots, three systems"
    assert re.search(r'<div class="condition" data-condition="0">', opened.dom)
    assert re.search(r'<div class="condition" data-condition="1" hidden="">', opened.dom)


def test_complaints_would_be_seen(tmp_path: Path) -> None:
    whole = page(three_systems())
    reaching_out = whole.replace("</main>", '<img src="http://localhost/x.png"></main>')
    assert any("Content Security Policy" in line for line in open_page(reaching_out, tmp_path).console)
    broken = POLICY.sub("", whole).replace("</body>", "<script>nowhere.to.be.found</script></body>")
    assert any("Uncaught ReferenceError" in line for line in open_page(broken, tmp_path).console)


def test_script_in_an_id_does_not_run(tmp_path: Path) -> None:
    attack = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
    opened = open_page(page(three_systems((attack, "b", "c"))), tmp_path)
    assert opened.console == []
    assert "<title>3 systems</title>" in opened.dom


def test_a_heading_sorts_its_table_both_ways(tmp_path: Path) -> None:
    found = after(
        """
        const table = document.querySelector("table.leaderboard");
        const headings = [...table.querySelectorAll("thead th")];
        const at = headings.findIndex((heading) => heading.textContent === "False alarms");
        const column = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[at].dataset.value));
        const click = () => headings[at].querySelector("button").click();
        click(); const down = column(); const said = headings[at].getAttribute("aria-sort");
        click(); const up = column();
        const sorted = [...up].sort((a, b) => a - b);
        return [said, new Set(up).size > 1, String(up) === String(sorted),
          String(down) === String(sorted.reverse())].join();
        """,
        tmp_path,
    )
    assert found == "descending,true,true,true"


def test_thousands_and_infinities_sort_as_numbers(tmp_path: Path) -> None:
    result = three_systems()
    rows = {"good": {"rows": 950}, "middling": {"rows": 12_000}, "weak": {"rows": 1_200}}
    weak = pc.and_(pc.equal(result.table["system"], "weak"), pc.equal(result.table["measure"], "atwv"))
    values = pc.if_else(weak, float("-inf"), result.table["value"])
    table = result.table.set_column(result.table.schema.get_field_index("value"), "value", values)
    found = after(
        """
        const sorted = (words) => {
          const heading = [...document.querySelectorAll("thead th")].find((each) => each.textContent === words);
          heading.querySelector("button").click();
          return [...heading.closest("table").tBodies[0].rows].map((row) => row.cells[heading.cellIndex].textContent);
        };
        return JSON.stringify([sorted("Detections"), sorted("ATWV").at(-1)]);
        """,
        tmp_path,
        Result.of(table, result.curve_rows, {**result.manifest, "runs": rows}),
    )
    assert json.loads(found) == [["12,000", "1,200", "950"], "-inf"]


def test_differences_sort_by_any_system(tmp_path: Path) -> None:
    """A click on a column's system orders rows by their difference from it; its own, which has none, comes last."""
    result = three_systems()
    compared = replace(result, comparison=sws.compare(result, ["atwv", "p_fa"], replicates=50))
    found = after(
        """
        const ofColumn = (table, heading, at) => {
          const name = (row) => row.cells[0].lastElementChild.textContent;
          const rows = () => [...table.tBodies[0].rows].map((row) => [name(row), row.cells[at + 1].dataset.value]);
          const button = heading.querySelector("button");
          button.click(); const down = rows();
          button.click();
          return [heading.title, down, rows(), heading.getAttribute("aria-sort")];
        };
        return JSON.stringify([...document.querySelectorAll("table.matrix")].map((table) =>
          [...table.querySelectorAll("thead th")].slice(1).map((heading, at) => ofColumn(table, heading, at))));
        """,
        tmp_path,
        compared,
    )
    matrices = json.loads(found)
    assert compared.comparison is not None
    assert len(matrices) == 2
    for measure, columns in zip(("atwv", "p_fa"), matrices, strict=True):
        pairs = {(row["a"], row["b"]): row["difference"] for row in compared.comparison.differences_of("all", measure)}
        pairs |= {(b, a): 0.0 - difference for (a, b), difference in pairs.items()}
        assert len(columns) == 3
        for system, down, up, said in columns:
            own = {other: difference for (other, than), difference in pairs.items() if than == system}
            ascending = sorted(own, key=lambda other: own[other])
            assert [name for name, _ in down] == [*ascending[::-1], system]
            assert [name for name, _ in up] == [*ascending, system]
            assert [float(value) for _, value in up[:-1]] == [own[other] for other in ascending]
            assert said == "ascending"


def test_numbers_that_are_not_defined_sort_last_both_ways(tmp_path: Path) -> None:
    found = after(
        """
        const table = document.querySelector("#by-query table");
        const at = [...table.querySelectorAll("thead th")].findIndex((heading) => heading.textContent === "ATWV");
        const last = () => [...table.tBodies[0].rows].at(-1).cells[0].textContent;
        const click = () => table.querySelectorAll("thead button")[at].click();
        click(); const down = last();
        click(); const up = last();
        return [down, up, table.tBodies[0].rows.length].join();
        """,
        tmp_path,
    )
    assert found == "q2,q2,6"


def test_queries_can_be_filtered_and_compared_between_systems(tmp_path: Path) -> None:
    found = after(
        """
        const section = document.getElementById("by-query");
        const [system, filter] = [".system", ".filter"].map((selector) => section.querySelector(selector));
        const rows = () => section.querySelector("tbody").rows;
        filter.value = "Q3"; filter.dispatchEvent(new Event("input"));
        const filtered = rows().length + " " + rows()[0].cells[0].textContent;
        const count = section.querySelector(".count").textContent;
        system.value = "-1"; system.dispatchEvent(new Event("change"));
        const names = [...section.querySelectorAll("thead th")].map((heading) => heading.textContent);
        return [filtered, count, ...names.sort()].join();
        """,
        tmp_path,
    )
    assert found == "1 q3,1 of 6 queries,Query,good,middling,weak"


def test_a_system_that_is_ticked_off_goes_from_every_plot(tmp_path: Path) -> None:
    found = after(
        """
        const gone = () => document.querySelectorAll(".axes [data-system='2'].off").length;
        const before = gone();
        document.querySelector(".legend input[data-system='2']").click();
        const boxes = [...document.querySelectorAll(".legend input[data-system='2']")];
        return [before, gone(), boxes.some((box) => box.checked)].join();
        """,
        tmp_path,
    )
    assert found == "0,12,false"


def test_another_condition_can_be_chosen(tmp_path: Path) -> None:
    found = after(
        """
        const chooser = document.getElementById("condition");
        chooser.value = "2"; chooser.dispatchEvent(new Event("change"));
        return [...document.querySelectorAll(".condition")].map((section) => section.hidden).join();
        """,
        tmp_path,
    )
    assert found == "true,true,false"


def test_the_nearest_point_of_a_curve_shows_its_numbers(tmp_path: Path) -> None:
    found = after(
        """
        const figure = document.querySelector(".det");
        const curve = JSON.parse(figure.querySelector(".curves").textContent).systems[0];
        const svg = figure.querySelector(".axes");
        svg.scrollIntoView();
        const at = new DOMPoint(curve.points[0].x, curve.points[0].y).matrixTransform(svg.getScreenCTM());
        svg.dispatchEvent(new PointerEvent("pointermove", { clientX: at.x, clientY: at.y }));
        const tip = figure.querySelector(".tip");
        const shown = [tip.hidden, ...tip.textContent.split(String.fromCharCode(10)).map((line) => line.split(" ")[0])];
        svg.dispatchEvent(new PointerEvent("pointerleave"));
        return [...shown, tip.hidden].join();
        """,
        tmp_path,
    )
    assert re.fullmatch(r"false,(good|middling|weak):,threshold,P_fa,P_miss,TWV,true", found)


def test_a_query_that_costs_much_leads_to_its_row(tmp_path: Path) -> None:
    found = after(
        """
        const link = document.querySelector('#worst-queries a[data-system="middling"]');
        document.querySelector("#by-query .filter").value = "nothing has this name";
        link.click();
        const row = document.querySelector("#by-query tr.found");
        const at = [...document.querySelectorAll("#by-query th")].findIndex((h) => h.textContent === "ATWV");
        const system = document.querySelector("#by-query .system");
        return [row.cells[0].textContent === link.dataset.query, system.selectedOptions[0].textContent,
          row.cells[at].textContent === link.nextSibling.textContent.trim()].join();
        """,
        tmp_path,
    )
    assert found == "true,middling,true"


def test_of_very_many_queries_the_one_that_costs_much_is_drawn_alone(tmp_path: Path) -> None:
    targets = [1] * 10_001
    result = made_up_result([MadeUp("s", [[1.0]] * 10_000 + [[]], [[0.0]] * 10_001)], targets)
    found = after(
        """
        const link = document.querySelector("#worst-queries a");
        link.click();
        const rows = document.querySelectorAll("#by-query tbody tr");
        return [link.dataset.query, rows.length, rows[0].cells[0].textContent, rows[0].className].join();
        """,
        tmp_path,
        result,
    )
    assert found == "q10000,1,q10000,found"


def test_of_many_conditions_bars_are_drawn_of_the_first(tmp_path: Path) -> None:
    targets = [3, 2]
    result = made_up_result([made_up("s", 1.0, targets, 1)], targets, {f"part={k}": [k % 2] for k in range(30)})
    found = after(
        """
        const section = document.getElementById("by-condition");
        return [section.querySelectorAll(".bars-of-measure figure").length, section.querySelectorAll("tbody tr").length,
          section.querySelector(".key").textContent].join("; ");
        """,
        tmp_path,
        result,
    )
    assert found == "24; 31; Shown: the first 24 of 31 conditions; the table has all."


def test_systems_are_found_by_name_and_pinned_by_number(tmp_path: Path) -> None:
    found = after(
        """
        const table = document.querySelector("table.leaderboard");
        const names = () => [...table.tBodies[0].rows].filter((row) => !row.hidden)
          .map((row) => row.cells[0].lastElementChild.textContent).join("+");
        const [search, only] = ["systems", "pinned"].map((id) => document.getElementById(id));
        search.value = "EA"; search.dispatchEvent(new Event("input"));
        const filtered = names();
        search.value = ""; search.dispatchEvent(new Event("input"));
        table.querySelector("button.badge").click();
        only.click();
        const pinned = names(), drawn = document.querySelectorAll(".det .legend input:checked").length;
        only.click();
        return [filtered, pinned, drawn / document.querySelectorAll(".det").length, names().split("+").length].join();
        """,
        tmp_path,
    )
    assert found == "weak,middling,1,3"


def test_queries_beside_a_chosen_system(tmp_path: Path) -> None:
    found = after(
        """
        const section = document.getElementById("by-query");
        const [system, less] = [".system", ".less"].map((selector) => section.querySelector(selector));
        const at = () => [...section.querySelectorAll("th")].findIndex((heading) => heading.textContent === "ATWV");
        const cell = () => Number(section.querySelector("tbody tr").cells[at()].dataset.value);
        const choose = (select, value) => { select.value = value; select.dispatchEvent(new Event("change")); };
        const first = cell();
        choose(system, "1"); const second = cell();
        choose(system, "0"); choose(less, "1");
        return first !== second && cell() === first - second;
        """,
        tmp_path,
    )
    assert found == "true"


SAVED = """
    const saved = [];
    URL.createObjectURL = (content) => { saved.push(content); return "#"; };
    HTMLAnchorElement.prototype.click = function () { saved.at(-1).file = this.download; };
    const press = (element, kind) =>
      [...element.querySelectorAll("button")].find((button) => button.textContent === kind).click();
"""


def saved(script: str, folder: Path) -> str:
    """What a script that ends in a promise finds."""
    told = f"(async () => {{ {SAVED} {script} }})().then((found) => {{ document.title = found; }}); return 'waiting';"
    return after(told, folder)


def test_a_table_is_saved_with_all_its_digits(tmp_path: Path) -> None:
    found = saved(
        """
        press(document.querySelector(".leaderboard").parentElement.nextElementSibling, "CSV");
        await Promise.resolve();
        await Promise.resolve();
        const [heading, ...lines] =
          (await saved[0].text()).trimEnd().split(String.fromCharCode(10)).map((line) => line.split(","));
        const digits = lines.map((line) => line[heading.indexOf("ATWV")].length);
        return [saved[0].file, heading[0], lines.length, lines[0][0],
          lines.every((line) => line.length === heading.length), Math.max(...digits) > 10].join();
        """,
        tmp_path,
    )
    assert found == "leaderboard.csv,System,3,middling,true,true"


def test_all_measures_are_saved_with_all_their_digits(tmp_path: Path) -> None:
    result = three_systems()
    found = saved(
        """
        press(document.querySelector(".measures").parentElement.nextElementSibling, "CSV");
        await Promise.resolve();
        await Promise.resolve();
        return JSON.stringify((await saved[0].text()).split(String.fromCharCode(10)).map((line) => line.split(",")));
        """,
        tmp_path,
    )
    heading, *rows = json.loads(found)
    values = {row[0]: dict(zip(heading[1:], row[1:], strict=True)) for row in rows if row != [""]}
    for (condition, system, measure), value in result.numbers.values.items():
        if condition == "all":
            assert float(values[measure][system]) == value


def test_columns_of_queries_have_headings_of_their_own(tmp_path: Path) -> None:
    """Thresholds of two measures share their heading elsewhere."""
    result = three_systems()
    values = result.table.to_pylist()
    rows = [row for row in values if row["query"] is not None and row["measure"] == "p_fa"]
    values += [{**row, "measure": name} for row in rows for name in ("otwv_threshold", "best_f1_threshold")]
    table = pa.Table.from_pylist(values, result.table.schema)
    found = after(
        """
        const headings = [...document.querySelectorAll("#by-query thead th")].map((heading) => heading.textContent);
        return [headings.length, new Set(headings).size].join();
        """,
        tmp_path,
        Result.of(table, result.curve_rows, result.manifest),
    )
    assert found == "9,9"


def test_a_figure_is_saved_with_its_styles(tmp_path: Path) -> None:
    found = saved(
        """
        const tools = document.querySelector(".plot .downloads");
        press(tools, "SVG");
        await Promise.resolve();
        await Promise.resolve();
        const text = await saved[0].text();
        const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
        const curve = parsed.querySelector("path[stroke-width='2.2px']");
        press(tools, "PNG");
        while (saved.length < 2) await new Promise((done) => setTimeout(done, 20));
        return [saved[0].file, parsed.localName, !text.includes("var(--"), curve.getAttribute("stroke").slice(0, 3),
          saved[1].type, saved[1].size > 1000].join();
        """,
        tmp_path,
    )
    assert found == "detection-error-trade-off.svg,svg,true,rgb,image/png,true"
