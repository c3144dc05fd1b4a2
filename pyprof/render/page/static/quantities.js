"use strict";
// Quantities as the rest of the page spells them.
(() => {
  const { pyprof } = window;
  // Bytes: three digits that matter.
  pyprof.size = (bytes) => {
    const [least, prefix] = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([size]) => Math.abs(bytes) >= size) ?? [1, ""];
    const value = bytes / least;
    return `${Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)))} ${prefix}B`;
  };
  // A time: three digits that matter.
  pyprof.duration = (ns) => {
    const rounded = Math.abs(Number(ns.toPrecision(3)));
    const [size, unit] = [[1e9, "s"], [1e6, "ms"], [1e3, "us"]].find(([least]) => rounded >= least) ?? [1, "ns"];
    const shown = rounded / size;
    const digits = unit === "ns" || shown >= 100 ? 0 : shown >= 10 ? 1 : 2;
    return `${(ns / size).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${unit}`;
  };
  // Digits after the point with which values in these steps differ.
  pyprof.digits = (step) => Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  // A time on an axis.
  pyprof.instant = (ns, step) => {
    const [size, unit] = [[1e9, "s"], [1e6, "ms"], [1e3, "us"]].find(([least]) => step >= least / 10) ?? [1, "ns"];
    return `${(ns / size).toLocaleString("en", { maximumFractionDigits: pyprof.digits(step / size) })} ${unit}`;
  };
})();
