/* Tables as CSV, figures as SVG and PNG: made in the page, so that no network is needed. */
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const words = (cell) => {
    const copy = cell.cloneNode(true);
    all(".badge, .text, .about, small, svg", copy).forEach((element) => element.remove());
    return copy.textContent.trim().replace(/\s+/g, " ");
  };
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

  /* The rows that are shown, with all digits; columns of pictures are left out. */
  const csv = (table) => {
    const headings = [...[...table.tHead.rows].at(-1).cells];
    const kept = headings.map((heading, at) => ("fixed" in heading.dataset ? -1 : at)).filter((at) => at >= 0);
    const rows = [...table.tBodies].flatMap((body) => [...body.rows]).filter((row) => !row.hidden);
    const lines = [
      kept.map((at) => headings[at].dataset.heading ?? words(headings[at])),
      ...rows.map((row) => kept.map((at) => row.cells[at].dataset.value ?? words(row.cells[at]))),
    ];
    return lines.map((line) => `${line.map(quoted).join(",")}\n`).join("");
  };

  /* A figure as it looks here, with its styles in its elements: other programs know neither this page's style sheet
     nor its variables. */
  const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
    "stroke-opacity", "opacity", "paint-order", "font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline"];
  const drawing = (svg) => {
    const copy = svg.cloneNode(true);
    const [here, there] = [svg, copy].map((root) => [root, ...all("*", root)]);
    const unseen = [];
    here.forEach((element, at) => {
      const style = getComputedStyle(element);
      if (style.display === "none") return unseen.push(there[at]);
      STYLES.forEach((name) => there[at].setAttribute(name, style.getPropertyValue(name)));
      there[at].removeAttribute("class");
    });
    unseen.forEach((element) => element.remove());
    const { width, height } = svg.viewBox.baseVal;
    const ground = document.createElementNS(svg.namespaceURI, "rect");
    Object.entries({ width, height, fill: getComputedStyle(document.body).backgroundColor })
      .forEach(([name, value]) => ground.setAttribute(name, value));
    copy.prepend(ground);
    Object.entries({ width, height }).forEach(([name, value]) => copy.setAttribute(name, value));
    return { width, height, text: new XMLSerializer().serializeToString(copy) };
  };
  const painted = async (svg) => {
    const { width, height, text } = drawing(svg);
    const image = Object.assign(new Image(), { src: `data:image/svg+xml,${encodeURIComponent(text)}` });
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: 3 * width, height: 3 * height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  };

  const save = (element, ending, content) => {
    const heading = element.closest("section")?.querySelector("h2")?.firstChild.textContent ?? "table";
    const name = heading.trim().toLowerCase().replace(/[^a-z0-9]+/g, "-");
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(content), download: `${name}.${ending}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const offer = (element, place, kinds) => {
    const line = Object.assign(document.createElement("p"), { className: "downloads no-print" });
    Object.entries(kinds).forEach(([ending, made]) => {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: ending.toUpperCase() });
      button.addEventListener("click", async () => save(element, ending, await made()));
      line.append(button);
    });
    place.after(line);
  };
  all(".scroll > table").forEach((table) => {
    offer(table, table.parentElement, { csv: () => new Blob([csv(table)], { type: "text/csv" }) });
  });
  all("svg[role=img]").filter((svg) => !svg.closest("td")).forEach((svg) => {
    offer(svg, svg.closest(".wide") ?? svg, {
      svg: () => new Blob([drawing(svg).text], { type: "image/svg+xml" }),
      png: () => painted(svg),
    });
  });
})();
