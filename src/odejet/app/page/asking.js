// Asking: what is to be found out, beside the values: a posterior, a population, or which of several models holds.

import { h, remade, writing } from "./dom.js";

const TASKS = [
  ["fit", "Values", "Fit", "The best values of all unknowns, with errors, and whether to trust them."],
  ["posterior", "Posterior", "Sample", "Draws of all unknowns given the data and what was known before, until chains agree."],
  ["population", "Population", "Fit the population", "Experiments are subjects. Parameters that are checked differ between them: the fit finds the typical value and how much they vary."],
  ["models", "Models", "Compare models", "What is checked may be missing from the model. Models with and without it are fitted and ranked by AICc."],
];
const LAWS = [["", "the same for all"], ["lognormal", "log-normal"], ["normal", "normal"], ["logitnormal", "between 0 and 1"]];
const METHODS = [["forward", "from the smallest"], ["backward", "from the largest"], ["exhaustive", "all of them"]];

const choice = (label, options, value, put) => {
  const pick = h("select", { "aria-label": label, onchange: () => put(pick.value) }, options.map(([key, words]) => h("option", { value: key }, words)));
  pick.value = value;
  return pick;
};

export class Asking {
  constructor(changed) {
    this.changed = changed;
    this.picks = TASKS.map(([key, title]) => h("label", {}, h("input", { type: "radio", name: "task", value: key, onchange: () => this.changed({ task: key }, false) }), title));
    this.segments = h("div", { class: "segments", role: "radiogroup", "aria-label": "What is asked" }, this.picks);
    this.words = h("p", { class: "soft small" });
    this.options = h("div", { class: "options" });
    this.element = h("div", { class: "asking" }, this.segments, this.words, this.options);
  }

  set(draft, seen) {
    this.draft = draft;
    const [key, , action, words] = TASKS.find(([one]) => one === draft.task);
    for (const pick of this.picks) pick.firstChild.checked = pick.firstChild.value === key;
    this.action = action;
    this.short = action.split(" ")[0];
    this.words.textContent = words;
    const names = this.names(seen), mark = JSON.stringify([key, names, seen?.model?.parameters, draft.random, draft.correlated, draft.covariates, draft.switches, draft.method, draft.priors, draft.draws]);
    if (mark === this.mark || writing(this.options)) return;
    this.mark = mark;
    remade(this.options, () => this.options.replaceChildren(...this[key](names, seen)));
  }

  // Unknowns by name, once each; while something is wrong with the study, those from before.
  names(seen) {
    if (seen?.unknowns) this.known = [...new Set(seen.unknowns.map((row) => row.name))];
    return this.known || [];
  }

  put(field, name, value) { this.changed({ [field]: { ...this.draft[field], [name]: value } }, field === "priors"); }

  fit() { return []; }

  posterior(names) {
    const draws = h("input", { type: "number", min: 50, max: 100000, step: 50, value: this.draft.draws, onchange: () => { if (draws.valueAsNumber > 0) this.changed({ draws: draws.valueAsNumber }, false); } });
    const prior = (name) => h("input", { value: this.draft.priors[name] ?? "", placeholder: "none: even within its bounds", "aria-label": `Prior of ${name}`, onchange: (event) => this.put("priors", name, event.target.value) });
    return [h("label", { class: "field" }, h("span", {}, "Effective draws"), draws),
      h("h3", {}, "Known before the data"),
      h("div", { class: "pairs" }, names.flatMap((name) => [h("code", {}, name), prior(name)])),
      h("p", { class: "soft small" }, "Such as lognormal(log(0.3), 0.5), normal(1, 0.2), uniform(0, 5).")];
  }

  population(_, seen) {
    const fixed = this.draft.fixed, names = (seen?.model?.parameters || []).filter((name) => !(name in fixed) && !(name in (seen.model.known || {})));
    const row = (name) => [h("code", {}, name),
      choice(`How ${name} differs between subjects`, LAWS, this.draft.random[name] || "", (law) => this.put("random", name, law)),
      h("input", { value: this.draft.covariates[name] ?? "", placeholder: `${name}*(WT/70)^b`, "aria-label": `Typical ${name} by covariates`, onchange: (event) => this.put("covariates", name, event.target.value) })];
    const together = h("input", { type: "checkbox", checked: this.draft.correlated, onchange: () => this.changed({ correlated: together.checked }, false) });
    return [h("div", { class: "triples" }, h("span", { class: "soft small" }, "parameter"), h("span", { class: "soft small" }, "between subjects"), h("span", { class: "soft small" }, "by covariates, if any"), names.flatMap(row)),
      h("label", { class: "check" }, together, "random effects may be correlated")];
  }

  models(names) {
    const row = (name) => {
      const on = name in this.draft.switches && this.draft.switches[name] !== "";
      const off = h("input", { size: 8, value: this.draft.switches[name] || "0", hidden: !on, "aria-label": `Value of ${name} where it is missing`, onchange: () => this.put("switches", name, off.value) });
      const box = h("input", { type: "checkbox", checked: on, "aria-label": `${name} may be missing`, onchange: () => { off.hidden = !box.checked; this.put("switches", name, box.checked ? off.value || "0" : ""); } });
      return h("li", {}, h("label", { class: "check" }, box, h("code", {}, name)), off);
    };
    return [h("ul", { class: "switches" }, names.map(row)),
      h("label", { class: "field" }, h("span", {}, "Models are tried"), choice("Models are tried", METHODS, this.draft.method, (method) => this.changed({ method }, false))),
      h("p", { class: "soft small" }, "A value may be another name: k2 instead of 0 asks if two rates differ.")];
  }
}
