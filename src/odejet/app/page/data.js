// Data: files that are dropped, what their columns are, doses, and what is known of the noise.

import { h, remade, writing } from "./dom.js";

const NOISE = [
  ["", "the same size everywhere, estimated"],
  ["relative", "in proportion to the value, estimated"],
  ["lognormal", "log-normal, estimated", (output) => `lognormal(s_${output})`],
  ["poisson", "counts (Poisson)"],
  ["negbinomial", "counts that vary more (negative binomial)", (output) => `negbinomial(d_${output})`],
  ["student", "with outliers (Student)", (output) => `student(s_${output}, 4)`],
];
const NONMEM = { ID: "subject", TIME: "time", AMT: "dose", DV: "measured", Y: "measured", EVID: "kind of row", MDV: "1: not measured", CMT: "into which state", ADM: "into which state",
  RATE: "rate of infusion", DUR: "duration", TINF: "duration", ADDL: "further doses", II: "their interval", SS: "steady state", DVID: "which output", YTYPE: "which output", CENS: "censored", BLQ: "below the limit", LLOQ: "the limit", LIMIT: "other limit", OCC: "occasion" };
const DOSE = [["time", "time"], ["state", "into"], ["amount", "amount"], ["duration", "duration"], ["every", "every"], ["count", "times"]];

export class DataCard {
  constructor(changed, dropped, written) {
    this.changed = changed;
    this.written = written;
    this.file = h("input", { type: "file", multiple: true, hidden: true, onchange: () => { dropped([...this.file.files]); this.file.value = ""; } });
    this.choose = h("button", { type: "button", onclick: () => this.file.click() }, "Choose files …");
    this.words = h("span", {}, "Drop a table (CSV, NONMEM), a model (SBML, TOML, Antimony, PEtab) or a study (zip), anywhere on the page");
    this.drop = h("div", { class: "drop" }, this.choose, this.words, this.file);
    this.trouble = h("p", { class: "note bad", id: "trouble", hidden: true });
    this.columns = h("div", { class: "columns" });
    this.doses = h("table", { class: "doses" });
    this.dosing = h("details", {}, h("summary", {}, "Doses"), h("div", { class: "scroll" }, this.doses),
      h("button", { type: "button", class: "quiet", onclick: () => this.addDose() }, "+ Add a dose"));
    this.noise = h("div", { class: "pairs" });
    this.noising = h("details", {}, h("summary", {}, "Noise"), this.noise);
    this.start = h("input", { type: "number", step: "any", placeholder: "first time", size: 8, onchange: () => {
      this.changed({ start: this.start.value === "" ? null : this.start.valueAsNumber });
    } });
    this.span = h("input", { type: "number", step: "any", min: 0, size: 8, onchange: () => { if (this.span.valueAsNumber > 0) this.changed({ span: this.span.valueAsNumber }); } });
    this.spanning = h("label", { class: "field" }, h("span", {}, "Simulate to t ="), this.span);
    this.positive = h("input", { type: "checkbox", onchange: () => this.changed({ positive: this.positive.checked }) });
    this.signs = h("label", { class: "check" }, this.positive, "All unknowns are positive");
    this.starting = h("label", { class: "field" }, h("span", {}, "Initial values hold at t ="), this.start);
    this.more = h("div", { class: "row settings" }, this.signs, this.starting, this.spanning);
    this.element = h("div", {}, this.drop, this.trouble, this.columns, this.more, this.dosing, this.noising);
  }

  set(draft, seen) {
    this.draft = draft;
    this.seen = seen;
    const problem = draft.language === "petab";
    const file = seen?.file;
    this.drop.classList.toggle("slim", Boolean(draft.data) || problem);
    this.words.textContent = problem ? `${draft.file}, with its own data` : draft.data ? `${draft.data}${file ? `, ${file.rows} rows` : ""}`
      : "Drop a table (CSV, NONMEM), a model (SBML, TOML, Antimony, PEtab) or a study (zip), anywhere on the page";
    this.trouble.hidden = !seen?.trouble;
    this.trouble.textContent = seen?.trouble || "";
    this.positive.checked = draft.positive;
    if (document.activeElement !== this.start) this.start.value = draft.start ?? "";
    if (document.activeElement !== this.span) this.span.value = draft.span;
    this.more.hidden = problem;
    this.spanning.hidden = Boolean(draft.data);
    this.starting.hidden = !draft.data;
    const model = seen?.model;
    this.dosing.hidden = problem || !model || !draft.data;
    this.noising.hidden = problem || !model || !draft.data;
    if (!model) return;
    const key = JSON.stringify([file, seen.titles, model, draft.doses.length, draft.noise, file?.kind === "nonmem" && draft.text, seen.experiments?.map((one) => one.name), draft.titles]);
    if (key === this.key || writing(this.element)) return;
    this.key = key;
    remade(this.element, () => {
      this.renderColumns(file, seen.titles || {}, model);
      this.renderDoses(model, seen.experiments || []);
      this.renderNoise(model, seen);
    });
  }

  renderColumns(file, titles, model) {
    if (!file || !this.draft.data) { this.columns.replaceChildren(); return; }
    if (file.kind === "nonmem") { this.columns.replaceChildren(...this.nonmem(file)); return; }
    const role = (name) => {
      const pick = h("select", { "aria-label": `What ${name} is`, onchange: () => this.changed({ titles: { ...titles, [name]: pick.value } }) },
        h("option", { value: "" }, "not used"),
        file.kind === "wide" && h("option", { value: "time" }, "time"),
        file.kind === "wide" && h("option", { value: "experimentId" }, "experiment"),
        group("measures", Object.keys(model.outputs)),
        group("measures the state", model.states.filter((state) => !Object.values(model.outputs).includes(state) || titles[name] === state)),
        group("input", model.inputs), group("known value of", model.parameters));
      pick.value = [...pick.options].some((one) => one.value === titles[name]) ? titles[name] : "";
      return pick;
    };
    const head = h("tr", { class: "roles" }, file.names.map((name) => h("th", { scope: "col" }, h("div", {}, name), role(name))));
    const body = file.kind === "wide" ? file.first.slice(0, 4).map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell)))) : [];
    this.columns.replaceChildren(h("table", {}, h("caption", { class: "hidden" }, "Columns of the table, and what they are"), h("thead", {}, head), h("tbody", {}, body)));
  }

  // What each column of such a table means is known; a model to begin with is one click away.
  nonmem(file) {
    const meaning = (name) => NONMEM[name.replace(/^#/, "").toUpperCase()] || "covariate";
    const starters = (this.seen.starters || []).map((one) => h("button", { type: "button", class: "small", "aria-pressed": one.text === this.draft.text ? "true" : "false", onclick: () => this.begin(one.text) }, one.title));
    return [h("p", { class: "soft small" }, `A table as NONMEM has it, with ${this.seen.experiments?.length || "its"} subjects: each is an experiment, with its doses.`),
      h("table", {}, h("caption", { class: "hidden" }, "Columns of the table, and what they are"),
        h("thead", {}, h("tr", {}, file.names.map((name) => h("th", { scope: "col" }, h("div", {}, name), h("div", { class: "soft small" }, meaning(name)))))),
        h("tbody", {}, file.first.slice(0, 4).map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell)))))),
      starters.length ? h("div", {}, h("h3", {}, "Models to begin with"), h("div", { class: "row starters" }, starters)) : ""];
  }

  // Another starter; its parameters differ between subjects where those of the one before did.
  begin(text) {
    const names = [...new Set(text.match(/\b(ka|Cl|V2?|Q)\b/g))];
    const random = Object.keys(this.draft.random).length ? Object.fromEntries(names.map((name) => [name, "lognormal"])) : {};
    this.changed({ text, language: "equations", random });
    this.written(text);
  }

  renderDoses(model, experiments) {
    const fields = experiments.length > 1 ? [...DOSE, ["experimentId", "experiment"]] : DOSE;
    const rows = this.draft.doses.map((dose, i) => h("tr", {}, fields.map(([key, title]) => h("td", {}, this.cell(i, dose, key, title, model, experiments))),
      h("td", {}, h("button", { type: "button", class: "quiet danger", "aria-label": `Remove dose ${i + 1}`, onclick: () => this.changed({ doses: this.draft.doses.filter((_, j) => j !== i) }) }, "✕"))));
    this.doses.replaceChildren(...(rows.length ? [h("thead", {}, h("tr", {}, fields.map(([, title]) => h("th", { scope: "col" }, title)), h("th", {}))), h("tbody", {}, rows)] : []));
    if (rows.length) this.dosing.open = true;
  }

  cell(i, dose, key, title, model, experiments) {
    const label = `${title} of dose ${i + 1}`;
    const put = (value) => this.changed({ doses: this.draft.doses.map((one, j) => j === i ? { ...one, [key]: value } : one) });
    if (key !== "state" && key !== "experimentId") {
      const optional = key === "duration" || key === "every" || key === "count";
      return h("input", { size: 6, value: dose[key] ?? "", placeholder: optional ? "–" : "", "aria-label": label, onchange: (event) => put(event.target.value) });
    }
    const names = key === "state" ? model.states : experiments.map((one) => one.name);
    const pick = h("select", { "aria-label": label, onchange: () => put(pick.value) }, key === "state" ? null : h("option", { value: "" }, "all"), names.map((name) => h("option", { value: name }, name)));
    pick.value = dose[key] ?? (key === "state" ? names[0] : "");
    return pick;
  }

  addDose() {
    const state = this.draft.doses.at(-1)?.state || this.firstState;
    this.changed({ doses: [...this.draft.doses, { time: "0", state, amount: "1" }] });
    this.dosing.open = true;
  }

  renderNoise(model, seen) {
    this.firstState = model.states[0];
    const measured = new Set((seen.series || []).map((one) => one.output));
    const outputs = Object.keys(model.outputs).concat([...measured].filter((name) => !(name in model.outputs)));
    const shown = outputs.filter((name) => !measured.size || measured.has(name));
    this.noise.replaceChildren(...shown.flatMap((output) => this.noiseOf(output, model)));
  }

  noiseOf(output, model) {
    const told = this.draft.noise[output] ?? "";
    const kinds = NOISE.map(([key, words, make]) => [make ? make(output) : key, words, key]);
    const kind = kinds.find(([text, , key]) => text === told || (key && told.startsWith(`${key}(`)));
    const own = h("input", { value: kind ? "" : told, placeholder: "0.1, 2% or normal(0.1 + b*y)", "aria-label": `Noise of ${output} in words`, hidden: Boolean(kind), onchange: () => put(own.value) });
    const put = (value) => this.changed({ noise: { ...this.draft.noise, [output]: value } });
    const inModel = model.noise[output];
    const pick = h("select", { "aria-label": `Noise of ${output}`, onchange: () => {
      own.hidden = pick.value !== "other";
      if (pick.value === "other") own.focus(); else put(pick.value);
    } }, kinds.map(([text, words], i) => h("option", { value: text }, i === 0 && inModel ? `as in the model: ${inModel}` : words)), h("option", { value: "other" }, "known, or other …"));
    if (kind && kind[0] !== told) pick.prepend(h("option", { value: told }, told));
    pick.value = kind ? told : "other";
    return [h("code", {}, output), h("div", { class: "row" }, pick, own)];
  }
}

function group(title, names) {
  return names.length ? h("optgroup", { label: title }, names.map((name) => h("option", { value: name }, name))) : null;
}
