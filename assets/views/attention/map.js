// One head as a map: a row for every query, a column for every key; of a picture also where the row looks on it.
import { axes, called } from "./axes.js";
import { editedCells, editedSign } from "./colours.js";
import { inCells, KINDS, shown, switcher } from "./values.js";
import { at, extent, largest } from "../components/cells.js";
import { make } from "../core/dom.js";
import { counted, number, percent } from "../core/format.js";
import { windowSize } from "../core/place.js";
import { legend, PERCENTILE } from "../components/legend.js";
import * as matrix from "../components/matrix.js";
import { mount as mountPicture } from "../components/picture.js";

/**
 * @typedef {import("./attention.js").Page} Page
 * @typedef {{ block: Block, max: number, exact: boolean }} Found what is shown
 * @typedef {import("../components/cells.js").Where} Where
 * @typedef {import("../core/store.js").Answers["weighted"]["arrays"]} Weighted
 */

const CELL = { least: 3, most: 40, tall: 32, low: 14, valued: { share: 25, number: 31 } }; // CSS pixels
const PICTURE = { most: 260, share: 0.3, gap: 28 }; // CSS pixels of the picture, of the room, and from the map
const CHROME = 330; // what stands above and below the map in a window
const LEAST_TALL = 360;
const PHONE = 0.75; // of a phone's height, so that the chosen cell of a long text can be scrolled into view

/**
 * @param {HTMLElement} root
 * @param {Page} page
 */
export function mount(root, page) {
  return new HeadMap(root, page);
}

class HeadMap {
  /** @type {ReturnType<HeadMap["fitting"]>} of what is drawn */
  size;
  /** @type {{ wanted: string, arrays?: Weighted, sentence?: string } | undefined} of the server */
  answer;
  /** @type {ReturnType<typeof matrix.mount> | undefined} */
  cells;

  /**
   * @param {HTMLElement} root
   * @param {Page} page
   */
  constructor(root, page) {
    this.root = root;
    this.page = page;
    this.line = make("div", "map-line");
    this.side = make("div", "map-side");
    this.scroll = make("div", "map-scroll");
    this.scroll.tabIndex = 0;
    this.scroll.setAttribute("role", "group");
    this.scroll.setAttribute("aria-label", "the map of this head; arrow keys move the chosen cell");
    this.note = make("p", "map-note");
    this.note.setAttribute("role", "status");
    this.axes = axes(page, this.scroll);
    this.scroll.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.key(event));
    this.switcher = switcher(this.line, page, KINDS);
    this.legend = make("div", "map-legend");
    this.explain = page.memoize(
      (/** @type {number} */ max, /** @type {boolean} */ edited, /** @type {boolean} */ valued) =>
        this.legend.replaceChildren(this.ramp(max, edited, valued)),
    );
    const map = make("div", "map-itself");
    map.append(this.scroll, this.legend);
    this.side.append(map);
    this.picture = picture(page, this.side);
    root.append(this.line, this.side, this.note);
  }

  destroy() {
    this.root.replaceChildren();
  }

  get kind() {
    return shown(this.page.state);
  }

  update() {
    const { page } = this;
    this.switcher.show();
    const found = this.found();
    if (found) this.draw(found);
    this.notes(found);
    this.picture.update();
    this.mark();
    if (this.size) this.follow(page.edition !== this.edition);
  }

  /**
   * Brings the chosen cell into view; but a map opens at its start, unless a cell was picked.
   * @param {boolean} opens
   */
  follow(opens) {
    const { query, key, pinned } = this.page.state;
    const where = [query, key].join();
    if (opens ? pinned : where !== this.revealed) this.axes.reveal(query, key, this.size);
    this.edition = this.page.edition;
    this.revealed = where;
  }

  /**
   * {block, max, exact} of what is shown, or null while it is on its way.
   * @returns {Found | null}
   */
  found() {
    const { page, kind } = this;
    const { state, trace } = page;
    if (kind.name === "pattern")
      return { ...page.pattern(state.layer, state.head), exact: trace.has(page.hook("pattern")) };
    if (kind.name === "weighted") return this.weighted();
    const hook = page.hook(kind.part ?? "pattern");
    if (!trace.has(hook)) return null;
    const block = trace.block(hook, state.head);
    return { block, max: extent(block), exact: true };
  }

  /** @returns {Found | null} */
  weighted() {
    const { page } = this;
    const { side, focus, layer, head, shares } = page.state;
    const wanted = [page.trace.trace, side, focus, layer].join();
    if (this.answer?.wanted !== wanted) {
      this.answer = { wanted };
      /** @param {Omit<NonNullable<HeadMap["answer"]>, "wanted">} more */
      const settle = (more) => {
        if (this.answer?.wanted !== wanted) return;
        Object.assign(this.answer, more);
        this.update();
      };
      page.request({ ask: "weighted", side, focus, layer }).then(
        ({ arrays }) => settle({ arrays }),
        (error) => settle({ sentence: error.message }),
      );
    }
    const { arrays } = this.answer;
    if (!arrays) return null;
    const { data, shape } = arrays[shares ? "relative" : "weighted"];
    const [, rows, cols] = shape;
    const block = { data, offset: head * rows * cols, stride: cols, rows, cols };
    return { block, max: shares ? 1 : largest(block), exact: true };
  }

  /** @param {Found} found */
  draw(found) {
    const { page, kind } = this;
    const { block, max } = found;
    const masked = this.masked();
    const hidden = kind.name === "scores" ? undefined : masked;
    const size = (this.size = this.fitting(block));
    const edited = editedCells(page, page.state.layer, page.state.head, kind.part ?? "pattern");
    this.scroll.style.maxHeight = `${page.narrow ? Math.round(PHONE * windowSize().height) : tallest()}px`;
    const data = { block, role: kind.role, scale: kind.scale, max, hidden, edited, label: this.label(block), ...size };
    if (this.cells) this.cells.update(data);
    else this.cells = matrix.mount(this.axes.place, data, (event, where) => this.heard(event, where));
    const written = kind.name === "pattern" || (kind.name === "weighted" && page.state.shares) ? "share" : "number";
    if (size.wide >= CELL.valued[written])
      inCells(this.axes.place.querySelector("canvas"), page.element, data, written);
    this.axes.show(size);
    this.explain(max, Boolean(edited), size.wide >= CELL.valued.share);
  }

  /**
   * Cells as wide as the room allows, and low enough to stand in the window together while they can still be read.
   * @param {Block} block
   */
  fitting(block) {
    const across = this.room() - this.axes.around(this.page);
    const wide = Math.max(CELL.least, Math.min(CELL.most, Math.floor((10 * across) / block.cols) / 10));
    const low = (tallest() - this.axes.above(this.page, wide)) / block.rows;
    const pitch = wide < CELL.low ? wide : Math.floor(Math.max(CELL.low, Math.min(wide, CELL.tall, low)));
    return { wide, width: wide * block.cols, pitch, height: wide < 7 ? pitch : pitch - (pitch >= 12 ? 2 : 1) };
  }

  room() {
    const { page } = this;
    return page.width - (page.trace.grid && !page.narrow ? pictureWidth(page) + PICTURE.gap : 0);
  }

  /** @param {Block} block */
  label(block) {
    const { state } = this.page;
    return `block ${state.layer + 1} head ${state.head + 1}, ${this.kind.title}: ${counted(block.rows, "query", "queries")} by ${counted(block.cols, "key")}`;
  }

  /**
   * (row, col) => whether the mask takes the key away; undefined where nothing is known to be masked.
   * @returns {import("../components/cells.js").Hidden | undefined}
   */
  masked() {
    const { trace, state } = this.page;
    const layers = [state.layer, ...Array(trace.model.layers).keys()];
    const layer = layers.find((l) => trace.has(`blocks.${l}.${state.focus}.mask`));
    if (layer === undefined) return undefined;
    const mask = trace.block(`blocks.${layer}.${state.focus}.mask`, state.head);
    return (row, col) => !at(mask, row, col);
  }

  /**
   * @param {number} max
   * @param {boolean} edited
   * @param {boolean} valued whether cells hold their numbers
   */
  ramp(max, edited, valued) {
    const { page, kind } = this;
    const { shares } = page.state;
    const { element } = legend(page.element, { role: kind.role, scale: kind.scale, width: 90 });
    const text = element.querySelector(".legend-text");
    if (kind.scale === "signed")
      text.textContent = `±${number(max)} ${kind.name === "scores" ? `q·k${scaled(page.trace.model)}` : "into the softmax"}, ${PERCENTILE}`;
    else if (kind.name === "pattern") text.textContent = valued ? "0 to 100 % of the row" : "0 to 1 of the row";
    else text.textContent = shares ? "0 to 1 of the row’s lengths" : `0 to ${number(max)}, length of p · v W_O`;
    if (edited) element.append(editedSign("cells"));
    return element;
  }

  /** @param {Found | null} found */
  notes(found) {
    const { page, kind } = this;
    const { trace, state } = page;
    const said = [];
    if (!found) said.push(this.answer?.sentence ?? "On its way …");
    if (found && kind.name === "scores" && this.masked() && this.hides())
      said.push("These scores are before the mask: cells that the mask takes away are still here.");
    if (kind.name === "pattern" || kind.name === "weighted") said.push(...this.blind());
    if (!trace.grid && page.specialKeys[state.key]) said.push(`“${page.keys[state.key]}” is a special token.`);
    this.note.textContent = said.join(" ");
    this.scroll.style.visibility = found || this.cells ? "" : "hidden";
    this.scroll.style.opacity = found ? "" : 0.3;
  }

  hides() {
    const masked = this.masked();
    if (!masked) return false;
    const { rows, cols } = this.page.pattern(this.page.state.layer, this.page.state.head).block;
    for (let row = 0; row < rows; row++) for (let col = 0; col < cols; col++) if (masked(row, col)) return true;
    return false;
  }

  /** A sentence where rows may attend to nothing. */
  blind() {
    const { page } = this;
    const { block } = page.pattern(page.state.layer, page.state.head);
    const rows = [];
    for (let row = 0; row < block.rows; row++) {
      const start = block.offset + row * block.stride;
      if (!block.data.subarray(start, start + block.cols).some((w) => w > 0)) rows.push(page.trace.pieces[row]);
    }
    if (!rows.length) return [];
    const named = rows
      .slice(0, 3)
      .map((piece) => `“${piece}”`)
      .join(", ");
    return [
      `${named}${rows.length > 3 ? ` and ${rows.length - 3} more` : ""} may attend to nothing: the whole row is zero.`,
    ];
  }

  // --- looking and picking -----------------------------------------------------------------------------------------------

  /**
   * @param {"hover" | "pick"} event
   * @param {Where | null} where
   */
  heard(event, where) {
    const { page } = this;
    if (event === "pick" && where) return page.go({ query: where.row, key: where.col });
    page.point(where);
    if (!where) return page.tip(null);
    page.tip(`${page.trace.pieces[where.row]} → ${page.keys[where.col]}`, this.spelled(where.row, where.col));
  }

  /**
   * @param {number} row
   * @param {number} col
   */
  spelled(row, col) {
    const { kind, page } = this;
    const found = this.found();
    if (!found) return "";
    if (this.masked()?.(row, col) && kind.name !== "scores") return "masked";
    const value = at(found.block, row, col);
    if (kind.name === "pattern")
      return found.exact ? percent(value) : `≈ ${((100 * value) / found.max).toFixed(0)}\u00a0%`;
    return kind.name === "weighted" && page.state.shares ? percent(value) : number(value);
  }

  /**
   * What a cell holds, for a caption.
   * @param {number} row
   * @param {number} col
   */
  said(row, col) {
    const value = this.spelled(row, col);
    if (this.kind.name !== "weighted" || !value || value === "masked") return value;
    return this.page.state.shares ? `${value} of the row’s lengths of p · v W_O` : `length of p · v W_O ${value}`;
  }

  mark() {
    const { page, cells } = this;
    const { state, hover } = page;
    if (!cells) return;
    const row = hover ? hover.row : state.query;
    const col = hover ? hover.col : state.key;
    cells.mark({ picked: { row: state.query, col: state.key }, lit: col, row });
    this.axes.mark(row, col);
    this.picture.update();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { page } = this;
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[
      event.key
    ] ?? [0, 0];
    if (!down && !right) return;
    event.preventDefault();
    const query = Math.max(0, Math.min(page.trace.length - 1, page.state.query + down));
    const key = Math.max(0, Math.min(page.keys.length - 1, page.state.key + right));
    page.go({ query, key });
    page.tell(`${page.trace.pieces[query]} → ${page.keys[key]}: ${this.spelled(query, key)}`);
  }
}

/**
 * What the product is divided by or multiplied with.
 * @param {import("../core/trace.js").Model} model
 */
function scaled({ scale, d_head: width }) {
  return scale === null ? ` / √${width}` : scale === 1 ? "" : ` · ${Number(scale.toPrecision(3))}`;
}

/** The most of a window's height that the map takes. */
function tallest() {
  return Math.max(LEAST_TALL, windowSize().height - CHROME);
}

/**
 * The width of the picture in the room that the page has.
 * @param {Page} page
 */
function pictureWidth({ narrow, width }) {
  return Math.round(Math.min(PICTURE.most, narrow ? width : width * PICTURE.share));
}

/**
 * Beside the map the picture, with one row's attention laid over it patch by patch: {update()}. It stands at the end of `root`
 * as long as there is a picture; a click on a patch picks its row.
 * @param {Page} page
 * @param {HTMLElement} root
 */
function picture(page, root) {
  /** @type {ReturnType<typeof build> | null} */
  let here = null;
  /** @type {import("../components/picture.js").Emit} */
  const heard = (event, where) => {
    if (event === "pick" && where) page.go({ query: where.row, key: undefined, pinned: false });
    else page.point(where && { row: where.row, col: null });
  };
  /** @param {import("../components/picture.js").Grid} grid */
  const build = (grid) => {
    const element = make("div", "map-picture");
    const title = make("h3");
    const place = make("div");
    element.append(title, place);
    root.append(element);
    return { element, title, view: mountPicture(place, pictured(page, grid), heard) };
  };
  const update = () => {
    const { trace, state, hover } = page;
    if (!trace.grid || !trace.arrays.picture) {
      here?.element.remove();
      here = null;
      return;
    }
    here ??= build(trace.grid);
    here.element.style.width = `${pictureWidth(page)}px`;
    here.title.replaceChildren(
      "Where ",
      make("bdi", "role-query", called(trace, trace.pieces[hover?.row ?? state.query])),
      " looks",
    );
    here.view.update(pictured(page, trace.grid));
  };
  return { update };
}

/**
 * @param {Page} page
 * @param {import("../components/picture.js").Grid} grid
 */
function pictured(page, grid) {
  const { trace, state, hover } = page;
  const query = hover?.row ?? state.query;
  const { block, max } = page.pattern(state.layer, state.head);
  const start = block.offset + query * block.stride;
  const weights = Float32Array.from(block.data.subarray(start, start + block.cols), (w) => w / max);
  const { picture: pixels, original } = trace.arrays;
  return { picture: pixels, original, grid, weights, query, width: pictureWidth(page) };
}
