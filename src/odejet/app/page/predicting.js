// Predicting: an experiment that nobody has made, under other doses, inputs or values, drawn with its bands.

import { ask } from "./api.js";
import { h, say } from "./dom.js";
import { Bands } from "./plot.js";

const DOSE = [["time", "time"], ["state", "into"], ["amount", "amount"], ["duration", "duration"], ["every", "every"], ["count", "times"]];

export class Predicting {
  // The form for one fit; `path` is where its prediction is asked for.
  constructor(path, form, failed) {
    this.path = path;
    this.form = form;
    this.failed = failed;
    this.doses = h("tbody");
    this.dosing = h("table", { class: "doses", hidden: true }, h("caption", { class: "hidden" }, "Doses of the new experiment"), h("thead", {}, h("tr", {}, DOSE.map(([, title]) => h("th", { scope: "col" }, title)), h("th", {}))), this.doses);
    this.end = h("input", { type: "number", step: "any", value: form.end, size: 8 });
    this.fields = new Map();
    const states = this.choices("initial", form.states, "Initial values", (name) => `${name}(0)`);
    const needed = this.choices("values", form.needed.filter((name) => !form.states.includes(name)), "Values of this experiment", (name) => name);
    const inputs = this.choices("inputs", form.inputs, "Inputs: a number, or a formula in t", (name) => `${name}(t)`);
    this.button = h("button", { type: "button", onclick: () => this.go() }, "Predict");
    this.note = h("p", { class: "note fair", hidden: true });
    this.picture = new Bands();
    this.element = h("details", { class: "predict" }, h("summary", {}, "Predict another experiment"),
      h("p", { class: "soft small" }, "Another dose, input or start: what the fit says of it, with bands. Whatever is left empty is as in the fit."),
      h("div", { class: "scroll" }, this.dosing),
      h("div", { class: "row" }, h("button", { type: "button", class: "quiet", onclick: () => this.add() }, "+ Add a dose")),
      inputs, needed, h("details", {}, h("summary", {}, "Other initial values"), states),
      h("div", { class: "row" }, h("label", { class: "field" }, h("span", {}, "Until t ="), this.end), this.button),
      this.note, this.picture.element);
  }

  choices(kind, names, title, shown) {
    if (!names.length) return "";
    return h("div", {}, h("h3", {}, title), h("div", { class: "pairs" }, names.flatMap((name) => {
      const field = h("input", { "aria-label": `New ${shown(name)}`, placeholder: "as in the fit" });
      this.fields.set(field, [kind, name]);
      return [h("code", {}, shown(name)), field];
    })));
  }

  add() {
    const number = this.doses.children.length + 1;
    const cell = ([key, title]) => {
      const label = `${title} of new dose ${number}`;
      if (key !== "state") return h("td", {}, h("input", { size: 6, "data-key": key, "aria-label": label, value: key === "time" ? "0" : "", placeholder: ["time", "amount"].includes(key) ? "" : "–" }));
      return h("td", {}, h("select", { "data-key": key, "aria-label": label }, this.form.states.map((name) => h("option", { value: name }, name))));
    };
    const row = h("tr", {}, DOSE.map(cell), h("td", {}, h("button", { type: "button", class: "quiet danger", "aria-label": `Remove new dose ${number}`, onclick: () => { row.remove(); this.dosing.hidden = !this.doses.children.length; } }, "✕")));
    this.doses.append(row);
    this.dosing.hidden = false;
    row.querySelector("[data-key=amount]").focus();
  }

  get asked() {
    const told = { start: this.form.start, end: this.end.valueAsNumber, doses: [], initial: {}, values: {}, inputs: {} };
    for (const row of this.doses.children) told.doses.push(Object.fromEntries([...row.querySelectorAll("[data-key]")].filter((one) => one.value.trim()).map((one) => [one.dataset.key, one.value])));
    for (const [field, [kind, name]] of this.fields) if (field.value.trim()) told[kind][name] = field.value;
    // A dose may come before anything was measured.
    for (const dose of told.doses) if (Number(dose.time) < told.start) told.start = Number(dose.time);
    return told;
  }

  async go() {
    this.button.disabled = true;
    this.note.hidden = false;
    this.note.className = "soft small";
    this.note.textContent = "Computing the bands …";
    try {
      const told = await ask("POST", this.path, this.asked);
      this.note.className = "note fair";
      this.note.textContent = told.note;
      this.note.hidden = !told.note;
      this.picture.set(told);
      say("The prediction is drawn.");
    } catch (error) {
      if (!error.status) { this.failed(error); return; }
      this.note.className = "note bad";
      this.note.textContent = error.message;
    } finally { this.button.disabled = false; }
  }
}
