// The curves of other runs, laid over those of the one that is looked at.
import { Metrics } from "./metrics.js";
import { inquire } from "../core/store.js";

const PACE = 2500; // ms between two looks at runs that may still grow
const PATIENCE = 4; // looks without anything new until a run is taken to be at rest

export class Overlays {
  /** `changed(name, sentence)` is called when there is more of one, or when it cannot be told. */
  constructor(changed) {
    this.changed = changed;
    this.metrics = new Map(); // name -> Metrics, in the order in which they were chosen
    this.still = new Map(); // name -> looks without anything new
    this.timer = 0;
    this.closed = false;
    this.edition = 0;
  }

  /** These are overlaid from now on. */
  show(names) {
    const [before, after] = [JSON.stringify([...this.metrics.keys()]), JSON.stringify(names)];
    if (before === after) return;
    this.metrics = new Map(names.map((name) => [name, this.metrics.get(name) ?? new Metrics()]));
    this.still = new Map(names.map((name) => [name, 0]));
    this.edition++;
    this.look();
  }

  /** Of runs that are told whole, {name, columns} with the arrays `laid.<number>.<column>`. */
  hold(runs, arrays) {
    runs.forEach(({ name, columns }, i) => {
      const made = new Metrics();
      made.append({ columns, arrays: Object.fromEntries(columns.map((column) => [`metrics.${column}`, arrays[`laid.${i}.${column}`]])) });
      this.metrics.set(name, made);
    });
    this.edition++;
  }

  /** While the run that is looked at goes on, the others may too: runs are started side by side. */
  follow({ state }) {
    if (state !== "running" && state !== "preparing") return;
    for (const [name, count] of this.still) if (count >= PATIENCE) this.still.set(name, PATIENCE - 1);
    if (!this.timer && this.metrics.size) this.timer = setTimeout(() => this.look(), PACE);
  }

  async look() {
    clearTimeout(this.timer);
    const names = [...this.still].filter(([, count]) => count < PATIENCE).map(([name]) => name);
    this.timer = -1; // on its way
    if (document.visibilityState === "visible") await Promise.all(names.map((name) => this.ask(name)));
    const more = [...this.still.values()].some((count) => count < PATIENCE);
    this.timer = more && !this.closed ? setTimeout(() => this.look(), PACE) : 0;
  }

  async ask(name) {
    try {
      const answer = await inquire({ ask: "curve", run: name });
      if (this.closed || !this.metrics.has(name)) return;
      const made = new Metrics();
      made.append(answer);
      const before = this.metrics.get(name);
      const same = before.length === made.length && before.last === made.last;
      this.still.set(name, same ? this.still.get(name) + 1 : 0);
      if (same) return;
      this.metrics.set(name, made);
      this.edition++;
      this.changed(name, "");
    } catch (error) {
      this.still.set(name, PATIENCE);
      if (!this.closed) this.changed(name, error.message);
    }
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
  }
}
