"use strict";
// Figures: each JSON script element is a Bokeh item, drawn into the element that it names.
(async () => {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "11px helvetica"; // as Bokeh writes them
  const width = (text) => pen.measureText(text).width;
  // As much of a name's beginning as fits; nothing where that would tell nothing.
  const cut = (name, room) => {
    if (room < 18) return "";
    if (width(name) <= room) return name;
    let kept = Math.floor((room / width(name)) * name.length) + 2;
    while (kept > 1 && width(`${name.slice(0, kept)}\u2026`) > room) kept -= 1;
    return kept > 1 ? `${name.slice(0, kept)}\u2026` : "";
  };
  // Names of boxes: as much as fits into the visible part of each.
  const fit = (plot, source) => {
    const { start, end } = plot.x_range;
    const { left, right, full } = source.data;
    const px = plot.inner_width / (end - start);
    const seen = (place) => Math.max(left[place], start);
    source.data.at = Array.from(full, (_, place) => seen(place));
    source.data.label = Array.from(full, (name, place) =>
      cut(name, (Math.min(right[place], end) - seen(place)) * px - 8));
    source.change.emit();
  };
  const keepFitted = (plot) => {
    const source = plot.renderers?.find((drawn) => drawn.name === "fitted")?.data_source;
    if (!source) return;
    let asked = 0;
    const later = () => {
      asked ||= requestAnimationFrame(() => { asked = 0; fit(plot, source); });
    };
    plot.x_range.change.connect(later);
    plot.properties.inner_width.change.connect(later);
    fit(plot, source);
  };
  for (const item of document.querySelectorAll('script[type="application/json"][data-figure]')) {
    const views = await window.Bokeh.embed.embed_item(JSON.parse(item.textContent), item.dataset.figure);
    for (const view of views) keepFitted(view.model);
  }
  document.documentElement.dataset.figures = "drawn";
  document.dispatchEvent(new Event("figures"));
})();
