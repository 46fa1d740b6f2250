// Keeping: one study as the page has it, saved as it changes, and put together with what other tabs have saved.

import { ask } from "./api.js";
import { debounced } from "./dom.js";

const copy = (value) => JSON.parse(JSON.stringify(value));
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
// Fields that say something only together: whoever changes one has changed all.
const TOGETHER = { language: "text", file: "text", titles: "data" };
const topic = (name) => TOGETHER[name] || name;

// The fields that are others after than before.
export function differences(before, after) {
  return Object.fromEntries(Object.entries(after).filter(([name, value]) => !same(value, before[name])));
}

export class Kept {
  // Told: `state(words)` how saving goes, `followed()` when something came in from another tab, `torn()` when both have
  // changed the same, `failed(error)`.
  constructor({ id, name, draft, revision }, told) {
    Object.assign(this, { id, name, draft, revision, told });
    this.base = copy({ name, draft });
    this.author = crypto.randomUUID();
    this.changes = this.saved = 0;
    this.torn = false;
    this.line = Promise.resolve();
    this.soon = debounced(350, () => this.save());
  }

  get unsaved() { return this.changes > this.saved; }

  change(patch, name = this.name) {
    Object.assign(this.draft, patch);
    this.name = name;
    this.changes++;
    this.told.state("…");
    this.soon();
  }

  // All that was changed so far is on disk when this ends, unless `unsaved` says otherwise.
  save() {
    this.soon.cancel();
    return this.inTurn(() => this.put());
  }

  // What another tab has saved meanwhile comes in.
  follow(revision) {
    return this.inTurn(() => (revision > this.revision && !this.torn ? this.meet() : null));
  }

  // The page is being closed, and nothing can be waited for.
  flush() {
    if (this.unsaved && !this.torn) this.send(this.changes).catch(() => {});
  }

  // What is here takes the place of what another tab has saved.
  insist() {
    return this.inTurn(async () => {
      const there = await ask("GET", `api/studies/${this.id}`);
      this.rest(there);
      this.torn = false;
      this.changes++;
      await this.put();
    });
  }

  // One after the other, so that a revision is never asked for while another is being written.
  inTurn(task) {
    const done = this.line.then(task).catch((error) => {
      if (this.unsaved) this.told.state("Not saved");
      this.told.failed(error);
    });
    this.line = done.catch(() => {});
    return done;
  }

  send(turn) {
    const { revision, author, name, draft } = this;
    return ask("PUT", `api/studies/${this.id}`, { revision, author, turn, name, draft });
  }

  async put() {
    while (this.unsaved && !this.torn) {
      const turn = this.changes, sent = copy({ name: this.name, draft: this.draft });
      try {
        const { revision } = await this.send(turn);
        Object.assign(this, { revision, base: sent, saved: turn });
        if (!this.unsaved) this.told.state("Saved");
      } catch (error) {
        if (!error.told?.changed) throw error;
        await this.meet();
      }
    }
  }

  // What only the other tab has changed is taken, what only this one has changed stays.
  async meet() {
    const theirs = await ask("GET", `api/studies/${this.id}`);
    const before = { ...this.base.draft, name: this.base.name };
    const here = differences(before, { ...this.draft, name: this.name });
    const there = differences(before, { ...theirs.draft, name: theirs.name });
    const mine = new Set(Object.keys(here).map(topic));
    const both = Object.keys(there).filter((name) => mine.has(topic(name)) && name !== "values" && !same(here[name], there[name]));
    if (both.length) {
      this.torn = true;
      this.told.state("Not saved");
      this.told.torn();
      return;
    }
    const taken = Object.keys(there).filter((name) => !(name in here));
    for (const name of taken) if (name === "name") this.name = theirs.name; else this.draft[name] = there[name];
    this.rest(theirs);
    if (taken.length) this.told.followed();
  }

  rest({ name, draft, revision }) {
    this.base = copy({ name, draft });
    this.revision = revision;
  }
}
