// Small helpers for the document: elements, words for screen readers, numbers as people read them.

export function h(tag, given = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "value") element.value = value;
    else if (name === "checked" || name === "disabled" || name === "hidden") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);

let clearing;
// Tells a screen reader; the same words twice are told twice.
export function say(words) {
  const live = byId("live");
  live.textContent = "";
  clearTimeout(clearing);
  clearing = setTimeout(() => { live.textContent = words; }, 60);
}

export function show(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e-3 && size < 1e6) return String(Number(value.toPrecision(4)));
  return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
}

export function seconds(value) {
  if (value < 9.95) return `${value.toFixed(1)} s`;
  if (value < 120) return `${Math.round(value)} s`;
  const whole = Math.round(value), left = whole % 60;
  return `${Math.floor(whole / 60)} min${left ? ` ${left} s` : ""}`;
}

export function debounced(wait, task) {
  let timer;
  const later = (...given) => { clearTimeout(timer); timer = setTimeout(() => task(...given), wait); };
  later.cancel = () => clearTimeout(timer);
  return later;
}

// Of calls that come while one is under way, only the last is made when it ends.
export function latest(task) {
  let busy = false, next = null;
  return async function call(...given) {
    if (busy) { next = given; return; }
    busy = true;
    try {
      await task(...given);
    } finally {
      busy = false;
      if (next) { const again = next; next = null; call(...again); }
    }
  };
}

// The control in which something is half written, or a slider in a hand.
let half = null;
addEventListener("input", (event) => { half = event.target; }, true);
for (const kind of ["change", "focusout"]) addEventListener(kind, () => { half = null; }, true);
export const writing = (element) => half !== null && element.contains(half);

// Controls are made again: the one that had the focus has it still, and whoever uses the keyboard goes on from there.
export function remade(element, make) {
  const active = document.activeElement;
  const name = element.contains(active) && active.getAttribute("aria-label");
  make();
  if (!name || element.contains(active)) return;
  [...element.querySelectorAll("[aria-label]")].find((one) => one.getAttribute("aria-label") === name)?.focus({ preventScroll: true });
}

export function confirmed(question, action) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-label": question },
      h("p", {}, question),
      h("form", { method: "dialog", class: "row" },
        h("button", { value: "yes", class: "primary" }, action),
        h("button", { value: "no", autofocus: true }, "Keep it")));
    dialog.addEventListener("close", () => { dialog.remove(); resolve(dialog.returnValue === "yes"); });
    document.body.append(dialog);
    dialog.showModal();
  });
}
