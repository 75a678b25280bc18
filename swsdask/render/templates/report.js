"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  root.classList.add("scripted");
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (name, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };

  const faces = new Map(data.faces.map((face) => [face.measure, face]));
  const number = (value) => (typeof value === "string" ? Number(value.replace("inf", "Infinity")) : value ?? NaN);
  const shown = (measure, value) => {
    const x = number(value);
    if (Number.isNaN(x)) return "-";
    if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
    const digits = faces.get(measure).digits;
    if (digits === null) return String(Number(x.toPrecision(6)));
    const zeros = digits === 6 && x !== 0 && Math.abs(x) < 0.5 * 10 ** -digits;
    if (zeros) return String(Number(x.toPrecision(3))).replace(/e-(\d)$/, "e-0$1");
    return x.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  };

  /* Tables sort by their headings: first the way that puts the better or larger first, then the other way. */
  const order = (a, b) => {
    const [x, y] = [number(a), number(b)];
    if (a === "" || b === "") return (a === "") - (b === "");
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, undefined, { numeric: true }) : x - y;
  };
  const keyOf = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
  const sortBy = (table, heading, column) => {
    const descending = heading.getAttribute("aria-sort") !== "descending" && column > 0 ||
      heading.getAttribute("aria-sort") === "ascending";
    all("th[aria-sort]", table).forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const keys = new Map(rows.map((row) => [row, keyOf(row, column)]));
    rows.sort((a, b) => {
      const [x, y] = [keys.get(a), keys.get(b)];
      const sign = descending && x !== "" && y !== "" ? -1 : 1;
      return sign * order(x, y);
    });
    body.append(...rows);
  };
  const sortable = (table) => {
    all("thead th", table).forEach((heading, column) => {
      if ("fixed" in heading.dataset) return;
      const button = make("button", { type: "button" }, ...heading.childNodes);
      button.addEventListener("click", () => sortBy(table, heading, column));
      heading.append(button);
    });
  };
  all("table.sortable").forEach(sortable);

  /* One condition at a time. */
  const conditions = all(".condition");
  const chooser = document.getElementById("condition");
  const contents = document.getElementById("contents");
  const list = () => contents?.replaceChildren(...all("main section").filter((section) => section.querySelector("h2") && !section.closest("[hidden]")).map((section, at) => {
    section.id ||= `section-${all("main section").indexOf(section)}`;
    const heading = section.querySelector("h2").childNodes[0].textContent.trim();
    return make("li", {}, make("a", { href: `#${section.id}`, textContent: heading }));
  }));
  const choose = (index) => {
    conditions.forEach((section, at) => { section.hidden = at !== index; });
    list();
  };
  if (chooser) chooser.addEventListener("change", () => choose(Number(chooser.value)));
  if (contents) choose(0);

  /* A system that is unticked disappears from every DET plot. */
  all(".legend input").forEach((box) => box.addEventListener("change", () => {
    all(`[data-system="${box.dataset.system}"]`).forEach((element) => {
      if (element.tagName === "INPUT") element.checked = box.checked;
      else element.classList.toggle("off", !box.checked);
    });
  }));

  /* Systems are found by a part of their names and pinned by their numbers, in every table and plot. */
  const search = document.getElementById("systems");
  if (search) {
    const only = document.getElementById("pinned");
    const pinned = new Set();
    const rows = all("tbody th.name > .badge").map((badge) => {
      const number = badge.textContent;
      const name = badge.parentElement.textContent.trim().slice(number.length).trim();
      const pin = make("button", { type: "button", className: badge.className, textContent: number, title: `Pin ${name}` });
      pin.addEventListener("click", () => {
        if (!pinned.delete(number)) pinned.add(number);
        refresh();
      });
      badge.replaceWith(pin);
      return { pin, number, row: pin.closest("tr"), name: name.toLowerCase() };
    });
    const boxes = all(".legend input").map((box) => ({ box, first: box.checked }));
    const refresh = () => {
      const wanted = search.value.toLowerCase();
      const alone = only.checked && pinned.size > 0;
      rows.forEach(({ pin, number, row, name }) => {
        pin.setAttribute("aria-pressed", pinned.has(number));
        row.hidden = !name.includes(wanted) || (alone && !pinned.has(number));
      });
      boxes.forEach(({ box, first }) => {
        const checked = alone ? pinned.has(box.dataset.system) : first;
        if (box.checked !== checked) box.click();
      });
    };
    search.addEventListener("input", refresh);
    only.addEventListener("change", refresh);
    refresh();
  }

  /* The nearest point of a curve shows its numbers; the two operating points take precedence. */
  const rate = (p) => `${Number((100 * p).toPrecision(4))} %`;
  const nearest = (figure, curves, x, y) => {
    let best = null;
    let least = 34;
    const visible = new Set(all(".legend input:checked", figure).map((box) => Number(box.dataset.system)));
    for (const curve of curves.systems) {
      if (!visible.has(curve.number)) continue;
      for (const point of curve.points) {
        const away = Math.hypot(point.x - x, point.y - y) - 14;
        if (away < least) [best, least] = [{ ...point, name: curve.name }, away];
      }
      curve.x.forEach((at, i) => {
        const away = Math.hypot(at - x, curve.y[i] - y);
        if (away < least) {
          best = { x: at, y: curve.y[i], name: curve.name, threshold: curve.threshold[i], fa: curve.p_fa[i], miss: curve.p_miss[i] };
          least = away;
        }
      });
    }
    return best;
  };
  all(".det").forEach((figure) => {
    const curves = JSON.parse(figure.querySelector(".curves").textContent);
    const [svg, tip, here] = [".axes", ".tip", ".here"].map((selector) => figure.querySelector(selector));
    const hide = () => { tip.hidden = true; here.setAttribute("hidden", ""); };
    const show = (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const point = nearest(figure, curves, at.x, at.y);
      if (!point) return hide();
      const twv = curves.beta === null ? [] : [`TWV ${(1 - point.miss - curves.beta * point.fa).toFixed(4)}`];
      const threshold = number(point.threshold);
      const lines = [
        point.name + (point.kind ? `: ${point.kind}` : ""),
        ...(Number.isNaN(threshold) ? [] : [`threshold ${threshold}`]),
        `P_fa ${rate(point.fa)}`,
        `P_miss ${rate(point.miss)}`,
        ...twv,
      ];
      tip.textContent = lines.join("\n");
      tip.hidden = false;
      const scale = svg.clientWidth / svg.viewBox.baseVal.width;
      const left = point.x * scale + 14;
      tip.style.left = `${Math.max(0, left + tip.offsetWidth > svg.clientWidth ? left - tip.offsetWidth - 28 : left)}px`;
      tip.style.top = `${Math.max(0, Math.min(point.y * scale + 10, svg.clientHeight - tip.offsetHeight))}px`;
      here.setAttribute("cx", point.x);
      here.setAttribute("cy", point.y);
      here.removeAttribute("hidden");
    };
    svg.addEventListener("pointermove", show);
    svg.addEventListener("pointerdown", show);
    svg.addEventListener("pointerleave", hide);
  });

  /* Tables that are made from the numbers on demand. */
  const draw = (table, first, columns, rows) => {
    const head = make("tr", {}, make("th", { scope: "col", className: "name", textContent: first }));
    columns.forEach((column) => head.append(make("th", { scope: "col", title: column.title, textContent: column.heading })));
    const body = make("tbody");
    rows.forEach((row) => {
      const name = make("th", { scope: "row", className: "name", textContent: row.name });
      if (row.text) name.append(" ", make("span", { className: "text", textContent: row.text }));
      const line = make("tr", {}, name);
      row.values.forEach((value, i) => {
        const cell = make("td", { textContent: shown(columns[i].measure, value) });
        const x = number(value);
        cell.dataset.value = Number.isNaN(x) ? "" : x;
        if (columns[i].measure.endsWith("twv")) {
          cell.className = "bar";
          cell.style.setProperty("--share", `${100 * Math.min(1, Math.max(0, x || 0))}%`);
        }
        line.append(cell);
      });
      body.append(line);
    });
    table.replaceChildren(make("thead", {}, head), body);
    sortable(table);
  };
  const options = (select, entries) => entries.forEach(([value, text]) => select.append(make("option", { value, textContent: text })));
  const measureOptions = (select, measures) => options(select, measures.map((m) => [m, faces.get(m).name]));
  const systemColumns = (names, measure) => names.map((name) => ({ measure, heading: name, title: name }));

  const byCondition = document.getElementById("by-condition");
  if (byCondition) {
    const cube = data.by_condition;
    const [select, bars, table, plots] =
      [".measure", ".bars-of-measure", "table", "details"].map((selector) => byCondition.querySelector(selector));
    const MOST = 24;
    const badges = new Map(all("tbody th.name", conditions[0].querySelector(".leaderboard"))
      .map((heading) => [heading.lastElementChild.textContent, heading.firstElementChild]));
    const badge = ({ className, textContent }) => make("span", { className, textContent });
    const figure = (name, ...children) => make("figure", {}, make("figcaption", { textContent: name }), ...children);

    /* One scale for all conditions, which has 0 in it: lengths compare across them. */
    const drawBars = (measure) => {
      const systems = cube.systems.slice(0, MOST);
      const values = (at) => systems.map((_, s) => number(cube.values[measure][s][at]));
      const finite = cube.rows.slice(0, MOST).flatMap((_, at) => values(at)).filter(Number.isFinite);
      const [low, high] = [Math.min(0, ...finite), Math.max(0, ...finite)];
      const place = (x) => (high > low ? 100 * (Math.min(high, Math.max(low, x)) - low) / (high - low) : 0);
      bars.replaceChildren(...cube.rows.slice(0, MOST).map((name, at) => figure(name, make("ol", {}, ...values(at).map((x, s) => {
        const bar = make("i");
        const [from, to] = Number.isNaN(x) ? [0, 0] : [place(Math.min(0, x)), place(Math.max(0, x))];
        bar.style.left = `${from}%`;
        bar.style.width = `${to - from}%`;
        const mark = badges.get(systems[s]);
        return make("li", { className: mark.className.replace("badge", "") }, badge(mark),
          make("span", { className: "system", textContent: systems[s], title: systems[s] }),
          make("span", { className: "lane" }, bar), make("b", { textContent: shown(measure, x) }));
      })))));
      const parts = [[cube.systems, "systems"], [cube.rows, "conditions"]].filter(([names]) => names.length > MOST);
      const cut = parts.map(([names, what]) => `the first ${MOST} of ${names.length} ${what}`).join(" and ");
      if (cut) bars.append(make("p", { className: "key", textContent: `Shown: ${cut}; the table has all.` }));
    };
    const refresh = () => {
      drawBars(select.value);
      draw(
        table, "Condition", systemColumns(cube.systems, select.value),
        cube.rows.map((name, at) => ({ name, values: cube.systems.map((_, s) => cube.values[select.value][s][at]) })),
      );
    };
    measureOptions(select, cube.measures);
    select.value = ["atwv", "mtwv"].find((m) => cube.measures.includes(m)) ?? cube.measures[0];
    select.addEventListener("change", refresh);
    refresh();

    /* The DET plots are copied when they are first shown. */
    const drawn = conditions.map((condition) => condition.querySelector(".det .axes"));
    plots.hidden = !drawn.some(Boolean);
    plots.addEventListener("toggle", () => {
      plots.lastElementChild.replaceChildren(...(plots.open ? drawn : []).flatMap((svg, at) => {
        if (!svg) return [];
        const copy = svg.cloneNode(true);
        copy.innerHTML = copy.innerHTML.replaceAll("frame-", "beside-");
        copy.querySelector(".here").remove();
        return figure(cube.rows[at], copy);
      }));
    });
  }

  const byQuery = document.getElementById("by-query");
  if (byQuery) {
    const cube = data.by_query;
    const [system, less, measure, filter, count, more, table] =
      [".system", ".less", ".measure", ".filter", ".count", ".more", "table"].map((selector) => byQuery.querySelector(selector));
    const LIMIT = 1000;
    let limit = LIMIT;
    const difference = (m, s, at) => {
      const value = cube.values[m][s][at];
      return less.value === "" ? value : number(value) - number(cube.values[m][Number(less.value)][at]);
    };
    const refresh = () => {
      const s = Number(system.value);
      const beside = s < 0;
      measure.closest("label").hidden = !beside;
      const columns = beside ? systemColumns(cube.systems, measure.value)
        : cube.measures.map((m) => ({ measure: m, heading: faces.get(m).name, title: faces.get(m).title }));
      const wanted = filter.value.toLowerCase();
      const found = cube.rows.map((name, at) => [name, at])
        .filter(([name, at]) => `${name} ${cube.texts[at]}`.toLowerCase().includes(wanted));
      const rows = found.slice(0, limit).map(([name, at]) => ({
        name,
        text: cube.texts[at],
        values: beside ? cube.systems.map((_, k) => difference(measure.value, k, at))
          : cube.measures.map((m) => difference(m, s, at)),
      }));
      draw(table, "Query", columns, rows);
      count.textContent = rows.length < cube.rows.length ? `${rows.length} of ${cube.rows.length} queries` : `${rows.length} queries`;
      more.hidden = rows.length === found.length;
      more.textContent = `Show all ${found.length}`;
    };
    options(system, [...cube.systems.map((name, at) => [at, name]), [-1, "all, side by side"]]);
    options(less, [["", "nothing"], ...cube.systems.map((name, at) => [at, name])]);
    measureOptions(measure, cube.measures);
    measure.value = ["atwv", "otwv"].find((m) => cube.measures.includes(m)) ?? cube.measures[0];
    [system, less, measure].forEach((select) => select.addEventListener("change", refresh));
    filter.addEventListener("input", () => { limit = LIMIT; refresh(); });
    more.addEventListener("click", () => { limit = Infinity; refresh(); });
    /* Some ten thousand cells: they are made after the page is shown. */
    addEventListener("load", () => setTimeout(refresh));

    /* A query that costs a system much leads to its row. */
    all("#worst-queries a").forEach((link) => link.addEventListener("click", (event) => {
      event.preventDefault();
      const query = link.dataset.query;
      if (!cube.rows.includes(query)) return;
      system.value = cube.systems.indexOf(link.dataset.system);
      /* If there are very many queries, only those with a matching name are drawn. */
      filter.value = cube.rows.length > 10 * LIMIT ? query : "";
      limit = Infinity;
      refresh();
      const row = [...table.tBodies[0].rows].find((each) => each.cells[0].firstChild.textContent === query);
      row.classList.add("found");
      row.scrollIntoView({ block: "center" });
    }));
  }
})();
