// Attention painted over the words of the text: what the chosen token looks at, or what looks at it.
import { called } from "./axes.js";
import { endOf } from "./colours.js";
import { downward, measureOf, MEASURES, span, wayOf, weights } from "./over.js";
import { at, mountCells } from "../components/cells.js";
import { choices } from "../components/choices.js";
import { legend } from "../components/legend.js";
import { mount as mountPicture } from "../components/picture.js";
import { letters, mount as mountProse } from "../components/prose.js";
import { legible } from "../core/contrast.js";
import { make, range } from "../core/dom.js";
import { counted, number, percent } from "../core/format.js";
import { css, ramp, step } from "../core/palette.js";

/**
 * @typedef {import("./attention.js").Face} Face
 * @typedef {import("./over.js").Measure} Measure
 * @typedef {import("./over.js").Way} Way
 * @typedef {import("../core/store.js").Answers["text_average"]["arrays"]} Average
 * @typedef {"both" | "keys" | "rows" | "aside"} Role of a text: which axis its tokens are, or neither
 * @typedef {{ name: string, role: Role, pieces: string[], special: boolean[], roles?: string[] }} Text that is read or looked at
 * @typedef {{ view: ReturnType<typeof mountProse>, data: () => import("../components/prose.js").Prose, role: Role }} Written
 */

const FULL = 0.1; // the least weight at which the colour may be full, so that an even spread does not look like a peak
const PATIENCE = 300; // milliseconds without an answer after which it is said what is computed
const NAMED = 5; // of the largest weights, in words
const PICTURE = 420; // CSS pixels
const WAYS = [
  ["out", "what it looks at", "the row of the chosen token"],
  ["in", "what looks at it", "the column of the chosen token"],
];
const AVERAGED = { least: 6, most: 15 }; // CSS pixels of a cell of the average over many texts
const WIDEST = 470; // of its map
const BESIDE = 110; // what stands beside the cells
const LABEL = 13; // CSS pixels that a label needs
/** @type {Partial<Record<Measure, Record<Way, string>>>} */
const VERBS = {
  rollout: { out: " is mixed mostly from ", in: " goes mostly into " },
  flow: { out: " can get most from ", in: " can give most to " },
};

/**
 * @param {HTMLElement} root
 * @param {Face} page
 */
export function mount(root, page) {
  return new Over(root, page);
}

class Over {
  /** @type {Way} whether the chosen token looks, or is looked at */
  way;
  /** @type {Written[]} */
  texts;
  /** @type {ReturnType<typeof mountPicture> | null} */
  picture;
  /** @type {ReturnType<typeof legible>} */
  inks;
  /** @type {Uint32Array} the ramp of the weights */
  table;
  /** @type {(weight: number) => string} */
  spelled;
  /** @type {Float64Array} what is painted */
  line;
  /** @type {number} the weight at which the colour is full */
  top;
  /** @type {Average | undefined} */
  many;
  /** @type {string | undefined} of what the texts are */
  built;

  /**
   * @param {HTMLElement} root
   * @param {Face} page
   */
  constructor(root, page) {
    this.page = page;
    this.turn = 0;
    root.classList.add("over-text");
    this.measures = choices(
      "what is painted",
      MEASURES.map(([id, label]) => [id, label]),
      (over) => page.go({ over: over === "head" ? undefined : over }),
    );
    this.ways = choices("direction", WAYS, (way) => this.face(way));
    this.range = mountRange(page);
    this.definition = make("p", "over-meaning");
    this.body = make("div", "texts");
    this.average = make("div");
    this.averaged = mountAverage(this.average, page);
    this.said = make("p", "said-of");
    this.said.setAttribute("aria-live", "polite");
    this.key = make("div", "key-of");
    const bar = make("div", "over-bar");
    bar.append(this.measures.element, this.ways.element);
    const [text, about] = [
      [this.body, this.average],
      [this.key, this.said],
    ];
    const whose = [this.range.element, this.definition];
    root.append(bar, ...(page.line ? [...whose, ...about, ...text] : [...text, ...about, ...whose])); // under a long text nobody would see it
  }

  update() {
    const { page } = this;
    const [id, , definition] = measureOf(page);
    this.way = wayOf(page);
    this.measures.name("sentences", page.trace.grid ? "over many pictures" : "over many texts");
    this.measures.show(id);
    this.ways.show(this.way, downward(page) ? ["in"] : []);
    this.ways.element.hidden = id === "sentences";
    this.range.show(id);
    this.definition.textContent = definition(page);
    this.find(id);
  }

  /**
   * Draws at once what is here, and what has to be asked for when it comes; until then the old picture stays, paler.
   * @param {Measure} id
   */
  async find(id) {
    const turn = ++this.turn;
    const { page } = this;
    try {
      if (id === "sentences") {
        const { side, focus, layer, head } = page.state;
        this.wait();
        const { arrays } = await page.request({ ask: "text_average", side, focus, layer, head });
        if (turn === this.turn) this.show(() => this.averaged.show(arrays), true);
        if (turn === this.turn) this.many = arrays;
        if (turn === this.turn) this.definition.textContent += this.beyond(arrays.count.shape[0]);
        return;
      }
      const found = weights(page);
      if (found instanceof Promise) this.wait();
      const line = found instanceof Promise ? await found : found;
      if (turn === this.turn && this.way !== wayOf(page)) return this.update(); // the answer was that it cannot be asked this way
      if (turn === this.turn) this.ways.show(this.way, downward(page) ? ["in"] : []);
      if (turn === this.turn) this.show(() => this.draw(line, id), false);
    } catch (error) {
      if (turn !== this.turn) return;
      if (this.way !== wayOf(page))
        this.update(); // as above
      else this.fail(error.message, id);
    }
  }

  /** What is drawn until the answer comes is of another question: paler, and silent; a long wait says what it is for. */
  wait(waiting = true) {
    this.waiting = waiting;
    for (const part of [this.body, this.average]) part.classList.toggle("waiting", waiting);
    clearTimeout(this.patience);
    if (waiting) this.patience = setTimeout(() => this.telling(), PATIENCE);
  }

  telling() {
    const [id, label] = measureOf(this.page);
    const { grid, length } = this.page.trace;
    this.said.hidden = false;
    this.said.textContent =
      id === "sentences"
        ? `Reading many ${grid ? "pictures" : "texts"} …`
        : `Computing ${id === "head" ? "the weights" : `the ${label}`} of ${counted(length, "token")} …`;
  }

  /**
   * Of rows that have no average, because the texts are shorter than this one.
   * @param {number} rows
   */
  beyond(rows) {
    const { grid, length } = this.page.trace;
    return grid || rows >= length
      ? ""
      : ` Too few of them are longer than ${counted(rows, "token")}: later positions of this text have no average.`;
  }

  /**
   * @param {() => void} draw
   * @param {boolean} averaged
   */
  show(draw, averaged) {
    this.wait(false);
    this.body.hidden = averaged;
    this.average.hidden = !averaged;
    this.key.hidden = this.said.hidden = averaged;
    draw();
    this.mark();
  }

  /**
   * The text stays, unpainted: there may be an answer for another token of it.
   * @param {string} sentence
   * @param {Measure} id
   */
  fail(sentence, id) {
    const { page, way } = this;
    this.show(() => this.draw(new Float64Array(way === "out" ? page.keys.length : page.trace.length), id), false);
    this.ways.show(way, downward(page) ? ["in"] : []);
    this.key.hidden = true;
    this.said.textContent = sentence.charAt(0).toUpperCase() + sentence.slice(1);
  }

  /**
   * @param {Float64Array} line
   * @param {Measure} id
   */
  draw(line, id) {
    const { page } = this;
    this.line = line;
    this.spelled = id === "flow" ? number : percent;
    const { grid } = this;
    const most = grid ? Math.max(1e-9, ...line.slice(grid.offset)) : Math.max(FULL, ...line);
    this.top = endOf(page, `painted ${id}`, most);
    this.table = ramp(this.body, "attention", "unit");
    this.inks = legible(this.body);
    this.body.style.setProperty("--chosen", `var(--${this.way === "out" ? "query" : "key"})`);
    this.build();
    for (const { view, data } of this.texts) view.update(data());
    if (this.picture) this.paint();
    const { element } = legend(this.body, { role: "attention", scale: "unit", width: 120 });
    element.lastChild.textContent = `0 to ${this.spelled(this.top)}`;
    this.key.replaceChildren(element);
    this.said.replaceChildren(...this.summary());
  }

  /** The texts of this attention, or the picture; made again only when what is read is another. */
  build() {
    const { page } = this;
    const { trace, state } = page;
    const wanted = [trace.trace, trace.side, state.focus, page.narrow, page.width].join();
    if (wanted === this.built) return;
    this.built = wanted;
    this.body.replaceChildren();
    this.picture = null;
    this.texts = textsOf(page).map((text) => this.text(text));
    const { grid } = this;
    if (!grid) return;
    const place = this.body.appendChild(make("div", "over-picture"));
    this.picture = mountPicture(place, this.pictureData(grid), (event, where) => this.hear(event, where, "painted"));
  }

  /**
   * @param {Text} text
   * @returns {Written}
   */
  text({ name, role, pieces, special, roles }) {
    const { page } = this;
    const section = make("section", "text-of");
    if (name) section.append(make("h3", "", name));
    const place = section.appendChild(make("div"));
    this.body.append(section);
    const data = () => {
      const painted = role === "both" || role === (this.way === "out" ? "keys" : "rows");
      const chosen = role === "both" || role === (this.way === "out" ? "rows" : "keys");
      /** @param {number} i */
      const weight = (i) => (painted ? this.line[i] : 0);
      return {
        name: name || "the text; arrow keys choose a token",
        pieces,
        special,
        roles,
        size: letters(page.trace.length, page.narrow),
        chosen: chosen ? this.chosen : null,
        paint: (/** @type {number} */ i) => (weight(i) > 0 ? this.tone(weight(i)) : null),
        quiet: (/** @type {number} */ i) => painted && weight(i) === 0,
      };
    };
    const view = mountProse(place, data(), (event, where) => role !== "aside" && this.hear(event, where, role));
    return { view, data, role };
  }

  /** Of the picture, where what is read is one. */
  get grid() {
    const { trace } = this.page;
    return trace.arrays.picture ? trace.grid : null;
  }

  get chosen() {
    return this.page.state[this.way === "out" ? "query" : "key"];
  }

  /** @param {number} weight */
  tone(weight) {
    const index = step(weight, "unit", this.top);
    return { ground: css(this.table[index]), ink: this.inks(this.table[index]) };
  }

  /** @param {import("../components/picture.js").Grid} grid */
  pictureData(grid) {
    const { trace } = this.page;
    return {
      picture: trace.arrays.picture,
      grid: { ...grid, predicts: grid.predicts && this.way === "out" },
      weights: Float32Array.from(this.line),
      top: this.top,
      query: this.chosen,
      width: Math.min(PICTURE, this.page.width - 20),
    };
  }

  paint() {
    this.body.querySelector(".over-picture").classList.toggle("of-key", this.way === "in");
    const { grid } = this;
    if (grid) this.picture?.update(this.pictureData(grid));
    this.body.querySelector(".over-picture canvas").setAttribute("aria-label", this.sentence());
  }

  /**
   * @param {"hover" | "pick"} event
   * @param {{ row: number } | null} where
   * @param {Role | "painted"} role
   */
  hear(event, where, role) {
    const { page } = this;
    if (event === "pick" && where) return this.choose(where.row, role);
    if (!where || this.waiting) {
      page.point(null);
      return page.tip(null);
    }
    const paints = role === "both" || role === "painted" || role === (this.way === "out" ? "keys" : "rows");
    if (!paints) return page.tip(null);
    const [row, col] = this.way === "out" ? [this.chosen, where.row] : [where.row, this.chosen];
    page.point({ row, col });
    page.tip(
      `${page.trace.pieces[row]} → ${page.trace.keys(page.state.focus)[col]}`,
      this.spelled(this.line[where.row]),
    );
  }

  /**
   * A click on the other text turns around: what looks at this one?
   * @param {number} row
   * @param {Role | "painted"} role
   */
  choose(row, role) {
    const way = role === "rows" ? "out" : role === "keys" ? "in" : this.way;
    const turned = way !== this.way && !downward(this.page) ? { way: way === "in" ? "in" : undefined } : {};
    this.page.go({ [way === "out" ? "query" : "key"]: row, ...turned });
  }

  /**
   * Of one text the same token stays chosen.
   * @param {string} way
   */
  face(way) {
    const { state } = this.page;
    const same =
      state.focus === "cross_attn" || way === this.way
        ? {}
        : way === "in"
          ? { key: state.query }
          : { query: state.key };
    this.page.go({ way: way === "in" ? "in" : undefined, ...same });
  }

  largest() {
    const order = range(0, this.line.length).filter((i) => this.line[i] > 0);
    return order.sort((a, b) => this.line[b] - this.line[a]).slice(0, NAMED);
  }

  summary() {
    const { trace, state } = this.page;
    const [own, others] =
      this.way === "out" ? [trace.pieces, trace.keys(state.focus)] : [trace.keys(state.focus), trace.pieces];
    const verb =
      VERBS[measureOf(this.page)[0]]?.[this.way] ?? (this.way === "out" ? " looks most at " : " is looked at most by ");
    const parts = this.largest().flatMap((i, n) => [
      n ? ", " : "",
      make("bdi", "", called(trace, others[i])),
      ` ${this.spelled(this.line[i])}`,
    ]);
    const name = make("bdi", "", called(trace, own[this.chosen]));
    return parts.length
      ? [name, verb, ...parts]
      : [name, this.way === "out" ? " looks at nothing" : " is looked at by nothing"];
  }

  sentence() {
    return this.summary()
      .map((part) => part.textContent ?? part)
      .join("");
  }

  mark() {
    const { hover } = this.page;
    for (const { view, role } of this.texts ?? []) view.mark(role === "aside" ? null : marked(role, hover, this.way));
  }

  destroy() {
    this.turn++;
    clearTimeout(this.patience);
    this.page.tip(null);
  }
}

/**
 * The row of a text that a pointed-at cell {row, col} names: of one text, the one that is not chosen.
 * @param {Role} role
 * @param {Face["hover"]} hover
 * @param {Way} way
 */
function marked(role, hover, way) {
  if (!hover) return null;
  if (role === "both") return way === "out" ? hover.col : hover.row;
  return role === "keys" ? hover.col : hover.row;
}

/**
 * What is read and looked at: {name, role, pieces, special}; of a picture only what stands before it is text.
 * @param {Face} page
 * @returns {Text[]}
 */
function textsOf({ trace, state }) {
  const { pieces, special, roles, grid, source } = trace;
  if (grid && trace.arrays.picture) return [{ name: "", role: "both", pieces: pieces.slice(0, grid.offset), special }];
  if (!trace.side) return [{ name: "", role: "both", pieces, special, roles }];
  /** @type {Text} */
  const own = { name: trace.called, role: state.focus === "cross_attn" ? "rows" : "both", pieces, special };
  if (state.focus === "cross_attn" && source)
    return [{ name: "source", role: "keys", pieces: source.pieces, special: source.special }, own];
  const other = trace.side === "encoder" ? "decoder" : "encoder";
  const lane = trace.lanes[other];
  if (!lane) return [own];
  /** @type {Text} */
  const beside = {
    name: other === "encoder" ? "source" : "target",
    role: "aside",
    pieces: lane.pieces,
    special: lane.special,
  };
  return other === "encoder" ? [beside, own] : [own, beside];
}

// --- from where to where attention is rolled out, and whose ---

/**
 * From which block to which a rollout goes, and whether of one head: {element, show(id)}: of the measure of that name.
 * @param {Face} page
 */
function mountRange(page) {
  const element = make("div", "blocks-of");
  const blocks = element.appendChild(make("div", "blocks-of"));
  /**
   * @param {string} name
   * @param {0 | 1} at
   * @param {(block: number) => { first: number, last: number }} change
   */
  const pick = (name, at, change) => {
    const select = make("select");
    select.setAttribute("aria-label", `${name} block`);
    select.addEventListener("change", () => page.go(change(Number(select.value))));
    blocks.append(make("span", "", name), select);
    return (/** @type {number[]} */ value, /** @type {number} */ count) => {
      if (select.length !== count)
        select.replaceChildren(...range(0, count).map((i) => Object.assign(make("option", "", i + 1), { value: i })));
      select.value = String(value[at]);
    };
  };
  const current = () => span(page.state, page.trace);
  const first = pick("from", 0, (start) => ({ first: start, last: Math.max(start, current()[1]) }));
  const last = pick("to", 1, (end) => ({ last: end, first: Math.min(end, current()[0]) }));
  const heads = choices(
    "heads that count",
    [
      ["all", "heads averaged"],
      ["one", "this head"],
    ],
    (which) => page.go({ alone: which === "one" || undefined }),
  );
  element.append(heads.element);
  /** @param {Measure} id */
  const show = (id) => {
    element.hidden = id !== "rollout" && id !== "layers";
    blocks.hidden = id !== "rollout";
    for (const one of [first, last]) one(current(), page.trace.model.layers);
    heads.show(page.state.alone ? "one" : "all");
  };
  return { element, show };
}

// --- one head averaged over many texts, as a small map: positions down and across, and how many texts stand behind each row ---

/**
 * data = {pattern, count} of the server's answer; `show` draws them.
 * @param {HTMLElement} root
 * @param {Face} page
 */
function mountAverage(root, page) {
  root.classList.add("average");
  /** @param {Average} answer */
  const draw = (answer) => {
    const [rows, cols] = answer.pattern.shape;
    const block = { data: answer.pattern.data, offset: 0, stride: cols, rows, cols };
    const pitch = Math.floor(
      Math.max(AVERAGED.least, Math.min(AVERAGED.most, Math.min(WIDEST, page.width - BESIDE) / cols)),
    );
    const every = Math.ceil(LABEL / pitch);
    const cells = make("div");
    const top = endOf(
      page,
      "averaged",
      Math.max(0.1, ...answer.pattern.data.filter((/** @type {number} */ weight) => weight <= 1)),
    );
    const data = {
      block,
      role: "attention",
      scale: /** @type {const} */ ("unit"),
      max: top,
      width: pitch * cols,
      pitch,
      height: pitch - 1,
      label: `attention from ${counted(rows, "position")} to ${cols}, averaged`,
    };
    root.replaceChildren(cells); // where the colours are
    mountCells(cells, data, (event, where) => event === "hover" && said(answer, block, where));
    /**
     * @param {string} name
     * @param {(row: number) => string | number} text
     * @param {string} role
     */
    const numbers = (name, text, role) => {
      const column = make("div", `numbers ${role}`);
      for (const row of range(0, rows)) column.append(make("span", "", row % every ? "" : text(row)));
      column.style.setProperty("--pitch", `${pitch}px`);
      const whole = make("div", "numbered");
      whole.append(make("small", "", name), column);
      return whole;
    };
    const middle = make("div", "numbered");
    const key = legend(root, { role: "attention", scale: "unit", width: 120 }).element;
    key.lastChild.textContent = `0 to ${percent(top)}`;
    middle.append(make("small", "", `to position 1 … ${cols}`), cells, key);
    root.replaceChildren(
      numbers("from", (row) => row + 1, "as-query"),
      middle,
      numbers(page.trace.grid ? "pictures" : "texts", (row) => answer.count.data[row].toLocaleString("en"), "counts"),
    );
  };
  /**
   * @param {Average} answer
   * @param {Block} block
   * @param {import("../components/cells.js").Where | null} where
   */
  const said = (answer, block, where) => {
    if (!where) return page.tip(null);
    const texts = answer.count.data[where.row].toLocaleString("en");
    page.tip(
      `position ${where.row + 1} → position ${where.col + 1}, mean of ${texts} ${page.trace.grid ? "pictures" : "texts"}`,
      percent(at(block, where.row, where.col)),
    );
  };
  return { show: draw };
}
