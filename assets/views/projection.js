// A table of vectors, one a token or a position, in the plane: point at one to read it, search one to see what it is like.
import * as address from "./address.js";
import { make } from "./dom.js";
import { percent } from "./format.js";
import { KINDS, kindsOf } from "./kinds.js";
import { colour, css, ramp, STEPS } from "./palette.js";
import { caption, Plane, room } from "./plane.js";
import { request } from "./store.js";

const LEAST = 620; // CSS pixels from which the list stands beside the picture
const LIST = 300;
const LABELLED = 6000; // points that are tried for a label
const BULK = 4; // standard deviations that are drawn at first
const TO_STD = 1.4826; // of a normal distribution, from its median absolute deviation
const SUGGESTIONS = 8;

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
    this.list = make("section", "list-of");
    this.element.append(this.head, this.frame, this.list);
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
    this.bar();
    this.paint();
  }

  /** Once there is both: points, and room for them. */
  paint() {
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
    this.bar();
    this.paint();
  }

  first() {
    if (!this.pieces) return this.ids[this.table.ordered ? this.ids.length >> 1 : 0];
    const found = this.pieces.findIndex((piece, id) => this.kinds[id] === "word" && /^\P{L}?\p{L}{4,}$/u.test(piece) && this.place.has(id));
    return found < 0 ? this.ids[0] : found;
  }

  name(id) {
    return this.pieces ? (this.pieces[id] ?? `#${id}`) : `${this.table.title} ${id}`;
  }

  bar() {
    const chips = make("div", "chips-of");
    const chip = (label, pressed, act, title = "") => {
      const button = make("button", "chip-of", label);
      button.type = "button";
      button.title = title;
      button.setAttribute("aria-pressed", pressed);
      button.addEventListener("click", act);
      chips.append(button);
      return button;
    };
    const turn = (table, how) => {
      if (table !== this.table) Object.assign(this, { chosen: null, near: null });
      Object.assign(this, { table, how });
      this.remember();
      this.bar();
      this.ask();
    };
    if (this.data.tables.length > 1) for (const table of this.data.tables) chip(`${table.title}s`, table === this.table, () => turn(table, "pca"));
    const gap = chips.appendChild(make("span", "gap-of"));
    gap.hidden = this.data.tables.length < 2;
    chip("PCA", this.how === "pca", () => turn(this.table, "pca"), "the two directions in which the vectors vary most, exactly");
    if (this.table.rows >= 4) chip("t-SNE", this.how === "tsne", () => turn(this.table, "tsne"), "who is near whom in all dimensions; up to 2,000 of them");
    const framed = (whole) => () => {
      this.whole = whole;
      address.write({ frame: whole ? "all" : null });
      this.bar();
      this.fit();
      this.draw();
    };
    chips.append(make("span", "gap-of"));
    chip("bulk", !this.whole, framed(false), "without what lies far from the rest; drag moves, double-click and + and - zoom");
    chip("all", this.whole, framed(true), "every point in the frame; drag moves, double-click and + and - zoom");
    const legend = make("div", "legend-of-points");
    if (this.kinds) {
      for (const [kind, words, role] of KINDS) {
        const count = this.kinds.reduce((sum, each) => sum + (each === kind), 0);
        if (!count) continue;
        const button = make("button", "kind-of");
        button.type = "button";
        button.setAttribute("aria-pressed", !this.hidden.has(kind));
        button.style.setProperty("--hue", `var(--${role})`);
        button.append(make("span", "dot-of"), make("span", "", words), make("small", "", count.toLocaleString("en")));
        button.addEventListener("click", () => {
          this.hidden.has(kind) ? this.hidden.delete(kind) : this.hidden.add(kind);
          address.write({ without: this.hidden.size ? [...this.hidden] : null });
          this.bar();
          this.fit();
          this.draw();
        });
        legend.append(button);
      }
    } else legend.append(make("small", "", "from pale to full: by id"));
    const heading = make("h3", "", "Embedding");
    heading.append(make("span", "note", ` ${this.table.rows.toLocaleString("en")} × ${this.data.width.toLocaleString("en")}`));
    this.head.replaceChildren(heading, chips, legend);
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
    if (!this.answer || !this.plane.view) return;
    const context = this.plane.clear();
    const { width, height } = this.plane.size;
    const n = this.ids.length;
    const dot = side(n);
    if (this.pieces) {
      for (const [kind, , role] of KINDS) {
        if (this.hidden.has(kind)) continue;
        context.fillStyle = colour(this.root, role);
        context.globalAlpha = n > 20000 ? 0.55 : 0.75;
        const { scale, x: left, y: top } = this.plane.view;
        for (const i of this.groups.get(kind)) {
          const [x, y] = [left + scale * this.points[2 * i], top - scale * this.points[2 * i + 1]];
          if (x > -4 && y > -4 && x < width + 4 && y < height + 4) context.fillRect(x - dot / 2, y - dot / 2, dot, dot);
        }
      }
    } else this.thread(context, dot);
    context.globalAlpha = 1;
    this.labels(context);
    this.marks(context);
    this.canvas.setAttribute("aria-label", `${n} points, ${this.table.title}; chosen: ${this.name(this.chosen)}`);
  }

  /** Without names: paler to fuller by id, and through positions, which follow one another, a line. */
  thread(context, dot) {
    const table = ramp(this.root, "residual", "unit");
    const n = this.ids.length;
    const hue = (i) => css(table[Math.round((0.25 + (0.75 * i) / Math.max(1, n - 1)) * (STEPS - 1))]);
    for (let i = 0; i < n; i++) {
      const [x, y] = this.at(i);
      context.strokeStyle = context.fillStyle = hue(i);
      if (i && this.table.ordered) {
        const [x0, y0] = this.at(i - 1);
        context.globalAlpha = 0.45;
        context.beginPath();
        context.moveTo(x0, y0);
        context.lineTo(x, y);
        context.stroke();
        context.globalAlpha = 1;
      }
      context.fillRect(x - dot / 2, y - dot / 2, dot, dot);
    }
  }

  /** Names wherever one has room, the first ids first. */
  labels(context) {
    const fits = room(this.plane.size);
    const dot = side(this.ids.length);
    context.font = `12px ${getComputedStyle(this.root).getPropertyValue("--sans")}`;
    context.fillStyle = colour(this.root, "ink");
    context.globalAlpha = 0.8;
    const every = Math.max(1, Math.ceil(this.ids.length / LABELLED));
    for (let i = 0; i < this.ids.length; i += every) {
      if (this.hides(i)) continue;
      const [x, y] = this.at(i);
      const text = this.pieces ? this.name(this.ids[i]) : String(this.ids[i]);
      if (!fits(text, x, y)) continue;
      context.fillText(text, x + dot + 2, y + 4);
    }
    context.globalAlpha = 1;
  }

  /** The chosen one, with lines to its nearest. */
  marks(context) {
    const i = this.place?.get(this.chosen);
    if (i === undefined) return;
    const [x, y] = this.at(i);
    const ink = colour(this.root, "ink");
    const ground = colour(this.root, "ground");
    for (const id of this.near?.ids ?? []) {
      const j = this.place.get(id);
      if (j === undefined) continue;
      const [x1, y1] = this.at(j);
      context.strokeStyle = ink;
      context.globalAlpha = 0.5;
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(x1, y1);
      context.stroke();
      context.globalAlpha = 1;
      ring(context, x1, y1, 4, ink, ground, 1.5);
      caption(context, this.name(id), x1, y1, ink, ground, "");
    }
    ring(context, x, y, 6, ink, ground, 2.5);
    caption(context, this.name(this.chosen), x, y, ink, ground, "600 ");
  }

  choose(id, write = true) {
    this.chosen = id;
    this.near = null;
    if (write) address.write({ token: id });
    this.show();
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
      this.show();
      this.draw();
    } catch (error) {
      this.list.append(make("p", "", error.message));
    }
  }

  show() {
    if (!this.searching) {
      this.search = make("input", "search-of");
      this.search.type = "search";
      this.search.addEventListener("input", () => this.suggest());
      this.search.addEventListener("keydown", (event) => event.key === "Enter" && this.found?.length && this.take_one(this.found[0]));
      this.searching = make("div", "found-of");
      this.rest = make("div", "near-of");
      this.rest.setAttribute("aria-live", "polite");
      this.list.replaceChildren(this.search, this.searching, this.rest);
    }
    const what = `a ${this.table.title}`;
    this.search.placeholder = `find ${what}`;
    this.search.setAttribute("aria-label", `find ${what}`);
    const title = make("p", "chosen-of");
    title.append(make("bdi", "", this.name(this.chosen)), make("small", "", `id ${this.chosen}`));
    const rows = make("div", "rows-of");
    rows.append(make("p", "what-of", "nearest by cosine"));
    for (let k = 0; k < 10 && this.near; k++) {
      if (k >= this.near.ids.length) break;
      const row = make("button", "near-row");
      row.type = "button";
      const share = this.near.similarity[k];
      const track = make("span", "track-of");
      track.appendChild(make("span")).style.width = `${Math.max(0, 100 * share)}%`;
      row.append(make("bdi", "", this.name(this.near.ids[k])), track, make("span", "cosine", share.toFixed(3).replace("-", "−")));
      row.addEventListener("click", () => this.choose(this.near.ids[k]));
      rows.append(row);
    }
    this.rest.replaceChildren(title, rows);
  }

  take_one(id) {
    this.search.value = "";
    this.suggest();
    this.choose(id);
  }

  suggest() {
    const text = this.search.value;
    this.found = [];
    if (text && this.pieces) {
      const plain = (piece) => piece.replace(/^[·▁]|^##/u, "");
      const exact = [];
      const begins = [];
      for (let id = 0; id < this.pieces.length; id++) {
        const piece = this.pieces[id];
        if (piece === text || plain(piece) === text) exact.push(id);
        else if (begins.length < SUGGESTIONS && (plain(piece).startsWith(text) || piece.startsWith(text))) begins.push(id);
      }
      this.found = [...exact, ...begins].slice(0, SUGGESTIONS);
    } else if (/^\d+$/.test(text) && Number(text) < this.table.rows) this.found = [Number(text)];
    this.searching.replaceChildren(
      ...this.found.map((id) => {
        const button = make("button", "found-row");
        button.type = "button";
        button.append(make("bdi", "", this.name(id)), make("small", "", String(id)));
        button.addEventListener("click", () => this.take_one(id));
        return button;
      }),
      ...(text && !this.found.length ? [make("p", "none-of", "no such entry")] : []),
    );
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

function side(n) {
  return n > 20000 ? 2 : n > 3000 ? 3 : 4;
}

function ring(context, x, y, radius, ink, ground, width) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = ground;
  context.fill();
  context.strokeStyle = ink;
  context.lineWidth = width;
  context.stroke();
  context.lineWidth = 1;
}

const CSS = `
.projected { margin-top: 22px; display: grid; grid-template-columns: minmax(0, 1fr); gap: 10px 28px; font: 14px/1.4 var(--sans); color: var(--ink); }
.projected.beside { grid-template-columns: minmax(0, 1fr) ${LIST}px; }
.projected-head { grid-column: 1 / -1; display: flex; flex-wrap: wrap; align-items: center; gap: 6px 20px; min-height: 28px; }
.projected h3 { font-size: 16px; font-weight: 600; margin: 0; line-height: 24px; }
.projected h3 .note { font-weight: 400; color: var(--soft); font-size: 13px; }
.projected button { font: inherit; color: inherit; margin: 0; cursor: pointer; }
.projected :focus-visible { outline: 2px solid var(--attention); outline-offset: 1px; }
.chips-of { display: flex; flex-wrap: wrap; gap: 4px; align-items: center; }
.gap-of { width: 8px; }
.chip-of { height: 26px; padding: 0 9px; border: 1px solid var(--hairline); border-radius: 5px; background: var(--ground); font-size: 13px !important; }
.chip-of:hover { border-color: var(--soft); }
.chip-of[aria-pressed="true"] { border-color: var(--ink); font-weight: 600; background: var(--panel); }
.legend-of-points { display: flex; flex-wrap: wrap; gap: 2px 14px; margin-left: auto; }
.legend-of-points { min-height: 24px; align-items: center; color: var(--soft); }
.kind-of { color: var(--ink) !important; display: inline-flex; align-items: center; gap: 6px; padding: 2px 0; border: 0; background: none; font-size: 13px !important; }
.kind-of[aria-pressed="false"] { opacity: .4; text-decoration: line-through; }
.kind-of small { font: 12px var(--mono); color: var(--soft); }
.dot-of { width: 9px; height: 9px; background: var(--hue); border-radius: 1px; }
.frame-of { position: relative; border: 1px solid var(--hairline); border-radius: 6px; overflow: hidden; align-self: start; }
.frame-of canvas { display: block; touch-action: pan-y; cursor: grab; outline-offset: -2px !important; }
.frame-of.waiting canvas { opacity: .5; }
.axes-of { position: absolute; right: 10px; bottom: 6px; margin: 0; padding: 1px 6px; font-size: 12.5px; color: var(--soft); background: color-mix(in srgb, var(--ground) 80%, transparent); border-radius: 4px; }
.tip-of { position: absolute; pointer-events: none; padding: 2px 8px; border-radius: 5px; background: var(--ink); color: var(--ground); white-space: pre; font-size: 14px; }
.tip-of.leftward { transform: translateX(-100%); }
.tip-of small { opacity: .75; font: 12px var(--mono); }
.tip-of:empty { display: none; }
.list-of { min-width: 0; min-height: 400px; }
.search-of { width: 100%; box-sizing: border-box; height: 34px; padding: 0 10px; font: inherit; color: var(--ink); background: var(--panel); border: 1px solid var(--hairline); border-radius: 6px; }
.found-of { position: relative; }
.found-row { display: flex; justify-content: space-between; width: 100%; padding: 4px 10px; border: 0; border-bottom: 1px solid var(--hairline); background: var(--ground); }
.found-row:hover { background: var(--panel); }
.found-row small, .chosen-of small { font: 12px var(--mono); color: var(--soft); }
.none-of { margin: 4px 10px; color: var(--soft); font-size: 13px; }
.chosen-of { display: flex; align-items: baseline; justify-content: space-between; gap: 10px; margin: 16px 0 2px; font-size: 20px; font-weight: 600; white-space: pre; overflow: hidden; }
.what-of { margin: 0 0 4px; color: var(--soft); font-size: 13px; }
.near-row { display: grid; grid-template-columns: minmax(0, 1fr) 90px 52px; gap: 10px; align-items: center; width: 100%; height: 28px; padding: 0; border: 0; border-top: 1px solid var(--hairline); background: none; text-align: left; }
.near-row:hover { background: var(--panel); }
.near-row bdi { white-space: pre; overflow: hidden; text-overflow: ellipsis; }
.track-of { height: 10px; }
.track-of span { display: block; height: 100%; background: var(--residual); border-radius: 2px; }
.cosine { font: 13px var(--mono); text-align: right; }
`;
