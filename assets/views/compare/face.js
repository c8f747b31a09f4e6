// One run as the views of one head see it (UI contract of attention.js): what they look at is carried here from the one cursor
// of all runs, and what they change goes to all runs.
import { led } from "../attention/state.js";
import { request } from "../core/store.js";

/**
 * @typedef {import("./compare.js").Shell} Shell
 * @typedef {import("../core/trace.js").Trace} Trace
 * @typedef {[layer: number, head: number][]} Heads
 * @typedef {{ query?: number, key?: number, layer?: number, head?: number, heads?: Heads, view?: string, [own: string]: unknown }} Go
 * @typedef {{ side: string, focus: string, layer: number, head: number, heads: Heads, query: number, key: number, pinned: boolean, view: string,
 *   [own: string]: unknown }} State
 */

const NARROW = 470; // CSS pixels of room below which a view is laid out as on a phone

/** The run `letter` of `shell` (compare.js) with the head of it that is shown. */
export class RunFace {
  /**
   * @param {Shell} shell
   * @param {string} letter
   */
  constructor(shell, letter) {
    this.shell = shell;
    this.letter = letter;
    this.width = 0;
    this.narrow = false;
  }

  get element() {
    return this.shell.element;
  }

  get edition() {
    return this.shell.edition;
  }

  /** @type {import("../attention/attention.js").Face["memoize"]} */
  memoize(draw) {
    return this.shell.memoize(draw);
  }

  get trace() {
    return this.shell.side(this.letter).trace;
  }

  /**
   * The shown head, as the server names it; of a difference both, each [layer, head].
   * @returns {{ side: string, focus: string, layer: number | [layer: number, head: number], head: number | [layer: number, head: number] }}
   */
  get head() {
    const { side, focus } = /** @type {import("./runs.js").Attention} */ (this.shell.attention(this.letter));
    const [layer, head] = this.shell.headOf(this.letter);
    return { side, focus, layer, head };
  }

  /** The pieces of the columns. */
  get keys() {
    return this.trace.keys(this.head.focus);
  }

  /** Whether each column is a special token. */
  get specialKeys() {
    return ((this.head.focus === "cross_attn" && this.trace.source) || this.trace).special;
  }

  /**
   * @param {number} layer
   * @param {number} head
   */
  pattern(layer, head) {
    return this.shell.source.patternAt(this.letter, layer, head);
  }

  /**
   * @param {string | null} title
   * @param {string} [value]
   */
  tip(title, value) {
    this.shell.tip(title, value);
  }

  /**
   * @param {Record<string, unknown> & { ask: string }} query
   * @returns {Promise<{ [entry: string]: any }>}
   */
  request(query) {
    return request(
      /** @type {import("../core/store.js").Query<keyof import("../core/store.js").Queries>} */ (
        /** @type {unknown} */ ({ trace: this.trace.trace, ...query })
      ),
    );
  }
}

/** What a view of one head is mounted with; `look(width)` brings it up to what is looked at now. */
export class Face extends RunFace {
  /**
   * @param {Shell} shell
   * @param {string} letter
   */
  constructor(shell, letter) {
    super(shell, letter);
    /** @type {Trace | null} */
    this.seen = null; // the stack that is looked at
    this.state = /** @type {State} */ ({}); // what is looked at, from `look` on
    this.missing = { query: false, key: false };
  }

  /** @param {number} width */
  look(width) {
    const { shell, letter } = this;
    const { state } = shell;
    const { side, focus } = /** @type {import("./runs.js").Attention} */ (shell.attention(letter));
    const [layer, head] = shell.headOf(letter);
    this.seen = shell.source.detailed(letter);
    const { layers, heads } = this.trace.model;
    const chosen = /** @type {Heads} */ (state.heads[letter] ?? []).filter(([l, h]) => l < layers && h < heads);
    const { row, col } = shell.nearest(letter, state.cursor);
    const carried = shell.carry(letter, state.cursor);
    this.missing = { query: carried.row === null, key: carried.col === null };
    this.state = {
      ...state.own,
      side,
      focus,
      layer,
      head,
      heads: led(chosen, layer, head),
      query: row,
      key: col,
      pinned: true,
      view: state.view,
    };
    this.width = width;
    this.narrow = width < NARROW;
  }

  get trace() {
    return /** @type {Trace} */ (this.seen);
  }

  get head() {
    const { side, focus, layer, head } = this.state;
    return { side, focus, layer, head };
  }

  /** Address of plotly.js. */
  get plotly() {
    return this.shell.data.plotly;
  }

  /** What the pointer is over in any of the runs, in the tokens of this one; null where it has none. */
  get hover() {
    const { shell, letter } = this;
    if (!shell.hover) return null;
    const { row, col } = shell.carry(letter, shell.hover);
    if (row === null) return null;
    return shell.hover.only && col !== null ? { row, col, only: shell.hover.only } : { row, col };
  }

  /**
   * Where a ramp ends: for all runs at the same number.
   * @param {string} name
   * @param {number} own
   */
  end(name, own) {
    return this.shell.ends.end(this.letter, name, own);
  }

  /** How often this run was drawn again because another one has larger numbers. */
  get drawnAgain() {
    return this.shell.ends.turns[this.letter];
  }

  /** @param {string} part */
  hook(part) {
    return `blocks.${this.state.layer}.${this.state.focus}.${part}`;
  }

  /** Gives every weight of the chosen row ("out") or column ("in"), or a promise of them; undefined where patterns are here. */
  get line() {
    return this.shell.source.line?.(this);
  }

  /** Gives every weight of any row; undefined where patterns are here. */
  get weightsOf() {
    return this.shell.source.weightsOf?.(this);
  }

  /** @param {Go} change */
  go({ query, key, layer, head, heads, view, ...own }) {
    const { shell, letter, state } = this;
    /** @type {Partial<import("./runs.js").State>} */
    const change = {};
    if (query !== undefined || key !== undefined)
      change.cursor = { letter, row: query ?? state.query, col: key ?? state.key };
    if (heads) change.heads = shell.comparing(letter, heads);
    /** @type {[layer: number, head: number]} */
    const place =
      heads?.length && layer === undefined && head === undefined
        ? heads[0]
        : [layer ?? state.layer, head ?? state.head];
    if (place[0] !== state.layer || place[1] !== state.head) Object.assign(change, shell.turned(letter, place));
    if (view !== undefined) change.view = view;
    if (Object.keys(own).length)
      change.own = Object.fromEntries(
        Object.entries({ ...shell.state.own, ...own }).filter(([, value]) => value !== undefined),
      );
    shell.go(change);
  }

  /** @param {{ row: number | null, col: number | null, only?: boolean } | null} where */
  point(where) {
    this.shell.point(where && { letter: this.letter, ...where });
  }

  /** @param {string} sentence */
  tell(sentence) {
    this.shell.tell(`${this.letter}: ${sentence}`);
  }
}
