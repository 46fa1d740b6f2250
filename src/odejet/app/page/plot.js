// Pictures: measurements, the curve of the sliders, and fits with their bands, a panel for each output of each experiment.

import { h, show } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 46, RIGHT = 8, TOP = 6, BOTTOM = 24;

function s(tag, given = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(given)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export function ticks(low, high, wanted) {
  const step0 = (high - low) / Math.max(wanted, 1);
  const power = 10 ** Math.floor(Math.log10(step0));
  const step = [1, 2, 5, 10].find((one) => one * power >= step0) * power;
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}

function powers(low, high) {
  const found = [];
  for (let k = Math.floor(low); k <= Math.ceil(high); k++) found.push(k);
  const every = Math.ceil(found.length / 6);
  return found.filter((k, i) => k >= low - 1e-9 && k <= high + 1e-9 && i % every === 0);
}

function extent(lists, log) {
  let low = Infinity, high = -Infinity;
  for (const list of lists) for (const value of list) {
    if (value === null || !Number.isFinite(value) || (log && value <= 0)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

class Panel {
  constructor(experiment, output, title) {
    this.experiment = experiment;
    this.output = output;
    this.name = h("span", { title }, title);
    this.told = h("span", { class: "soft" });
    this.svg = s("svg", { role: "img" });
    this.element = h("figure", { class: "panel" }, h("figcaption", {}, this.name, this.told), this.svg);
    this.title = title;
  }

  draw(width, height, given) {
    const { series, curve, fits, rings, log } = given;
    this.told.textContent = given.told || "";
    const measured = series ? series.values : [];
    const others = fits.flatMap((fit) => [fit.values, fit.low || [], fit.high || []]);
    const times = extent([series ? series.times : [], curve ? curve.times : [], ...fits.map((fit) => fit.times)]);
    let [low, high] = extent(measured.length ? [measured, ...fits.map((fit) => fit.values)] : [curve ? curve.values : [], ...others], log);
    if (!Number.isFinite(low)) [low, high] = log ? [0.1, 1] : [0, 1];
    if (log) [low, high] = [Math.log10(low), Math.log10(high)];
    const room = 0.07 * (high - low) || 0.1 * Math.abs(high) || 0.5;
    low -= room; high += room;
    if (!log && low < 0 && low > -0.2 * high && extent([measured])[0] >= 0) low = -0.02 * high;
    let [first, last] = Number.isFinite(times[0]) ? times : [0, 1];
    if (!(last > first)) last = first + 1;
    const x = (t) => LEFT + (width - LEFT - RIGHT) * (t - first) / (last - first);
    const scaled = (v) => log ? (v > 0 ? Math.log10(v) : -400) : v;
    const y = (v) => {
      const place = TOP + (height - TOP - BOTTOM) * (high - scaled(v)) / (high - low);
      return Math.max(-3 * height, Math.min(4 * height, place));
    };
    const clip = `clip-${this.experiment}-${this.output}`.replace(/[^\w-]/g, "_");
    const parts = [s("clipPath", { id: clip }, s("rect", { x: LEFT - 5, y: TOP - 4, width: width - LEFT - RIGHT + 10, height: height - TOP - BOTTOM + 8 }))];
    const rows = log ? powers(low, high).map((k) => [10 ** k, show(10 ** k)]) : ticks(low, high, Math.max(2, Math.round(height / 48))).map((v) => [v, show(v)]);
    for (const [value, text] of rows) {
      parts.push(s("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }));
      parts.push(s("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, text));
    }
    for (const value of ticks(first, last, Math.max(2, Math.round(width / 78)))) {
      const text = Number.isInteger(value) && Math.abs(value) < 1e6 ? String(value) : show(value);
      const place = Math.min(x(value), width - RIGHT - 3.2 * text.length);
      parts.push(s("line", { class: "axis", x1: x(value), x2: x(value), y1: height - BOTTOM, y2: height - BOTTOM + 4 }));
      parts.push(s("text", { x: place, y: height - BOTTOM + 16, "text-anchor": "middle" }, text));
    }
    parts.push(s("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: height - BOTTOM, y2: height - BOTTOM }));
    const inside = s("g", { "clip-path": `url(#${clip})` });
    for (const fit of fits) if (fit.low) inside.append(s("path", { class: fit.outer ? "band outer" : "band", d: band(fit, x, y, height) }));
    if (series) inside.append(...points(series, x, y));
    // The curve of the sliders is under the fit: where they are the same, it is the fit that is seen.
    this.hand = s("path", { class: "hand", d: curve ? line(curve.times, curve.values, x, y) : "" });
    inside.append(this.hand);
    for (const fit of fits) if (!fit.outer) inside.append(s("path", { class: fit.other ? "fit other" : "fit", d: line(fit.times, fit.values, x, y) }));
    for (const one of rings) inside.append(s("circle", { class: "rings", cx: x(one.time), cy: y(one.value), r: 6 }));
    this.scale = { x, y, follows: !measured.length && !fits.length };
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", height);
    const count = series ? `${series.count} measurements from t = ${show(first)} to ${show(last)}` : `t = ${show(first)} to ${show(last)}`;
    this.svg.setAttribute("aria-label", `${this.title}: ${count}${fits.length ? ", with the fit" : ""}${curve ? ", with the curve of the sliders" : ""}`);
    this.svg.replaceChildren(...parts, inside);
  }

  // A slider has moved: the axes stay, unless there is nothing but the curve.
  move(curve, told) {
    if (!this.scale || this.scale.follows) return false;
    this.hand.setAttribute("d", curve ? line(curve.times, curve.values, this.scale.x, this.scale.y) : "");
    this.told.textContent = told || "";
    return true;
  }
}

// A prediction: a panel for each output, with the band of the curve and a wider one around it.
export class Bands {
  constructor() {
    this.grid = h("div", { class: "pictures" });
    this.legend = h("ul", { class: "legend" });
    this.saving = h("a", { class: "button small", download: "prediction.csv", hidden: true }, "Prediction (CSV)");
    this.element = h("div", {}, this.grid, this.legend, this.saving);
    new ResizeObserver(() => this.redraw()).observe(this.grid);
  }

  set(told) {
    this.told = told;
    this.panels = Object.keys(told.outputs).map((output) => new Panel("prediction", output, output));
    this.grid.replaceChildren(...this.panels.map((panel) => panel.element));
    const [curve, inner, outer] = told.words;
    const entries = [["fit", curve], ["band", inner], Object.values(told.outputs).some((one) => one.outer_low.some((v) => v !== null)) && ["outer", outer]].filter(Boolean);
    this.legend.replaceChildren(...entries.map(([kind, words]) => h("li", {}, h("i", { class: kind }), words)));
    if (this.saving.href) URL.revokeObjectURL(this.saving.href);
    this.saving.href = URL.createObjectURL(new Blob([table(told)], { type: "text/csv" }));
    this.saving.hidden = false;
    this.redraw();
  }

  redraw() {
    for (const panel of this.panels || []) {
      const { times } = this.told, found = this.told.outputs[panel.output];
      const width = Math.max(panel.element.clientWidth, 180), height = Math.min(300, Math.max(190, 0.5 * width));
      const wide = { times, values: found.values, low: found.outer_low, high: found.outer_high, outer: true };
      const fits = [found.outer_low.some((v) => v !== null) && wide, { times, values: found.values, low: found.low, high: found.high }].filter(Boolean);
      panel.draw(width, height, { series: null, curve: null, fits, rings: [], log: false });
    }
  }
}

function table({ times, outputs }) {
  const keys = ["values", "low", "high", "outer_low", "outer_high"];
  const head = ["time", ...Object.keys(outputs).flatMap((name) => keys.map((key) => key === "values" ? name : `${name}_${key}`))];
  const rows = times.map((time, i) => [time, ...Object.values(outputs).flatMap((one) => keys.map((key) => one[key][i] ?? ""))]);
  return [head, ...rows].map((row) => row.join(",")).join("\n") + "\n";
}

function line(times, values, x, y) {
  let path = "", pen = "M";
  for (let i = 0; i < times.length; i++) {
    if (values[i] === null || !Number.isFinite(values[i])) { pen = "M"; continue; }
    path += `${pen}${x(times[i]).toFixed(1)} ${y(values[i]).toFixed(1)}`;
    pen = "L";
  }
  return path;
}

function band(fit, x, y, height) {
  const up = [], down = [];
  for (let i = 0; i < fit.times.length; i++) {
    const at = x(fit.times[i]).toFixed(1);
    up.push(`${at} ${(fit.high[i] === null ? -height : y(fit.high[i])).toFixed(1)}`);
    down.push(`${at} ${(fit.low[i] === null ? 2 * height : y(fit.low[i])).toFixed(1)}`);
  }
  return up.length ? `M${up.join("L")}L${down.reverse().join("L")}Z` : "";
}

function points(series, x, y) {
  const radius = series.times.length > 400 ? 1.6 : series.times.length > 80 ? 2.5 : 3.4;
  const dots = series.times.map((t, i) => {
    const a = x(t).toFixed(1), b = y(series.values[i]).toFixed(1);
    return `M${a} ${b}m-${radius} 0a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 -${2 * radius} 0`;
  });
  const found = [s("path", { class: "points", d: dots.join("") })];
  if (series.sds && series.times.length <= 400) {
    const bars = series.times.map((t, i) => `M${x(t).toFixed(1)} ${y(series.values[i] - series.sds[i]).toFixed(1)}V${y(series.values[i] + series.sds[i]).toFixed(1)}`);
    found.unshift(s("path", { class: "bars", d: bars.join("") }));
  }
  return found;
}

export class Pictures {
  constructor() {
    this.panels = [];
    this.grid = h("div", { class: "pictures" });
    this.legend = h("ul", { class: "legend" });
    this.element = h("div", {}, this.grid, this.legend);
    this.given = { series: [], curves: [], fits: [], states: false, log: false };
    new ResizeObserver(() => this.redraw()).observe(this.grid);
  }

  set(changes) {
    Object.assign(this.given, changes);
    this.arrange();
    this.redraw();
  }

  // Which panels there are: one per series; without data one per output, or per state where there are no outputs.
  arrange() {
    const { series, curves, states } = this.given;
    const several = new Set(series.map((one) => one.experiment)).size > 1;
    const wanted = series.map((one) => [one.experiment, one.output, several ? `${one.output} in ${one.experiment}` : one.output]);
    for (const curve of curves) {
      const measured = series.some((one) => one.experiment === curve.experiment);
      if (!measured) for (const name of Object.keys(curve.outputs)) wanted.push([curve.experiment, name, name]);
      if (states || (!measured && !Object.keys(curve.outputs).length)) {
        for (const name of Object.keys(curve.states)) wanted.push([curve.experiment, `state ${name}`, several ? `${name} in ${curve.experiment}` : name]);
      }
    }
    const key = wanted.map((one) => one.join("\u0000")).join("\u0001");
    if (key === this.key) return;
    this.key = key;
    this.panels = wanted.slice(0, 60).map(([experiment, output, title]) => new Panel(experiment, output, title));
    this.grid.classList.toggle("many", this.panels.length > 4);
    this.grid.replaceChildren(...this.panels.map((panel) => panel.element));
  }

  curve(panel) {
    const found = this.given.curves.find((one) => one.experiment === panel.experiment);
    if (!found) return null;
    const state = panel.output.startsWith("state ");
    const values = state ? found.states[panel.output.slice(6)] : found.outputs[panel.output];
    const explained = found.explained[panel.output];
    return values ? { times: found.times, values, explained } : null;
  }

  told(curve) {
    if (!curve || curve.explained === undefined || curve.explained === null) return "";
    return curve.explained > -1 ? `R² ${curve.explained.toFixed(curve.explained > 0.99 ? 3 : 2)}` : "far off";
  }

  redraw() {
    const many = this.panels.length > 4;
    for (const panel of this.panels) {
      const width = Math.max(panel.element.clientWidth, 180);
      const height = many ? 150 : Math.min(330, Math.max(200, 0.5 * width));
      const { series, fits, log } = this.given;
      const curve = this.curve(panel);
      const drawn = fits.flatMap((fit) => {
        const own = (fit.bands || []).find((one) => one.experiment === panel.experiment);
        const found = own && own.outputs[panel.output];
        return found ? [{ times: own.times, values: found.values, low: fit.other ? null : found.low, high: fit.other ? null : found.high, other: fit.other }] : [];
      });
      const rings = fits.flatMap((fit) => fit.other ? [] : (fit.suspicious || []).filter((one) => one.experiment === panel.experiment && one.output === panel.output));
      panel.draw(width, height, {
        series: series.find((one) => one.experiment === panel.experiment && one.output === panel.output),
        curve, fits: drawn, rings, log, told: this.told(curve),
      });
    }
    this.explain();
  }

  move(curves) {
    this.given.curves = curves;
    const still = this.panels.length && this.panels.every((panel) => {
      const curve = this.curve(panel);
      return panel.move(curve, this.told(curve));
    });
    if (!still) this.set({ curves });
  }

  explain() {
    const { series, curves, fits } = this.given;
    const shown = fits.find((fit) => !fit.other);
    const entries = [
      series.length && ["dots", "measurements"],
      curves.length && ["hand", "sliders"],
      shown && ["fit", shown.name],
      shown?.bands?.some((one) => Object.values(one.outputs).some((own) => own.low)) && ["band", "95 % band"],
      ...fits.filter((fit) => fit.other).map((fit) => ["other", fit.name]),
    ].filter(Boolean);
    this.legend.replaceChildren(...entries.map(([kind, words]) => h("li", {}, h("i", { class: kind }), words)));
  }
}
