"use strict";
// Figures: each JSON script element is a Bokeh item, drawn into the element that it names.
(async () => {
  for (const item of document.querySelectorAll('script[type="application/json"][data-figure]')) {
    await window.Bokeh.embed.embed_item(JSON.parse(item.textContent), item.dataset.figure);
  }
  document.documentElement.dataset.figures = "drawn";
  document.dispatchEvent(new Event("figures"));
})();
