// What comes in parts: the tokens of a text that is written, the steps of a search, the windows of a reading. It is asked for again and again until all of it
// is here or nobody wants it any more (views/generate/streaming.py).
import { canonical } from "../core/store.js";
import { stepsOf, tokenOf } from "./tree.js";

/**
 * @typedef {import("./generate.js").Page} Page
 * @typedef {import("./tree.js").Settings} Settings
 * @typedef {{ ask: string, [option: string]: unknown }} Asked
 * @typedef {import("../core/payload.js").Payload} Part
 * @typedef {{ count: number, whole: boolean }} Found
 * @typedef {{ trace: string, query: Asked, found: Found | null, stopped: boolean, why: string }} Known
 */

/**
 * @template {Found} F
 * @typedef {{ take: (coming: Coming<F>) => unknown, fail: (error: Error) => unknown }} On
 */

/** @type {Set<Asking>} */
const asking = new Set(); // those that wait for a part

/** Streamlit's sign of a run that goes on, with a Stop of its own, stays away meanwhile (assets/theme/app.css). */
function mark() {
  if (asking.size) document.body.dataset.writing = "";
  else delete document.body.dataset.writing;
}

class Asking {
  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    /** @type {AbortController | null} */
    this.wanted = null;
  }

  /**
   * Calls `take(part)` with each part. `query()` makes the question whenever it is sent, behind what has come by then. Throws the server's sentence.
   * @param {() => Asked} query
   * @param {(part: Part) => void} take
   */
  async go(query, take) {
    this.end();
    const { signal } = (this.wanted = new AbortController());
    asking.add(this);
    mark();
    try {
      while (!signal.aborted) await this.page.stream(query, take, signal);
    } catch (error) {
      this.end();
      throw error;
    }
  }

  /** All of it is here, or the page is rerun anyway. */
  end() {
    this.wanted?.abort();
    this.wanted = null;
    asking.delete(this);
    mark();
  }

  /** What the server is at is broken off too. */
  breakOff() {
    if (!this.wanted) return;
    this.end();
    this.page.interrupt();
  }
}

/** `page` is the shell. `active` says that it writes; `told` is the sentence that says what ended it. */
export class Run {
  /** @type {number} the token that is written on from */
  from;
  /** @type {number[]} that are there */
  ids;
  /** @type {import("./tree.js").Tree} in which it writes */
  tree;

  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    this.asking = new Asking(page);
    this.active = false;
    this.told = "";
    /** @type {{ tokens: number, seconds: number } | null} of the engine */
    this.speed = null;
  }

  /** Goes on behind the token `from` of the tree; `shift` draws with another seed. */
  async begin(from = this.page.tree.shown, shift = 0) {
    const { page } = this;
    const { tree } = page;
    this.active = true;
    this.told = "";
    this.speed = { tokens: 0, seconds: 0 };
    this.from = from;
    this.tree = tree;
    this.ids = tree.ids(from);
    Object.assign(tree, { shown: from, at: null });
    const { most } = page.data.settings; // of this run, whatever is set meanwhile
    const goal = this.ids.length + most;
    page.refresh();
    let settings = page.data.settings; // of the tokens that are asked for
    const query = () => {
      settings = { ...page.data.settings, most, seed: page.data.settings.seed + shift };
      return { ask: "write", begun: this.ids, settings, goal, shared: page.isShared };
    };
    try {
      await this.asking.go(query, (part) => this.take(part, settings, shift));
    } catch (error) {
      this.end(error.message);
      page.refresh();
    }
  }

  /**
   * A part that does not follow what stands there was asked for before a rerun of the page, and is here already.
   * @param {Part} part
   * @param {Settings} settings
   * @param {number} shift
   */
  take(part, settings, shift) {
    const { before, seconds, stop } = part;
    if (before !== this.ids.length || !this.speed) return;
    const steps = stepsOf(part);
    this.ids = [...this.ids, ...steps.map(({ id }) => id)];
    this.speed.tokens += steps.length;
    this.speed.seconds += seconds;
    steps.forEach((step, i) => {
      this.from = this.tree.add(
        this.from,
        tokenOf(step, { stop: i === steps.length - 1 ? stop : null, shift }),
        settings,
      );
    });
    this.tree.shown = this.from;
    if (!steps.length && stop && this.from) this.tree.node(this.from).stop = stop;
    if (stop) this.end(stop.sentence);
    this.page.refresh();
  }

  /** @param {string} sentence */
  end(sentence) {
    this.asking.end();
    this.active = false;
    this.told = sentence;
    this.tree.save();
    this.page.tell(sentence);
    this.page.reportBranch();
  }

  /** Another prompt: what was written from the one before says nothing of it. */
  forget() {
    this.leave();
    this.told = "";
    this.speed = null;
  }

  stop() {
    if (!this.active) return;
    this.leave();
    this.page.interrupt();
    this.page.refresh();
  }

  /** The page is rerun anyway, or left. */
  leave() {
    if (!this.active) return;
    const count = this.speed?.tokens ?? 0;
    this.end(`Stopped after ${count.toLocaleString("en")} ${count === 1 ? "token" : "tokens"}.`);
  }
}

const MOST = 12; // that are kept

/** @type {Map<string, Known>} */
const known = new Map(); // canonical [prompt and model, query] -> {trace, query, found, stopped, why}, the newest last

/**
 * @param {string} key
 * @param {Known} coming
 */
function remember(key, coming) {
  known.delete(key);
  known.set(key, coming);
  for (const old of known.keys()) if (known.size > MOST) known.delete(old);
}

/**
 * Those of a prompt, for a file: {ask: [{query, steps}]}, `steps` null where all of it is here.
 * @param {string} trace
 */
export function comingOf(trace) {
  const here = [...known.values()].filter((one) => one.trace === trace);
  /** @type {Record<string, { query: Asked, steps: number | null }[]>} */
  const told = {};
  for (const { query, found } of here)
    if (found) (told[query.ask] ??= []).push({ query, steps: found.whole ? null : found.count });
  return told;
}

/**
 * What is asked to have as much of it again.
 * @param {{ query: Asked, steps?: number | null }} of
 */
export function comingQuery({ query, steps }) {
  return { ...query, ...(steps && { steps }) };
}

/**
 * `join(found, part)` is all that is here, with a part {from, count, whole, ...} behind what is `found` (null: nothing yet).
 * `on` = {take(coming), fail(error)}: there is more of it, or it was stopped; the server cannot go on, and `why` says that.
 * @template {Found} F
 */
export class Coming {
  /**
   * @param {Page} page
   * @param {Asked} query
   * @param {(found: F | null, part: Part) => F} join
   * @param {On<F>} on
   */
  constructor(page, query, join, on) {
    this.page = page;
    this.query = query;
    this.join = join;
    this.on = on;
    this.parts = 0;
    /** @type {F | null} */
    this.found = null;
    this.stopped = false;
    this.why = "";
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
    const kept = this.page.data.kept?.coming?.[ask]?.find(({ query }) => canonical(query) === canonical(this.query));
    /** @param {Part} answer */
    const take = (answer) => {
      this.stopped = !answer.whole;
      this.take(answer);
    };
    this.page
      .request(
        /** @type {import("../core/store.js").Query<"beam" | "surprise">} */ (
          /** @type {unknown} */ (comingQuery({ query: this.query, steps: kept?.steps }))
        ),
      )
      .then(take, (error) => this.on.fail(error));
  }

  async go() {
    this.stopped = false;
    this.why = "";
    this.keep();
    const query = () => ({
      ...this.query,
      ask: `${this.query.ask}_parts`,
      trace: this.trace,
      came: this.count,
      shared: this.page.isShared,
    });
    try {
      await this.asking.go(query, (part) => this.take(part));
    } catch (error) {
      this.stopped = true;
      this.why = error.message;
      if (this.found) this.keep();
      this.on.fail(error);
    }
  }

  /**
   * A part that does not follow what is here was asked for before a rerun of the page, and is here already.
   * @param {Part} part
   */
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
