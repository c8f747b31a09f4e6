// A window into one head of a long text, in which the views of a short one stand: some neighbouring rows and the keys that matter to
// them, every number an element of the engine's tensors (views/attention/long_window.py). What lies outside is said, and left as it is.
import { compared } from "./colours.js";
import { at } from "../components/cells.js";
import { make, range } from "../core/dom.js";
import { counted, percent } from "../core/format.js";
import { Trace } from "../core/trace.js";

/**
 * @typedef {import("./attention.js").Face} ViewFace
 * @typedef {import("./attention.js").Hovered} Hovered
 * @typedef {import("./state.js").Pair} Pair
 * @typedef {import("./state.js").HeadOfRun} HeadOfRun
 * @typedef {import("../core/store.js").Answers} Answers
 * @typedef {import("../core/payload.js").NamedArray} NamedArray
 * @typedef {Trace & Partial<Pick<WindowTrace, "outside" | "rows">>} HeadTrace a run, or a window of it
 * @typedef {Omit<ViewFace, "request"> & { head: HeadOfRun,
 *   request(query: import("../core/store.js").Query<"window">): Promise<{ [entry: string]: unknown }> }} Page that a window is in
 * @typedef {{ update: () => void, destroy: () => void, mark?: () => void }} View
 */

const ROWS = 48; // of a window, as the server cuts it
const BEFORE = 24; // of them, those before the row that is looked at

export const WINDOWED = ["lines", "product", "steps", "alignment"];

/** What a window holds of a run, under the names of the run's own tensors. The keys need not be neighbours. */
class WindowTrace extends Trace {
  /**
   * `whole` is the run's trace, `answer` what the server said of a window into a head ({focus, layer, head}) with others `beside` it,
   * [[layer, head], ...]. Pieces have their positions before them.
   * @param {Trace} whole
   * @param {Answers["window"]} answer
   * @param {HeadOfRun} of
   * @param {Pair[]} beside
   */
  constructor(whole, answer, { focus, layer, head }, beside) {
    const { arrays } = answer;
    super({ ...whole, arrays: { ...arrays, ...behind(whole, arrays, [[layer, head], ...beside], focus) } }, whole.side);
    const { first, count, dtype } = answer;
    const crosses = focus === "cross_attn";
    const read = (crosses && whole.source) || whole;
    /** @param {{ pieces: string[] }} of */
    const piece = (of) => (/** @type {number} */ i) => `${i} ${of.pieces[i]}`;
    this.rows = range(first, first + arrays["outside.share"].data.length);
    /** @type {number[]} */
    this.columns = Array.from(arrays.keys.data);
    this.others = beside;
    this.count = count;
    this.dtype = dtype;
    /** @type {Trace["grid"]} */
    this.grid = null;
    this.length = this.rows.length;
    this.trace = `${whole.trace} ${this.rows[0]} ${this.columns} ${[layer, head, ...beside]}`;
    this.pieces = this.rows.map(piece(whole));
    this.special = this.rows.map((i) => whole.special[i]);
    this.keyPieces = this.columns.map(piece(read));
    this.keySpecial = this.columns.map((i) => read.special[i]);
    if (crosses) this.source = { ...whole.source, grid: null, pieces: this.keyPieces, special: this.keySpecial };
  }

  keys() {
    return this.keyPieces;
  }

  /** @param {string} name */
  readers(name) {
    return /\.(k|v|k_norm\.out|k_rotated)$/.test(name) ? this.keyPieces : this.pieces;
  }

  /**
   * Of the one head that is here, whichever is asked for; a pattern there is of every head beside it.
   * @param {string} name
   * @param {number | null} [head]
   */
  block(name, head) {
    if (name.endsWith(".pattern")) return super.block(name, head);
    const { data, shape } = this.array(name);
    const [rows, cols] = this.isSquare(name) ? shape.slice(1) : [shape[0], shape[shape.length - 1]];
    return { data, offset: 0, stride: cols, rows, cols };
  }

  /**
   * Of a row, what the keys that are not listed have: {share, top, total, count}, as the server says them.
   * @param {number} row
   */
  outside(row) {
    const [share, top, total] = ["share", "top", "total"].map((name) => this.arrays[`outside.${name}`].data[row]);
    return { share, top, total, count: this.count - this.columns.length };
  }

  /**
   * Of a row, what each of the heads has on keys that are not listed, the shown one first.
   * @param {number} row
   * @returns {number[]}
   */
  shares(row) {
    return [this.outside(row).share, ...this.others.map((_, i) => this.arrays[`beside.${i}.share`].data[row])];
  }

  /**
   * Whether the numbers of a head are here, as one of those that stand beside each other.
   * @param {Pair} one
   */
  shows([layer, head]) {
    return this.others.some(([l, h]) => l === layer && h === head);
  }
}

/**
 * What is read head by head, not as a block: every one of `heads`, the shown one first, at the place of its number.
 * @param {Trace} whole
 * @param {Record<string, NamedArray>} arrays
 * @param {Pair[]} heads
 * @param {string} focus
 */
function behind(whole, arrays, [[layer, head], ...beside], focus) {
  /** @type {Record<string, Pick<NamedArray, "data" | "shape">>} */
  const found = {};
  /**
   * @param {string} name
   * @param {number} at
   * @param {NamedArray | undefined} part
   */
  const put = (name, at, part) => {
    if (!part) return;
    const { data, shape } = part;
    found[name] ??= {
      data: new data.constructor(whole.model.heads * data.length),
      shape: [whole.model.heads, ...shape.slice(-2)],
    };
    found[name].data.set(data, at * data.length);
  };
  for (const name of ["weighted", "relative"]) put(name, head, arrays[name]);
  for (const part of ["pattern", "edited"]) {
    /** @param {number} l */
    const name = (l) => `${whole.prefix}blocks.${l}.${focus}.${part}`;
    put(name(layer), head, arrays[name(layer)]);
    beside.forEach(([l, h], i) => put(name(l), h, arrays[`beside.${i}.${part}`]));
  }
  return found;
}

/**
 * Mounts a view of a pattern on a window that follows what `page` looks at.
 * @param {HTMLElement} root
 * @param {Page} page
 * @param {{ mount(root: HTMLElement, face: ViewFace | Page): View }} module
 */
export function mount(root, page, module) {
  return new Windowed(root, page, module);
}

class Windowed {
  /** @type {WindowTrace} what is here */
  trace;
  /** @type {{ run: string } & HeadOfRun} whose window that is */
  of;

  /**
   * @param {HTMLElement} root
   * @param {Page} page
   * @param {{ mount(root: HTMLElement, face: ViewFace | Page): View }} module
   */
  constructor(root, page, module) {
    this.root = root;
    this.page = page;
    this.module = module;
    /** @type {View | null} */
    this.view = null;
    /** @type {string | null} */
    this.wanted = "";
    root.classList.add("windowed");
    root.loupe = this; // for tests: the numbers behind the picture
    this.note = make("p", "window-note");
    this.note.setAttribute("role", "status");
    this.place = make("div", "window-view");
    root.append(this.note, this.place);
    this.face = new Face(page, this);
  }

  destroy() {
    this.wanted = null;
    this.view?.destroy();
    this.root.replaceChildren();
  }

  update() {
    if (this.shows()) return this.show();
    const { page } = this;
    const { key, pinned } = page.state;
    const beside = this.beside();
    /** @type {import("../core/store.js").Query<"window">} */
    const query = {
      ask: "window",
      ...page.head,
      pos: this.first(),
      key: pinned ? key : null,
      ...(beside.length && { beside }),
    };
    const wanted = JSON.stringify([page.trace.trace, query]);
    if (wanted === this.wanted) return;
    this.wanted = wanted;
    this.root.classList.add("waiting");
    if (!this.view) this.note.textContent = "On its way …";
    /** @type {[whole: Trace, head: HeadOfRun, beside: Pair[]]} */
    const about = [page.trace, page.head, beside];
    page.request(query).then(
      (answer) => wanted === this.wanted && this.arrived(/** @type {Answers["window"]} */ (answer), about),
      (error) => wanted === this.wanted && this.refuse(error.message),
    );
  }

  /** The heads that are drawn with the shown one, in one order whoever leads: only lines show several. */
  beside() {
    const { state } = this.page;
    const others = state.view === "lines" ? compared(this.page).slice(1) : [];
    return others.sort(([l, h], [m, i]) => l - m || h - i);
  }

  /** The first row: that of the window that is here as long as the row looked at is within it, whatever the head. */
  first() {
    const { trace, state } = this.page;
    const same = this.trace && this.of.run === trace.trace && this.of.side === state.side;
    return same && this.within()
      ? this.trace.rows[0]
      : Math.max(0, Math.min(state.query - BEFORE, trace.length - ROWS));
  }

  /** Whether the row looked at is in the window, and not at an edge beyond which there are more. */
  within() {
    const { rows } = this.trace;
    const { query } = this.page.state;
    const last = rows[rows.length - 1];
    return (
      (query > rows[0] || query === 0) && (query < last || last === this.page.trace.length - 1) && rows.includes(query)
    );
  }

  /** Whether what is looked at is in the window that is here. */
  shows() {
    if (!this.trace) return false;
    const { page, of } = this;
    const { key, pinned } = page.state;
    const { side, focus, layer, head } = page.head;
    const same =
      of.run === page.trace.trace && of.side === side && of.focus === focus && of.layer === layer && of.head === head;
    return (
      same &&
      this.within() &&
      (!pinned || this.trace.columns.includes(key)) &&
      this.beside().every((one) => this.trace.shows(one))
    );
  }

  /**
   * @param {Answers["window"]} answer
   * @param {[whole: Trace, head: HeadOfRun, beside: Pair[]]} about
   */
  arrived(answer, [whole, head, beside]) {
    this.wanted = "";
    this.of = { run: whole.trace, ...head };
    this.trace = new WindowTrace(whole, answer, head, beside);
    this.face.hover = null;
    if (this.shows()) this.show();
  }

  show() {
    this.wanted = "";
    this.root.classList.remove("waiting");
    this.say();
    this.view ??= this.module.mount(this.place, this.face);
    this.view.update();
  }

  /** @param {string} sentence */
  refuse(sentence) {
    this.wanted = "";
    this.note.textContent = sentence;
  }

  mark() {
    if (this.shows()) this.view?.mark?.();
  }

  /** What is drawn, and how much of the chosen row is not. */
  say() {
    const { trace, page } = this;
    const row = trace.rows.indexOf(page.state.query);
    const { count } = trace.outside(row);
    /** @param {number} n */
    const many = (n) => n.toLocaleString("en");
    const [from, to] = [trace.rows[0], trace.rows[trace.rows.length - 1]];
    const rows = `Rows ${many(from)} to ${many(to)} of ${many(page.trace.length)}`;
    const keys = count
      ? `the ${many(trace.columns.length)} of ${counted(trace.count, "key")} that these rows give the most`
      : "all their keys";
    /**
     * @param {Pair} one
     * @param {number} i
     */
    const named = ([layer, head], i) => make("strong", "", `${layer + 1}·${head + 1} ${percent(trace.shares(row)[i])}`);
    const held = trace.others.length
      ? /** @type {Pair[]} */ ([[this.of.layer, this.of.head], ...trace.others]).flatMap((one, i) =>
          i ? [", ", named(one, i)] : named(one, i),
        )
      : [make("strong", "", percent(trace.shares(row)[0]))];
    this.note.replaceChildren(`${rows}, and ${keys}; numbers before the tokens are positions. `);
    if (count)
      this.note.append(
        "Of the chosen row ",
        ...held,
        ` lies on ${counted(count, "key")} not listed here; nothing is scaled to make up for it.`,
      );
  }
}

/** The face of a page as the views of a short text know it: rows and keys are counted within the window. */
class Face {
  /**
   * @param {Page} page
   * @param {Windowed} windowed
   */
  constructor(page, windowed) {
    this.page = page;
    this.windowed = windowed;
    /** @type {Hovered | null} */
    this.hover = null;
    this.someKeys = true;
  }

  get trace() {
    return this.windowed.trace;
  }

  get state() {
    const { state } = this.page;
    const { side, focus, layer, head } = this.windowed.of; // while another window is on its way this one stays
    const query = this.trace.rows.indexOf(state.query);
    const key = this.trace.columns.indexOf(state.key);
    const heads = (state.heads ?? []).filter((one) => this.trace.shows(one));
    return { ...state, side, focus, layer, head, heads, query, key: key < 0 ? this.strongest(query) : key };
  }

  /**
   * The heaviest key of a row, which every window has.
   * @param {number} row
   */
  strongest(row) {
    const { block } = this.pattern();
    return range(0, block.cols).reduce((best, col) => (at(block, row, col) > at(block, row, best) ? col : best), 0);
  }

  /** @type {import("./attention.js").Face["memoize"]} */
  memoize(draw) {
    return this.page.memoize(draw);
  }

  get edition() {
    return `${this.page.edition} ${this.trace.trace}`;
  }

  get width() {
    return this.page.width;
  }

  get narrow() {
    return this.page.narrow;
  }

  get keys() {
    return this.trace.keyPieces;
  }

  get specialKeys() {
    return this.trace.keySpecial;
  }

  /** @param {string} part */
  hook(part) {
    const { layer, focus } = this.windowed.of;
    return `blocks.${layer}.${focus}.${part}`;
  }

  pattern(layer = this.windowed.of.layer, head = this.windowed.of.head) {
    return { block: this.trace.block(`blocks.${layer}.${this.windowed.of.focus}.pattern`, head), max: 1 };
  }

  /** @param {import("./attention.js").Change} change */
  go({ query, key, ...change }) {
    /** @type {{ query?: number, key?: number }} */
    const place = {};
    if (query !== undefined) place.query = this.trace.rows[query];
    if (key !== undefined && key !== null) place.key = this.trace.columns[key];
    this.page.go({ ...change, ...place });
  }

  /** @param {Hovered | null} where */
  point(where) {
    this.hover = where;
    this.windowed.mark();
  }

  /**
   * @param {string | null} title
   * @param {string} [value]
   */
  tip(title, value) {
    this.page.tip(title, value);
  }

  /** @param {string} sentence */
  tell(sentence) {
    this.page.tell(sentence);
  }

  /**
   * Where a ramp ends: on a page about several runs at the same number in all of them.
   * @param {string} name
   * @param {number} own
   */
  end(name, own) {
    return this.page.end ? this.page.end(name, own) : own;
  }

  get drawnAgain() {
    return this.page.drawnAgain;
  }

  /**
   * What its views ask came with the window.
   * @template {keyof Answers} Name
   * @param {import("../core/store.js").Query<Name>} _query
   * @returns {Promise<Answers[Name]>}
   */
  request(_query) {
    return Promise.resolve(/** @type {Answers[Name]} */ ({ arrays: this.trace.arrays }));
  }
}
