// Queries and keys of one head as points of one plane: near one another where they point the same way.
import { hues, signs, TINTS } from "./tints.js";
import { choices } from "../components/choices.js";
import { make, range } from "../core/dom.js";
import { percent } from "../core/format.js";
import { colour } from "../core/palette.js";
import { Placement } from "../components/placement.js";
import { Plane } from "../components/plane.js";

const WAYS = [
  ["pca", "PCA", "the two directions in which queries and keys together vary most"],
  ["tsne", "t-SNE", "who is near whom in all dimensions"],
];
const LEAST = 0.005; // the smallest weight that is drawn as a line
const THICK = 11; // CSS pixels of a weight of 1
const NAMED = 4; // keys whose weight is written beside them
const EACH = 0.007; // seconds of a t-SNE for every point, of a thousand or two
const SLOW = 3; // seconds from which on that is said, and the server is asked only once the view stands still
const PATIENCE = 700; // ms
const TRIED = 400; // other names for which there may be room
const LINE = 16; // CSS pixels that a name is high

export function mount(root, page) {
  return new Points(root, page);
}

class Points {
  /**
   * @param {HTMLElement} root
   * @param {import("./attention.js").Page} page
   */
  constructor(root, page) {
    this.page = page;
    this.turn = 0;
    this.answer = null;
    root.classList.add("points-of");
    this.how = choices("projection", WAYS, (how) => page.go({ how: how === "pca" ? undefined : how }));
    this.tint = choices("colour", TINTS, (tint) => page.go({ tint: tint === "role" ? undefined : tint }));
    this.legend = make("div", "points-legend");
    this.frame = make("div", "points-frame");
    this.canvas = this.frame.appendChild(make("canvas"));
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.axes = make("p", "points-axes");
    this.note = make("p", "points-note");
    this.sentence = make("p", "sentence");
    this.sentence.setAttribute("role", "alert");
    const bar = make("div", "points-bar");
    bar.append(this.how.element, this.tint.element, this.legend);
    root.append(bar, this.sentence, this.frame, this.axes, this.note);
    this.plane = new Plane(
      this.canvas,
      { count: () => this.count, at: (i) => this.place(i), hides: () => false },
      {
        moved: () => this.draw(),
        pointed: (i) => this.point(i),
        picked: (i) => page.go(i < this.queries ? { query: i } : { key: i - this.queries }),
      },
    );
    this.canvas.addEventListener("keydown", (event) => this.step(event));
  }

  get state() {
    return this.page.state;
  }

  get projection() {
    return this.state.how === "tsne" ? "tsne" : "pca";
  }

  get tinted() {
    return TINTS.some(([tint]) => tint === this.state.tint) && !(this.state.tint === "kind" && this.page.trace.grid)
      ? this.state.tint
      : "role";
  }

  get queries() {
    return this.answer?.queries.shape[0] ?? 0;
  }

  get count() {
    return this.answer ? this.queries + this.answer.keys.shape[0] : 0;
  }

  place(i) {
    const [{ data }, at] = i < this.queries ? [this.answer.queries, i] : [this.answer.keys, i - this.queries];
    return [data[2 * at], data[2 * at + 1]];
  }

  /** The pieces of queries and of keys, and which of them are special. */
  get texts() {
    const { trace } = this.page;
    const other = this.state.focus === "cross_attn" ? trace.source : trace;
    return [trace, other].map(({ pieces, special }) => ({ pieces, special }));
  }

  piece(i) {
    const { trace } = this.page;
    return i < this.queries ? trace.pieces[i] : trace.keys(this.state.focus)[i - this.queries];
  }

  update() {
    const { page } = this;
    this.how.show(this.projection);
    this.tint.show(this.tinted, page.trace.grid ? ["kind"] : []);
    const { side, focus, layer, head } = this.state;
    /** @type {import("../core/store.js").Query<"points">} */
    const query = { ask: "points", side, focus, layer, head, how: this.projection };
    const wanted = JSON.stringify([page.trace.trace, query]);
    this.size();
    if (wanted === this.wanted) return this.draw();
    this.wanted = wanted;
    clearTimeout(this.timer);
    this.turn++;
    this.frame.classList.add("waiting");
    this.timer = setTimeout(() => this.ask(query), this.waits() ? PATIENCE : 0);
  }

  /** Says what is on its way; true where that takes long. */
  waits() {
    const { page } = this;
    const count = page.trace.length + page.keys.length;
    const seconds = this.projection === "tsne" ? Math.round(count * EACH) : 0;
    if (seconds >= SLOW)
      this.axes.textContent = `t-SNE of ${count.toLocaleString("en")} points is being computed, which takes about ${seconds} seconds …`;
    else if (!this.answer) this.axes.textContent = "the plane is being computed …";
    return seconds >= SLOW;
  }

  /** @param {import("../core/store.js").Query<"points">} query */
  async ask(query) {
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
      this.fit();
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

  /** As wide as there is room for; a new size frames the points anew. */
  size() {
    const width = Math.round(Math.min(this.page.width, 1000)) - 2;
    if (this.plane.size?.width === width) return;
    this.plane.resize(width, Math.round(Math.max(320, Math.min(540, width * 0.62))));
    if (this.answer) this.fit();
  }

  fit() {
    const axes = [0, 1].map((axis) => range(0, this.count).map((i) => this.place(i)[axis]));
    this.plane.frame(
      axes.map((values) => Math.min(...values)),
      axes.map((values) => Math.max(...values)),
    );
  }

  draw() {
    const { plane } = this;
    if (!plane.size) return;
    const context = plane.clear();
    this.legend.replaceChildren(...signs(this.tinted, this.texts));
    this.frame.hidden = !this.answer && Boolean(this.sentence.textContent);
    if (!this.answer || !plane.view) return;
    const { row, col } = this.chosen();
    this.shades = Object.fromEntries(
      ["ink", "ground", "soft", "attention"].map((role) => [role, colour(this.canvas, role)]),
    );
    context.font = `13px ${getComputedStyle(this.canvas).getPropertyValue("--sans")}`;
    const weights = this.weights(row);
    this.lines(context, row, weights);
    const hue = hues(this.canvas, this.tinted, this.texts);
    for (const i of range(0, this.count)) this.dot(context, i, hue(i), this.radius);
    this.names(context, hue, row, col, weights);
    this.canvas.setAttribute("aria-label", this.spoken(row, weights));
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

  weights(row) {
    if (this.page.weightsOf) return this.page.weightsOf(row);
    const { block, max } = this.page.pattern(this.state.layer, this.state.head);
    const start = block.offset + row * block.stride;
    return Float64Array.from(block.data.subarray(start, start + block.cols), (weight) => weight / max);
  }

  lines(context, row, weights) {
    const [x, y] = this.plane.at(row);
    context.strokeStyle = this.shades.attention;
    weights.forEach((weight, key) => {
      if (weight < LEAST) return;
      const [x1, y1] = this.plane.at(this.queries + key);
      context.globalAlpha = 0.2 + 0.7 * weight;
      context.lineWidth = Math.max(1, THICK * weight);
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(x1, y1);
      context.stroke();
    });
    context.globalAlpha = 1;
  }

  /** A query is a circle, a key a square, whatever their colours say. */
  dot(context, i, fill, radius, ring = null) {
    const [x, y] = this.plane.at(i);
    context.beginPath();
    if (i < this.queries) context.arc(x, y, radius, 0, 2 * Math.PI);
    else context.rect(x - radius * 0.9, y - radius * 0.9, 1.8 * radius, 1.8 * radius);
    context.fillStyle = fill;
    context.fill();
    context.strokeStyle = ring ?? this.shades.ground;
    context.lineWidth = ring ? 2.5 : 1;
    context.stroke();
  }

  /** The chosen row and the keys that it reads, then any others that find room. */
  names(context, hue, row, col, weights) {
    const { ink, ground, soft } = this.shades;
    const read = [...weights.keys()]
      .filter((key) => weights[key] >= LEAST)
      .sort((a, b) => weights[b] - weights[a])
      .slice(0, NAMED);
    const keys = col === null || read.includes(col) ? read : [col, ...read];
    const first = [row, ...keys.map((key) => this.queries + key)];
    const placement = new Placement(this.plane.size);
    for (const i of range(0, this.count)) placement.block(...this.plane.at(i), this.radius);
    for (const i of first) this.dot(context, i, hue(i), this.radius + 1.5, ink);
    const [middle] = this.plane.at(row);
    context.textBaseline = "middle";
    const write = (i, text, options) => {
      const [x, y] = this.plane.at(i);
      const found = placement.find(context.measureText(text).width, LINE, x, y, this.radius + 4, options);
      if (!found) return;
      context.lineWidth = 4;
      if (options.may) context.strokeText(text, found.x, found.y);
      context.fillText(text, found.x, found.y);
    };
    context.font = context.font.replace(/^.*?(?=\d+px)/, "600 ");
    Object.assign(context, { fillStyle: ink, strokeStyle: ground });
    for (const i of first) {
      const share = i < this.queries ? "" : `  ${percent(weights[i - this.queries])}`;
      write(i, `${this.piece(i)}${share}`, {
        may: true,
        must: i === first[0] || i === first[1],
        leftward: i !== row && this.plane.at(i)[0] < middle,
      });
    }
    context.font = context.font.replace(/^.*?(?=\d+px)/, "");
    context.fillStyle = soft;
    const others = range(0, this.count).filter(
      (i) => !first.includes(i) && placement.inside([...this.plane.at(i), ...this.plane.at(i)]),
    );
    for (const [n, i] of others.entries()) if (n % Math.ceil(others.length / TRIED) === 0) write(i, this.piece(i), {});
  }

  point(i) {
    const { page } = this;
    this.canvas.style.cursor = i < 0 ? "grab" : "pointer";
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

  step(event) {
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!by || !this.answer) return;
    event.preventDefault();
    const query = Math.max(0, Math.min(this.queries - 1, this.state.query + by));
    this.page.go({ query });
    this.page.tell(this.spoken(query, this.weights(query)));
  }

  spoken(row, weights) {
    const best = weights.indexOf(Math.max(...weights));
    return `${this.count} points; the query of ${this.piece(row)} attends most to the key of ${this.piece(this.queries + best)}: ${percent(weights[best])}`;
  }

  mark() {
    if (this.answer) this.draw();
  }

  destroy() {
    clearTimeout(this.timer);
    this.turn++;
    this.page.tip(null);
  }
}
