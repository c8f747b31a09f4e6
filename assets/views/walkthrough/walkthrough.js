// The walkthrough: one text or picture through one transformer, left to right (downward on a phone), every number an element
// of a tensor. It holds the state (which stack, block, head, row and cell is looked at) and hands the drawing to the others.
import * as address from "../core/address.js";
import { mount as mountArithmetic } from "./arithmetic.js";
import { mount as mountBars } from "../components/bars.js";
import { at } from "../components/cells.js";
import { forget, leave } from "../components/cells_spare.js";
import { derive } from "./derive.js";
import { deriveCandidate } from "./derive_candidate.js";
import { build } from "./flow.js";
import { number, percent } from "../core/format.js";
import { mount as mountHeadgrid } from "../components/headgrid.js";
import { widths, stacked, rows, NARROW } from "../core/layout.js";
import { mount as mountLines } from "../components/lines.js";
import * as matrix from "../components/matrix.js";
import { column } from "./outcome.js";
import { mount as mountPicture } from "../components/picture.js";
import { stages } from "./stages.js";
import * as strip from "../components/strip.js";
import { CSS } from "./style.js";
import { mount as mountTokens } from "../components/tokens.js";
import { Trace } from "../core/trace.js";
import { restore, stored } from "./address.js";
import { elementOf, isHere, strongest, title, valid } from "./cell.js";
import { barData, gridData, lineData, panelData, pictureData, tokenData } from "./drawn.js";

const SETTLED = 250; // ms after new data until the server is asked for weights

/** data is the payload of views/walkthrough.py; emits "append" (a token id) and "again". */
export function mount(root, data, emit) {
  const page = new Walkthrough(root, emit);
  page.update(data);
  return page;
}

class Walkthrough {
  constructor(root, emit) {
    const style = document.createElement("style");
    style.textContent = CSS;
    this.element = document.createElement("div");
    this.element.className = "walkthrough";
    this.element.loupe = this; // for tests: the numbers behind the picture
    root.append(style, this.element);
    this.emit = emit;
    this.state = restore(address.read());
    this.hover = null;
    this.turn = 0;
    this.width = 0;
    this.resize = new ResizeObserver(() => this.element.clientWidth !== this.width && this.trace && this.build());
    this.resize.observe(this.element);
    this.onKey = (event) => this.key(event);
    window.addEventListener("keydown", this.onKey);
    this.unfollow = address.follow((state) => this.trace && this.go(restore(state)));
  }

  destroy() {
    this.resize.disconnect();
    window.removeEventListener("keydown", this.onKey);
    this.unfollow();
    this.element.remove();
  }

  async update(data) {
    const before = this.trace;
    const { state } = this;
    const changed = before?.model.name !== data.model.name;
    const fresh = changed && (before || !state.chosen);
    if (fresh) Object.assign(state, { side: undefined, focus: undefined, layer: 0, head: 0 }, data.look);
    const trace = new Trace(data, state.side in data.lanes ? state.side : undefined);
    const turn = ++this.turn;
    this.fit(trace);
    if (!trace.holds(state.layer)) await trace.fetch(state.layer).catch((error) => this.say(error.message));
    if (turn !== this.turn) return;
    if (!trace.holds(state.layer)) state.layer = 0; // the one that always comes with the payload
    this.trace = trace;
    this.data = data;
    const same = before?.side === trace.side && before.pieces.join() === trace.pieces.join();
    if (before && !same) Object.assign(state, { cell: null, query: undefined });
    if (fresh && data.look.query !== undefined) state.query = data.look.query;
    this.choose();
    if (before && changed) this.remember();
    this.build(SETTLED);
    if (!same) this.parts?.reveal(state.query);
  }

  /** Puts the state inside what `trace` has. */
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
    if (!valid(trace, state, state.cell)) state.cell = strongest(trace, state, state.query);
  }

  /** Draws the page from nothing; for new data, another width, another open stage, another theme. */
  build(patience = 0) {
    const { trace, state } = this;
    this.width = this.element.clientWidth;
    if (!this.width) return;
    const focused = focusKey(this.element.getRootNode().activeElement);
    const list = stages(trace, state.focus);
    this.narrow = this.width < NARROW;
    this.rows = rows(trace.length, this.narrow);
    this.sizes = (this.narrow ? stacked : widths)(this.width, list, state.open, trace, state.layer);
    leave(this.element);
    this.parts = build(this, list);
    this.panels = this.parts.panels.map(({ place, panel, legend }) => {
      const kind = panel.kind === "strip" ? strip : matrix;
      legend(this.block(panel));
      return { panel, legend, view: kind.mount(place, panelData(this, panel), (event, where) => this.onPanel(panel, event, where)) };
    });
    forget();
    this.tokens = this.parts.tokens.map(({ place, ids }) =>
      mountTokens(place, tokenData(this, ids), (event, where) => this.onToken(event, where)),
    );
    this.lines = this.parts.lines && mountLines(this.parts.lines, lineData(this));
    this.bars = this.parts.bars.map((place, list) =>
      mountBars(place, barData(this, list), (event, { index }) => this.go({ cell: { candidate: index, list } })),
    );
    this.picture = this.parts.picture && mountPicture(this.parts.picture, pictureData(this), (event, where) => this.onToken(event, where));
    this.drawHeads();
    this.arithmetic = mountArithmetic(this.parts.arithmetic, { title: "" });
    this.element.dataset.ready = "true";
    this.mark();
    this.parts.scrollBack();
    if (focused) this.element.querySelector(focused)?.focus({ preventScroll: true });
    this.explain(patience);
  }

  /** Another stack, block, head, row or cell: nothing is computed again, only what shows it is drawn again. */
  async go(change) {
    const { state } = this;
    const trace = change.side === undefined || change.side === state.side ? this.trace : new Trace(this.data, change.side);
    const layer = clamp(change.layer ?? state.layer, trace.model.layers);
    const opened = change.open && [...change.open].join() !== [...state.open].join();
    const turned = trace !== this.trace || (change.focus !== undefined && change.focus !== state.focus);
    const moved = layer !== state.layer || turned;
    if (!trace.holds(layer)) {
      const turn = ++this.turn;
      await trace.fetch(layer).catch((error) => this.say(error.message));
      if (turn !== this.turn || !trace.holds(layer)) return;
    }
    const switched = moved || (change.head !== undefined && change.head !== state.head);
    if (trace !== this.trace) Object.assign(state, { query: undefined, cell: null, focus: undefined });
    Object.assign(state, change, { layer, head: clamp(change.head ?? state.head, trace.model.heads) });
    this.trace = trace;
    this.fit(trace);
    if (turned) state.cell = null;
    this.choose();
    if (switched && !change.cell && !isHere(state.cell)) state.cell = strongest(trace, state, state.query);
    this.remember();
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

  toggle(id) {
    const open = new Set(this.state.open);
    const opening = !open.delete(id);
    if (opening) open.add(id);
    this.go({ open });
    if (opening) this.parts.show(id);
  }

  // --- what the parts draw -------------------------------------------------------------------------------------------

  name(panel) {
    return panel.hook.replace("{l}", this.state.layer);
  }

  block(panel) {
    return this.trace.block(this.name(panel), panel.flat ? null : this.state.head);
  }

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

  // --- looking and picking -------------------------------------------------------------------------------------------

  onPanel(panel, event, where) {
    if (event === "pick") return this.pick(panel, where);
    const square = panel.kind === "matrix";
    const aside = panel.source && where; // its rows are the source's, which no row of this stack stands for
    this.hover = where && !aside ? { row: where.row, col: square ? where.col : null, crosses: panel.hook.includes("cross_attn") } : null;
    this.mark();
    if (!where) return this.parts.tip(null);
    const { trace } = this;
    const value = at(this.block(panel), where.row, where.col);
    const [reader, keys] = [trace.readers(panel.hook)[where.row], trace.keys(panel.hook)];
    const index = square ? `${reader} → ${keys[where.col]}` : `${reader} [${column(trace, panel.hook, where.col)}]`;
    this.parts.tip(`${index}`, this.spelled(panel, value));
  }

  spelled(panel, value) {
    if (panel.scale === "mask") return value ? "may attend" : "may not attend";
    return panel.scale === "unit" ? percent(value) : number(value);
  }

  onToken(event, where) {
    if (event === "pick") return this.go({ query: where.row, cell: strongest(this.trace, this.state, where.row) });
    this.hover = where && { row: where.row, col: where.row };
    this.mark();
  }

  pick(panel, { row, col }) {
    const focus = panel.hook.includes("cross_attn") ? "cross_attn" : /\.attn\./.test(panel.hook) ? "attn" : this.state.focus;
    const cell = { hook: panel.hook, row, col, flat: Boolean(panel.flat) };
    this.go({ query: panel.source || this.block(panel).rows === 1 ? this.state.query : row, cell, focus });
  }

  mark() {
    const { state, hover } = this;
    const query = hover?.row ?? state.query;
    const pinned = state.cell?.hook && /pattern|scores|mask|capped/.test(state.cell.hook) ? state.cell : null;
    const crosses = hover ? hover.crosses : pinned?.hook.includes("cross_attn");
    const key = hover ? hover.col : (pinned?.col ?? null);
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
    const { cell } = state;
    try {
      if (patience && !isHere(cell)) {
        this.arithmetic.update({ title: title(trace, state, cell) });
        await new Promise((wake) => setTimeout(wake, patience));
        if (turn !== this.explaining) return;
      }
      const derivation =
        cell.candidate === undefined ? await derive(trace, elementOf(trace, state, cell)) : await deriveCandidate(trace, state.query, cell);
      if (turn === this.explaining) this.arithmetic.update({ title: title(trace, state, cell), derivation, dtype: trace.dtype });
    } catch (error) {
      if (turn === this.explaining) this.arithmetic.update({ title: title(trace, state, cell), sentence: error.message });
    }
  }

  // --- keyboard, address, voice --------------------------------------------------------------------------------------

  key(event) {
    const target = event.composedPath()[0];
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest?.("input, textarea, select, [contenteditable]")) return;
    const { state, trace } = this;
    if (!trace) return;
    const heads = { "[": -1, "]": 1 }[event.key];
    const layers = { "{": -1, "}": 1 }[event.key];
    if (heads) this.go({ head: (state.head + heads + trace.model.heads) % trace.model.heads });
    else if (layers) this.go({ layer: (state.layer + layers + trace.model.layers) % trace.model.layers });
    else if (this.parts.flow.contains(target) && event.key.startsWith("Arrow")) {
      event.preventDefault();
      this.step(event.key);
    } else return;
  }

  step(key) {
    const { state, trace } = this;
    const down = { ArrowUp: -1, ArrowDown: 1 }[key] ?? 0;
    const right = { ArrowLeft: -1, ArrowRight: 1 }[key] ?? 0;
    const cell = state.cell.hook ? state.cell : strongest(trace, state, state.query);
    const name = cell.hook.replace("{l}", state.layer);
    const { rows: tall, cols } = trace.block(name, cell.flat ? null : state.head);
    const row = clamp(cell.row + down, tall);
    const col = clamp(cell.col + right, cols);
    this.go({ query: row, cell: { ...cell, row, col } });
    this.parts.reveal(row);
    this.tell(title(trace, state, state.cell));
  }

  remember() {
    address.write(stored(this.trace, this.state));
  }

  tell(sentence) {
    this.parts.live.textContent = sentence;
  }

  say(sentence) {
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
      const values = Array.from({ length: rows }, (_, r) => Array.from(data.subarray(offset + r * stride, offset + r * stride + cols)));
      return { hook: this.name(panel), head: this.headed(panel) ? this.state.head : null, rows, cols, values };
    });
  }
}

/** A selector that finds the focused control again after everything was drawn anew. */
function focusKey(element) {
  if (!element) return null;
  if (element.dataset.stage) return `[data-stage="${element.dataset.stage}"]`;
  if (element.dataset.index) return `[data-list="${element.closest("[data-list]").dataset.list}"] [data-index="${element.dataset.index}"]`;
  if (element.dataset.head) return '.headgrid [aria-selected="true"]';
  return element.dataset.turn ? `[data-turn="${element.dataset.turn}"]` : element.matches(".flow") ? ".flow" : null;
}

function clamp(i, size) {
  return Math.max(0, Math.min(size - 1, i));
}
