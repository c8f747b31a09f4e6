// A table of vectors, one a token or a position, in the plane: point at one to read it, search one to see what it is like.
import * as address from "../core/address.js";
import { make } from "../core/dom.js";
import { percent } from "../core/format.js";
import { KINDS, kindsOf } from "../core/token_kinds.js";
import { Plane } from "../components/plane.js";
import { bar } from "./projection_bar.js";
import { List } from "./projection_list.js";
import { paint } from "./projection_paint.js";
import { CSS, LIST } from "./projection_style.js";
import { request } from "../core/store.js";

const LEAST = 620; // CSS pixels from which the list stands beside the picture
const BULK = 4; // standard deviations that are drawn at first
const TO_STD = 1.4826; // of a normal distribution, from its median absolute deviation

/** data = {checkpoint, width, tables: [{name, title, rows, tokens, ordered, special}]}, of views/checkpoint.py. */
export function mount(root, data) {
  const page = new Projected(root);
  page.update(data);
  return page;
}

class Projected {
  constructor(root) {
    this.root = root;
    this.element = make("div", "projected");
    this.head = make("div", "projected-head");
    this.frame = make("div", "frame-of");
    this.canvas = this.frame.appendChild(make("canvas"));
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.tip = this.frame.appendChild(make("output", "tip-of"));
    this.axes = this.frame.appendChild(make("p", "axes-of"));
    const beside = make("section", "list-of");
    this.list = new List(beside, this);
    this.element.append(this.head, this.frame, beside);
    root.append(make("style", "", CSS), this.element);
    this.hidden = new Set();
    this.whole = false;
    this.resize = new ResizeObserver(() => this.element.clientWidth !== this.width && this.build());
    this.resize.observe(this.element);
    this.sight = new IntersectionObserver(([entry]) => entry.isIntersecting && this.see(), { rootMargin: "400px" });
    this.sight.observe(this.element);
    this.plane = new Plane(this.canvas, this.described(), {
      moved: () => {
        this.caption();
        this.draw();
      },
      pointed: (i) => this.point(i),
      picked: (i) => this.choose(this.ids[i]),
    });
  }

  /** The points, as the plane asks for them. */
  described() {
    return {
      count: () => this.ids.length,
      at: (i) => [this.points[2 * i], this.points[2 * i + 1]],
      hides: (i) => this.hides(i),
    };
  }

  /** What takes long is computed once somebody is near it. */
  see() {
    this.sight.disconnect();
    this.seen = true;
    if (!this.answer) this.ask();
  }

  destroy() {
    this.sight.disconnect();
    this.resize.disconnect();
    this.element.remove();
  }

  update(data) {
    const same = this.data?.checkpoint === data.checkpoint;
    this.data = data;
    if (!same) {
      const { table, how, frame, without } = address.read();
      const named = data.tables.find(({ name }) => name === table) ?? data.tables[0];
      Object.assign(this, { table: named, how: how === "tsne" ? "tsne" : "pca", answer: null, chosen: null, near: null });
      this.whole = frame === "all";
      this.hidden = new Set(Array.isArray(without) ? without.filter((kind) => KINDS.some(([one]) => one === kind)) : []);
      this.build();
      if (this.seen || data.answer) this.ask();
    } else this.build();
  }

  build() {
    this.width = this.element.clientWidth;
    if (!this.width) return;
    const beside = this.width >= LEAST + LIST;
    this.element.classList.toggle("beside", beside);
    const wide = beside ? this.width - LIST - 28 : this.width;
    this.plane.resize(wide, Math.round(Math.max(320, Math.min(560, wide * 0.66))));
    bar(this);
    this.reveal();
  }

  /** Once there is both: points, and room for them. */
  reveal() {
    if (!this.answer || !this.plane.size) return;
    this.fit();
    this.draw();
    this.element.dataset.ready = "true";
  }

  async ask() {
    const query = { checkpoint: this.data.checkpoint, table: this.table.name, how: this.how };
    this.wanted = JSON.stringify(query);
    const wanted = this.wanted;
    if (this.data.answer && this.table === this.data.tables[0] && this.how === "pca") {
      this.answer = { ...this.data.answer, arrays: this.data.arrays };
      return this.take();
    }
    this.frame.classList.add("waiting");
    const rows = (this.how === "tsne" ? Math.min(2000, this.table.rows) : this.table.rows).toLocaleString("en");
    this.axes.textContent = `${this.how === "tsne" ? "t-SNE" : "principal components"} of ${rows} vectors are being computed …`;
    try {
      const answer = await request(query);
      if (this.wanted !== wanted) return;
      this.answer = answer;
      this.take();
    } catch (error) {
      if (this.wanted === wanted) this.axes.textContent = error.message;
    }
    if (this.wanted === wanted) this.frame.classList.remove("waiting");
  }

  /** The points that came, what each is called, and the one that is looked at first. */
  take() {
    const { arrays, pieces } = this.answer;
    this.points = arrays.points.data;
    this.ids = arrays.ids.data;
    this.place = new Map(Array.from(this.ids, (id, i) => [id, i]));
    if (pieces) this.pieces = pieces;
    if (!this.table.tokens) this.pieces = null;
    this.kinds = this.pieces ? kindsOf(this.pieces, this.table.special) : null;
    this.groups = new Map(); // kind -> its points
    for (const [kind] of KINDS) this.groups.set(kind, []);
    if (this.kinds) this.ids.forEach((id, i) => this.groups.get(this.kinds[id]).push(i));
    const wanted = address.read().token;
    if (this.chosen === null) this.choose(Number.isInteger(wanted) && this.place.has(wanted) ? wanted : this.first(), false);
    bar(this);
    this.reveal();
  }

  first() {
    if (!this.pieces) return this.ids[this.table.ordered ? this.ids.length >> 1 : 0];
    const found = this.pieces.findIndex((piece, id) => this.kinds[id] === "word" && /^\P{L}?\p{L}{4,}$/u.test(piece) && this.place.has(id));
    return found < 0 ? this.ids[0] : found;
  }

  name(id) {
    return this.pieces ? (this.pieces[id] ?? `#${id}`) : `${this.table.title} ${id}`;
  }

  /** The points in the frame, one scale for both axes; without those far from the bulk, unless the `whole` is wanted. */
  fit() {
    const axes = [0, 1].map((axis) => {
      const values = Array.from(this.ids, (_, i) => i).filter((i) => !this.hides(i)).map((i) => this.points[2 * i + axis]).sort((a, b) => a - b);
      return reach(values, this.whole ? Infinity : BULK);
    });
    const [low, high] = [0, 1].map((end) => axes.map((axis) => axis[end]));
    this.plane.frame(low, high);
    this.caption();
  }

  /** What the axes mean, and how many points the frame leaves out. */
  caption() {
    const { explained } = this.answer;
    const said = explained
      ? `across ${percent(explained[0])} of the variance, upward ${percent(explained[1])}`
      : `t-SNE of ${this.ids.length.toLocaleString("en")} evenly spread over the ids: who is near whom counts, distances do not`;
    const { width, height } = this.plane.size;
    const inside = ([x, y]) => x >= 0 && y >= 0 && x <= width && y <= height;
    let outside = 0;
    for (let i = 0; i < this.ids.length; i++) outside += !this.hides(i) && !inside(this.at(i));
    this.axes.textContent = outside ? `${outside.toLocaleString("en")} lie outside the frame · ${said}` : said;
  }

  /** Whether point i is of a kind that was switched off. */
  hides(i) {
    return this.kinds !== null && this.hidden.has(this.kinds[this.ids[i]]);
  }

  at(i) {
    return this.plane.at(i);
  }

  draw() {
    if (this.answer && this.plane.view) paint(this);
  }

  choose(id, write = true) {
    this.chosen = id;
    this.near = null;
    if (write) address.write({ token: id });
    this.list.show();
    this.draw();
    this.neighbours(id);
  }

  async neighbours(id) {
    const { checkpoint } = this.data;
    const table = this.table;
    try {
      const { arrays } = await request({ checkpoint, near: id, table: table.name });
      if (this.chosen !== id || this.table !== table || this.data.checkpoint !== checkpoint) return;
      this.near = { ids: [...arrays.ids.data], similarity: arrays.similarity.data };
      this.list.show();
      this.draw();
    } catch (error) {
      this.list.element.append(make("p", "", error.message));
    }
  }

  // --- to be taken away (take_shown.js, take_link.js) ---------------------------------------------------------------------------

  looked() {
    const { table, how, chosen } = this;
    const way = how === "tsne" ? "t-SNE" : "principal components";
    const nearest = this.near ? `; nearest to ${this.name(chosen)} by cosine: ${this.near.ids.slice(0, 3).map((id) => this.name(id)).join(", ")}` : "";
    const sentence = this.answer ? `${table.title}s by ${way}, ${this.axes.textContent}${nearest}` : "";
    return { where: "", what: `${table.title}s`, sentence, asks: { table: table.name, how, near: chosen ?? 0 }, file: table.name.replaceAll(".", "-") };
  }

  remember() {
    address.write({ table: this.table.name, how: this.how, token: this.chosen });
  }

  missed({ token, table }) {
    const { rows } = this.table;
    if (table !== undefined && this.table.name !== table) return [`there is no table ${JSON.stringify(table)} here`];
    return token === undefined || (Number.isInteger(token) && token >= 0 && token < rows) ? [] : [`token ${JSON.stringify(token)} is not here, there are ${rows.toLocaleString("en")}`];
  }

  point(i) {
    this.tip.hidden = i < 0;
    this.canvas.style.cursor = i < 0 ? "grab" : "pointer";
    if (i < 0) return;
    const [x, y] = this.at(i);
    this.tip.replaceChildren(make("bdi", "", this.name(this.ids[i])), make("small", "", ` ${this.ids[i]}`));
    const left = x > this.plane.size.width - 150;
    this.tip.style.left = `${x + (left ? -10 : 10)}px`;
    this.tip.style.top = `${y - 30}px`;
    this.tip.classList.toggle("leftward", left);
  }
}

/** From where to where sorted values are drawn: all, or as far as `most` standard deviations, as the median deviation tells. */
function reach(values, most) {
  const [low, high] = [values[0] ?? 0, values.at(-1) ?? 1];
  const middle = median(values);
  const spread = TO_STD * median(values.map((value) => Math.abs(value - middle)).sort((a, b) => a - b));
  if (!spread || most === Infinity) return [low, high];
  return [Math.max(low, middle - most * spread), Math.min(high, middle + most * spread)];
}

function median(sorted) {
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}
