"use strict";
// The kinds of figures; each JSON script element is drawn into the element that it names.
(() => {
  const { pyprof } = window;
  const { cut, timeAxis, ticks, digits, instant, duration, size } = pyprof;
  const PALETTE = ["#4e86c0", "#59a14f", "#d98b3a", "#a874b8", "#3fa3a0", "#c9a93f", "#c76a7d", "#7d8fd6", "#8fae4b", "#b07f5a", "#6fb0d8", "#9b9fa6"];
  const OTHERS = "#9aa0a6";
  const INK = "#10151a"; // on boxes, which are as light in both themes
  const DIM = 0.12;
  const { selection } = pyprof;
  const chosen = (key) => !selection?.active() || (key !== null && key !== undefined && selection.time(key) !== null);
  const narrow = (width) => width < 600;
  // The last box that begins before a value, of boxes in their order.
  const before = (start, value) => {
    let [low, high] = [0, start.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (start[middle] <= value) low = middle + 1; else high = middle;
    }
    return low - 1;
  };
  // Names of rows, alike, as they fit: without times, without the process, which the GPU mostly tells, too.
  pyprof.shortened = (pen, texts, room) => {
    const untimed = texts.map((text) => text.replace(/ \(.*\)$/, ""));
    const short = untimed.map((text) => text.replace(/, process \d+/, "").replace(/^GPU( \d+)?, (?=rank)/, ""));
    return [texts, untimed, short].find((all) => all.every((name) => pen.measureText(name).width <= room)) ?? short;
  };
  const names = (pen, view, texts, middle) => {
    const room = view.left - 6;
    pen.fillStyle = view.colours.ink;
    pen.textAlign = "left";
    pyprof.shortened(pen, texts, room).forEach((text, row) => pen.fillText(cut(pen, text, room), 2, middle(row)));
  };
  const clipped = (pen, view, run) => {
    pen.save();
    pen.beginPath();
    pen.rect(view.left, view.top, view.right - view.left, view.bottom - view.top);
    pen.clip();
    run();
    pen.restore();
  };
  // Horizontal rules from 0 to the top, one for about 90 px of `room`, each with its value.
  const upAxis = (pen, view, most, up, room, spelt) => {
    pen.textAlign = "right";
    const { at, step } = ticks(0, most, room);
    for (const value of at) {
      pen.fillStyle = view.colours.rule;
      pen.fillRect(view.left, up(value), view.right - view.left, 1);
      pen.fillStyle = view.colours.ink;
      pen.fillText(spelt(value, step), view.left - 6, Math.min(Math.max(up(value), 8), view.bottom - 5));
    }
    pen.textAlign = "left";
  };
  pyprof.kinds = {};

  // --- roofline: points on logarithmic axes ------------------------------------------------------
  const radius = (share) => 3 + 17 * Math.sqrt(share);
  const roofAt = (roof, x) => Math.min(roof.flops, x * roof.bytes);
  const overlap = (a, b) => Math.max(0, Math.min(a.right, b.right) - Math.max(a.left, b.left))
    * Math.max(0, Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));
  // Put a text where it covers least of what is taken; the first such place counts.
  const placed = (view, taken, places) => {
    let best = null;
    for (const box of places) {
      if (box.left < view.left || box.right > view.right || box.top < view.top || box.bottom > view.bottom) continue;
      const covers = taken.reduce((sum, other) => sum + overlap(box, other), 0);
      if (!best || covers < best.covers) best = { box, covers };
      if (!covers) break;
    }
    return best;
  };
  const boxAt = (x, y, width) => ({ left: x, right: x + width, top: y - 7, bottom: y + 7 });
  pyprof.kinds.roofline = {
    height: (item, width) => (narrow(width) ? 340 : 440),
    gutter: () => 58,
    domain: ({ x, y, measured, roofs }) => {
      const ridges = roofs.map((roof) => roof.flops / roof.bytes);
      x = [...x, ...measured.filter((value) => value)];
      const low = Math.min(...x.map((value) => value / 3), ...ridges.map((value) => value / 3));
      const high = Math.max(...x.map((value) => value * 3), ...ridges.map((value) => value * 8));
      const rates = [...y, ...roofs.flatMap((roof) => [roofAt(roof, low), roof.flops])];
      return { x: [Math.log10(low), Math.log10(high)], y: [Math.log10(Math.min(...rates) / 2), Math.log10(Math.max(...rates) * 2)] };
    },
    draw(pen, view, item) {
      const [low, high] = view.y;
      view.up = (value) => view.bottom - ((value - low) / (high - low)) * (view.bottom - view.top);
      this.axes(pen, view);
      const taken = [];
      view.points = item.x.map((x, place) => ({
        x: view.at(Math.log10(x)), y: view.up(Math.log10(item.y[place])), r: radius(item.share[place]), place,
      }));
      clipped(pen, view, () => {
        for (const roof of item.roofs) this.roof(pen, view, roof, taken);
        for (const { x, y, r, place } of [...view.points].sort((a, b) => b.r - a.r)) {
          pen.globalAlpha = chosen(item.key[place]) ? 0.65 : DIM;
          pen.fillStyle = item.colour[place];
          pen.beginPath();
          pen.arc(x, y, r, 0, 2 * Math.PI);
          pen.fill();
          pen.globalAlpha = chosen(item.key[place]) ? 1 : 2 * DIM;
          pen.strokeStyle = item.colour[place];
          pen.stroke();
          taken.push({ left: x - r, right: x + r, top: y - r, bottom: y + r });
        }
        this.rings(pen, view, item);
        pen.globalAlpha = 1;
        view.labels = [];
        this.roofLabels(pen, view, item, taken);
        this.pointLabels(pen, view, item, taken);
      });
    },
    // Where ops are by the DRAM traffic that was measured, tied to where they are by the least.
    rings(pen, view, item) {
      for (const { x, y, r, place } of view.points) {
        if (!item.measured[place]) continue;
        const at = view.at(Math.log10(item.measured[place]));
        pen.globalAlpha = chosen(item.key[place]) ? 1 : 2 * DIM;
        pen.strokeStyle = view.colours.ink;
        pen.beginPath();
        pen.moveTo(at, y);
        pen.lineTo(x, y);
        pen.stroke();
        pen.beginPath();
        pen.arc(at, y, r, 0, 2 * Math.PI);
        pen.stroke();
      }
    },
    axes(pen, view) {
      const log = (value) => (value > 3 || value < -3 ? `1e${value}` : String(10 ** value));
      pen.textAlign = "center";
      for (let power = Math.ceil(view.low); power <= view.high; power += 1) {
        pen.fillStyle = view.colours.rule;
        pen.fillRect(view.at(power), view.top, 1, view.bottom - view.top);
        pen.fillStyle = view.colours.ink;
        pen.fillText(log(power), view.at(power), view.bottom + 11);
      }
      pen.textAlign = "right";
      for (let power = Math.ceil(view.y[0]); power <= view.y[1]; power += 1) {
        pen.fillStyle = view.colours.rule;
        pen.fillRect(view.left, view.up(power), view.right - view.left, 1);
        pen.fillStyle = view.colours.ink;
        pen.fillText(log(power), view.left - 6, view.up(power));
      }
      pen.fillStyle = view.colours.quiet;
      pen.textAlign = "center";
      pen.fillText("FLOP / byte", (view.left + view.right) / 2, view.bottom + 25);
      pen.save();
      pen.translate(9, (view.top + view.bottom) / 2);
      pen.rotate(-Math.PI / 2);
      pen.fillText("TFLOP/s", 0, 0);
      pen.restore();
      pen.textAlign = "left";
    },
    roof(pen, view, roof, taken) {
      pen.strokeStyle = view.colours.ink;
      pen.lineWidth = 1.5;
      pen.beginPath();
      const ridge = Math.log10(roof.flops / roof.bytes);
      for (const x of [view.low, Math.min(Math.max(ridge, view.low), view.high), view.high]) {
        pen.lineTo(view.at(x), view.up(Math.log10(roofAt(roof, 10 ** x))));
      }
      pen.stroke();
      pen.lineWidth = 1;
      for (let px = view.left; px < view.right; px += 8) {
        const y = view.up(Math.log10(roofAt(roof, 10 ** view.value(px))));
        taken.push({ left: px, right: px + 8, top: y - 1, bottom: y + 1 });
      }
    },
    // Write the first of some texts that covers nothing where it is placed, else the last.
    label(pen, view, taken, texts, places, colour) {
      const placing = (text) => ({ text, found: placed(view, taken, places(pen.measureText(text).width)) });
      const { text, found } = texts.slice(0, -1).map(placing).find((each) => each.found?.covers === 0) ?? placing(texts.at(-1));
      if (!found) return;
      pen.fillStyle = colour;
      pen.fillText(text, found.box.left, (found.box.top + found.box.bottom) / 2);
      taken.push(found.box);
      view.labels.push({ text, ...found.box });
    },
    roofLabels(pen, view, item, taken) {
      const slopes = new Map(item.roofs.map((roof) => [roof.bytes, roof]));
      const heights = item.roofs.map((roof) => view.up(Math.log10(roof.flops)));
      for (const [index, roof] of item.roofs.entries()) {
        const [text, short] = [roof.label, roof.label.split(" ").slice(0, 2).join(" ")]; // 19.5 TFLOP/s
        const y = heights[index];
        const others = heights.filter((height) => Math.abs(height - y) > 1);
        // A name stays nearer to its own line than to another.
        const reach = Math.min(60, ...others.map((height) => Math.abs(height - y) / 2));
        const places = (width) => {
          const boxes = [];
          for (let off = 9; off === 9 || off < reach; off += 7) {
            for (let right = view.right - 3; right - width > view.left; right -= 24) {
              boxes.push(boxAt(right - width, y - off, width), boxAt(right - width, y + off, width));
            }
          }
          return boxes;
        };
        this.label(pen, view, taken, narrow(view.right) ? [text, short] : [text], places, view.colours.quiet);
      }
      for (const roof of slopes.values()) {
        const ridge = view.at(Math.log10(roof.flops / roof.bytes));
        const places = (width) => {
          const boxes = [];
          for (let x = view.left + 8; x < Math.min(ridge, view.right - width); x += 8) {
            boxes.push(boxAt(x, view.up(Math.log10(roofAt(roof, 10 ** view.value(x)))) + 12, width));
          }
          return boxes;
        };
        this.label(pen, view, taken, [roof.slope], places, view.colours.quiet);
      }
    },
    pointLabels(pen, view, item, taken) {
      for (const { x, y, r, place } of view.points.slice(0, item.labelled)) {
        const text = `${cut(pen, item.name[place], 160)} ${(100 * item.share[place]).toFixed(1)} %`;
        const places = (width) => [3, 9, 15, 21].flatMap((off) => [
          boxAt(x + r + off, y, width), boxAt(x - r - off - width, y, width),
          ...[-1, 1].flatMap((side) => [-0.5, 0, -1].map((shift) => boxAt(x + shift * width, y + side * (r + off + 6), width))),
        ]);
        this.label(pen, view, taken, [text], places, view.colours.ink);
      }
    },
    hit(x, y, view, item) {
      const near = view.points.filter((point) => Math.hypot(point.x - x, point.y - y) <= point.r + 2);
      if (!near.length) return null;
      const { place } = near.reduce((a, b) => (b.r < a.r ? b : a));
      return { tip: item.tip[place], key: item.key[place], label: item.name[place] };
    },
  };

  // --- icicle: boxes below their parents ---------------------------------------------------------
  const LEVEL = 24;
  pyprof.kinds.icicle = {
    height: (item) => 44 + LEVEL * (1 + Math.max(...item.depth)),
    gutter: () => 4,
    domain: (item) => ({ x: [0, Math.max(item.length[0], 1)] }),
    draw(pen, view, item) {
      timeAxis(pen, view, item.axis, item.bytes ? size : undefined);
      view.fitted = [];
      clipped(pen, view, () => {
        item.start.forEach((start, place) => {
          const left = Math.max(view.at(start), view.left);
          const right = Math.min(view.at(start + item.length[place]), view.right);
          if (right <= left) return;
          const top = view.top + item.depth[place] * LEVEL;
          pen.globalAlpha = chosen(item.key[place]) ? 1 : 2 * DIM;
          pen.fillStyle = PALETTE[item.colour[place] % PALETTE.length];
          pen.fillRect(left, top, Math.max(right - left - 0.5, 0.5), LEVEL - 1);
          pen.fillStyle = selection?.active() && !chosen(item.key[place]) ? view.colours.ink : INK;
          const text = cut(pen, item.name[place], right - left - 8);
          if (text) pen.fillText(text, left + 4, top + LEVEL / 2);
          view.fitted.push({ name: item.name[place], label: text, width: text ? pen.measureText(text).width : 0, room: right - left });
        });
        pen.globalAlpha = 1;
      });
    },
    hit(x, y, view, item) {
      const depth = Math.floor((y - view.top) / LEVEL);
      const value = view.value(x);
      const place = item.start.findIndex((start, n) => item.depth[n] === depth && start <= value && value < start + item.length[n]);
      if (place < 0 || x < view.left || x > view.right) return null;
      return { tip: [["", item.path[place]], ["", item.times[place]]], key: item.key[place], label: item.path[place] };
    },
  };

  // --- strips: steps below each other, as dark as they are busy ------------------------------------
  const ROW = 22;
  const gutter = (texts) => (item, width) => {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = "11px system-ui, 'Liberation Sans', sans-serif";
    return Math.min(Math.max(...texts(item).map((text) => pen.measureText(text).width)) + 10, width * 0.35);
  };
  pyprof.kinds.strips = {
    height: (item) => 44 + ROW * item.names.length,
    gutter: gutter((item) => item.names),
    domain: (item) => ({ x: [0, Math.max(...item.lengths, 1)] }),
    draw(pen, view, item) {
      timeAxis(pen, view, "from the beginning of the step");
      names(pen, view, item.names, (row) => view.top + (row + 0.5) * ROW);
      clipped(pen, view, () => {
        pen.fillStyle = view.colours.rule;
        item.lengths.forEach((length, row) => {
          pen.globalAlpha = 0.4;
          pen.fillRect(view.at(0), view.top + row * ROW + 2, length * view.px, ROW - 4);
        });
        item.row.forEach((row, place) => {
          const left = view.at(item.left[place]);
          pen.globalAlpha = 0.15 + 0.85 * item.busy[place];
          pen.fillStyle = item.colours[item.work[place]];
          pen.fillRect(left, view.top + row * ROW + 2, Math.max(view.at(item.right[place]) - left, 0.4), ROW - 4);
        });
        pen.globalAlpha = 1;
      });
    },
    hit(x, y, view, item) {
      const row = Math.floor((y - view.top) / ROW);
      const value = view.value(x);
      if (!(row in item.names) || x < view.left) return null;
      const place = item.row.findIndex((own, n) => own === row && item.left[n] <= value && value < item.right[n]);
      const tip = [["", item.names[row]], ["at", duration(value)]];
      if (place < 0) return value < item.lengths[row] ? { tip: [...tip, ["", "idle"]] } : null;
      return { tip: [...tip, ["busy", `${(100 * item.busy[place]).toFixed(1)} %`], ["mostly", item.work[place]]] };
    },
  };

  // --- timeline: a lane for each stream ------------------------------------------------------------
  const LANE = 26;
  const IDLE = 12;
  const COLOURS_BY = ["family", "op", "layer"];
  // The layer whose parts most of the time divides among: of `encoder.0.norm` the first two, say.
  const nameOf = (by, fact) => {
    if (fact < 0) return "";
    const text = selection.text(by, fact);
    return by === "layer" ? text.split(".").slice(0, 3).join(".") : text;
  };
  const ranked = (by) => {
    const time = new Map();
    selection.facts.ns.forEach((ns, fact) => time.set(nameOf(by, fact), (time.get(nameOf(by, fact)) ?? 0) + ns));
    time.delete("");
    return [...time].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  };
  const total = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
  // Whether what some of a lane's joined boxes consist of is not told.
  const partly = (lane, by) => total(lane.summed.filter((_, place) => lane.rows[place] > 1))
    > total(lane.parts.ns) + (by === "family" ? total(lane.rest.ns) : 0);
  const colouring = (plot, by) => {
    const order = ranked(by).slice(0, PALETTE.length - 1);
    const place = new Map(order.map((name, n) => [name, PALETTE[n]]));
    plot.by = by;
    plot.ofFamily = selection.facts.texts.family.map((name) => (by === "family" ? place.get(name) : null) ?? OTHERS);
    plot.ofFact = selection.facts.ns.map((_, fact) => place.get(nameOf(by, fact)) ?? OTHERS);
    const others = plot.ofFact.includes(OTHERS) || selection.facts.left_out || plot.item.devices.some(({ lanes }) => lanes.some((lane) => partly(lane, by)));
    plot.legend?.replaceChildren(...[...place, ...(others ? [["others", OTHERS]] : [])].map(([name, colour]) => {
      const entry = document.createElement("span");
      const box = document.createElement("i");
      box.style.background = colour;
      entry.append(box, name);
      return entry;
    }));
    plot.later?.();
  };
  // A choice beside the zoom's buttons.
  const chooser = (title, options, choose) => {
    const label = document.createElement("label");
    const choice = document.createElement("select");
    for (const [value, text] of Object.entries(options)) choice.add(new Option(text, value));
    choice.addEventListener("change", () => choose(choice.value));
    label.append(`${title} `, choice);
    return label;
  };
  const rows = (item) => item.devices.flatMap((device) => [
    ...device.lanes.map((lane) => ({ device, lane, name: item.devices.length > 1 ? `${device.name}, ${lane.name}` : lane.name, height: LANE })),
    { device, name: item.devices.length > 1 ? `${device.name}: idle` : "idle", height: IDLE },
  ]);
  pyprof.kinds.timeline = {
    height: (item) => 44 + (item.marks.length ? 16 : 0) + rows(item).reduce((sum, row) => sum + row.height + 2, 0),
    gutter: gutter((item) => rows(item).map((row) => row.name)),
    domain: (item) => ({ x: [0, Math.max(item.length, 1)] }),
    tools(plot) {
      plot.legend = document.createElement("div");
      plot.legend.className = "legend";
      queueMicrotask(() => plot.host.append(plot.legend));
      colouring(plot, COLOURS_BY[0]);
      return [chooser("colour by", Object.fromEntries(COLOURS_BY.map((by) => [by, by])), (by) => colouring(plot, by))];
    },
    draw(pen, view, item) {
      timeAxis(pen, view, `since the first ${item.work}`);
      let top = view.top;
      if (item.marks.length) {
        clipped(pen, view, () => this.marks(pen, view, item, top));
        top += 16;
      }
      view.rows = rows(item).map((row) => {
        const made = { ...row, top };
        top += row.height + 2;
        clipped(pen, view, () => (row.lane ? this.lane(pen, view, made) : this.gaps(pen, view, made, item)));
        return made;
      });
      names(pen, view, view.rows.map((row) => row.name), (row) => view.rows[row].top + view.rows[row].height / 2);
    },
    marks(pen, view, item, top) {
      item.marks.forEach(([name, start, length], place) => {
        const [left, right] = [Math.max(view.at(start), view.left), Math.min(view.at(start + length), view.right)];
        if (right <= left) return;
        pen.fillStyle = view.colours.rule;
        pen.globalAlpha = place % 2 ? 0.9 : 0.45;
        pen.fillRect(left, top, right - left, 14);
        pen.globalAlpha = 1;
        pen.fillStyle = view.colours.ink;
        pen.fillText(cut(pen, name, right - left - 4), left + 3, top + 7);
      });
    },
    // The parts of boxes that join several kernels, by the place of the box: facts, or families of the rest.
    partsOf(parts, what) {
      if (!parts.byBox) {
        parts.byBox = new Map();
        parts.box.forEach((box, n) => {
          if (!parts.byBox.has(box)) parts.byBox.set(box, []);
          parts.byBox.get(box).push([parts[what][n], parts.ns[n]]);
        });
      }
      return parts.byBox;
    },
    // A joined box is as high as it is busy; its parts are as high as their shares of that.
    joined(pen, view, lane, place, left, width, top) {
      const room = Math.max(lane.summed[place], lane.length[place], 1);
      let y = top + LANE;
      let rest = lane.summed[place];
      const fill = (ns, colour, lit) => {
        const height = (LANE * ns) / room;
        y -= height;
        pen.globalAlpha = lit ? 1 : DIM;
        pen.fillStyle = colour;
        pen.fillRect(left, y, width, height);
      };
      for (const [fact, ns] of this.partsOf(lane.parts, "fact").get(place) ?? []) {
        fill(ns, view.plot.ofFact[fact] ?? OTHERS, selection.has(fact));
        rest -= ns;
      }
      for (const [family, ns] of this.partsOf(lane.rest, "family").get(place) ?? []) {
        fill(ns, view.plot.ofFamily[family] ?? OTHERS, !selection.active());
        rest -= ns;
      }
      if (rest > 0) fill(rest, OTHERS, !selection.active());
    },
    lane(pen, view, row) {
      const { lane, top } = row;
      const { plot } = view;
      let narrow = null; // single boxes of one pixel, drawn together, as high as they are busy
      const flush = () => {
        if (narrow) this.together(pen, narrow, top);
        narrow = null;
      };
      for (let place = Math.max(before(lane.start, view.low), 0); place < lane.start.length; place += 1) {
        const start = lane.start[place];
        if (start > view.high) break;
        const length = lane.length[place];
        const [left, right] = [view.at(start), view.at(start + length)];
        if (right < view.left) continue;
        if (lane.rows[place] > 1) {
          flush();
          this.joined(pen, view, lane, place, left, Math.max(right - left, 0.6), top);
          continue;
        }
        const lit = selection.has(lane.fact[place]);
        const colour = plot.ofFact[lane.fact[place]] ?? OTHERS;
        if (right - left < 1) {
          if (narrow && left >= narrow.left + 1) flush();
          narrow ??= { left, parts: new Map() };
          const part = (lit ? "lit " : "dim ") + colour;
          narrow.parts.set(part, (narrow.parts.get(part) ?? 0) + right - left);
          continue;
        }
        flush();
        pen.globalAlpha = lit ? 1 : DIM;
        pen.fillStyle = colour;
        const width = right - left;
        pen.fillRect(left, top, width > 3 ? width - 0.5 : width, LANE);
        if (right - left > 24 && lit) {
          pen.globalAlpha = 1;
          pen.fillStyle = INK;
          const [from, to] = [Math.max(left, view.left), Math.min(right, view.right)];
          pen.fillText(cut(pen, title(lane.fact[place]), to - from - 6), from + 3, top + LANE / 2);
        }
      }
      flush();
      pen.globalAlpha = 1;
    },
    together(pen, { left, parts }, top) {
      let y = top + LANE;
      for (const [part, width] of [...parts].sort((a, b) => b[1] - a[1])) {
        const height = Math.max(Math.min(width, 1) * LANE, 1); // a kernel alone is seen, too
        y -= height;
        pen.globalAlpha = part.startsWith("lit") ? 1 : DIM;
        pen.fillStyle = part.slice(4);
        pen.fillRect(left, Math.max(y, top), 1, height);
      }
    },
    gaps(pen, view, row, item) {
      const { gaps } = row.device;
      gaps.start.forEach((start, place) => {
        const [left, right] = [view.at(start), view.at(start + gaps.length[place])];
        if (right < view.left || left > view.right) return;
        [pen.fillStyle] = item.causes[gaps.cause[place]];
        pen.fillRect(left, row.top, Math.max(right - left, 0.3), IDLE);
      });
    },
    hit(x, y, view, item) {
      const row = view.rows.find(({ top, height }) => y >= top && y < top + height);
      if (!row || x < view.left || x > view.right) return null;
      const slack = 1.5 / view.px;
      const value = view.value(x);
      const nearest = ({ start, length }) => {
        const last = before(start, value + slack);
        for (let place = last; place >= Math.max(0, last - 4); place -= 1) {
          if (start[place] + length[place] >= value - slack) return place;
        }
        return -1;
      };
      const found = nearest(row.lane ?? row.device.gaps);
      if (found < 0) return null;
      if (!row.lane) return this.gap(row.device.gaps, found, item);
      return row.lane.rows[found] > 1 ? this.several(row.lane, found, (row.top + LANE - y) / LANE, item.work) : this.kernel(row.lane, found);
    },
    gap: ({ start, length, cause }, place, item) => ({
      tip: [["idle", duration(length[place])], [cause[place], item.causes[cause[place]][1]], ["at", duration(start[place])]],
    }),
    kernel(lane, place) {
      const fact = lane.fact[place];
      const of = (name) => (fact < 0 ? "(in a rarer combination)" : selection.text(name, fact));
      const tip = ["op", "line", "kernel", "layer", "family"].map((name) => [name, of(name)]);
      return { tip: [...tip, ["time", duration(lane.length[place])], ["at", duration(lane.start[place])]], key: fact < 0 ? null : selection.keyOf(fact), label: title(fact) };
    },
    titled(parts) {
      const time = new Map();
      for (const [fact, ns] of parts) {
        const name = title(fact) || "(in a rarer combination)";
        time.set(name, (time.get(name) ?? 0) + ns);
      }
      return [...time].sort((a, b) => b[1] - a[1]);
    },
    several(lane, place, up, work) {
      const parts = this.partsOf(lane.parts, "fact").get(place) ?? [];
      const part = (ns) => `${duration(ns)} (${((100 * ns) / Math.max(lane.summed[place], 1)).toFixed(1)} %)`;
      const room = Math.max(lane.summed[place], lane.length[place], 1);
      let below = 0;
      const under = parts.find(([, ns]) => { below += ns / room; return up < below; })?.[0] ?? -1;
      const rest = parts.reduce((sum, [, ns]) => sum - ns, lane.summed[place]);
      const of = (name) => (under < 0 ? "" : selection.text(name, under));
      return {
        tip: [
          [`${lane.rows[place].toLocaleString("en")} ${work}s`, `in ${duration(lane.length[place])}, summed ${duration(lane.summed[place])}`],
          ["at", duration(lane.start[place])],
          ...this.titled(parts).map(([name, ns]) => [name, part(ns)]),
          ["others", rest > 0 ? part(rest) : ""],
          ["under the pointer: op", of("op")], ["line", of("line")], ["kernel", of("kernel")],
        ],
        key: under < 0 ? null : selection.keyOf(under),
        label: title(under),
      };
    },
  };
  const title = (fact) => (fact < 0 ? "" : selection.text("op", fact) || selection.text("kernel", fact));

  // --- steps -----------------------------------------------------------------------------------------
  const stepName = (item, place) => {
    const first = item.first + place * item.group;
    const longest = item.step ? `: step ${item.step[place]} is the longest` : ", the longest";
    return item.group > 1 ? `steps ${first} to ${first + item.group - 1}${longest}` : `step ${first}`;
  };
  const stepAxis = (pen, view, item, count) => {
    pen.textAlign = "center";
    const { at } = ticks(item.first, item.first + count * item.group, view.right - view.left);
    pen.fillStyle = view.colours.ink;
    for (const step of at.filter(Number.isInteger)) {
      const x = view.at((step - item.first) / item.group + 0.5);
      if (x < view.right) pen.fillText(String(step), x, view.bottom + 11);
    }
    pen.fillStyle = view.colours.quiet;
    pen.fillText("step", (view.left + view.right) / 2, view.bottom + 25);
    pen.textAlign = "left";
  };
  const TREND = 150;
  const UPWARD = 400; // at most four steps of ticks
  pyprof.kinds.trend = {
    zooms: false,
    height: () => TREND,
    gutter: () => 72,
    domain: (item) => ({ x: [0, item.longest.length] }),
    draw(pen, view, item) {
      const most = Math.max(...item.longest, 1) * 1.05;
      const up = (ns) => view.bottom - (ns / most) * (view.bottom - view.top);
      upAxis(pen, view, most, up, UPWARD, instant);
      item.longest.forEach((ns, place) => {
        const left = view.at(place);
        pen.fillStyle = PALETTE[0];
        pen.globalAlpha = place * item.group < item.warm_up ? 0.45 : 1;
        pen.fillRect(left, up(ns), Math.max(view.px - (view.px > 4 ? 1.5 : 0), 0.5), view.bottom - up(ns));
      });
      pen.globalAlpha = 1;
      pen.strokeStyle = view.colours.ink;
      pen.setLineDash([5, 4]);
      pen.beginPath();
      pen.moveTo(view.left, up(item.median));
      pen.lineTo(view.right, up(item.median));
      pen.stroke();
      pen.setLineDash([]);
      stepAxis(pen, view, item, item.longest.length);
    },
    hit(x, y, view, item) {
      const place = Math.floor(view.value(x));
      if (!(place in item.longest) || x < view.left) return null;
      const ns = item.longest[place];
      const warm = place * item.group < item.warm_up ? "warm-up" : "";
      return { tip: [["", stepName(item, place)], ["time", duration(ns)], ["of the median", `${(100 * ns / item.median).toFixed(1)} %`], ...sharesOf(item.shares, place), ["", warm]] };
    },
  };
  const sharesOf = (series, place) => Object.entries(series).map(
    ([name, values]) => [name, values[place] === null ? "unknown" : `${values[place].toFixed(1)} %`]);
  pyprof.kinds.shares = {
    zooms: false,
    height: () => TREND,
    gutter: () => 72,
    domain: (item) => ({ x: [0, item.step.length] }),
    draw(pen, view, item) {
      const most = Math.max(...Object.values(item.series).flat(), 1e-3) * 1.05;
      const up = (percent) => view.bottom - (percent / most) * (view.bottom - view.top);
      upAxis(pen, view, most, up, UPWARD, (percent, step) => `${percent.toFixed(digits(step))} %`);
      Object.entries(item.series).forEach(([name, values]) => {
        const x = (place) => view.at(place + 0.5);
        pen.strokeStyle = pen.fillStyle = item.colours[name];
        pen.lineWidth = 1.5;
        pen.beginPath();
        values.forEach((value, place) => {
          if (value === null) return;
          if (place && values[place - 1] !== null) pen.lineTo(x(place), up(value));
          else pen.moveTo(x(place), up(value));
        });
        pen.stroke();
        pen.lineWidth = 1;
        const radius = Math.min(Math.max(view.px / 4, 1), 3);
        values.forEach((value, place) => {
          if (value === null) return;
          pen.globalAlpha = place * item.group < item.warm_up ? 0.45 : 1;
          pen.beginPath();
          pen.arc(x(place), up(value), radius, 0, 2 * Math.PI);
          pen.fill();
        });
        pen.globalAlpha = 1;
      });
      stepAxis(pen, view, item, item.step.length);
    },
    hit(x, y, view, item) {
      const place = Math.floor(view.value(x));
      if (!(place in item.step) || x < view.left) return null;
      return { tip: [["", stepName(item, place)], ...sharesOf(item.series, place)] };
    },
  };
  const heatRow = (item) => (item.names.length > 24 ? 12 : 20);
  const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 1;
  const LEAST_RANGE = 0.1; // of the median: less than that apart is alike
  pyprof.kinds.heat = {
    zooms: false,
    height: (item) => 40 + heatRow(item) * item.names.length,
    gutter: gutter((item) => item.names),
    domain: (item) => ({ x: [0, item.measures.step[0].length] }),
    tools: (plot) => {
      plot.by = "computing";
      return [chooser("time of", { computing: "computing", step: "whole step" }, (by) => {
        plot.by = by;
        plot.later();
      })];
    },
    draw(pen, view, item) {
      const row = heatRow(item);
      const times = item.measures[view.plot.by];
      const every = times.flat().filter((ns) => ns !== null);
      const middle = median(every);
      const range = Math.max(...every.map((ns) => Math.abs(ns - middle)), LEAST_RANGE * middle, 1);
      names(pen, view, item.names, (at) => view.top + (at + 0.5) * row);
      times.forEach((own, at) => {
        own.forEach((ns, place) => {
          if (ns === null) return;
          pen.fillStyle = view.colours.rule;
          pen.fillRect(view.at(place), view.top + at * row, Math.max(view.px - 1, 0.5), row - 1);
          pen.globalAlpha = Math.abs(ns - middle) / range;
          pen.fillStyle = ns >= middle ? "#c8651b" : "#3b82c4";
          pen.fillRect(view.at(place), view.top + at * row, Math.max(view.px - 1, 0.5), row - 1);
          pen.globalAlpha = 1;
        });
      });
      stepAxis(pen, view, item, times[0].length);
    },
    hit(x, y, view, item) {
      const row = Math.floor((y - view.top) / heatRow(item));
      const place = Math.floor(view.value(x));
      const times = item.measures[view.plot.by];
      const ns = times[row]?.[place];
      if (ns === undefined || ns === null || x < view.left) return null;
      const part = ns / median(times.flat().filter((each) => each !== null));
      return { tip: [["", item.names[row]], ["", stepName(item, place)], [view.plot.by === "step" ? "time" : "computing", duration(ns)], ["of the median", `${(100 * part).toFixed(1)} %`]] };
    },
  };

  // --- memory: categories upon each other over time, the peak marked -------------------------------
  const most = (item) => {
    const reserved = Math.max(...item.reserved.map((bytes) => bytes ?? 0));
    const peak = Math.max(item.peak_bytes, 1);
    return reserved <= 2 * peak ? Math.max(reserved, peak) : peak;
  };
  pyprof.kinds.memory = {
    height: (item, width) => (narrow(width) ? 240 : 280),
    gutter: () => 62,
    domain: (item) => ({ x: [item.domain[0], Math.max(item.domain[1], item.domain[0] + 1)] }),
    draw(pen, view, item) {
      const top = view.top + 16;
      view.up = (bytes) => view.bottom - (bytes / most(item)) * (view.bottom - top);
      upAxis(pen, view, most(item), view.up, 3 * (view.bottom - view.top), size);
      timeAxis(pen, view, item.axis, item.timed ? undefined : (event) => (Number.isInteger(event) ? event.toLocaleString("en") : ""));
      clipped(pen, view, () => {
        const below = item.x.map(() => 0);
        item.bytes.forEach((bytes, category) => {
          const above = below.map((base, place) => base + bytes[place]);
          pen.fillStyle = item.colours[category];
          this.area(pen, view, item, above, below);
          above.forEach((level, place) => { below[place] = level; });
        });
        this.reserved(pen, view, item);
        this.peak(pen, view, item);
      });
    },
    // What was held lasts until the next point, the last until the end.
    steps: (view, item, levels) => levels.flatMap((level, place) => {
      const end = item.x[place + 1] ?? Math.max(item.domain[1], item.x[place] + 1);
      return [[view.at(item.x[place]), view.up(level)], [view.at(end), view.up(level)]];
    }),
    area(pen, view, item, above, below) {
      pen.beginPath();
      for (const [x, y] of this.steps(view, item, above)) pen.lineTo(x, y);
      for (const [x, y] of this.steps(view, item, below).reverse()) pen.lineTo(x, y);
      pen.closePath();
      pen.fill();
    },
    reserved(pen, view, item) {
      if (item.reserved.includes(null) || Math.max(...item.reserved) > most(item)) return;
      pen.strokeStyle = view.colours.ink;
      pen.globalAlpha = 0.6;
      pen.beginPath();
      for (const [x, y] of this.steps(view, item, item.reserved)) pen.lineTo(x, y);
      pen.stroke();
      pen.globalAlpha = 1;
    },
    peak(pen, view, item) {
      const x = view.at(item.peak ?? item.x[0]);
      const y = view.up(item.peak_bytes);
      pen.strokeStyle = view.colours.ink;
      pen.setLineDash([4, 3]);
      pen.beginPath();
      pen.moveTo(x, y - 8);
      pen.lineTo(x, view.bottom);
      pen.stroke();
      pen.setLineDash([]);
      pen.fillStyle = view.colours.ink;
      const width = pen.measureText(item.peak_label).width;
      pen.fillText(item.peak_label, x + 4 + width < view.right ? x + 4 : x - 4 - width, Math.max(y - 8, view.top + 7));
    },
    hit(x, y, view, item) {
      if (x < view.left || x > view.right || y > view.bottom) return null;
      const place = Math.max(before(item.x, view.value(x)), 0);
      const held = item.names.map((name, category) => [name, item.bytes[category][place]]).filter(([, bytes]) => bytes);
      const reserved = item.reserved[place];
      return { tip: [
        ["at", item.timed ? duration(item.x[place]) : `event ${item.x[place].toLocaleString("en")}`],
        ["held", size(item.total[place])],
        ...held.sort((a, b) => b[1] - a[1]).map(([name, bytes]) => [name, size(bytes)]),
        ["reserved", reserved === null ? "" : size(reserved)],
      ] };
    },
  };

  // --- treemap: parts as large as their bytes ------------------------------------------------------
  pyprof.kinds.treemap = {
    zooms: false,
    axis: false,
    height: (item, width) => (narrow(width) ? 380 : 330),
    gutter: () => 2,
    domain: () => ({ x: [0, 1] }),
    draw(pen, view, item) {
      const height = view.bottom - view.top;
      item.x.forEach((left, place) => {
        const box = { x: view.at(left), y: view.top + item.y[place] * height, width: item.width[place] * (view.right - view.left), height: item.height[place] * height };
        const lit = chosen(item.key[place]);
        pen.globalAlpha = lit ? 1 : 2 * DIM;
        pen.fillStyle = item.colour[place];
        pen.fillRect(box.x, box.y, Math.max(box.width - 1, 0.5), Math.max(box.height - 1, 0.5));
        pen.globalAlpha = 1;
        if (box.height < 14) return;
        pen.fillStyle = lit ? INK : view.colours.ink;
        const room = box.width - 8;
        pen.fillText(cut(pen, item.name[place], room), box.x + 4, box.y + Math.min(10, box.height / 2));
        if (box.height > 30) pen.fillText(cut(pen, item.size[place], room), box.x + 4, box.y + 24);
      });
    },
    hit(x, y, view, item) {
      const [across, down] = [view.value(x), (y - view.top) / (view.bottom - view.top)];
      const place = item.x.findIndex((left, n) => left <= across && across < left + item.width[n]
        && item.y[n] <= down && down < item.y[n] + item.height[n]);
      return place < 0 ? null : { tip: item.tip[place], key: item.key[place], label: `${item.name[place]} ${item.size[place]}` };
    },
  };

  for (const item of document.querySelectorAll('script[type="application/json"][data-figure]')) {
    new pyprof.Plot(document.getElementById(item.dataset.figure), JSON.parse(item.textContent));
  }
  document.documentElement.dataset.figures = "drawn";
})();
