// The page: the list of studies, or one study with its model, data, unknowns and fits, kept in step with the server.

import { Refused, address, ask } from "./api.js";
import { Asking } from "./asking.js";
import { DataCard } from "./data.js";
import { byId, confirmed, debounced, h, latest, say } from "./dom.js";
import { Editor } from "./editor.js";
import { Fits } from "./fits.js";
import { Kept, differences } from "./keeping.js";
import { Pictures } from "./plot.js";
import { Unknowns } from "./unknowns.js";

const content = byId("content"), nameField = byId("name"), saved = byId("saved"), banner = byId("banner"), go = byId("go");
// `posed` counts what was changed of the problem: an answer to an older one is not shown.
let study = null, seen = null, verdict = null, curves = [], posed = 0, turn = 0;

const editor = new Editor((patch) => change(patch), translate);
const card = new DataCard((patch) => change(patch), (files) => drop(files), () => refresh());
const pictures = new Pictures();
const unknowns = new Unknowns((values) => move(values), (patch, again = true) => change(patch, again));
const asking = new Asking((patch, again = true) => { change(patch, again); if (!again) render(); });
const fits = new Fits({ begin, picked, compared, failed, asking: asking.element });
const exporting = h("a", { class: "button small", download: "" }, "Export the study (zip)");
const states = h("input", { type: "checkbox", onchange: () => pictures.set({ states: states.checked }) });
const log = h("input", { type: "checkbox", onchange: () => pictures.set({ log: log.checked }) });
const empty = h("p", { class: "empty" });
const stopped = h("p", { class: "note fair", hidden: true });
const knowing = h("div", { "aria-live": "polite" });

const title = (step, words) => h("h2", {}, h("span", { class: "step", "aria-hidden": "true" }, step), words);
const screen = h("div", { class: "study" },
  h("h1", { class: "hidden" }, "Study"),
  h("div", { class: "make" },
    h("section", { class: "card", "aria-label": "Model" }, h("div", { class: "head" }, title("1", "Model"), editor.segments), editor.box, editor.note, editor.more, knowing),
    h("section", { class: "card", "aria-label": "Data" }, h("div", { class: "head" }, title("2", "Data")), card.element)),
  h("div", { class: "see" },
    h("section", { class: "card", "aria-label": "Picture" }, h("div", { class: "head" }, title("3", "Picture"),
      h("label", { class: "check small" }, states, "states"), h("label", { class: "check small" }, log, "logarithmic")), empty, pictures.element, stopped),
    h("section", { class: "card", "aria-label": "Unknowns" }, h("div", { class: "head" }, title("4", "Unknowns"), unknowns.picking), unknowns.element)),
  h("div", { class: "ask" },
    h("section", { class: "card", "aria-label": "Fit" }, h("div", { class: "head" }, title("5", "Fit"), exporting), fits.card),
    fits.resultCard));

// --- trouble ---

// What the page has to say, by what it is about; one does not push away another.
const notices = new Map();

function warn(about, words, ...more) {
  if (words) notices.set(about, h("p", {}, h("span", {}, words), " ", ...more)); else notices.delete(about);
  banner.replaceChildren(...notices.values());
  banner.hidden = !notices.size;
}

const closing = (about) => h("button", { type: "button", class: "quiet", onclick: () => warn(about, "") }, "Close");

function failed(error, about = "trouble") {
  if (error.name === "AbortError") return;
  if (!(error instanceof Refused)) throw error;
  if (error.status === 0) warn("lost", error.message); else warn(about, error.message, closing(about));
}

function torn(mine) {
  if (mine !== study) return;
  warn("torn", "This study was changed here and in another tab.",
    h("button", { type: "button", onclick: () => route() }, "Load what is there"), " ",
    h("button", { type: "button", onclick: () => { warn("torn", ""); mine.insist(); } }, "Keep what is here"));
}

// What takes more than one answer, one after the other: what is asked for meanwhile waits for its turn.
let line = Promise.resolve();
function inTurn(task) {
  const done = line.then(task).catch(failed);
  line = done.catch(() => {});
  return done;
}

// --- the list of studies ---

async function home(mine) {
  study = null;
  nameField.hidden = go.hidden = true;
  saved.textContent = "";
  document.title = "odejet";
  const told = await ask("GET", "api/start");
  if (mine !== turn) return;
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
      route();
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
}

// --- one study ---

async function open(id, mine) {
  let told;
  try { told = await ask("GET", `api/studies/${id}`); } catch (error) { failed(error); if (error.status === 404) location.hash = ""; return; }
  if (mine !== turn) return;
  const kept = study = new Kept(told, {
    state: (words) => { if (kept === study) saved.textContent = words; },
    followed: () => { if (kept === study) refresh(); },
    torn: () => torn(kept),
    failed: (error) => failed(error, "saving"),
  });
  seen = verdict = null;
  curves = [];
  fits.open(study.id);
  exporting.href = address(`api/studies/${study.id}/study.zip`);
  pictures.set({ series: [], curves: [], fits: [] });
  saved.textContent = "";
  nameField.hidden = go.hidden = false;
  editor.mark(null);
  delete knowing.dataset.key;
  content.replaceChildren(screen);
  refresh();
  content.focus({ preventScroll: true });
  await fits.set(told);
  poll();
}

// The fields as the draft has them, and what follows from it.
function refresh() {
  const { draft } = study;
  if (document.activeElement !== nameField) nameField.value = study.name;
  document.title = `${study.name} – odejet`;
  editor.set(draft);
  fits.effort.value = draft.effort;
  if (document.activeElement !== fits.limit) fits.limit.value = draft.limit;
  posed++;
  render();
  look();
}

// The same model in another language, where it is one; what is written after the choice is in that language already.
function translate(language) {
  const mine = study, { written } = editor;
  inTurn(async () => {
    let { text } = mine.draft;
    if (text.trim() && written === editor.written) {
      try { ({ text } = await ask("POST", `api/studies/${mine.id}/translate`, { draft: mine.draft, language })); }
      catch (error) { if (!(error instanceof Refused)) throw error; }
    }
    if (mine !== study) return;
    change(written === editor.written ? { language, text } : { language });
    editor.set(mine.draft);
  });
}

function change(patch, again = true) {
  study.change(patch);
  if (!again) return;
  posed++;
  if ("text" in patch || "language" in patch) soon(); else look();
}

const soon = debounced(160, () => look());

// The server's view of the draft; the newest draft wins.
const look = latest(async () => {
  const mine = study, asked = posed;
  if (!mine) return;
  let told;
  try {
    if (!seen) saved.textContent = saved.textContent || "Preparing …";
    told = await ask("POST", `api/studies/${mine.id}/look`, { draft: mine.draft });
  } catch (error) { failed(error); return; }
  if (mine !== study || asked !== posed) return;
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
  asking.set(draft, seen);
  fits.button.textContent = asking.action;
  go.textContent = asking.short;
  fits.button.disabled = go.disabled = !seen?.ready;
  fits.why.hidden = Boolean(seen?.ready);
  fits.why.textContent = !draft.text.trim() ? "A fit needs a model and data." : seen?.mistake ? "The model has a mistake." : seen?.trouble || (draft.data ? "" : "A fit needs data: drop a table on the page.");
  renderVerdict();
}

function renderVerdict() {
  knowing.hidden = Boolean(seen?.mistake);
  const key = JSON.stringify([verdict, Boolean(seen?.unknowns)]);
  if (key === knowing.dataset.key) return;
  knowing.dataset.key = key;
  if (!verdict) { knowing.replaceChildren(seen?.unknowns ? h("p", { class: "soft small" }, "Finding out what can be known …") : ""); return; }
  const order = gathered(verdict.quantities);
  knowing.replaceChildren(
    h("h3", {}, "What can be known"),
    h("p", {}, sentence(verdict.message), verdict.note ? h("span", { class: "soft" }, ` ${verdict.note}`) : ""),
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
  const kinds = (name) => [...groups.values()].filter((group) => group.name === name).length;
  return [...groups.values()].map(({ name, label, one, count }) => {
    if (count === 1) return [label, one];
    const where = kinds(name) > 1 ? `in ${count} experiments` : "in each experiment";
    return [name, { ...one, sentence: `${one.sentence}, ${where}` }];
  });
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

function begin() {
  const mine = study;
  fits.button.disabled = go.disabled = true;
  return inTurn(async () => {
    if (mine !== study) return;
    change({ effort: fits.effort.value, limit: Math.min(3600, Math.max(1, fits.limit.valueAsNumber || 120)) }, false);
    await mine.save();
    if (mine.unsaved) return;
    const told = await ask("POST", `api/studies/${mine.id}/fits`, {});
    if (mine !== study) return;
    say(`Fit ${told.number} has begun.`);
    await fits.set(told);
    poll();
  }).finally(render);
}

// What changes by itself: fits that go on, and what other tabs have saved.
let timer;
const poll = latest(async () => {
  clearTimeout(timer);
  const mine = study;
  if (!mine) return;
  try {
    const told = await ask("GET", `api/studies/${mine.id}/state`);
    if (mine !== study) return;
    warn("lost", "");
    await fits.set(told);
    if (mine.unsaved) mine.save(); else mine.follow(told.revision);
  } catch (error) {
    failed(error);
  } finally {
    clearTimeout(timer);
    if (mine === study) timer = setTimeout(poll, fits.busy ? 400 : document.hidden ? 15000 : 3000);
  }
});

// --- files ---

// Files that were dropped, in the order in which they came.  What was said of those before goes when new ones come.
let drops = 0, waiting = 0;

function drop(files) {
  if (!files.length) return;
  if (!waiting++) for (const key of notices.keys()) if (key.startsWith("file ")) warn(key, "");
  const about = `file ${++drops}`, mine = study;
  inTurn(async () => {
    try { await take(mine || study || await made(files[0].name), files, about); } catch (error) { failed(error, about); } finally { waiting--; }
  });
}

// A new study for files that were dropped where there is none.
async function made(name) {
  const { id } = await ask("POST", "api/studies", { name: name.replace(/\.\w+$/, "").slice(0, 80) || "New study" });
  history.replaceState(null, "", `#${id}`);
  await open(id, ++turn);
  return study;
}

// Of the draft only that is changed which the files change: much may have been written while they were read.
async function take(mine, files, about) {
  const names = [], sent = structuredClone(mine.draft);
  let told;
  try {
    for (const file of files) {
      const content = await file.arrayBuffer().catch(() => { throw new Refused(`${file.name} cannot be read. If it is a folder, drop the files that are in it.`, 422); });
      names.push((await ask("PUT", `api/studies/${mine.id}/files/${encodeURIComponent(file.name)}`, content)).name);
    }
    told = await ask("POST", `api/studies/${mine.id}/take`, { draft: sent, files: names });
  } finally {
    // A file of the same name may be another one than before.
    if (mine === study) { posed++; look(); }
  }
  const patch = differences(sent, told.draft);
  const before = Object.fromEntries(Object.keys(patch).map((name) => [name, mine.draft[name]]));
  mine.change(patch);
  if (mine !== study) return;
  say(told.notes.join("; "));
  refresh();
  if (!("text" in patch) || !before.text.trim()) return;
  const undo = () => { warn(about, ""); if (mine === study) { mine.change(before); refresh(); } };
  warn(about, `The model that was here has given way to ${names.join(", ")}.`, h("button", { type: "button", onclick: undo }, "Undo"), " ", closing(about));
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
  study.change({}, nameField.value.trim() || study.name);
  nameField.value = study.name;
  document.title = `${study.name} – odejet`;
});
fits.effort.addEventListener("change", () => change({ effort: fits.effort.value }, false));
fits.limit.addEventListener("change", () => { if (fits.limit.valueAsNumber > 0) change({ limit: Math.min(3600, fits.limit.valueAsNumber) }, false); });
addEventListener("keydown", (event) => { if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && study && !fits.button.disabled) begin(); });
addEventListener("pagehide", () => study?.flush());
// What is too long to be sent while the page closes is better kept open.
addEventListener("beforeunload", (event) => { if (study?.unsaved && study.draft.text.length > 20000) event.preventDefault(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });

async function route() {
  const mine = ++turn;
  await study?.save();
  if (mine !== turn) return;
  notices.clear();
  warn("", "");
  shownFit = null;
  comparedFits = [];
  clearTimeout(timer);
  const id = location.hash.slice(1);
  if (id) await open(id, mine); else await home(mine).catch(failed);
}

// Until questions are answered at once, the page says what is being waited for.
async function prepare() {
  const patience = setTimeout(() => { byId("getting").hidden = false; }, 2000);
  await ask("GET", "api/ready").catch(() => {});
  clearTimeout(patience);
  byId("getting").hidden = true;
}

addEventListener("hashchange", route);
prepare();
route();
