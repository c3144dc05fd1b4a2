"use strict";
// Light or dark: what the system prefers until the button says otherwise. Figures follow.
(() => {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const recolour = () => {
    if (!window.Bokeh) return;
    const style = getComputedStyle(root);
    const ink = style.getPropertyValue("--ink").trim();
    const rule = style.getPropertyValue("--rule").trim();
    for (const shown of window.Bokeh.documents) {
      for (const model of shown.all_models) {
        if (model.type.endsWith("Axis")) {
          model.setv({axis_label_text_color: ink, major_label_text_color: ink,
                      axis_line_color: rule, major_tick_line_color: rule,
                      minor_tick_line_color: null});
        } else if (model.type === "Grid") {
          model.setv({grid_line_color: rule});
        } else if (model.type === "Line") {
          model.setv({line_color: ink});
        }
      }
    }
  };
  const apply = (theme) => { root.dataset.theme = theme; recolour(); };
  apply(dark.matches ? "dark" : "light");
  dark.addEventListener("change", (event) => apply(event.matches ? "dark" : "light"));
  document.querySelector("button.theme").addEventListener("click", () =>
    apply(root.dataset.theme === "dark" ? "light" : "dark"));
  document.addEventListener("figures", recolour);
})();
