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
