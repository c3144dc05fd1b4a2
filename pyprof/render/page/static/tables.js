"use strict";
// Tables: a click on a header sorts; the box keeps rows that hold every word and fulfil every
// condition (`tc=0 eff<20`); a click on a row selects it; rows are copied, and tables saved as CSV.
(() => {
  const { pyprof } = window;
  const value = (row, place) => {
    const cell = row.cells[place];
    const number = cell.dataset.value;
    if (number === undefined) return (cell.dataset.text ?? textOf(cell)).toLowerCase();
    return number === "" ? null : Number(number);
  };
  const textOf = (cell) => cell.querySelector(".pick")?.textContent ?? cell.textContent;
  const compare = (a, b) => (typeof a === "number" ? a - b : a < b ? -1 : a > b ? 1 : 0);
  const sort = (table, header) => {
    const place = header.cellIndex;
    const down = header.getAttribute("aria-sort") !== "descending" && !(
      header.classList.contains("text") && header.getAttribute("aria-sort") !== "ascending");
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row) => [value(row, place), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null); // unknown is last
      return down ? compare(b, a) : compare(a, b);
    });
    body.append(...rows.map(([, row]) => row));
  };
  // --- filters ---------------------------------------------------------------------------------
  const UNITS = { ns: 1, us: 1e3, "\u00b5s": 1e3, ms: 1e6, s: 1e9 };
  const TESTS = {
    "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b,
    "=": (a, b) => a === b, "!=": (a, b) => a !== b,
  };
  const amount = (spelt, unit) => {
    const [, digits, suffix] = /^([\d.,]+)\s*([a-z\u00b5%]*)$/i.exec(spelt) ?? [];
    if (digits === undefined) return null;
    return Number(digits.replaceAll(",", "")) * (unit === "ns" ? UNITS[suffix || "ms"] ?? NaN : 1);
  };
  // A pattern as --where takes it. This engine backtracks: what repeats more than twice, or in what
  // repeats, could take for ever, and is refused.
  const pattern = (text) => {
    const repeats = text.replace(/\\.|\[(?:\\.|[^\]])*\]/g, "x").match(/[*+]|\{\d+,/g) ?? [];
    if (repeats.length > 2 || /\)\s*[*+{]/.test(text)) return `${text} repeats too much for this page; use pyprof prof --where`;
    try {
      return new RegExp(text, "i");
    } catch {
      return `${text} is not a regular expression`;
    }
  };
  // What a word of the box asks of a row; a text says what is wrong with it.
  const CONDITION = /^([a-z][\w /]*?)(?::(?!:)(<=|>=|<|>|=)?|(!=|!~|<=|>=|=|~|<|>))(.+)$/i;
  const test = (table, word) => {
    const [, name, sign, bare, wanted] = CONDITION.exec(word) ?? [];
    const headers = Array.from(table.tHead.rows[0].cells);
    const header = headers.find((cell) => cell.dataset.name.toLowerCase() === name);
    // Kernels' names hold "<" and "=", too.
    const unknown = `no column ${name}; columns are ${headers.map((cell) => cell.dataset.name).join(", ")}`;
    if (name === undefined || (bare && !header)) {
      const holds = (row) => row.textContent.toLowerCase().includes(word);
      return name === undefined || Array.from(table.tBodies[0].rows).some(holds) ? holds : unknown;
    }
    if (!header) return unknown;
    const place = header.cellIndex;
    if (header.classList.contains("text")) {
      const [not, exact] = [bare?.startsWith("!") ?? false, bare?.endsWith("=") ?? false];
      if (bare?.endsWith("~")) {
        const found = pattern(wanted);
        return typeof found === "string" ? found : (row) => not !== found.test(value(row, place));
      }
      return (row) => not !== (exact || row.cells[place].dataset.text !== undefined
        ? value(row, place) === wanted : value(row, place).includes(wanted));
    }
    const limit = amount(wanted, header.dataset.unit);
    if (limit === null || Number.isNaN(limit)) return `${wanted} is not a number`;
    const holds = TESTS[sign ?? bare ?? "="];
    if (!holds) return `${bare} is for texts; ${name} has numbers`;
    return (row) => (value(row, place) === null ? bare === "!=" : holds(value(row, place), limit));
  };
  // Whether a selection concerns a table: rows of devices, and of counters, stand for no facts.
  const isSelected = (table) => pyprof.selection?.active() && "selectable" in table.dataset;
  const filter = (table, box, count) => {
    const words = box.value.toLowerCase().split(/\s+/).filter((word) => word && word !== "and" && word !== "&&");
    const tests = words.map((word) => test(table, word));
    const wrong = tests.find((entry) => typeof entry === "string");
    const { selection } = pyprof;
    const selected = isSelected(table);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const time = selected && row.dataset.key !== undefined ? selection.time(row.dataset.key) : null;
      const keep = wrong || tests.every((entry) => entry(row));
      row.hidden = !keep || (selected && time === null);
      shown += row.hidden ? 0 : 1;
    }
    const all = table.tBodies[0].rows.length;
    count.textContent = wrong ?? `${shown.toLocaleString("en")} of ${all.toLocaleString("en")} rows`;
  };
  // While something is selected, a column has the selected time: the others are of all time.
  const mark = (table) => {
    const { selection } = pyprof;
    const head = table.tHead.rows[0];
    head.querySelector(".selected")?.remove();
    for (const cell of table.querySelectorAll("td.selected")) cell.remove();
    if (!isSelected(table)) return;
    const header = document.createElement("th");
    header.className = "selected";
    header.scope = "col";
    Object.assign(header.dataset, { name: "selected", csv: "selected_ns", unit: "ns" });
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "selected";
    button.addEventListener("click", () => sort(table, header));
    header.append(button);
    head.append(header);
    for (const row of table.tBodies[0].rows) {
      const time = row.dataset.key === undefined ? null : selection.time(row.dataset.key);
      const cell = row.insertCell();
      cell.className = "selected";
      cell.dataset.value = time ?? "";
      cell.textContent = time === null ? "-" : pyprof.duration(time);
    }
  };
  // --- copies ----------------------------------------------------------------------------------
  const cells = (row) => Array.from(row.cells, (cell) => cell.dataset.value ?? cell.dataset.text ?? textOf(cell));
  // A spreadsheet would take such a text for a formula; a number, or a sign alone, it does not.
  const plain = (text) => (/^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) && text.length > 1 && Number.isNaN(Number(text)) ? `'${text}` : text);
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const csv = (table) => {
    const head = Array.from(table.tHead.rows[0].cells, (cell) => cell.dataset.csv);
    const rows = Array.from(table.tBodies[0].rows).filter((row) => !row.hidden).map(cells);
    return [head, ...rows].map((row) => `${row.map(plain).map(quoted).join(",")}\r\n`).join("");
  };
  const save = (table) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv(table)], { type: "text/csv" }));
    link.download = `${table.id.replace("table-", "")}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea"); // where a page from a file may not write
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };
  const copier = document.createElement("button");
  Object.assign(copier, { type: "button", className: "copy", textContent: "copy" });
  copier.setAttribute("aria-label", "copy row");
  copier.addEventListener("click", (event) => {
    event.stopPropagation();
    const row = copier.closest("tr");
    copy(Array.from(row.cells, (cell) => plain(textOf(cell).trim())).join("\t"));
    copier.textContent = "copied";
  });
  const offer = (event) => {
    const row = event.target.closest("tbody tr");
    if (!row || row.contains(copier)) return;
    copier.textContent = "copy";
    row.cells[0].append(copier);
  };
  const pick = (event) => {
    const row = event.target.closest("tr[data-key]");
    if (!row || !pyprof.selection || !window.getSelection().isCollapsed) return;
    pyprof.selection.select(row.dataset.key, textOf(row.cells[0]));
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const header of table.tHead.rows[0].cells) {
      header.querySelector("button").addEventListener("click", () => sort(table, header));
    }
    for (const row of table.tBodies[0].rows) {
      const first = row.cells[0];
      if (row.dataset.key === undefined) continue;
      const button = document.createElement("button");
      Object.assign(button, { type: "button", className: "pick", textContent: first.textContent });
      first.replaceChildren(button);
    }
    const box = document.querySelector(`input[data-for="${table.id}"]`);
    const count = document.querySelector(`output[data-for="${table.id}"]`);
    const run = () => filter(table, box, count);
    box.addEventListener("input", run);
    document.querySelector(`button[data-csv="${table.id}"]`).addEventListener("click", () => save(table));
    table.tBodies[0].addEventListener("click", pick);
    table.tBodies[0].addEventListener("pointerover", offer);
    table.tBodies[0].addEventListener("focusin", offer);
    document.addEventListener("selection", () => { mark(table); run(); });
    run();
  }
  pyprof.csv = csv;
})();
