"use strict";
// What all figures share: a canvas as wide as the page, axes, zoom by Ctrl and the wheel and by buttons, a
// tooltip, a click that selects. A kind of figure, in figures.js, gives:
//   height(item, width), gutter(item, width)  in px
//   domain(item)             [low, high] of x in its own units; y, too, where it zooms: {x, y}
//   draw(pen, view, item)    onto the view, between left, top, right and bottom
//   hit(x, y, view, item)    what is there: {tip: [[name, text]], key, label}, or null
//   tools(plot, item)        elements beside the zoom's buttons; may be absent
(() => {
  const { pyprof } = window;
  const FONT = "11px system-ui, 'Liberation Sans', sans-serif";
  const AXIS = 34;
  const PAPER = 690; // px: what fits on a sheet
  const sharing = {}; // plots, by the axis that they share
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  document.addEventListener("pointerdown", () => { tip.hidden = true; });
  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    return Object.fromEntries(["ink", "quiet", "rule"].map(
      (name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  };
  // Steps of 1, 2 or 5, at most one each 90 px.
  const ticks = (low, high, px) => {
    const least = (high - low) / Math.max(px / 90, 1);
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= least * 0.999);
    const first = Math.ceil(low / step - 1e-9) * step;
    return { step, at: Array.from({ length: Math.max(Math.floor((high - first) / step + 1e-6) + 1, 0) }, (_, n) => first + n * step) };
  };
  class Plot {
    constructor(host, item) {
      this.host = host;
      this.item = item;
      this.kind = pyprof.kinds[item.kind];
      this.whole = this.kind.domain(item);
      this.seen = structuredClone(this.whole);
      this.canvas = document.createElement("canvas");
      this.canvas.setAttribute("role", "img");
      this.canvas.setAttribute("aria-label", item.label);
      this.pen = this.canvas.getContext("2d");
      host.append(this.canvas);
      if (this.kind.zooms !== false || this.kind.tools) this.addTools();
      this.listen();
      this.join();
      this.draw();
      host.plot = this;
    }
    // Plots that share an axis of time show the same of it.
    join() {
      const { shares } = this.item;
      this.others = shares ? (sharing[shares] ??= []) : [];
      const all = [...this.others, this];
      const x = [Math.min(...all.map((plot) => plot.whole.x[0])), Math.max(...all.map((plot) => plot.whole.x[1]))];
      for (const plot of all) {
        plot.whole = { ...plot.whole, x };
        plot.seen = { ...plot.seen, x: [...x] };
      }
      for (const plot of this.others) plot.later();
      if (shares) this.others.push(this);
    }
    gutter(width) {
      return Math.max(...[this, ...this.others].map((plot) => plot.kind.gutter(plot.item, width)));
    }
    lead() {
      for (const plot of this.others) {
        if (plot.seen.x.some((value, place) => value !== this.seen.x[place])) {
          plot.seen.x = [...this.seen.x];
          plot.later();
        }
      }
    }
    addTools() {
      const bar = document.createElement("div");
      bar.className = "tools zoom";
      const button = (text, label, run) => {
        const made = document.createElement("button");
        Object.assign(made, { type: "button", textContent: text });
        made.setAttribute("aria-label", label);
        made.addEventListener("click", run);
        bar.append(made);
      };
      if (this.kind.zooms !== false) {
        button("+", "zoom in", () => this.zoom(0.5));
        button("\u2212", "zoom out", () => this.zoom(2));
        button("\u2190", "move left", () => this.move(-0.25));
        button("\u2192", "move right", () => this.move(0.25));
        button("all", "show all", () => this.show(this.whole));
      }
      for (const [text, start, length] of this.item.views ?? []) {
        button(text, `show ${text}`, () => this.show({ x: [start, start + length] }));
      }
      bar.append(...(this.kind.tools?.(this, this.item) ?? []));
      this.host.prepend(bar);
    }
    show(domain) {
      this.seen = structuredClone({ ...this.whole, ...domain });
      this.later();
    }
    zoom(factor, at = { x: 0.5, y: 0.5 }) {
      const before = JSON.stringify(this.seen);
      for (const axis of Object.keys(this.whole)) {
        const [low, high] = this.seen[axis];
        const [first, last] = this.whole[axis];
        const length = Math.min(Math.max((high - low) * factor, (last - first) * 1e-7), last - first);
        const start = low + (high - low - length) * at[axis];
        this.seen[axis] = this.inside(axis, start, length);
      }
      this.later();
      return JSON.stringify(this.seen) !== before;
    }
    inside(axis, start, length) {
      const [first, last] = this.whole[axis];
      const low = Math.min(Math.max(start, first), last - length);
      return [low, low + length];
    }
    move(x, y = 0) {
      for (const [axis, part] of [["x", x], ["y", y]]) {
        if (!this.whole[axis]) continue;
        const [low, high] = this.seen[axis];
        this.seen[axis] = this.inside(axis, low + part * (high - low), high - low);
      }
      this.later();
    }
    later() {
      this.asked ||= requestAnimationFrame(() => { this.asked = 0; this.draw(); });
    }
    draw() {
      const paper = document.documentElement.dataset.paper !== undefined;
      const width = paper ? PAPER : this.host.clientWidth;
      if (!width) return;
      const { item, kind, pen, canvas } = this;
      const height = kind.height(item, width);
      const scale = paper ? 2 : Math.min(window.devicePixelRatio || 1, 3);
      Object.assign(canvas, { width: Math.round(width * scale), height: Math.round(height * scale) });
      Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      pen.font = FONT;
      pen.textBaseline = "middle";
      const left = this.gutter(width);
      const view = { left, top: 4, right: width - 8, bottom: height - (kind.axis === false ? 4 : AXIS), ...this.seen, colours: colours(), plot: this };
      [view.low, view.high] = this.seen.x;
      view.px = (view.right - view.left) / (view.high - view.low);
      view.at = (value) => view.left + (value - view.low) * view.px;
      view.value = (px) => view.low + (px - view.left) / view.px;
      this.view = view;
      kind.draw(pen, view, item);
      this.lead();
    }
    listen() {
      const { canvas } = this;
      const place = (event) => {
        const box = canvas.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
      };
      const part = (x, y) => ({
        x: (x - this.view.left) / (this.view.right - this.view.left),
        y: 1 - (y - this.view.top) / (this.view.bottom - this.view.top),
      });
      if (this.kind.zooms !== false) {
        canvas.addEventListener("wheel", (event) => {
          if (!event.ctrlKey && !event.metaKey) return; // the wheel alone scrolls the page
          event.preventDefault();
          this.zoom(2 ** (event.deltaY / 300), part(...place(event)));
        }, { passive: false });
      }
      let held = null;
      let moved = false;
      canvas.addEventListener("pointerdown", (event) => { held = place(event); moved = false; });
      canvas.addEventListener("pointermove", (event) => {
        const [x, y] = place(event);
        if (held && event.buttons && this.kind.zooms !== false) {
          const [dx, dy] = [x - held[0], y - held[1]];
          if (moved || Math.hypot(dx, dy) > 4) {
            if (!moved) canvas.setPointerCapture(event.pointerId);
            moved = true;
            held = [x, y];
            const { left, right, top, bottom } = this.view;
            this.move(-dx / (right - left), dy / (bottom - top));
          }
        }
        this.tell(x, y, event);
      });
      canvas.addEventListener("pointerup", () => { held = null; });
      canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
      canvas.addEventListener("pointercancel", () => { held = null; tip.hidden = true; });
      canvas.addEventListener("click", (event) => {
        if (moved) return;
        this.tell(...place(event), event); // a finger leaves before it clicks
        const found = this.kind.hit(...place(event), this.view, this.item);
        if (found && found.key !== null && found.key !== undefined) pyprof.selection?.select(found.key, found.label);
      });
      new ResizeObserver(() => this.later()).observe(this.host);
      document.addEventListener("selection", () => this.later());
      document.addEventListener("theme", () => this.draw());
    }
    tell(x, y, event) {
      const found = this.kind.hit(x, y, this.view, this.item);
      tip.hidden = !found;
      this.canvas.classList.toggle("over", Boolean(found?.key));
      if (!found) return;
      tip.replaceChildren(...found.tip.filter(([, text]) => text).map(([name, text]) => {
        const row = document.createElement("div");
        const title = document.createElement("b");
        title.textContent = name;
        row.append(title, ` ${text}`);
        return row;
      }));
      const { innerWidth, innerHeight } = window;
      const { width, height } = tip.getBoundingClientRect();
      const left = Math.max(Math.min(event.clientX + 14, innerWidth - width - 8), 4);
      const below = event.clientY + 16 + height < innerHeight;
      Object.assign(tip.style, { left: `${left}px`, top: `${below ? event.clientY + 16 : Math.max(event.clientY - height - 12, 4)}px` });
    }
  }
  // --- pieces of drawings ----------------------------------------------------------------------
  // As much of a text's beginning as fits; nothing where that would tell nothing.
  pyprof.cut = (pen, text, room) => {
    if (room < 18) return "";
    const width = pen.measureText(text).width;
    if (width <= room) return text;
    let kept = Math.floor((room / width) * text.length) + 2;
    while (kept > 1 && pen.measureText(`${text.slice(0, kept)}\u2026`).width > room) kept -= 1;
    return kept > 1 ? `${text.slice(0, kept)}\u2026` : "";
  };
  pyprof.timeAxis = (pen, view, title, spelt = pyprof.instant) => {
    const { step, at } = ticks(view.low, view.high, view.right - view.left);
    pen.textAlign = "center";
    for (const value of at) {
      const x = view.at(value);
      pen.fillStyle = view.colours.rule;
      pen.fillRect(x, view.top, 1, view.bottom - view.top + 4);
      pen.fillStyle = view.colours.ink;
      const text = spelt(value, step);
      const half = pen.measureText(text).width / 2;
      pen.fillText(text, Math.min(Math.max(x, half), view.right + 8 - half), view.bottom + 11);
    }
    pen.fillStyle = view.colours.quiet;
    pen.fillText(pyprof.cut(pen, title, view.right - view.left), (view.left + view.right) / 2, view.bottom + 25);
    pen.textAlign = "left";
  };
  pyprof.Plot = Plot;
  pyprof.ticks = ticks;
})();
