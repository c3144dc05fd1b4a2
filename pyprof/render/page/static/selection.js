"use strict";
// One selection for the whole page. A key, `op=3 layer=1,2`, names the facts that fulfil each of its
// conditions with one of the numbers; what is selected are facts, and everything else asks for those.
(() => {
  const { pyprof } = window;
  const element = document.getElementById("facts");
  const bar = document.getElementById("selection");
  if (!element || !bar) return;
  const facts = JSON.parse(element.textContent);
  const { columns, ns } = facts;
  const cache = new Map();
  let key = null;
  let chosen = null;
  const factsOf = (wanted) => {
    if (cache.has(wanted)) return cache.get(wanted);
    const tests = wanted.split(" ").filter(Boolean).map((condition) => {
      const [name, numbers] = condition.split("=");
      return [columns[name], new Set(numbers.split(",").map(Number)), name === "stack"];
    });
    const found = [];
    for (let place = 0; place < ns.length; place += 1) {
      if (tests.every(([column, numbers, several]) => several
        ? column[place].some((number) => numbers.has(number)) : numbers.has(column[place]))) found.push(place);
    }
    cache.set(wanted, found);
    return found;
  };
  const text = (name, place) => facts.texts[name][columns[name][place]] ?? "";
  // What a key names beside its label: the direction and line of an op, say.
  const named = (wanted, label) => [label, ...wanted.split(" ").filter(Boolean).flatMap((condition) => {
    const [name, number] = condition.split("=");
    const other = number.includes(",") || name === "tc" ? "" : facts.texts[name === "stack" ? "line" : name][number] ?? "";
    return other && !label.includes(other) ? [other] : [];
  })].join(", ");
  const percent = (part) => `${(100 * part / Math.max(facts.total_ns, 1)).toFixed(1)} %`;
  const select = (wanted, label) => {
    key = wanted === key || !wanted ? null : wanted;
    chosen = null;
    if (key !== null) {
      chosen = new Uint8Array(ns.length);
      let time = 0;
      for (const place of factsOf(key)) { chosen[place] = 1; time += ns[place]; }
      const rest = facts.left_out_ns ? `; ${pyprof.duration(facts.left_out_ns)} (${percent(facts.left_out_ns)}) in rarer combinations cannot be selected` : "";
      bar.firstElementChild.textContent = `${named(key, label)}: ${pyprof.duration(time)} (${percent(time)})${rest}`;
    }
    bar.hidden = key === null;
    document.dispatchEvent(new Event("selection"));
  };
  pyprof.selection = {
    select,
    facts,
    text,
    active: () => key !== null,
    has: (place) => chosen === null || (place >= 0 && chosen[place] === 1),
    // Selected time of what a key stands for, in ns; null where no fact is shared.
    time: (wanted) => {
      if (chosen === null) return null;
      let sum = null;
      for (const place of factsOf(wanted)) if (chosen[place]) sum = (sum ?? 0) + ns[place];
      return sum;
    },
    // A key that names one fact alone, by what a kernel is known by.
    keyOf: (place) => ["op", "dir", "line", "kernel", "layer"].map((name) => `${name}=${columns[name][place]}`).join(" "),
  };
  bar.querySelector("button").addEventListener("click", () => select(null));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && key !== null) select(null); });
  for (const button of document.querySelectorAll("button.pick[data-key]")) {
    button.addEventListener("click", () => select(button.dataset.key, button.textContent));
  }
  document.addEventListener("selection", () => {
    for (const button of document.querySelectorAll("button.pick[data-key]")) {
      button.setAttribute("aria-pressed", button.dataset.key === key);
      button.classList.toggle("dim", key !== null && pyprof.selection.time(button.dataset.key) === null);
    }
  });
})();
