"use strict";
// Light or dark: what the system prefers until the button says otherwise; paper is always light.
window.pyprof = {};
(() => {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = (theme) => {
    root.dataset.theme = theme;
    document.dispatchEvent(new Event("theme"));
  };
  apply(dark.matches ? "dark" : "light");
  dark.addEventListener("change", (event) => apply(event.matches ? "dark" : "light"));
  document.querySelector("button.theme").addEventListener("click", () =>
    apply(root.dataset.theme === "dark" ? "light" : "dark"));
  // On paper nothing can be opened or scrolled: everything is.
  let before = null;
  window.addEventListener("beforeprint", () => {
    if (before) return;
    const closed = [...document.querySelectorAll("details:not([open])")];
    before = { theme: root.dataset.theme, closed };
    for (const element of closed) element.open = true;
    root.dataset.paper = "";
    apply("light");
  });
  window.addEventListener("afterprint", () => {
    if (!before) return;
    for (const element of before.closed) element.open = false;
    delete root.dataset.paper;
    apply(before.theme);
    before = null;
  });
})();
// Bytes as the rest of the page spells them: three digits that matter.
window.pyprof.size = (bytes) => {
  const [least, prefix] = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([size]) => Math.abs(bytes) >= size) ?? [1, ""];
  const value = bytes / least;
  return `${Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)))} ${prefix}B`;
};
// A time as the rest of the page spells it: three digits after the point.
window.pyprof.duration = (ns) => {
  const rounded = Math.abs(Number(ns.toPrecision(3)));
  const [size, unit] = [[1e9, "s"], [1e6, "ms"], [1e3, "us"]].find(([least]) => rounded >= least) ?? [1, "ns"];
  const shown = rounded / size;
  const digits = unit === "ns" || shown >= 100 ? 0 : shown >= 10 ? 1 : 2;
  return `${(ns / size).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${unit}`;
};
