// The editor: a plain text field with numbered lines, and the mistake marked where it is.

import { h } from "./dom.js";

const HELP = {
  equations: [
    ["x' = -k*x", "how a state changes; dx/dt = … says the same"],
    ["x(0) = 1.5", "what it is at the start, if that is known"],
    ["y = 2*x", "an output: what is measured"],
    ["k = 0.4", "a parameter whose value is known"],
    ["u(t) = sin(t)", "an input; sampled if the table has it"],
  ],
  toml: [
    ["[states]", "x = \"-k*x\""],
    ["[outputs]", "y = \"2*x\""],
    ["[initial]", "x = 1.5"],
    ["[fixed]", "k = 0.4"],
  ],
  antimony: [
    ["J: S -> P; k*S", "a reaction and its rate"],
    ["S = 5; k = 0.4", "where it starts, and constants"],
    ["y := 2*P", "an output"],
  ],
};
// Marks of other languages that no equation has: a text that was pasted tells its language itself.
const FOREIGN = [["toml", /^\s*\[states\]\s*(#.*)?$/m], ["antimony", /^\s*\*?model\b[^=]*$|->[^\n]*;/m]];
const LANGUAGES = [["equations", "Equations"], ["toml", "TOML"], ["antimony", "Antimony"]];

export class Editor {
  constructor(changed, translate) {
    this.rows = h("pre", { class: "rows", "aria-hidden": "true" });
    this.marks = h("pre", { class: "marks", "aria-hidden": "true" });
    this.area = h("textarea", {
      id: "equations", spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off", rows: "9",
      "aria-describedby": "mistake", "aria-label": "Equations of the model",
      oninput: () => this.typed(changed),
      onscroll: () => this.scrolled(),
    });
    this.written = 0;
    this.box = h("div", { class: "editor" }, this.rows, h("div", { class: "layers" }, this.marks, this.area));
    this.note = h("p", { id: "mistake", class: "note bad", hidden: true });
    this.picks = LANGUAGES.map(([key, title]) => h("label", {},
      h("input", { type: "radio", name: "language", value: key, onchange: () => translate(key) }), title));
    this.segments = h("div", { class: "segments", role: "radiogroup", "aria-label": "Language of the model" }, this.picks);
    this.helped = h("dl", { class: "help" });
    this.more = h("details", {}, h("summary", {}, "How to write this"), this.helped,
      h("p", { class: "soft small" }, "Powers are x**2. Functions: exp log sin cos tan sqrt min max abs, piecewise(a, x > 1, b)."));
  }

  typed(changed) {
    const text = this.area.value, equations = this.picks[0].firstChild;
    const told = equations.checked && FOREIGN.find(([, mark]) => mark.test(text))?.[0];
    this.written++;
    this.mark(null);
    this.number();
    if (told) this.choose(told);
    changed(told ? { text, language: told } : { text });
  }

  choose(language) {
    for (const pick of this.picks) pick.firstChild.checked = pick.firstChild.value === language;
    this.help(language);
  }

  set(draft) {
    this.put(draft.text);
    const problem = draft.language === "petab";
    this.area.readOnly = problem;
    this.segments.hidden = problem;
    this.choose(draft.language);
    this.number();
  }

  // Another text; who had selected all of the old one has all of the new one, else the cursor stays where it is.
  put(text) {
    const { value, selectionStart: start, selectionEnd: end } = this.area;
    if (value === text) return;
    this.area.value = text;
    if (document.activeElement === this.area) this.area.setSelectionRange(start, value && end - start === value.length ? text.length : end);
  }

  help(language) {
    this.more.hidden = !HELP[language];
    this.helped.replaceChildren(...(HELP[language] || []).flatMap(([code, words]) => [h("dt", {}, h("code", {}, code)), h("dd", {}, words)]));
  }

  number(wrong) {
    const count = Math.max(this.area.value.split("\n").length, 1);
    this.rows.replaceChildren(...Array.from({ length: count }, (_, i) => i + 1 === wrong ? h("b", {}, `${i + 1}\n`) : `${i + 1}\n`));
  }

  scrolled() {
    this.rows.scrollTop = this.marks.scrollTop = this.area.scrollTop;
    this.marks.scrollLeft = this.area.scrollLeft;
  }

  mark(mistake) {
    this.note.hidden = !mistake;
    this.box.classList.toggle("wrong", Boolean(mistake));
    this.area.setAttribute("aria-invalid", mistake ? "true" : "false");
    this.marks.replaceChildren();
    this.number(mistake?.row);
    if (!mistake) return;
    this.note.textContent = mistake.row ? `Line ${mistake.row}: ${mistake.message}` : mistake.message;
    if (!mistake.row) return;
    const lines = this.area.value.split("\n");
    const before = lines.slice(0, mistake.row - 1).map((line) => line + "\n").join("");
    const line = lines[mistake.row - 1] || "";
    const end = Math.min(mistake.column + mistake.length, Math.max(line.length, mistake.column + 1));
    this.marks.append(before + line.slice(0, mistake.column), h("mark", {}, line.slice(mistake.column, end) || " "), line.slice(end) + "\n");
    this.scrolled();
  }
}
