// Fits: the button, how it goes, what was found, and fits beside each other.

import { address, ask } from "./api.js";
import { confirmed, h, say, seconds } from "./dom.js";
import { Predicting } from "./predicting.js";

const STAGES = {
  start: "starting", identify: "what can be known", smooth: "smoothing", algebra: "solving the algebra", rank: "ranking", refine: "refining",
  stretches: "fitting stretches", alternatives: "other solutions", multistart: "searching the box", report: "writing the report",
  draws: "drawing from the posterior", "pooled fit": "fitting all subjects together", starts: "starting from several places", nodes: "integrating over subjects", likelihood: "computing the likelihood",
};
const TASKS = { posterior: "posterior", population: "population", models: "models" };
const FILES = { fit: ["fit.json"], posterior: ["draws.json", "fit.json"], population: ["population.json"], models: ["models.txt", "fit.json"] };
const STATES = { waiting: "waiting", running: "running", done: "done", failed: "no fit", cancelled: "cancelled", interrupted: "interrupted" };
const KINDS = { global: ["good", "one value"], local: ["fair", "one of several values"], none: ["bad", "cannot be known"], undecided: ["soft", "not decided"],
  "likely global": ["good", "likely one value"], "likely local": ["fair", "one of several values"],
};

const wordOf = (fit) => fit.task && fit.task !== "fit" && fit.word ? fit.word : fit.certified ? "certified" : "not certified";
const underWay = (fit) => fit.state === "waiting" || fit.state === "running";

export class Fits {
  constructor({ begin, picked, compared, failed, asking }) {
    this.begin = begin;
    this.picked = picked;
    this.failed = failed;
    this.comparedChanged = compared;
    this.button = h("button", { type: "button", class: "primary large", id: "fit", onclick: () => this.begin() }, "Fit");
    this.effort = h("select", { id: "effort" }, h("option", { value: "quick" }, "quick"), h("option", { value: "auto" }, "usual"), h("option", { value: "full" }, "thorough"));
    this.limit = h("input", { type: "number", min: 1, max: 3600, step: 1, size: 5 });
    this.why = h("p", { class: "soft small", id: "why", hidden: true });
    this.progress = h("div", { class: "progress", hidden: true });
    this.list = h("ul", { class: "fits" });
    this.comparison = h("div", { class: "compared" });
    this.card = h("div", {}, asking,
      h("div", { class: "row" }, this.button,
        h("label", { class: "field" }, h("span", {}, "Effort"), this.effort),
        h("label", { class: "field" }, h("span", {}, "At most, seconds"), this.limit)),
      this.why, this.progress, this.list, this.comparison);
    this.resultCard = h("section", { class: "card result", hidden: true, "aria-label": "Result" });
    this.fits = [];
    this.shown = null;
    this.results = new Map();
    this.checked = new Set();
  }

  open(study) {
    this.study = study;
    this.fits = [];
    this.tick = 0;
    this.shown = null;
    this.results = new Map();
    this.checked.clear();
    this.comparison.replaceChildren();
    this.resultCard.hidden = true;
    this.listKey = "";
  }

  get busy() { return this.fits.some(underWay); }

  // The states of all fits, as the server tells them; an answer that was overtaken by a later one is not.
  async set({ fits, tick }) {
    if (tick < this.tick) return;
    const before = new Map(this.fits.map((one) => [one.number, one])), study = this.study, first = !this.tick;
    this.tick = tick;
    this.fits = fits;
    this.renderProgress();
    this.renderList();
    for (const one of fits) {
      if (study !== this.study) return;
      const old = before.get(one.number);
      if (one.result && !first && !old?.result) {
        await this.show(one.number, true);
        say(`Fit ${one.number} has found values: ${wordOf(one)}.`);
      } else if (old && underWay(old) && !underWay(one) && !one.result) {
        say(`Fit ${one.number}: ${STATES[one.state]}. ${one.message || ""}`);
      }
      if (one.number === this.shown && old && one.report && !old.report) this.renderResult();
    }
    if (this.shown === null) {
      const last = fits.find((one) => one.result);
      if (last && !this.busy) await this.show(last.number, false);
    }
  }

  renderProgress() {
    const one = this.fits.find((fit) => underWay(fit) && !fit.result) || this.fits.find(underWay);
    this.progress.hidden = !one;
    if (!one) { this.progressKey = ""; return; }
    if (this.progressKey !== one.number) {
      this.progressKey = one.number;
      this.fill = h("i");
      this.words = h("span");
      this.stages = h("ol", { class: "stages" });
      this.track = h("div", { class: "track", role: "progressbar", "aria-label": `Time of fit ${one.number}`, "aria-valuemin": 0, "aria-valuemax": 100 }, this.fill);
      this.progress.replaceChildren(h("div", { class: "row" }, this.words,
        h("button", { type: "button", class: "danger", id: "cancel", onclick: () => this.cancel(one.number) }, "Cancel")), h("div", { class: "hidden" }), this.track, this.stages);
    }
    const part = Math.min(100, 100 * (one.seconds || 0) / one.limit);
    this.fill.style.width = `${part}%`;
    this.track.setAttribute("aria-valuenow", Math.round(part));
    this.words.textContent = one.state === "waiting" ? `Fit ${one.number} waits for another to end` : one.result ? `Fit ${one.number}: values are found, the report is being written`
      : `Fit ${one.number}: ${STAGES[one.stage] || one.stage || ""}, ${seconds(one.seconds || 0)} of at most ${seconds(one.limit)}`;
    const past = (one.stages || []).filter((stage) => stage !== one.stage);
    this.stages.replaceChildren(...past.map((stage) => h("li", { class: "past" }, STAGES[stage] || stage)),
      one.stage ? h("li", { class: "now" }, STAGES[one.stage] || one.stage) : "");
  }

  renderList() {
    const key = JSON.stringify([this.fits.map((one) => [one.number, one.state, one.result, one.certified, one.message]), this.shown]);
    if (key === this.listKey) return;
    this.listKey = key;
    const comparable = this.fits.filter((one) => one.result && one.task !== "population").length > 1;
    this.list.replaceChildren(...this.fits.map((one) => {
      const tone = one.result ? (one.certified ? "good" : "fair") : one.state === "failed" ? "bad" : "soft";
      const words = one.result ? wordOf(one) : STATES[one.state] || one.state;
      const box = comparable && one.result && one.task !== "population" && h("input", { type: "checkbox", checked: this.checked.has(one.number), "aria-label": `Compare fit ${one.number}`, onchange: () => this.check(one.number, box.checked) });
      return h("li", { class: one.number === this.shown ? "shown" : "" }, box || "",
        h("button", { type: "button", class: "quiet open", disabled: !one.result, "aria-pressed": one.number === this.shown ? "true" : "false", onclick: () => this.show(one.number, true).catch(this.failed) }, `Fit ${one.number}`),
        h("span", { class: `badge ${tone}` }, words), TASKS[one.task] ? h("span", { class: "soft small" }, TASKS[one.task]) : "",
        one.message && !one.result ? h("span", { class: "small" }, one.message) : "",
        h("span", { class: "end soft small" }, underWay(one) ? "" : seconds(one.seconds || 0),
          h("button", { type: "button", class: "quiet danger", "aria-label": `Remove fit ${one.number}`, onclick: () => this.remove(one.number) }, "✕")));
    }));
    if (comparable && !this.list.previousElementSibling?.matches(".compare")) this.list.setAttribute("aria-label", "Fits; check two or more to compare them");
  }

  async cancel(number) {
    const { study } = this;
    try {
      const told = await ask("POST", `api/studies/${study}/fits/${number}/cancel`, {});
      if (study !== this.study) return;
      await this.set(told);
      this.button.focus();
    } catch (error) { this.failed(error); }
  }

  async remove(number) {
    if (!await confirmed(`Remove fit ${number} with its report?`, "Remove")) return;
    const { study } = this;
    try {
      const told = await ask("DELETE", `api/studies/${study}/fits/${number}`);
      if (study !== this.study) return;
      this.results.delete(number);
      this.checked.delete(number);
      if (this.shown === number) { this.shown = null; this.resultCard.hidden = true; this.picked(null); }
      await this.set(told);
      await this.compare();
    } catch (error) { this.failed(error); }
  }

  async result(number) {
    const { results, study } = this;
    if (!results.has(number)) results.set(number, await ask("GET", `api/studies/${study}/fits/${number}/result`));
    return results.get(number);
  }

  async show(number, chosen) {
    const study = this.study;
    const result = await this.result(number);
    if (study !== this.study) return;
    this.shown = number;
    this.renderList();
    this.renderResult();
    this.picked({ number, result, chosen });
  }

  renderResult() {
    const number = this.shown, result = this.results.get(number);
    const one = this.fits.find((fit) => fit.number === number) || {};
    if (!result) return;
    const { heads } = result;
    const verdict = (row) => {
      const [tone, words] = KINDS[row.kind] || ["soft", row.kind];
      return h("td", { "data-head": heads[4] }, h("span", {}, row.kind ? h("span", { class: tone }, words) : "", row.remark ? h("span", { class: "fair" }, `${row.kind ? ", " : ""}${row.remark}`) : "", row.note ? h("span", { class: "soft" }, row.note) : ""));
    };
    const rows = result.rows.map((row) => h("tr", {}, h("td", { class: "name" }, h("code", {}, row.label)), ...[row.value, row.error, row.interval].map((cell, i) => h("td", { class: "number", "data-head": heads[i + 1] }, cell)), verdict(row)));
    const link = (name, words) => h("a", { class: "button", href: address(`api/studies/${this.study}/fits/${number}/files/${name}`), download: "" }, words);
    const told = [result.message, result.verdict].filter(Boolean).filter((words, i, all) => all.indexOf(words) === i);
    const frame = h("details", { class: "full" }, h("summary", {}, "The whole report"));
    frame.addEventListener("toggle", () => {
      if (frame.open && !frame.querySelector("iframe")) {
        frame.append(h("iframe", { class: "report", title: `Report of fit ${number}`, sandbox: "allow-scripts allow-downloads", src: address(`api/studies/${this.study}/fits/${number}/report`) }));
      }
    });
    this.resultCard.replaceChildren(
      h("div", { class: "head" }, h("h2", { id: "result" }, TASKS[result.kind] ? `Fit ${number}: ${TASKS[result.kind]}` : `Fit ${number}`), h("span", { class: `badge ${result.tone}` }, result.state)),
      ...told.map((words) => h("p", { class: "soft" }, sentence(words))),
      result.reasons.length ? h("ul", {}, result.reasons.map((words) => h("li", {}, sentence(words)))) : "",
      ...this.ranked(result),
      h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Estimates" }, h("table", { class: "estimates" }, h("caption", { class: "hidden" }, "Estimates"),
        h("thead", {}, h("tr", {}, heads.map((head, i) => h("th", { scope: "col", class: i > 0 && i < 4 ? "number" : "" }, head)))), h("tbody", {}, rows))),
      ...this.others(result.solutions),
      result.noise.length ? h("p", { class: "soft small" }, "Noise (standard deviation): ", result.noise.slice(0, 12).map((one) => `${one.output} ${one.sd}`).join(", ")) : "",
      h("dl", { class: "facts" }, Object.entries(result.facts).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
      result.form ? new Predicting(`api/studies/${this.study}/fits/${number}/predict`, result.form, this.failed).element : "",
      h("div", { class: "downloads" }, one.report ? link("report.html", "Report") : h("span", { class: "button soft", "aria-disabled": "true" }, "Report …"),
        ...FILES[result.kind || "fit"].map((name) => link(name, name)), link("model.toml", "Model (TOML)"), link("fit.py", "Python script"), link("all.zip", "All files (zip)")),
      one.report ? frame : h("p", { class: "soft small" }, "The report is being written."));
    this.resultCard.hidden = false;
  }

  // Models by their switches, the best first.
  ranked(result) {
    if (result.kind !== "models") return [];
    const { heads, rows } = result.models;
    return [table("Models", heads, rows),
      result.tests.length ? h("p", { class: "soft small" }, "Likelihood-ratio tests: ", result.tests.join("; "), ".") : "",
      h("p", { class: "small" }, "Weight of all models that have it: ", Object.entries(result.importance).map(([name, share]) => `${name} ${share}`).join(", "), "."),
      h("h3", {}, "The best model")];
  }

  // Sets of values that explain the data equally well, side by side.
  others(rows) {
    if (!Array.isArray(rows) || !rows.length) return [];
    const heads = ["quantity", ...rows[0].cells.map((_, i) => `solution ${i + 1}`)];
    const body = rows.map((row) => h("tr", {}, h("td", { class: "name" }, h("code", {}, row.label)), row.cells.map((cell, i) => h("td", { class: "number", "data-head": heads[i + 1] }, cell))));
    return [h("h3", {}, "All solutions"),
      h("p", { class: "soft" }, `${rows[0].cells.length} sets of values explain the data equally well. Bounds that leave out all but one of them decide.`),
      h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "All solutions" }, h("table", { class: "estimates" }, h("caption", { class: "hidden" }, "All solutions"),
        h("thead", {}, h("tr", {}, heads.map((head, i) => h("th", { scope: "col", class: i ? "number" : "" }, head)))), h("tbody", {}, body)))];
  }

  async check(number, on) {
    if (on) this.checked.add(number); else this.checked.delete(number);
    await this.compare();
  }

  async compare() {
    const numbers = [...this.checked].sort((a, b) => a - b);
    if (numbers.length < 2) { this.comparison.replaceChildren(); this.comparedChanged([]); return; }
    try {
      const [told] = await Promise.all([ask("POST", `api/studies/${this.study}/compare`, { fits: numbers }), ...numbers.map((number) => this.result(number))]);
      const names = numbers.map((number) => `Fit ${number}`);
      const rank = table("How likely each is", ["fit", "numbers", "AICc", "ΔAICc", "BIC", "weight"],
        told.rows.map((row) => [row.name, row.parameters, row.aicc, row.beyond, row.bic, row.weight]));
      const values = table("Values", ["quantity", ...names], told.values.map((row) => [h("code", {}, row.label), ...names.map((name) => row.cells[name] || "–")]));
      this.comparison.replaceChildren(h("h3", {}, "Compared"), rank, values, h("p", { class: "soft small" }, "Numbers are all that were estimated, those of the noise too. The weight says about how probable it is that a fit predicts best of those compared."));
      this.comparedChanged(numbers);
    } catch (error) {
      this.comparison.replaceChildren(h("p", { class: "note bad" }, error.message));
      this.comparedChanged(numbers);
    }
  }
}

function table(caption, heads, rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption }, h("table", {}, h("caption", { class: "hidden" }, caption),
    h("thead", {}, h("tr", {}, heads.map((head, i) => h("th", { scope: "col", class: i ? "number" : "" }, head)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) => h("td", { class: i ? "number" : "" }, cell)))))));
}

const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1) + (/[.!?]$/.test(words) ? "" : ".");
