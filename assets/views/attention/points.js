// Queries and keys of one head as points of one plane: near one another where they point the same way. plotly.js draws them; it is mounted
// in this view because the chosen row's attention follows the pointer without a message to the server.
import { apart, LINE, Room } from "./names.js";
import { hues, signs, TINTS } from "./tints.js";
import { choices } from "../components/choices.js";
import { make, pencil, range } from "../core/dom.js";
import { counted, percent } from "../core/format.js";
import { colour } from "../core/palette.js";
import { Chart, literal } from "../core/plotly.js";

/**
 * @typedef {import("./attention.js").Face & { plotly: string }} Face
 * @typedef {import("../core/store.js").Query<"points">} Query
 * @typedef {import("./names.js").Box} Box
 * @typedef {import("./names.js").Spot} Spot
 */

const WAYS = [
  ["pca", "PCA", "the two directions in which queries and keys together vary most"],
  ["tsne", "t-SNE", "who is near whom in all dimensions"],
];
const LEAST = 0.005; // the smallest weight that is drawn as a line
const LEVELS = 10; // of widths and strengths of lines
const THICK = 11; // CSS pixels of a weight of 1
const NAMED = 4; // keys whose weight is written beside them
const EACH = 5e-6; // seconds of a t-SNE for every pair of points
const SLOW = 3; // seconds from which on that is said, and the server is asked only once the view stands still
const PATIENCE = 700; // ms
const TRIED = 400; // other names for which there may be room
const RING = 3; // CSS pixels of a ring around a point
const MARGIN = { across: 90, up: 50 }; // CSS pixels around all points, for names at the edge
const CONFIG = {
  displaylogo: false,
  doubleClick: "reset",
  modeBarButtons: [["zoom2d", "pan2d", "resetScale2d"], ["toImage"]],
  toImageButtonOptions: { format: "svg", filename: "loupe-points", scale: 1 },
};
const ruler = pencil(document.createElement("canvas"));

/**
 * @param {HTMLElement} root
 * @param {Face} page
 */
export function mount(root, page) {
  return new Points(root, page);
}

/** @typedef {import("../core/store.js").Answers["points"]["arrays"]} Plane */

class Points {
  /** @type {{ x: number[], y: number[] }} from where to where the plane is seen */
  view;
  /** @type {Spot[]} where the points stand in the chart */
  pixels;
  /** @type {(i: number) => string} */
  hue;
  /** @type {{ i: number, box: Box }[]} of points that are not read */
  names;
  /** @type {{ points: number[], boxes: Box[] }} of the chosen row and the keys that it reads */
  first;
  /** @type {string | undefined} question that is asked */
  wanted;
  /** @type {string | undefined} question whose answer is drawn */
  drawn;
  /** @type {string | undefined} what all points are drawn of */
  all;

  /**
   * @param {HTMLElement} root
   * @param {Face} page
   */
  constructor(root, page) {
    this.page = page;
    this.turn = 0;
    /** @type {Plane | null} */
    this.answer = null;
    root.classList.add("points-of");
    this.how = choices("projection", WAYS, (how) => page.go({ how: how === "pca" ? undefined : how }));
    this.tint = choices("colour", TINTS, (tint) => page.go({ tint: tint === "role" ? undefined : tint }));
    this.legend = make("div", "points-legend");
    this.frame = make("div", "points-frame");
    this.plot = this.frame.appendChild(make("div", "points-plot"));
    this.plot.tabIndex = 0;
    this.plot.setAttribute("role", "figure");
    this.axes = make("p", "points-axes");
    this.note = make("p", "points-note");
    this.sentence = make("p", "sentence");
    this.sentence.setAttribute("role", "alert");
    const bar = make("div", "points-bar");
    bar.append(this.how.element, this.tint.element, this.legend);
    root.append(bar, this.sentence, this.frame, this.axes, this.note);
    this.chart = new Chart(this.plot, page.plotly, {
      drawn: () => this.hideCovered(),
      failed: (sentence) => (this.sentence.textContent = sentence),
      on: {
        plotly_hover: ({ points }) => this.point(points[0].pointNumber),
        plotly_unhover: () => this.point(-1),
        plotly_click: ({ points }) => this.pick(points[0].pointNumber),
        plotly_relayout: (change) => "xaxis.range[0]" in change && this.drawAll(), // other names have room
      },
    });
    this.plot.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.step(event));
  }

  get state() {
    return this.page.state;
  }

  get projection() {
    return this.state.how === "tsne" ? "tsne" : "pca";
  }

  get tinted() {
    const found = TINTS.find(([tint]) => tint === this.state.tint)?.[0] ?? "role";
    return found === "kind" && this.page.trace.grid ? "role" : found;
  }

  get queries() {
    return this.answer?.queries.shape[0] ?? 0;
  }

  get count() {
    return this.answer ? this.queries + this.answer.keys.shape[0] : 0;
  }

  /**
   * X and y of a point in the plane.
   * @param {number} i
   * @returns {Spot}
   */
  place(i) {
    const { queries, keys } = /** @type {Plane} */ (this.answer);
    const [{ data }, at] = i < this.queries ? [queries, i] : [keys, i - this.queries];
    return [data[2 * at], data[2 * at + 1]];
  }

  /** The pieces of queries and of keys, and which of them are special. */
  get texts() {
    const { trace } = this.page;
    const other = (this.state.focus === "cross_attn" && trace.source) || trace;
    return [trace, other].map(({ pieces, special }) => ({ pieces, special }));
  }

  /** @param {number} i */
  piece(i) {
    const { trace } = this.page;
    return i < this.queries ? trace.pieces[i] : trace.keys(this.state.focus)[i - this.queries];
  }

  update() {
    const { page } = this;
    this.how.show(this.projection);
    this.tint.show(this.tinted, page.trace.grid ? ["kind"] : []);
    const { side, focus, layer, head } = this.state;
    /** @type {Query} */
    const query = { ask: "points", side, focus, layer, head, how: this.projection };
    const wanted = JSON.stringify([page.trace.trace, query]);
    if (wanted === this.wanted) return this.draw();
    this.wanted = wanted;
    clearTimeout(this.timer);
    this.turn++;
    this.frame.classList.add("waiting");
    this.timer = setTimeout(() => this.ask(query, wanted), this.waits() ? PATIENCE : 0);
  }

  /** Says what is on its way; true where that takes long. */
  waits() {
    const { page } = this;
    const count = page.trace.length + page.keys.length;
    const seconds = this.projection === "tsne" ? Math.round(count ** 2 * EACH) : 0;
    if (seconds >= SLOW)
      this.axes.textContent = `t-SNE of ${counted(count, "point")} is being computed, which takes about ${seconds} seconds …`;
    else if (!this.answer) this.axes.textContent = "the plane is being computed …";
    return seconds >= SLOW;
  }

  /**
   * @param {Query} query
   * @param {string} wanted
   */
  async ask(query, wanted) {
    const turn = ++this.turn;
    try {
      const { arrays, shares, note } = await this.page.request(query);
      if (turn !== this.turn) return;
      this.answer = arrays;
      this.sentence.textContent = "";
      this.axes.textContent = shares
        ? `across ${percent(shares[0])} of the variance of queries and keys together, upward ${percent(shares[1])}`
        : "t-SNE: who is near whom counts; distances, directions and sizes of groups do not";
      this.note.textContent = note ?? "";
      this.drawn = wanted;
      this.draw();
    } catch (error) {
      if (turn !== this.turn) return;
      this.answer = null;
      this.sentence.textContent = error.message;
      this.axes.textContent = this.note.textContent = "";
      this.draw();
    }
    this.frame.classList.remove("waiting");
  }

  /** The size of the chart, CSS pixels: as wide as there is room for. */
  get size() {
    const width = Math.round(Math.min(this.page.width, 1000)) - 2;
    return { width, height: Math.round(Math.max(320, Math.min(540, width * 0.62))) };
  }

  draw() {
    this.legend.replaceChildren(...signs(this.tinted, this.texts));
    this.frame.hidden = !this.answer && Boolean(this.sentence.textContent);
    if (!this.answer) return;
    const all = JSON.stringify([this.framed, this.tinted, this.plot.closest("[data-theme]")?.dataset.theme]);
    if (all === this.all) return this.mark();
    this.all = all;
    this.drawAll();
  }

  /** The points with their names; what follows the pointer is a part of the layout, which changes without them. */
  drawAll() {
    if (this.plot.layout?.uirevision !== this.framed) this.chart.clear(); // plotly.js resets to the ranges that it began with
    this.view = this.shownRanges();
    this.pixels = range(0, this.count).map((i) => this.pixel(i));
    this.hue = hues(this.plot, this.tinted, this.texts);
    this.names = this.otherNames();
    this.chart.draw([this.markers(), this.texted()], { ...this.layout(), shapes: this.row() }, CONFIG);
  }

  mark() {
    if (this.answer) this.chart.relayout({ shapes: this.row() });
  }

  get radius() {
    return this.count > 240 ? 3.5 : this.count > 80 ? 4.5 : 6;
  }

  /** The row whose lines are drawn, and the key that is looked at: what is pointed at, else what is chosen. */
  chosen() {
    const { hover } = this.page;
    return {
      row: hover?.row ?? this.state.query,
      col: (hover ? hover.col : this.state.pinned ? this.state.key : null) ?? null,
    };
  }

  /** @param {number} row */
  weights(row) {
    if (this.page.weightsOf) return this.page.weightsOf(row);
    const { block, max } = this.page.pattern(this.state.layer, this.state.head);
    const start = block.offset + row * block.stride;
    return Float64Array.from(block.data.subarray(start, start + block.cols), (weight) => weight / max);
  }

  /** Plotly's trace of all points: a query is a circle, a key a square, whatever their colours say. */
  markers() {
    const points = range(0, this.count);
    return {
      ...this.trace(
        "markers",
        points.map((i) => this.place(i)),
      ),
      hoverinfo: "none",
      marker: {
        color: points.map(this.hue),
        symbol: points.map((i) => (i < this.queries ? "circle" : "square")),
        size: points.map((i) => (i < this.queries ? 2 : 1.8) * this.radius),
        opacity: 1,
        line: { color: colour(this.plot, "ground"), width: 1 },
      },
    };
  }

  /** Plotly's trace of the names. */
  texted() {
    return {
      ...this.trace(
        "text",
        this.names.map(({ box: [left, top] }) => this.under(left, top + LINE / 2)),
      ),
      text: this.names.map(({ i }) => literal(this.piece(i))),
      textposition: "middle right",
      hoverinfo: "skip",
    };
  }

  /**
   * @param {"markers" | "text"} mode
   * @param {number[][]} places
   */
  trace(mode, places) {
    return { type: "scatter", mode, x: places.map(([x]) => x), y: places.map(([, y]) => y) };
  }

  /** A plane at one scale for both axes. */
  layout() {
    const soft = colour(this.plot, "soft");
    const { x, y } = this.allRanges();
    return {
      ...this.size,
      margin: { l: 0, r: 0, t: 0, b: 0 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: this.font, size: 13, color: soft },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: soft, activecolor: colour(this.plot, "ink") },
      showlegend: false,
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "pan", // a finger scrolls the page
      hovermode: "closest",
      hoverdistance: 11,
      uirevision: this.framed,
      xaxis: { visible: false, range: x },
      yaxis: { visible: false, range: y, scaleanchor: "x" },
    };
  }

  /** What is framed: another answer or another width frames the points anew. */
  get framed() {
    return `${this.drawn} ${this.size.width}`;
  }

  get font() {
    return getComputedStyle(this.plot).getPropertyValue("--sans");
  }

  /** {x, y}: ranges of the axes, which are those of all points until a reader has moved or zoomed. */
  shownRanges() {
    const { layout } = this.plot;
    return layout?.uirevision === this.framed ? { x: layout.xaxis.range, y: layout.yaxis.range } : this.allRanges();
  }

  allRanges() {
    const { width, height } = this.size;
    const places = range(0, this.count).map((i) => this.place(i));
    const along = [0, 1].map((axis) => places.map((place) => place[axis]));
    const low = along.map((values) => Math.min(...values));
    const high = along.map((values) => Math.max(...values));
    const rooms = [width - MARGIN.across, height - MARGIN.up];
    const unit = Math.max(...rooms.map((room, axis) => (high[axis] - low[axis] || 1) / room)); // of the plane, a pixel
    const [x, y] = [width, height].map((pixels, axis) => {
      const middle = (low[axis] + high[axis]) / 2;
      return [middle - (unit * pixels) / 2, middle + (unit * pixels) / 2];
    });
    return { x, y };
  }

  /**
   * Where a point stands in the chart, CSS pixels.
   * @param {number} i
   * @returns {Spot}
   */
  pixel(i) {
    const [{ width, height }, { x, y }] = [this.size, this.view];
    const [at, up] = this.place(i);
    return [(width * (at - x[0])) / (x[1] - x[0]), (height * (y[1] - up)) / (y[1] - y[0])];
  }

  /**
   * What stands under a pixel of the chart: a place of the plane.
   * @param {number} left
   * @param {number} top
   */
  under(left, top) {
    const [{ width, height }, { x, y }] = [this.size, this.view];
    return [x[0] + (left / width) * (x[1] - x[0]), y[1] - (top / height) * (y[1] - y[0])];
  }

  /** The chosen row as shapes of Plotly: its lines, rings around what it reads most, and their names. */
  row() {
    const { row, col } = this.chosen();
    const weights = this.weights(row);
    const read = [...weights.keys()]
      .filter((key) => weights[key] >= LEAST)
      .sort((a, b) => weights[b] - weights[a])
      .slice(0, NAMED);
    const keys = col === null || read.includes(col) ? read : [col, ...read];
    const first = [row, ...keys.map((key) => this.queries + key)];
    this.plot.setAttribute("aria-label", this.spoken(row, weights));
    return [...this.lines(row, weights), ...first.map((i) => this.ring(i)), ...this.firstNames(first, weights)];
  }

  /**
   * A path for each level of weight, from the row to the keys that it reads.
   * @param {number} row
   * @param {Float64Array} weights
   */
  lines(row, weights) {
    const paths = Array(LEVELS).fill("");
    const color = colour(this.plot, "attention");
    weights.forEach((weight, key) => {
      const level = Math.min(LEVELS, Math.max(1, Math.round(LEVELS * weight)));
      if (weight >= LEAST) paths[level - 1] += `M${this.place(row)}L${this.place(this.queries + key)}`;
    });
    return paths
      .map((path, i) => ({ path, share: (i + 1) / LEVELS }))
      .filter(({ path }) => path)
      .map(({ path, share }) => ({
        type: "path",
        path,
        layer: "below",
        opacity: 0.2 + 0.7 * share,
        line: { color, width: THICK * share },
      }));
  }

  /** @param {number} i */
  ring(i) {
    const [[x, y], half] = [this.pixels[i], this.radius + 1.5];
    const side = i < this.queries ? half : 0.9 * half;
    return this.boxed(i, [x - side, y - side, x + side, y + side], {
      type: i < this.queries ? "circle" : "rect",
      fillcolor: this.hue(i),
      line: { color: colour(this.plot, "ink"), width: 2.5 },
    });
  }

  /**
   * A shape in a box of pixels, which keeps its size and stays beside its point while the plane is moved.
   * @param {number} i
   * @param {Box} box
   * @param {object} look
   */
  boxed(i, box, look) {
    const [[x, y], [xanchor, yanchor], [left, top, right, bottom]] = [this.pixels[i], this.place(i), box];
    const sides = { x0: left - x, x1: right - x, y0: y - bottom, y1: y - top };
    return { type: "rect", xsizemode: "pixel", ysizemode: "pixel", xanchor, yanchor, ...sides, ...look };
  }

  /**
   * The names of the chosen row and of the keys that it reads, as labels of shapes.
   * @param {number[]} first
   * @param {Float64Array} weights
   */
  firstNames(first, weights) {
    const room = new Room(this.size, this.pixels, this.radius + RING);
    const [middle] = this.pixels[first[0]];
    const font = { color: colour(this.plot, "ink"), size: 13, weight: 600 };
    this.first = { points: first, boxes: [] };
    return first.flatMap((i, rank) => {
      const text = i < this.queries ? this.piece(i) : `${this.piece(i)}  ${percent(weights[i - this.queries])}`;
      const leftward = rank > 0 && this.pixels[i][0] < middle;
      const box = room.find(this.pixels[i], this.wide(text, 600), { leftward, may: true, must: rank < 2 });
      if (!box) return [];
      this.first.boxes.push(box);
      const label = { text: literal(text), font, textposition: "middle center", padding: 0 };
      return [this.boxed(i, box, { line: { width: 0 }, label })];
    });
  }

  /** [{i, box}]: the names of other points that find room. */
  otherNames() {
    const room = new Room(this.size, this.pixels, this.radius);
    const inside = range(0, this.count).filter((i) => room.holds([...this.pixels[i], ...this.pixels[i]]));
    return inside
      .filter((_, n) => n % Math.ceil(inside.length / TRIED) === 0)
      .flatMap((i) => {
        const box = room.find(this.pixels[i], this.wide(this.piece(i), 400));
        return box ? [{ i, box }] : [];
      });
  }

  /**
   * @param {string} text
   * @param {number} weight
   */
  wide(text, weight) {
    ruler.font = `${weight} 13px ${this.font}`;
    return ruler.measureText(text).width;
  }

  /** Hides the names that those of the chosen row cover, and shows all others again. */
  hideCovered() {
    const { points, boxes } = this.first;
    const texts = this.plot.querySelectorAll(".textpoint");
    this.names.forEach(({ i, box }, n) => {
      const shown = !points.includes(i) && boxes.every((one) => apart(one, box));
      texts[n].style.visibility = shown ? "" : "hidden";
    });
  }

  /** @param {number} i */
  point(i) {
    const { page } = this;
    if (i < 0) {
      page.tip(null);
      return page.point(null);
    }
    const query = i < this.queries;
    const at = query ? i : i - this.queries;
    const row = this.state.query;
    if (query) page.tip(`query of ${this.piece(i)}`, `position ${at}`);
    else page.tip(`${this.piece(row)} → ${this.piece(i)}`, percent(this.weights(row)[at]));
    page.point(query ? { row: at, col: null } : { row, col: at });
  }

  /** @param {number} i */
  pick(i) {
    this.page.go(i < this.queries ? { query: i } : { key: i - this.queries });
  }

  /** @param {KeyboardEvent} event */
  step(event) {
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!by || !this.answer) return;
    event.preventDefault();
    const query = Math.max(0, Math.min(this.queries - 1, this.state.query + by));
    this.page.go({ query });
    this.page.tell(this.spoken(query, this.weights(query)));
  }

  /**
   * @param {number} row
   * @param {Float64Array} weights
   */
  spoken(row, weights) {
    const best = weights.indexOf(Math.max(...weights));
    return `${counted(this.count, "point")}; the query of ${this.piece(row)} attends most to the key of ${this.piece(this.queries + best)}: ${percent(weights[best])}`;
  }

  destroy() {
    clearTimeout(this.timer);
    this.turn++;
    this.page.tip(null);
    this.chart.destroy();
  }
}
