"use strict";
// Tables: a click on a header sorts, a search box keeps the rows that hold every word in it.
(() => {
  const value = (row, place) => {
    const cell = row.cells[place];
    const number = cell.dataset.value;
    if (number === undefined) return cell.textContent.toLowerCase();
    return number === "" ? null : Number(number);
  };
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
  const filter = (table, words, count) => {
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = `${shown.toLocaleString("en")} of ${table.tBodies[0].rows.length.toLocaleString("en")} rows`;
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const header of table.tHead.rows[0].cells) {
      header.querySelector("button").addEventListener("click", () => sort(table, header));
    }
    const box = document.querySelector(`input[data-for="${table.id}"]`);
    const count = document.querySelector(`output[data-for="${table.id}"]`);
    const run = () => filter(table, box.value.toLowerCase().split(/\s+/).filter(Boolean), count);
    box.addEventListener("input", run);
    run();
  }
})();
