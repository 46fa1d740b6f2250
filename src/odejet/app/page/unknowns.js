// Unknowns: a slider for each, between its bounds, with what can be known of it and what the fit has found.

import { h, remade, show, writing } from "./dom.js";

const STEPS = 1000;
const KINDS = { global: "one value", local: "one of several", none: "cannot be known", undecided: "perhaps several", "likely global": "likely one value", "likely local": "one of several" };

function place(row, value) {
  const [low, high] = row.range;
  const part = row.scale === "log"
    ? Math.log(Math.max(value, 1e-300) / low) / Math.log(high / low)
    : (value - low) / (high - low);
  return Math.round(STEPS * Math.min(Math.max(part, 0), 1));
}

function valueAt(row, position) {
  const [low, high] = row.range, part = position / STEPS;
  const value = row.scale === "log" ? low * (high / low) ** part : low + (high - low) * part;
  return Number(value.toPrecision(4));
}

export class Unknowns {
  // `moved(values)` when a slider moves, `changed(patch)` when the draft changes.
  constructor(moved, changed) {
    this.moved = moved;
    this.changed = changed;
    this.list = h("ul", { class: "unknowns" });
    this.knownList = h("ul", { class: "known" });
    this.knownTitle = h("h3", {}, "Known");
    this.pick = h("select", { onchange: () => this.render() });
    this.picking = h("label", { class: "row small", hidden: true }, "Experiment", this.pick);
    this.element = h("div", {}, this.list, this.knownTitle, this.knownList);
    this.values = {};
    this.rows = [];
  }

  set({ rows, draft, experiments, known, result, verdict, readonly, states }) {
    this.draft = draft;
    this.known = known;
    this.result = result;
    this.verdict = verdict;
    this.readonly = readonly;
    this.states = states;
    this.several = experiments.length > 1;
    this.values = Object.fromEntries(rows.map((row) => [row.label, draft.values[row.label] ?? row.value]));
    const chosen = this.pick.value;
    const own = experiments.map((one) => one.name).filter((name) => rows.some((row) => row.experiment === name));
    this.picking.hidden = !(this.several && own.length > 1);
    this.pick.replaceChildren(...own.map((name) => h("option", { value: name }, name)));
    if (own.includes(chosen)) this.pick.value = chosen;
    this.all = rows;
    // Rows are made again only when they are others, so that a slider in a hand stays there.
    const key = JSON.stringify([rows.map((row) => [row.label, row.range, row.bounds, row.scale]), draft.local, draft.fixed, draft.free, known, this.pick.value, readonly]);
    if (key !== this.key && !writing(this.element)) { this.key = key; remade(this.element, () => this.render()); } else this.refresh();
  }

  shown() {
    const picked = this.picking.hidden ? null : this.pick.value;
    return this.all.filter((row) => !row.experiment || !this.several || picked === null || row.experiment === picked);
  }

  render() {
    this.parts = new Map();
    this.list.replaceChildren(...this.shown().map((row) => this.row(row)));
    this.renderKnown();
    this.refresh();
  }

  row(row) {
    const label = row.label;
    const range = h("input", {
      type: "range", min: 0, max: STEPS, step: 1, "aria-label": `${label}, slider`,
      oninput: () => this.put(row, valueAt(row, Number(range.value)), "range"),
    });
    const number = h("input", {
      type: "number", step: "any", class: "value", "aria-label": `Value of ${label}`,
      oninput: () => { if (number.value !== "" && Number.isFinite(number.valueAsNumber)) this.put(row, number.valueAsNumber, "number"); },
    });
    const bound = (end, side, words) => h("input", {
      type: "number", step: "any", class: `bound ${side}`, placeholder: end ? "∞" : "−∞", "aria-label": `${words} bound of ${label}`, disabled: this.readonly,
      value: row.bounds[end] === null ? "" : show(row.bounds[end]),
      onchange: (event) => this.bound(row, end, event.target),
    });
    const verdict = h("small");
    const fixed = h("input", { type: "checkbox", "aria-label": `${label} is known`, disabled: this.readonly, onchange: () => this.fix(row, fixed.checked) });
    const more = [h("label", { class: "check" }, fixed, "known")];
    if (this.several && !row.state && !this.readonly) {
      const own = h("input", { type: "checkbox", "aria-label": `${row.name} has a value of its own in each experiment`, checked: this.draft.local.includes(row.name), onchange: () => this.local(row, own.checked) });
      more.push(h("label", { class: "check", title: "A value of its own in each experiment" }, own, "own"));
    }
    this.parts.set(label, { range, number, verdict });
    return h("li", { class: "unknown" },
      h("div", { class: "what" }, h("code", {}, this.picking.hidden ? label : label.replace(` in ${row.experiment}`, "")), verdict),
      bound(0, "low", "Lower"), range, bound(1, "high", "Upper"), number,
      h("div", { class: "more" }, more));
  }

  refresh() {
    for (const row of this.shown()) {
      const parts = this.parts.get(row.label);
      if (!parts) continue;
      const value = this.values[row.label];
      if (document.activeElement !== parts.number) parts.number.value = show(value);
      if (document.activeElement !== parts.range || Number(parts.range.value) !== place(row, value)) parts.range.value = place(row, value);
      parts.range.setAttribute("aria-valuetext", `${row.label} = ${show(value)}`);
      const found = this.result?.rows.find((one) => one.label === row.label);
      const known = this.verdict?.quantities[row.label];
      const words = [];
      if (known) words.push(h("i", { class: `dot ${known.kind}` }), ` ${known.tested ? KINDS[known.kind] : "not decided"}`);
      if (found) words.push(words.length ? h("br") : "", `fit ${found.value}${found.error === "unknown" ? "" : ` ± ${found.error}`}`);
      parts.verdict.replaceChildren(...words);
    }
  }

  put(row, value, from) {
    this.values[row.label] = value;
    const { range, number } = this.parts.get(row.label);
    if (from !== "range") range.value = place(row, value);
    if (from !== "number") number.value = show(value);
    range.setAttribute("aria-valuetext", `${row.label} = ${show(value)}`);
    // At once, since the next answer of the server shows the values of the draft.
    this.changed({ values: { ...this.draft.values, ...this.values } }, false);
    this.moved(this.values);
  }

  bound(row, end, input) {
    const pair = [...row.bounds];
    pair[end] = input.value === "" ? null : input.valueAsNumber;
    if (pair[end] !== null && !Number.isFinite(pair[end])) return;
    this.changed({ bounds: { ...this.draft.bounds, [row.label]: pair } });
  }

  fix(row, on) {
    if (!on) return;
    const fixed = { ...this.draft.fixed, [row.name]: String(this.values[row.label]) };
    this.changed({ fixed, free: this.draft.free.filter((name) => name !== row.name) });
  }

  local(row, on) {
    const others = this.draft.local.filter((name) => name !== row.name);
    this.changed({ local: on ? [...others, row.name] : others });
  }

  renderKnown() {
    const entries = Object.entries(this.draft.fixed).map(([name, value]) => this.fixedEntry(name, value));
    for (const [label, one] of Object.entries(this.known || {})) {
      if (one.free || one.name in this.draft.fixed) continue;
      const box = h("input", { type: "checkbox", checked: true, onchange: () => this.changed({ free: [...this.draft.free, one.name] }) });
      entries.push(h("li", {}, h("label", { class: "check" }, box, h("code", {}, `${label} = ${show(one.value)}`))));
    }
    this.knownTitle.hidden = !entries.length;
    this.knownList.replaceChildren(...entries);
  }

  fixedEntry(name, value) {
    const box = h("input", { type: "checkbox", checked: true, onchange: () => {
      const { [name]: _, ...fixed } = this.draft.fixed;
      this.changed({ fixed });
    } });
    const field = h("input", { size: 8, value, "aria-label": `Known value of ${name}`, onchange: () => this.changed({ fixed: { ...this.draft.fixed, [name]: field.value } }) });
    return h("li", {}, h("label", { class: "check" }, box, h("code", {}, `${this.states.includes(name) ? `${name}(0)` : name} =`)), " ", field);
  }
}
