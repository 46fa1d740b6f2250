// The page: the list of studies, or one study with its model, data, unknowns and fits, kept in step with the server.

import { Refused, ask } from "./api.js";
import { DataCard } from "./data.js";
import { byId, confirmed, debounced, h, latest, say } from "./dom.js";
import { Editor } from "./editor.js";
import { Fits } from "./fits.js";
import { Pictures } from "./plot.js";
import { Unknowns } from "./unknowns.js";

const content = byId("content"), nameField = byId("name"), saved = byId("saved"), banner = byId("banner"), go = byId("go");
let study = null, seen = null, verdict = null, curves = [], looked = 0, dirty = false, opened = 0;

const editor = new Editor((patch) => change(patch), translate);
const card = new DataCard((patch) => change(patch), (files) => drop(files));
const pictures = new Pictures();
const unknowns = new Unknowns((values) => move(values), (patch, again = true) => change(patch, again));
const fits = new Fits({ begin, picked, compared });
const states = h("input", { type: "checkbox", onchange: () => pictures.set({ states: states.checked }) });
const log = h("input", { type: "checkbox", onchange: () => pictures.set({ log: log.checked }) });
const empty = h("p", { class: "empty" });
const stopped = h("p", { class: "note fair", hidden: true });
const knowing = h("div", { "aria-live": "polite" });

const title = (step, words) => h("h2", {}, h("span", { class: "step", "aria-hidden": "true" }, step), words);
const screen = h("div", { class: "study" },
  h("div", { class: "make" },
    h("section", { class: "card", "aria-label": "Model" }, h("div", { class: "head" }, title("1", "Model"), editor.segments), editor.box, editor.note, editor.more, knowing),
    h("section", { class: "card", "aria-label": "Data" }, h("div", { class: "head" }, title("2", "Data")), card.element)),
  h("div", { class: "see" },
    h("section", { class: "card", "aria-label": "Picture" }, h("div", { class: "head" }, title("3", "Picture"),
      h("label", { class: "check small" }, states, "states"), h("label", { class: "check small" }, log, "logarithmic")), empty, pictures.element, stopped),
    h("section", { class: "card", "aria-label": "Unknowns" }, h("div", { class: "head" }, title("4", "Unknowns"), unknowns.picking), unknowns.element)),
  h("div", { class: "ask" },
    h("section", { class: "card", "aria-label": "Fit" }, h("div", { class: "head" }, title("5", "Fit")), fits.card),
    fits.resultCard));

// --- trouble ---

function warn(words, ...more) {
  banner.replaceChildren(h("span", {}, words), ...more);
  banner.hidden = !words;
}

function failed(error) {
  if (error.name === "AbortError") return;
  if (!(error instanceof Refused)) throw error;
  if (error.told?.changed) return conflict();
  warn(error.message, h("button", { type: "button", class: "quiet", onclick: () => warn("") }, "Close"));
}

function conflict() {
  dirty = false;
  warn("This study was changed in another tab.", h("button", { type: "button", onclick: () => { warn(""); open(study.id); } }, "Load what is there"));
}

// --- the list of studies ---

async function home() {
  study = null;
  nameField.hidden = go.hidden = true;
  saved.textContent = "";
  document.title = "odejet";
  const told = await ask("GET", "api/start");
  const begin = (body) => async (event) => {
    event.currentTarget.disabled = true;
    saved.textContent = "Preparing …";
    try { const made = await ask("POST", "api/studies", body); location.hash = made.id; } catch (error) { failed(error); event.target.disabled = false; }
    saved.textContent = "";
  };
  const list = told.studies.map((one) => h("li", {},
    h("button", { type: "button", class: "open", onclick: () => { location.hash = one.id; } }, one.name),
    h("span", { class: "soft small" }, one.changed ? new Date(1000 * one.changed).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) : ""),
    h("button", { type: "button", class: "quiet danger", "aria-label": `Remove ${one.name}`, onclick: async () => {
      if (!await confirmed(`Remove “${one.name}”? Its files stay in the folder “removed”.`, "Remove")) return;
      await ask("DELETE", `api/studies/${one.id}`).catch(failed);
      home();
    } }, "✕")));
  content.replaceChildren(h("div", { class: "welcome" },
    h("h1", {}, "Fit a model to your data"),
    h("p", { class: "lead" }, "Write equations, drop a table of measurements, press Fit: every parameter and every initial value, without a guess, and how sure each is. All of it happens on this machine."),
    h("p", {}, h("button", { type: "button", class: "primary large", id: "new", onclick: begin({ name: "New study" }) }, "New study")),
    h("h2", {}, "Or begin with an example"),
    h("ul", { class: "tiles" }, told.examples.map((one) => h("li", {}, h("button", { type: "button", class: "tile", "data-example": one.key, onclick: begin({ example: one.key }) }, h("b", {}, one.title), h("span", {}, one.question))))),
    list.length ? [h("h2", {}, "Your studies"), h("ul", { class: "studies" }, list)] : "",
    h("p", { class: "soft small" }, `Studies are kept in ${told.folder}. odejet ${told.version}.`)));
  content.focus({ preventScroll: true });
  ask("GET", "api/ready").catch(() => {});
}

// --- one study ---

async function open(id) {
  const mine = ++opened;
  let told;
  try { told = await ask("GET", `api/studies/${id}`); } catch (error) { failed(error); if (error.status === 404) location.hash = ""; return; }
  if (mine !== opened) return;
  study = told;
  seen = verdict = null;
  curves = [];
  dirty = false;
  fits.open(study.id);
  pictures.set({ series: [], curves: [], fits: [] });
  nameField.value = study.name;
  nameField.hidden = go.hidden = false;
  document.title = `${study.name} – odejet`;
  editor.set(study.draft);
  editor.mark(null);
  fits.effort.value = study.draft.effort;
  fits.limit.value = study.draft.limit;
  knowing.replaceChildren();
  content.replaceChildren(screen);
  render();
  content.focus({ preventScroll: true });
  look();
  await fits.set(told.fits);
  poll();
}

// The same model in another language, where it is one.
async function translate(language) {
  const mine = study;
  let text = mine.draft.text;
  if (text.trim()) {
    try { ({ text } = await ask("POST", `api/studies/${mine.id}/translate`, { draft: mine.draft, language })); }
    catch (error) { if (!(error instanceof Refused)) throw error; }
  }
  if (mine !== study) return;
  change({ language, text });
  editor.set(study.draft);
}

function change(patch, again = true) {
  Object.assign(study.draft, patch);
  dirty = true;
  saved.textContent = "…";
  store();
  if (!again) return;
  if ("text" in patch || "language" in patch) soon(); else look();
}

const store = debounced(350, () => save().catch(failed));
const soon = debounced(160, () => look());
let saving = Promise.resolve();

function save() {
  store.cancel();
  saving = saving.catch(() => {}).then(async () => {
    if (!study || !dirty) return;
    dirty = false;
    const mine = study;
    try {
      const { revision } = await ask("PUT", `api/studies/${mine.id}`, { revision: mine.revision, name: mine.name, draft: mine.draft });
      mine.revision = revision;
      saved.textContent = "Saved";
    } catch (error) {
      if (!error.told?.changed) dirty = true;
      saved.textContent = "Not saved";
      throw error;
    }
  });
  return saving;
}

// The server's view of the draft; the newest draft wins.
const look = latest(async () => {
  const mine = study, turn = ++looked;
  if (!mine) return;
  let told;
  try {
    if (!seen) saved.textContent = saved.textContent || "Preparing …";
    told = await ask("POST", `api/studies/${mine.id}/look`, { draft: mine.draft });
  } catch (error) { failed(error); return; }
  if (mine !== study || turn !== looked) return;
  if (saved.textContent === "Preparing …") saved.textContent = "";
  const blank = !mine.draft.text.trim();
  editor.mark(told.mistake && !blank ? told.mistake : null);
  if (told.mistake) {
    if (!blank) say(told.mistake.row ? `Line ${told.mistake.row}: ${told.mistake.message}` : told.mistake.message);
    // The picture of the last model that was right stays, for the moment.
    seen = { ...(blank ? {} : seen), mistake: told.mistake, ready: false };
    if (blank) { verdict = null; curves = []; }
    render();
    return;
  }
  if (seen?.key !== told.key) { verdict = null; know(); }
  seen = told;
  render();
  move(unknowns.values);
});

const know = debounced(250, latest(async () => {
  const mine = study, key = seen?.key;
  if (!mine || !seen?.unknowns || seen.mistake) { knowing.replaceChildren(); return; }
  try {
    const told = await ask("POST", `api/studies/${mine.id}/know`, { draft: mine.draft });
    if (mine !== study || key !== seen?.key) return;
    verdict = told;
  } catch (error) {
    if (mine === study && key === seen?.key) verdict = { message: error.message, quantities: {}, combinations: [], fix: [] };
  }
  render();
}));

const move = latest(async (values) => {
  const mine = study, key = seen?.key;
  if (!mine || !key || !seen.unknowns) { curves = []; pictures.set({ curves }); return; }
  try {
    const told = await ask("POST", `api/studies/${mine.id}/move`, { key, values });
    if (mine !== study || key !== seen?.key) return;
    if (told.forgotten) { look(); return; }
    curves = told.curves;
    const end = curves.find((one) => one.message);
    stopped.hidden = !end;
    stopped.textContent = end ? `The curve ends early: ${end.message}.` : "";
    pictures.move(curves);
    render();
  } catch (error) { failed(error); }
});

function render() {
  if (!study) return;
  const { draft } = study;
  card.set(draft, seen);
  const series = seen?.series || [];
  pictures.set({ series, curves, fits: drawn() });
  const nothing = !series.length && !curves.length;
  empty.hidden = !nothing;
  pictures.element.hidden = nothing;
  empty.textContent = draft.text.trim() ? (seen?.mistake || seen?.trouble ? "Mend the mistake to see curves." : "…") : "Write a model on the left, or drop a file: the curve appears here, and the data with it.";
  unknowns.set({
    rows: seen?.unknowns || [], draft, experiments: seen?.experiments || [], known: seen?.model?.known, verdict,
    result: shownFit?.result, readonly: draft.language === "petab", states: seen?.model?.states || [],
  });
  fits.button.disabled = go.disabled = !seen?.ready;
  fits.why.hidden = Boolean(seen?.ready);
  fits.why.textContent = !draft.text.trim() ? "A fit needs a model and data." : seen?.mistake ? "The model has a mistake." : seen?.trouble || (draft.data ? "" : "A fit needs data: drop a table on the page.");
  renderVerdict();
}

function renderVerdict() {
  knowing.hidden = Boolean(seen?.mistake);
  const key = JSON.stringify(verdict);
  if (key === knowing.dataset.key) return;
  knowing.dataset.key = key;
  if (!verdict) { knowing.replaceChildren(seen?.unknowns ? h("p", { class: "soft small" }, "Finding out what can be known …") : ""); return; }
  const order = gathered(verdict.quantities);
  knowing.replaceChildren(
    h("h3", {}, "What can be known"),
    h("p", {}, sentence(verdict.message)),
    h("ul", { class: "chips" }, order.slice(0, 60).map(([label, one]) => h("li", { title: one.reason || "" }, h("i", { class: `dot ${one.kind}` }), h("code", {}, label), h("span", { class: "soft small" }, one.sentence)))),
    verdict.combinations.length ? h("p", { class: "small" }, "Known in combination: ", verdict.combinations.flatMap((one, i) => [i ? ", " : "", h("code", {}, one)])) : "",
    verdict.fix.length ? h("p", { class: "small" }, "Give a value to ", verdict.fix.flatMap((one, i) => [i ? ", " : "", h("code", {}, one)]), ", and every other quantity can be known.") : "");
}

// What is the same in every experiment is told once.
function gathered(quantities) {
  const groups = new Map();
  for (const [label, one] of Object.entries(quantities)) {
    const name = label.replace(/ in .*$/, ""), key = `${name} ${one.sentence}`;
    if (groups.has(key)) groups.get(key).count++; else groups.set(key, { name, label, one, count: 1 });
  }
  return [...groups.values()].map(({ name, label, one, count }) => [count > 1 ? name : label, count > 1 ? { ...one, sentence: `${one.sentence}, in each of ${count}` } : one]);
}

const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1) + (/[.!?]$/.test(words) ? "" : ".");

// --- fits ---

let shownFit = null, comparedFits = [];

function drawn() {
  const found = shownFit ? [{ name: `Fit ${shownFit.number}`, bands: shownFit.result.bands, suspicious: shownFit.result.suspicious }] : [];
  for (const number of comparedFits) {
    if (number === shownFit?.number) continue;
    const result = fits.results.get(number);
    if (result) found.push({ name: `Fit ${number}`, bands: result.bands, other: true });
  }
  return found;
}

function picked(fit) {
  shownFit = fit;
  if (fit?.chosen) {
    // The sliders go to where the fit is.
    change({ values: { ...study.draft.values, ...fit.result.values } }, false);
    render();
    move(unknowns.values);
  } else render();
}

function compared(numbers) {
  comparedFits = numbers;
  render();
}

async function begin() {
  fits.button.disabled = go.disabled = true;
  Object.assign(study.draft, { effort: fits.effort.value, limit: Math.min(3600, Math.max(1, fits.limit.valueAsNumber || 120)) });
  dirty = true;
  try {
    await save();
    const told = await ask("POST", `api/studies/${study.id}/fits`, {});
    say(`Fit ${told.number} has begun.`);
    await fits.set(told.fits);
    poll();
  } catch (error) { failed(error); }
  render();
}

let timer;
async function poll() {
  clearTimeout(timer);
  const mine = study;
  if (!mine) return;
  try {
    const told = await ask("GET", `api/studies/${mine.id}/state`);
    if (mine !== study) return;
    if (banner.dataset.lost) { delete banner.dataset.lost; warn(""); }
    await fits.set(told.fits);
    if (told.revision > mine.revision && !dirty && saved.textContent !== "…") { await open(mine.id); return; }
  } catch (error) {
    if (error.status === 0) { banner.dataset.lost = "1"; warn(error.message); } else failed(error);
  }
  clearTimeout(timer);
  timer = setTimeout(poll, fits.busy ? 400 : document.hidden ? 15000 : 3000);
}

// --- files ---

async function drop(files) {
  if (!files.length) return;
  try {
    if (!study) {
      const made = await ask("POST", "api/studies", { name: files[0].name.replace(/\.\w+$/, "").slice(0, 80) || "New study" });
      history.replaceState(null, "", `#${made.id}`);
      await open(made.id);
    }
    await save();
    const names = [];
    for (const file of files) names.push((await ask("PUT", `api/studies/${study.id}/files/${encodeURIComponent(file.name)}`, file)).name);
    const told = await ask("POST", `api/studies/${study.id}/take`, { draft: study.draft, files: names });
    warn("");
    say(told.notes.join("; "));
    editor.set({ ...study.draft, ...told.draft });
    change(told.draft);
  } catch (error) { failed(error); }
}

for (const kind of ["dragenter", "dragover"]) addEventListener(kind, (event) => {
  if (![...event.dataTransfer.types].includes("Files")) return;
  event.preventDefault();
  document.body.classList.add("dragging");
});
addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dragging"); });
addEventListener("drop", (event) => {
  document.body.classList.remove("dragging");
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  drop([...event.dataTransfer.files]);
});

// --- around ---

go.addEventListener("click", () => { begin(); fits.card.scrollIntoView({ block: "nearest" }); });
byId("home").addEventListener("click", () => { location.hash = ""; });
nameField.addEventListener("change", () => {
  study.name = nameField.value.trim() || study.name;
  nameField.value = study.name;
  document.title = `${study.name} – odejet`;
  dirty = true;
  store();
});
fits.effort.addEventListener("change", () => change({ effort: fits.effort.value }, false));
fits.limit.addEventListener("change", () => { if (fits.limit.valueAsNumber > 0) change({ limit: Math.min(3600, fits.limit.valueAsNumber) }, false); });
addEventListener("keydown", (event) => { if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && study && !fits.button.disabled) begin(); });
addEventListener("pagehide", () => { if (dirty) save().catch(() => {}); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });

async function route() {
  await save().catch(failed);
  warn("");
  shownFit = null;
  comparedFits = [];
  clearTimeout(timer);
  const id = location.hash.slice(1);
  opened++;
  if (id) await open(id); else await home().catch(failed);
}
addEventListener("hashchange", route);
route();
