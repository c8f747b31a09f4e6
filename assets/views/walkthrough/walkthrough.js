// The walkthrough: one text or picture through one transformer, left to right (downward on a phone), every number an element
// of a tensor. It holds the state (which stack, block, head, row and cell is in view) and hands the drawing to the others.
// Ours, because no library draws a whole forward pass whose parts follow one cursor without a message to the server.
import * as address from "../core/address.js";
import { exists, explanationOf, mount as mountArithmetic, patternOf, strongest, titleOf, whyOf } from "./arithmetic.js";
import { mount as mountBars } from "../components/bars.js";
import { at } from "../components/cells.js";
import { forget, leave } from "../components/cells_spare.js";
import { build } from "./flow.js";
import { counted, number, percent } from "../core/format.js";
import { mount as mountHeadgrid } from "../components/headgrid.js";
import { FLOW, listed, NARROW, rows, stacked, thumbnail, widths } from "../core/layout.js";
import { mount as mountLines } from "../components/lines.js";
import * as matrix from "../components/matrix.js";
import { column, painted } from "./outcome.js";
import { mount as mountPicture, swatch } from "../components/picture.js";
import { stages } from "./stages.js";
import * as strip from "../components/strip.js";
import { isElsewhere, Shell } from "../core/shell.js";
import { mountTour } from "./tour.js";
import { mount as mountTokens } from "../components/tokens.js";
import { Trace } from "../core/trace.js";

const SETTLED = 250; // ms after new data until the server is asked how a cell came about

/**
 * data is the payload of views/walkthrough/walkthrough.py; emits "append" (a token id) and "again".
 * @param {HTMLElement} root
 * @param {Payload} data
 * @param {Emit} emit
 */
export function mount(root, data, emit) {
  const page = new Walkthrough(root, emit);
  page.update(data);
  return page;
}

/**
 * What is looked at, once `fit` and `choose` have put it inside what the trace has.
 * @typedef {import("./arithmetic.js").Cell} Cell
 * @typedef {import("./arithmetic.js").Place & { side: string, cell: Cell, open: Set<string>, chosen: boolean }} State
 * @typedef {Walkthrough} Page
 * @typedef {Partial<State>} Change
 * @typedef {import("../components/cells.js").Where} Where
 * @typedef {import("../core/host.js").Emit} Emit
 * @typedef {import("../core/payload.js").Payload} Payload
 * @typedef {import("./stages.js").Panel} Panel
 * @typedef {import("./flow.js").Titled} Titled
 * @typedef {import("./flow.js").Parts} Parts
 */

/** @extends {Shell<State, Parts>} */
class Walkthrough extends Shell {
  /** @type {{ panel: Panel, legend: (block: Block) => void, view: ReturnType<typeof matrix.mount> }[]} what is drawn of the stages */
  panels;
  /** @type {Trace} */
  trace;
  /** @type {ReturnType<typeof rows>} */
  rows;
  /** @type {ReturnType<typeof widths>} */
  sizes;

  /** @type {ReturnType<typeof mountTokens>[]} */
  tokens;
  /** @type {ReturnType<typeof mountBars>[]} one a list of candidates */
  bars;
  /** @type {ReturnType<typeof mountHeadgrid>} */
  headgrid;
  /** @type {ReturnType<typeof mountArithmetic>} */
  arithmetic;
  /** @type {ReturnType<typeof mountTour> | undefined} */
  tour;

  /**
   * @param {HTMLElement} root
   * @param {Emit} emit
   */
  constructor(root, emit) {
    super(root, "walkthrough", { restore, remembered, emit });
    for (const [name, size] of Object.entries(FLOW)) this.element.style.setProperty(`--flow-${name}`, `${size}px`);
    this.turns = 0;
    this.sheet = false; // whether the arithmetic lies over a phone's page
    /** @type {Titled | null} */
    this.explainedTitle = null; // what is explained since its title was pressed: {id, hook}
  }

  /** @param {Payload} data */
  async update(data) {
    const before = this.trace;
    const { state } = this;
    const changed = before?.model.name !== data.model.name;
    const fresh = changed && (before || !state.chosen);
    if (fresh) Object.assign(state, { side: undefined, focus: undefined, layer: 0, head: 0 }, data.look);
    const trace = new Trace(data, state.side in data.lanes ? state.side : undefined);
    const turn = ++this.turns;
    this.fit(trace);
    if (!trace.holds(state.layer)) await trace.fetch(state.layer).catch((error) => this.showNotice(error.message));
    if (turn !== this.turns) return;
    if (!trace.holds(state.layer)) state.layer = 0; // the one that always comes with the payload
    this.trace = trace;
    this.data = data;
    const same = before?.side === trace.side && before.pieces.join() === trace.pieces.join();
    if (before && !same) Object.assign(state, { cell: null, query: undefined });
    if (fresh && data.look.query !== undefined) state.query = data.look.query;
    this.choose();
    address.show(state);
    if (before && changed) this.remember();
    this.build(before && before.trace !== data.trace ? SETTLED : 0);
    if (!same) this.parts?.reveal(state.query);
  }

  /**
   * Puts the state inside what `trace` has.
   * @param {Trace} trace
   */
  fit(trace) {
    const { state } = this;
    state.side = trace.side;
    state.focus = trace.model.crosses && state.focus !== "attn" ? "cross_attn" : "attn";
    state.layer = clamp(state.layer, trace.model.layers);
    state.head = clamp(state.head, trace.model.heads);
  }

  /** A row and a cell to look at, where none are chosen or they are not there. */
  choose() {
    const { state, trace } = this;
    const row = trace.reads ? (trace.row0 ?? trace.length - 1) : trace.length - 1;
    state.query = clamp(state.query ?? row, trace.length);
    if (!exists(trace, state, state.cell)) state.cell = strongest(trace, state, state.query);
  }

  measure() {
    this.build();
  }

  /** Draws the page from nothing; for new data, another width, another open stage, another theme. */
  build(patience = 0) {
    const { trace, state } = this;
    this.across = this.element.clientWidth;
    if (!this.across) return;
    const focused = focusKey(
      /** @type {HTMLElement | null} */ (/** @type {ShadowRoot} */ (this.element.getRootNode()).activeElement),
    );
    const list = stages(trace, state.focus, state.layer);
    this.narrow = this.across < NARROW;
    this.rows = rows(trace.length, this.narrow);
    this.sizes = (this.narrow ? stacked : widths)(this.across, list, state.open, trace, state.layer);
    leave(this.element);
    this.parts = build(this, list);
    this.panels = this.parts.panels.map(({ place, panel, legend }) => {
      const kind = panel.kind === "strip" ? strip : matrix;
      legend(this.block(panel));
      return {
        panel,
        legend,
        view: kind.mount(place, panelData(this, panel), (event, where) => this.onPanel(panel, event, where)),
      };
    });
    forget();
    this.tokens = this.parts.tokens.map(({ place, ids }) =>
      mountTokens(place, tokenData(this, ids), (event, where) => this.onToken(event, where)),
    );
    this.lines = this.parts.lines && mountLines(this.parts.lines, lineData(this));
    this.bars = this.parts.bars.map((place, list) =>
      mountBars(place, barData(this, list), (event, { index }) => this.go({ cell: { candidate: index, list } })),
    );
    this.picture =
      this.parts.picture &&
      mountPicture(this.parts.picture, pictureData(this), (event, where) => this.onToken(event, where));
    this.drawHeads();
    this.keepArithmetic();
    if (this.data.tour) {
      this.tour ??= mountTour(this);
      this.element.prepend(this.tour.element);
      this.tour.mark();
    }
    this.element.dataset.ready = this.data.trace;
    this.mark();
    this.parts.scrollBack();
    if (focused)
      /** @type {HTMLElement | null} */ (this.element.querySelector(focused))?.focus({ preventScroll: true });
    this.explain(patience);
  }

  /**
   * Another stack, block, head, row or cell: nothing is computed again, only what shows it is drawn again.
   * @param {Change} change
   */
  async go(change) {
    const { state } = this;
    const trace =
      change.side === undefined || change.side === state.side ? this.trace : new Trace(this.data, change.side);
    const layer = clamp(change.layer ?? state.layer, trace.model.layers);
    const opened = change.open && [...change.open].join() !== [...state.open].join();
    const turned = trace !== this.trace || (change.focus !== undefined && change.focus !== state.focus);
    const moved = layer !== state.layer || turned;
    if (!trace.holds(layer)) {
      const turn = ++this.turns;
      await trace.fetch(layer).catch((error) => this.showNotice(error.message));
      if (turn !== this.turns || !trace.holds(layer)) return;
    }
    const switched = moved || (change.head !== undefined && change.head !== state.head);
    if (trace !== this.trace) Object.assign(state, { query: undefined, cell: null, focus: undefined });
    Object.assign(state, change, { layer, head: clamp(change.head ?? state.head, trace.model.heads) });
    this.trace = trace;
    this.fit(trace);
    if (turned) Object.assign(state, { cell: null });
    this.choose();
    this.remember();
    if (change.cell) this.explainedTitle = null;
    if (change.cell) this.openSheet(true);
    if (opened || moved) this.build();
    else {
      this.parts.title();
      for (const { panel, view, legend } of this.panels) {
        if (!panel.hook.startsWith("blocks.")) continue;
        view.update(panelData(this, panel));
        legend(this.block(panel));
      }
      this.headgrid.mark({ layer: state.layer, head: state.head });
      this.parts.facts();
      this.parts.next?.();
      this.bars.forEach((bars, list) => bars.update(barData(this, list)));
      this.mark();
      await this.explain();
    }
    if (switched) this.tell(`${trace.side ? `${trace.side}, ` : ""}block ${state.layer + 1}, head ${state.head + 1}`);
  }

  /** @param {boolean} open */
  openSheet(open) {
    this.sheet = open;
    this.parts.sheet(open);
  }

  /** @param {string} id */
  toggle(id) {
    const open = new Set(this.state.open);
    const opening = !open.delete(id);
    if (opening) open.add(id);
    this.go({ open });
    if (opening) this.parts.show(id);
  }

  // --- what the parts draw -------------------------------------------------------------------------------------------

  /** @param {Panel} panel */
  name(panel) {
    return panel.hook.replace("{l}", String(this.state.layer));
  }

  /** @param {Panel} panel */
  block(panel) {
    return this.trace.block(this.name(panel), panel.flat ? null : this.state.head);
  }

  /** @param {Panel} panel */
  headed(panel) {
    return this.trace.array(this.name(panel)).shape.length === 3 && !panel.flat;
  }

  /** The thumbnails keep their place through every change: only what is on them is drawn again. */
  drawHeads() {
    const data = gridData(this);
    if (!this.heads) {
      this.heads = this.parts.headgrid;
      this.headgrid = mountHeadgrid(this.heads, data, (event, where) => this.go(where));
    } else {
      this.parts.headgrid.replaceWith(this.heads);
      this.headgrid.update(data);
    }
  }

  /** The panel keeps its place and its text through every change, until the next explanation is here. */
  keepArithmetic() {
    if (this.arithmeticRoot) return this.parts.arithmetic.replaceWith(this.arithmeticRoot);
    this.arithmeticRoot = this.parts.arithmetic;
    this.arithmetic = mountArithmetic(this.arithmeticRoot);
  }

  // --- looking and picking -------------------------------------------------------------------------------------------

  /**
   * @param {Panel} panel
   * @param {"hover" | "pick"} event
   * @param {Where | null} where
   */
  onPanel(panel, event, where) {
    if (event === "pick") return this.pick(panel, /** @type {Where} */ (where));
    const square = panel.kind === "matrix";
    const aside = panel.source && where; // its rows are the source's, which no row of this stack stands for
    this.hover =
      where && !aside
        ? { row: where.row, col: square ? where.col : null, crosses: panel.hook.includes("cross_attn") }
        : null;
    this.mark();
    if (!where) return this.parts.tip(null);
    const { trace } = this;
    const value = at(this.block(panel), where.row, where.col);
    const [reader, keys] = [trace.readers(panel.hook)[where.row], trace.keys(panel.hook)];
    const index = square ? `${reader} → ${keys[where.col]}` : `${reader} [${column(trace, panel.hook, where.col)}]`;
    this.parts.tip(`${index}`, this.spelled(panel, value));
  }

  /**
   * @param {Panel} panel
   * @param {number} value
   */
  spelled(panel, value) {
    if (panel.scale === "mask") return value ? "may attend" : "may not attend";
    return panel.scale === "unit" ? percent(value) : number(value);
  }

  /**
   * @param {"hover" | "pick"} event
   * @param {{ row: number } | null} where
   */
  onToken(event, where) {
    if (event === "pick" && where)
      return this.go({ query: where.row, cell: strongest(this.trace, this.state, where.row) });
    this.hover = where && { row: where.row, col: where.row };
    this.mark();
  }

  /**
   * @param {Panel} panel
   * @param {Where} where
   */
  pick(panel, { row, col }) {
    const focus = panel.hook.includes("cross_attn")
      ? "cross_attn"
      : /\.attn\./.test(panel.hook)
        ? "attn"
        : this.state.focus;
    const cell = { hook: panel.hook, row, col, flat: Boolean(panel.flat) };
    this.go({ query: panel.source || this.block(panel).rows === 1 ? this.state.query : row, cell, focus });
  }

  mark() {
    const { state, hover } = this;
    const query = hover?.row ?? state.query;
    const pinned = state.cell?.hook && /pattern|scores|mask|capped/.test(state.cell.hook) ? state.cell : null;
    const crosses = hover ? hover.crosses : pinned?.hook.includes("cross_attn");
    const key = hover ? hover.col : (pinned?.col ?? null);
    this.parts.about();
    this.parts.bands(state.query, hover?.row ?? null);
    for (const tokens of this.tokens) tokens.mark({ query, key: crosses ? null : key });
    this.parts.source?.(crosses ? key : null);
    this.picture?.update(pictureData(this));
    for (const { panel, view } of this.panels) {
      const picked = panel.hook === state.cell?.hook ? state.cell : null;
      const lit = panel.kind === "matrix" && Boolean(crosses) === panel.hook.includes("cross_attn") ? key : null;
      view.mark({ picked: picked && { row: picked.row, col: picked.col }, lit });
    }
    this.parts.axis(key, Boolean(crosses));
    this.lines?.update(lineData(this));
  }

  // --- the arithmetic ------------------------------------------------------------------------------------------------

  /** `patience` (ms) keeps questions to the server apart from the change that caused them: a slider may still be moving. */
  async explain(patience = 0) {
    const { trace, state } = this;
    const turn = (this.explaining = (this.explaining ?? 0) + 1);
    this.arithmetic.wait();
    if (patience) await new Promise((wake) => setTimeout(wake, patience));
    if (turn !== this.explaining) return;
    const answer = await explanationOf(trace, state, state.cell)
      .then((explanation) => ({ explanation, dtype: trace.dtype }))
      .catch((error) => ({ sentence: error.message }));
    if (turn !== this.explaining) return;
    const [title, why] = [titleOf(trace, state, state.cell), whyOf(trace, state, state.cell)];
    this.arithmetic.update({ title, why, ...answer });
  }

  // --- keyboard, address, voice --------------------------------------------------------------------------------------

  /** @param {KeyboardEvent} event */
  key(event) {
    super.key(event);
    const inFlow = () => this.parts.flow.contains(/** @type {Node} */ (event.composedPath()[0]));
    if (this.data && !isElsewhere(event) && event.key.startsWith("Arrow") && inFlow()) {
      event.preventDefault();
      this.step(event.key);
    }
  }

  /** @param {string} key */
  step(key) {
    const { state, trace } = this;
    const down = { ArrowUp: -1, ArrowDown: 1 }[key] ?? 0;
    const right = { ArrowLeft: -1, ArrowRight: 1 }[key] ?? 0;
    const cell = state.cell.hook !== undefined ? state.cell : strongest(trace, state, state.query);
    const name = cell.hook.replace("{l}", String(state.layer));
    const { rows: tall, cols } = trace.block(name, cell.flat ? null : state.head);
    const row = clamp(cell.row + down, tall);
    const col = clamp(cell.col + right, cols);
    this.go({ query: row, cell: { ...cell, row, col } });
    this.parts.reveal(row);
    this.tell(titleOf(trace, state, state.cell));
  }

  /** @param {string} sentence */
  showNotice(sentence) {
    this.parts?.notice(sentence);
  }

  /** For tests: what the lines show. */
  lineData() {
    return lineData(this);
  }

  /** For tests: what is drawn, [{hook, head, offset, stride, rows, cols, values}]. */
  drawn() {
    return this.panels.map(({ panel }) => {
      const { data, offset, stride, rows, cols } = this.block(panel);
      const values = Array.from({ length: rows }, (_, r) =>
        Array.from(data.subarray(offset + r * stride, offset + r * stride + cols)),
      );
      return { hook: this.name(panel), head: this.headed(panel) ? this.state.head : null, rows, cols, values };
    });
  }
}

/**
 * A selector that finds the focused control again after everything was drawn anew.
 * @param {HTMLElement | null} element
 */
function focusKey(element) {
  if (!element) return null;
  if (element.dataset.stage) return `[data-stage="${element.dataset.stage}"]`;
  if (element.dataset.index)
    return `[data-list="${element.closest("[data-list]")?.getAttribute("data-list")}"] [data-index="${element.dataset.index}"]`;
  if (element.dataset.head) return '.headgrid [aria-selected="true"]';
  return element.dataset.turn ? `[data-turn="${element.dataset.turn}"]` : element.matches(".flow") ? ".flow" : null;
}

/**
 * @param {number} i
 * @param {number} size
 */
function clamp(i, size) {
  return Math.max(0, Math.min(size - 1, i));
}

// --- what is in view, as the address has it -----------------------------------------------------------------------------

/**
 * State from the address, whatever somebody typed there.
 * @param {Record<string, any>} address
 */
function restore({ side, focus, layer, head, row, cell, open }) {
  /** @param {unknown} value */
  const whole = (value) => (typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : undefined);
  const picked = cellFrom(cell, whole);
  return {
    chosen: [layer, head].some((i) => whole(i) !== undefined) || Boolean(side || focus || picked), // else the example says where to look
    side: typeof side === "string" ? side : undefined,
    focus: focus === "attn" ? focus : undefined,
    layer: whole(layer) ?? 0,
    head: whole(head) ?? 0,
    query: picked?.row ?? whole(row), // a cell brings its row
    cell: picked,
    open: new Set(Array.isArray(open) ? open.filter((id) => typeof id === "string") : []),
  };
}

/**
 * The inverse of what `remembered` writes: [hook, row, column, flat], or ["next", index, list].
 * @param {unknown} cell
 * @param {(value: unknown) => number | undefined} whole
 * @returns {import("./arithmetic.js").Cell | null}
 */
function cellFrom(cell, whole) {
  if (!Array.isArray(cell) || typeof cell[0] !== "string" || whole(cell[1]) === undefined) return null;
  if (cell[0] === "next") return { candidate: cell[1], list: whole(cell[2]) };
  if (whole(cell[2]) === undefined) return null;
  const hook = /^(embed|final_norm|head|pooler|vector)\.|^(next_sentence|logits)$/.test(cell[0])
    ? cell[0]
    : `blocks.{l}.${cell[0]}`;
  return { hook, row: cell[1], col: cell[2], flat: cell[3] === 1 };
}

/**
 * The inverse of `restore`, without what is looked at first in any case.
 * @param {State} state
 * @param {Page} page
 */
function remembered({ layer, head, query, cell, open, side, focus }, { trace }) {
  const last = query === (trace.row0 ?? trace.length - 1);
  return {
    side: side === trace.sides.at(-1) ? undefined : side,
    focus: trace.model.crosses && focus === "attn" ? focus : undefined,
    layer,
    head,
    row: last ? undefined : query,
    cell: cell.hook
      ? [cell.hook.replace("blocks.{l}.", ""), cell.row, cell.col, cell.flat ? 1 : 0]
      : ["next", cell.candidate, ...(cell.list ? [cell.list] : [])],
    open: open.size ? [...open] : undefined,
  };
}

// --- what the parts draw, each its own -----------------------------------------------------------------------------------

/**
 * @param {Page} page
 * @param {Panel} panel
 * @returns {import("../components/matrix.js").Matrix}
 */
function panelData(page, panel) {
  const { trace, state } = page;
  const block = page.block(panel);
  const mask = trace.isSquare(panel.hook) && trace.block(page.name(panel).replace(/attn\..*/, "attn.mask"), state.head);
  const hides = /pattern|masked_scores|mask$/.test(panel.hook);
  const where = panel.hook.startsWith("blocks.")
    ? `block ${state.layer + 1}${page.headed(panel) ? ` head ${state.head + 1}` : ""}, `
    : "";
  return {
    block,
    role: panel.role,
    scale: panel.scale,
    width: panel.width ?? page.sizes.panel.get(panel),
    ...(panel.rows ?? page.rows),
    label: `${where}${panel.title ?? page.name(panel)}: ${counted(block.rows, "row")} by ${counted(block.cols, "column")}`,
    hidden: mask && hides ? (r, c) => !at(mask, r, c) : undefined,
  };
}

/**
 * @param {Page} page
 * @param {boolean} withIds
 */
function tokenData(page, withIds) {
  const { trace } = page;
  const two = trace.positions.length > 0;
  const ids = two ? trace.pieces.map((_, i) => trace.positions.map((one) => one[i]).join(" · ")) : trace.ids;
  const { grid } = trace;
  /** @type {((i: number) => HTMLElement | null) | null} */
  const drawn = grid && page.data.arrays.picture ? (i) => swatch(page.data.arrays.picture, grid, i) : null;
  return {
    pieces: trace.pieces,
    ids: withIds && ids.length ? ids : null,
    pitch: page.rows.pitch,
    special: trace.special,
    letters: trace.letters,
    roles: trace.roles,
    drawn,
    painted: withIds ? painted(trace) : null,
  };
}

/** @param {Page} page */
function pictureData(page) {
  const { trace, state, hover } = page;
  const query = hover?.row ?? state.query;
  const weights = trace.row(`blocks.${state.layer}.attn.pattern`, query, state.head);
  const { picture, original } = page.data.arrays;
  return {
    picture,
    original,
    grid: /** @type {import("../components/picture.js").Grid} */ (trace.grid),
    weights,
    query,
    width: Math.min(page.narrow ? 260 : 216, page.across - 20),
  };
}

/** @param {Page} page */
function lineData(page) {
  const { trace, state, hover } = page;
  const query = hover?.row ?? state.query;
  return {
    weights: trace.row(`blocks.${state.layer}.attn.pattern`, query, state.head),
    query,
    width: page.sizes.lines,
    ...page.rows,
  };
}

/**
 * @param {Page} page
 * @param {number} which
 */
function barData(page, which) {
  const { trace, state } = page;
  const count = trace.arrays["next.id"].shape[1];
  const shown = Math.min(count, listed(trace.length, page.narrow, trace.lists));
  const row = trace.outcomeRow(state.query, which);
  /**
   * @param {string} name
   * @param {number} i
   */
  const of = (name, i) => trace.arrays[`next.${name}`].data[row * count + i];
  const list = Array.from({ length: shown }, (_, i) => ({
    id: of("id", i),
    piece: trace.names[of("id", i)],
    logit: of("logit", i),
    scaled: of("scaled", i),
    share: of("share", i),
    inTopK: of("in_top_k", i),
    inTopP: of("in_top_p", i),
    probability: of("probability", i),
  }));
  const chosen = (state.cell?.list ?? 0) === which ? state.cell?.candidate : undefined;
  return {
    rows: list,
    open: state.open.has("next"),
    link: trace.link,
    chosen,
    idName: trace.reads === "answer" ? "position" : "id",
  };
}

/** @param {Page} page */
function gridData(page) {
  const { trace, state } = page;
  const { layers, heads } = trace.model;
  const room = page.narrow ? page.across - 40 : trace.grid ? 190 : 250;
  const side = thumbnail(trace.length, layers, Math.floor(room / heads) - 6, page.narrow);
  /**
   * @param {number} layer
   * @param {number} head
   */
  const pattern = (layer, head) => {
    if (trace.holds(layer)) return { block: trace.block(patternOf(state).replace("{l}", String(layer)), head), max: 1 };
    const { data, shape } = trace.arrays[`thumbnails.${trace.prefix}${state.focus}`];
    const [, , rows, cols] = shape;
    return { block: { data, offset: (layer * heads + head) * rows * cols, stride: cols, rows, cols }, max: 255 };
  };
  return { layers, heads, side, pattern, layer: state.layer, head: state.head };
}
