// What a long map (attention/tiles.js) sees in place of a page of its own: a run of a comparison, or what it differs in from A.
import { Numbers } from "../attention/numbers.js";
import { alone } from "./merge.js";
import { request } from "../core/store.js";

const OFF = -99; // a row or key outside every map
const NOTHING = { block: { data: new Uint8Array(1), offset: 0, stride: 1, rows: 1, cols: 1 }, max: 255 };

/** The map of the run `letter`; `see()` brings it up to what is looked at now, `look(width, narrow)` says how much room it has. */
export class RunPage {
  constructor(lab, letter, maps) {
    this.lab = lab;
    this.letter = letter;
    this.maps = maps;
    this.state = {};
    this.width = 0;
    this.narrow = false;
    this.hover = null;
  }

  get able() {
    return Boolean(this.lab.attention(this.letter));
  }

  look(width, narrow) {
    this.width = width;
    this.narrow = narrow;
    this.see();
  }

  see() {
    const [layer, head] = this.lab.headOf(this.letter);
    const { row, col } = this.where(this.lab.cursor);
    Object.assign(this.state, { layer, head, query: row ?? OFF, key: col ?? OFF });
  }

  get data() {
    return this.lab.dataOf(this.letter);
  }

  get element() {
    return this.lab.element;
  }

  get edition() {
    return this.lab.edition;
  }

  get trace() {
    return this.lab.side(this.letter).trace;
  }

  get keys() {
    return this.lab.keys(this.letter);
  }

  get specialKeys() {
    const { trace } = this;
    return (this.lab.attention(this.letter).focus === "cross_attn" ? trace.source : trace).special;
  }

  get numbers() {
    return this.lab.asks.numbers(this.letter).tiles;
  }

  get head() {
    return this.numbers.page.head;
  }

  /** Before the first tile there is nothing. */
  pattern() {
    return NOTHING;
  }

  row() {
    return this.lab.asks.listed(this.letter, this.state.query);
  }

  go({ query, key, jump = false }) {
    const { lab } = this;
    const found = this.token({ row: query ?? null, col: key ?? null });
    const here = lab.carry(found.letter, lab.state.cursor);
    const nearest = lab.nearest(found.letter, lab.state.cursor);
    lab.go({
      cursor: {
        letter: found.letter,
        row: found.row ?? here.row ?? nearest.row,
        col: found.col ?? here.col ?? nearest.col,
      },
    });
    if (jump) this.maps.reveal();
  }

  remember() {
    this.maps.moved(this);
  }

  tip(title, value) {
    this.lab.tip(title, value);
  }

  tell() {
    this.lab.tell(this.lab.pointed.said());
  }

  /** Whether the pointer is over this map. */
  point(where) {
    this.maps.point(this, where);
  }

  /** A cell of this map, which may be between two, as a cell of a run. */
  cell(row, col) {
    return this.token({ row: Math.floor(row), col: Math.floor(col) });
  }

  /** A cell of this map in the tokens of a run. */
  token(where) {
    return { letter: this.letter, ...where };
  }

  /** A cell of a run in this map; null where that has no such token. */
  where(cursor) {
    return this.lab.carry(this.letter, cursor);
  }

  /** The same, or the nearest cell that it has. */
  place(cursor) {
    return this.lab.nearest(this.letter, cursor);
  }
}

/** The map of what the run `letter` differs in from A. */
export class DifferencePage extends RunPage {
  constructor(lab, letter, maps) {
    super(lab, letter, maps);
    this.known = new Map(); // of a pair of heads, the largest difference
  }

  get data() {
    return this.lab.dataOf(this.letter, true);
  }

  get able() {
    const pair = this.lab.pair(this.letter);
    return (
      Boolean(pair) &&
      pair.queries.entries.some((entry) => !alone(entry)) &&
      pair.keys.entries.some((entry) => !alone(entry))
    );
  }

  /** Whether one of the texts has a token that the other lacks. */
  get lonely() {
    const { queries, keys } = this.lab.pair(this.letter);
    return [queries, keys].some(({ entries }) => entries.some(alone));
  }

  get trace() {
    return axis(this.lab.pair(this.letter).queries.entries);
  }

  get keys() {
    return axis(this.lab.pair(this.letter).keys.entries).pieces;
  }

  get specialKeys() {
    return axis(this.lab.pair(this.letter).keys.entries).special;
  }

  /** Both heads, in the entries by which numbers are kept. */
  get head() {
    const { lab, letter } = this;
    const [first, second] = ["A", letter].map((one) => lab.headOf(one));
    return { side: letter, focus: lab.state.attention, layer: first, head: second };
  }

  get numbers() {
    const { lab } = this;
    if (this.of !== lab.data) {
      this.of = lab.data;
      this.own?.stop();
      this.known.clear();
      this.own = new Numbers(this, { arrived: () => lab.arrived(), failed: (sentence) => lab.failed(sentence) });
      this.own.run = lab.data.trace;
    }
    return this.own;
  }

  get largest() {
    return this.known.get(String(Object.values(this.head)));
  }

  async request({ ask, focus, layer, head, rows, columns }) {
    if (ask === "row") return EMPTY; // a difference is read in tiles, and the cursor's in both runs
    const query = this.lab.asks.pair(this.letter, {
      ask: "difference",
      attention: focus,
      heads: [layer, head],
      rows,
      columns,
      cells: this.data.tile,
    });
    const answer = await request(query);
    this.known.set(String([this.letter, focus, layer, head]), answer.max);
    return answer;
  }

  row() {
    return null;
  }

  token(where) {
    return this.lab.unmerged(this.letter, where);
  }

  cell(row, col) {
    return this.token({ row: this.inside("queries", row), col: this.inside("keys", col) });
  }

  inside(part, i) {
    return Math.max(0, Math.min(this.lab.pair(this.letter)[part].entries.length - 1, Math.floor(i)));
  }

  where(cursor) {
    return this.lab.merged(this.letter, cursor);
  }

  place(cursor) {
    const { row, col } = this.where(cursor);
    const near = this.lab.merged(this.letter, { letter: "A", ...this.lab.nearest("A", cursor) });
    return { row: row ?? near.row ?? 0, col: col ?? near.col ?? 0 };
  }
}

const EMPTY = {
  rest: 0,
  others: 0,
  arrays: Object.fromEntries(["key", "weight", "weights"].map((name) => [name, { data: new Float32Array() }])),
};
const axes = new WeakMap(); // entries -> what an axis shows of them

function axis(entries) {
  if (!axes.has(entries))
    axes.set(entries, {
      pieces: entries.map(({ label }) => label),
      special: entries.map((entry) => !entry.same && !alone(entry)),
      length: entries.length,
    });
  return axes.get(entries);
}
