// What a tab shows while it comes, step by step, until all of it is here or the person stops it. It outlives the page; what was not looked at longest goes.
import { Asking } from "./asking.js";
import { canonical } from "../core/store.js";

const MOST = 12; // that are kept

const known = new Map(); // canonical [prompt and model, query] -> {trace, query, found, stopped, why}, the newest last

function remember(key, coming) {
  known.delete(key);
  known.set(key, coming);
  for (const old of known.keys()) if (known.size > MOST) known.delete(old);
}

/** Those of a prompt, for a file: {ask: [{query, steps}]}, `steps` null where all of it is here. */
export function comingOf(trace) {
  const here = [...known.values()].filter((one) => one.trace === trace && one.found);
  const told = here.map(({ query, found }) => ({ query, steps: found.whole ? null : found.count }));
  return Object.groupBy(told, ({ query }) => query.ask);
}

/** What is asked to have as much of it again. */
export function comingQuery({ query, steps }) {
  return { ...query, ...(steps && { steps }) };
}

/**
 * `join(found, part)` is all that is here, with a part {from, count, whole, ...} behind what is `found` (null: nothing yet).
 * `on` = {take(coming), fail(error)}: there is more of it, or it was stopped; the server cannot go on, and `why` says that.
 */
export class Coming {
  constructor(page, query, join, on) {
    Object.assign(this, { page, query, join, on, parts: 0, found: null, stopped: false, why: "" });
    this.trace = page.data.trace;
    this.key = canonical([this.trace, query]);
    this.asking = new Asking(page);
    Object.assign(this, known.get(this.key));
  }

  get isActive() {
    return !this.stopped && !this.found?.whole;
  }

  get count() {
    return this.found?.count ?? 0;
  }

  begin() {
    if (this.found || this.stopped) this.on.take(this);
    if (this.page.alone && !this.found) this.read();
    if (!this.page.alone && this.isActive) this.go();
  }

  /** In a file, which has what was here when it was made. */
  read() {
    const { ask } = this.query;
    const kept = this.page.data.kept.coming?.[ask]?.find(({ query }) => canonical(query) === canonical(this.query));
    const take = (answer) => {
      this.stopped = !answer.whole;
      this.take(answer);
    };
    this.page.request(comingQuery({ query: this.query, steps: kept?.steps })).then(take, (error) => this.on.fail(error));
  }

  async go() {
    Object.assign(this, { stopped: false, why: "" });
    this.keep();
    const query = () => ({ ...this.query, trace: this.trace, from: this.count, shared: this.page.isShared });
    try {
      await this.asking.go(query, (part) => this.take(part));
    } catch (error) {
      Object.assign(this, { stopped: true, why: error.message });
      if (this.found) this.keep();
      this.on.fail(error);
    }
  }

  /** A part that does not follow what is here was asked for before a rerun of the page, and is here already. */
  take(part) {
    if (part.from !== this.count) return;
    this.found = this.join(this.found, part);
    this.parts++;
    if (part.whole) this.asking.end();
    this.keep();
    this.on.take(this);
  }

  keep() {
    const { trace, query, found, stopped, why } = this;
    remember(this.key, { trace, query, found, stopped, why });
  }

  stop() {
    this.stopped = true;
    this.asking.breakOff();
    this.keep();
    this.on.take(this);
  }

  /** Nobody looks at it now; it goes on where somebody does again. */
  leave() {
    this.asking.breakOff();
    this.on = { take() {}, fail() {} };
  }
}
