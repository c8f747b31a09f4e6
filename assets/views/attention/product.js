// How one score comes about: a query and a key, component by component, their products and the sum; and under it the same
// products for every key that the query could choose.
import { ends, mountComponents, mountKeys, scaleNote } from "./components.js";
import { endOf } from "./colours.js";
import { extent } from "../components/cells.js";
import { factor, factorText, here, passed, product } from "./row.js";
import { choices } from "../components/choices.js";
import { make, range } from "../core/dom.js";
import { difference, equation, number, operand } from "../core/format.js";
import { rows } from "../core/layout.js";
import { legend } from "../components/legend.js";

/**
 * @typedef {import("./attention.js").Face} Face
 * @typedef {import("./components.js").Strip & { kind: string }} Strip
 * @typedef {"q" | "k"} Letter
 */

const COLUMNS = { wide: [116, 196], narrow: [76, 58] }; // CSS pixels beside the components: names, and sums
const LEAST = 4; // of a component; more of them than fit scroll
const MOST = 64; // of a component
const TALL = { before: 30, operand: 54, product: 80 };

/**
 * The view `q·k` of attention.js.
 * @param {HTMLElement} root
 * @param {Face} page
 */
export function mount(root, page) {
  return new Product(root, page);
}

class Product {
  /** @type {ReturnType<Product["products"]>} */
  found;
  /** @type {ReturnType<typeof legend>} what the colours of the products mean */
  ramp;
  /** @type {import("./components.js").Columns} */
  columns;
  /** @type {string | undefined} that was revealed */
  cell;

  /**
   * @param {HTMLElement} root
   * @param {Face} page
   */
  constructor(root, page) {
    this.root = root;
    this.page = page;
    /** @type {number | null} component that is pointed at, as drawn */
    this.place = null;
    this.explain = page.memoize(() => this.ramped());
    root.classList.add("attention-product");
    root.loupe = this; // for tests: the numbers behind the picture
    this.title = make("h3", "product-title");
    this.order = this.choice();
    this.note = make("p", "product-note");
    const top = make("div", "product-top");
    top.append(this.title, this.order.element);
    const wide = make("div", "product-wide");
    const parts = make("div", "product-parts");
    wide.append(parts);
    this.components = mountComponents(parts, (place) => this.onComponent(place));
    this.sum = make("p", "product-sum");
    this.verdict = make("p", "verdict");
    this.keysTitle = make("h3", "keys-title");
    this.heads = make("div", "keys-heads");
    const scroll = make("div", "keys-scroll");
    this.keys = mountKeys(scroll, (event, where) => this.onKey(event, where));
    this.legend = make("div", "product-legend");
    this.body = make("div");
    this.body.append(wide, this.sum, this.verdict, this.keysTitle, this.heads, scroll, this.legend);
    root.append(top, this.note, this.body);
  }

  destroy() {
    this.root.classList.remove("attention-product");
    this.root.replaceChildren();
  }

  update() {
    const { page } = this;
    /** @param {string} sentence */
    const say = (sentence) => {
      this.note.textContent = sentence;
      this.body.hidden = true;
    };
    if (!here(page, () => this.update(), say)) return;
    this.body.hidden = false;
    this.found = this.products();
    this.explain();
    this.lay();
    this.show();
    this.showKeys();
    this.mark();
    const cell = [page.edition, page.state.layer, page.state.query, page.state.key].join();
    if (this.cell !== cell) this.keys.reveal(page.state.key);
    this.cell = cell;
  }

  mark() {
    this.components.mark(this.place);
    const { hover, state } = this.page;
    this.keys.mark({ key: state.key, hovered: hover?.row === state.query ? hover.col : null, place: this.place });
  }

  /** The products of the chosen row with every key; for tests too. */
  products() {
    const { trace, state } = this.page;
    const block = this.page.hook("");
    const stages = { q: passed(trace, block, "q"), k: passed(trace, block, "k") };
    const names = { q: stages.q.at(-1) ?? `${block}q`, k: stages.k.at(-1) ?? `${block}k` };
    const all = range(0, this.page.keys.length).map((col) => product(trace, names, state.query, col, state.head));
    const stored = trace.row(`${block}scores`, state.query, state.head);
    const chosen = all[state.key];
    const width = chosen.products.length;
    const own = range(0, width);
    const order = state.sorted ? own.sort((a, b) => Math.abs(chosen.products[b]) - Math.abs(chosen.products[a])) : own;
    return { stages, names, all, chosen, stored, order };
  }

  /** What the colours of the products mean, made anew for another theme. */
  ramped() {
    this.ramp = legend(this.root, { role: "attention", scale: "signed", width: 72 });
    this.ramp.element.append(make("span", "legend-text", "q × k"));
    this.legend.replaceChildren(this.ramp.element);
  }

  /** The three columns, which the components and the keys share. */
  lay() {
    const { page } = this;
    const [label, tail] = page.narrow ? COLUMNS.narrow : COLUMNS.wide;
    const count = this.found.order.length;
    const width = Math.max(count * LEAST, Math.min(count * MOST, page.width - label - tail - 8));
    this.columns = { label, width, tail };
    this.root.firstElementChild?.classList.toggle("tight", page.narrow);
    this.body.classList.toggle("tight", page.narrow);
    this.heads.style.gridTemplateColumns = `${label}px ${width}px ${tail}px`;
  }

  show() {
    const { page, found } = this;
    const { trace, state } = page;
    const [reader, read] = [trace.pieces[state.query], page.keys[state.key]];
    this.title.replaceChildren("q of ", token(reader, "query"), "  ·  k of ", token(read, "key"));
    this.note.textContent = this.about();
    this.order.show();
    /**
     * @param {Letter} letter
     * @param {string} role
     * @param {number} pos
     */
    const before = (letter, role, pos) =>
      found.stages[letter].slice(0, -1).map((hook) => this.strip(hook, letter, role, pos, TALL.before, true));
    const { q, k } = found.names;
    /** @type {Strip[]} */
    const strips = [
      ...before("q", "query", state.query),
      this.strip(q, "q", "query", state.query, TALL.operand),
      ...before("k", "key", state.key),
      this.strip(k, "k", "key", state.key, TALL.operand),
      {
        kind: "q × k",
        name: ["q × k"],
        note: scaleNote(found.chosen.products),
        role: "attention",
        values: found.chosen.products,
        tall: TALL.product,
        numbered: true,
        result: [`Σ ${number(found.chosen.dot)}`],
      },
    ];
    const scaled = strips.map((strip) => ({ ...strip, ends: this.ended(strip) }));
    this.components.update({ strips: scaled, order: found.order, ...this.columns });
    this.showSum();
  }

  /**
   * From where to where the bars of a strip could reach.
   * @param {Strip} strip
   * @returns {[low: number, high: number]}
   */
  ended({ kind, values }) {
    const [low, high] = ends(values);
    return [-endOf(this.page, `${kind} below 0`, -low), endOf(this.page, `${kind} above 0`, high)];
  }

  /**
   * @param {string} hook
   * @param {Letter} letter
   * @param {string} role
   * @param {number} pos
   * @param {number} tall
   */
  strip(hook, letter, role, pos, tall, faint = false) {
    const { page } = this;
    const values = page.trace.row(hook, pos, page.state.head);
    const piece = letter === "q" ? page.trace.pieces[pos] : page.keys[pos];
    const turned = hook.endsWith("_rotated");
    const what = turned ? "turned" : hook.endsWith("_norm.out") ? "normed" : faint ? "as projected" : "";
    const name = [`${letter} `, make("bdi", "", faint ? "" : piece)];
    return {
      kind: `${letter} ${what}`,
      name,
      note: what ? `${what}, ${scaleNote(values)}` : scaleNote(values),
      role,
      values,
      tall,
      faint,
    };
  }

  /** Positive and negative products apart, their sum, the score, and the stored one. */
  showSum() {
    const { page, found } = this;
    const { trace, state } = page;
    const { products, dot, score } = found.chosen;
    const [above, below] = [1, -1].map((sign) => products.filter((x) => sign * x > 0).reduce((sum, x) => sum + x, 0));
    const by = factorText(trace, products.length);
    const stored = found.stored[state.key];
    const scaled = equation([dot], (x) => x * factor(trace, products.length), score);
    /** @param {number} x */
    const exact = (x) => number(x, scaled.digits[0]); // what is read again in the second equation
    const sum = equation([above, below], (a, b) => a + b, dot, exact, [number, operand]);
    const more = by
      ? [`; score = q·k ${by} ${scaled.sign} `, make("strong", "", scaled.result)]
      : ["; this model does not scale, so that is the score"];
    this.sum.replaceChildren(`q·k = ${sum.texts.join(" + ")} ${sum.sign} `, make("strong", "", sum.result), ...more);
    const kept = trace.dtype === "float32" ? "" : ` (the model computes in ${trace.dtype})`;
    this.verdict.textContent = `recomputed ${number(score)} · stored ${number(stored)} · difference ${difference(score - stored)}${kept}`;
    this.verdict.dataset.recomputed = score;
    this.verdict.dataset.stored = stored;
  }

  showKeys() {
    const { page, found } = this;
    const { trace, state } = page;
    const width = found.order.length;
    const data = new Float32Array(found.all.length * width);
    found.all.forEach(({ products }, key) =>
      found.order.forEach((i, place) => (data[key * width + place] = products[i])),
    );
    const block = { data, offset: 0, stride: width, rows: found.all.length, cols: width };
    /** @param {string} part */
    const row = (part) => trace.row(page.hook(part), state.query, state.head);
    const max = endOf(page, "products of keys", extent(block));
    const most = endOf(
      page,
      "sums",
      found.all.reduce((a, { dot }) => Math.max(a, Math.abs(dot)), 0),
    );
    this.keys.update({
      block,
      pieces: page.keys,
      special: page.specialKeys,
      sums: found.all.map(({ dot }) => dot),
      weights: row("pattern"),
      allowed: row("mask"),
      max,
      most,
      pitch: rows(page.keys.length, page.narrow).pitch,
      ...this.columns,
    });
    const worst = found.all.reduce((most, { score }, key) => Math.max(most, Math.abs(score - found.stored[key])), 0);
    const name = make("bdi", "role-query", trace.pieces[state.query]);
    const note = `each row the products q × k; largest difference from a stored score ${difference(worst)}`;
    const heading = make("b");
    heading.append("The query of ", name, page.someKeys ? " against these keys" : " against every key");
    this.keysTitle.replaceChildren(heading, make("span", "", note));
    const sums = make("span");
    sums.append(make("span", "aside"), make("span", "", "q·k"), make("span", "aside", "weight"));
    this.heads.replaceChildren(
      make("span", "", "key"),
      make(
        "span",
        "",
        state.sorted ? "components, largest |q × k| of the chosen key first" : `components 0 to ${width - 1}`,
      ),
      sums,
    );
    this.ramp.show(block, max);
  }

  /** What there is to know before one reads these vectors. */
  about() {
    const { trace, state } = this.page;
    const { heads, kv_heads: shared } = trace.model;
    const said = [];
    if (this.found.stages.q.some((hook) => hook.endsWith("_norm.out")))
      said.push("Queries and keys are normalised before they meet (QK norm).");
    if (this.found.stages.q.at(-1)?.endsWith("_rotated"))
      said.push(
        "Both are turned by their positions (RoPE): the scores are made of the turned ones, the others stand above them, paler.",
      );
    if (shared !== heads) {
      const own = trace.keyHead(state.head);
      const [from, to] = [own * (heads / shared) + 1, (own + 1) * (heads / shared)];
      said.push(`Head ${state.head + 1} reads key head ${own + 1} of ${shared}, which heads ${from} to ${to} share.`);
    }
    return said.join(" ");
  }

  choice() {
    const element = make("div", "product-order", "order");
    const options = [
      ["stored", "as stored"],
      ["sorted", "largest |q × k| first"],
    ];
    const orders = choices("order of the components", options, (order) =>
      this.page.go({ sorted: order === "sorted" || undefined }),
    );
    element.append(orders.element);
    return { element, show: () => orders.show(this.page.state.sorted ? "sorted" : "stored") };
  }

  /** @param {number | null} place */
  onComponent(place) {
    this.place = place;
    this.mark();
    this.bubble(place, this.page.state.key);
  }

  /**
   * @param {"hover" | "pick"} event
   * @param {{ row: number, col?: number | null } | null} where
   */
  onKey(event, where) {
    const { page } = this;
    if (event === "pick" && where) return page.go({ key: where.row });
    this.place = where?.col ?? null;
    page.point(where && { row: page.state.query, col: where.row });
    this.bubble(this.place, where?.row);
  }

  /**
   * @param {number | null} place
   * @param {number | undefined} key
   */
  bubble(place, key) {
    if (place === null || key === undefined) return this.page.tip(null);
    const i = this.found.order[place];
    const { q, k, products } = this.found.all[key];
    const { texts, sign, result } = equation([q[i], k[i]], (a, b) => a * b, products[i], number, [number, operand]);
    this.page.tip(`${this.page.keys[key]}  component ${i}`, `${texts.join(" × ")} ${sign} ${result}`);
  }
}

/**
 * @param {string} piece
 * @param {string} role
 */
function token(piece, role) {
  const element = make("bdi", `role-${role}`, piece);
  element.style.whiteSpace = "pre";
  return element;
}
