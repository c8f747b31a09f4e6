// The probe at one step: what the model that has learned so far makes of one example, its heads, its answers and what they cost.
// Ours, because it follows the handle through every step without a message to the server.
import { map } from "../compare/map.js";
import { at } from "../components/cells.js";
import { choices } from "../components/choices.js";
import * as headgrid from "../components/headgrid.js";
import { legend } from "../components/legend.js";
import { make, pencil } from "../core/dom.js";
import { percent } from "../core/format.js";
import { css, ramp, step } from "../core/palette.js";
import { signal } from "../vendor/signals-core.js";
import { axis, holds, isPicture, kindOf, masked, most, pattern, positionOf, rowOf } from "./frames.js";
import { brightness, inks, next, words, writing } from "./probe_answers.js";
import { form } from "./probe_form.js";
import { picture } from "./probe_picture.js";

/**
 * @import { Hidden } from "../components/cells.js"
 * @import { Emit } from "../components/headgrid.js"
 * @import { Heard, Mapped, Name } from "../compare/map.js"
 * @import { Attention, AttentionKey, Frame } from "./run.js"
 * @import { Page } from "./train.js"
 */

/**
 * @typedef {{ block: Block, max: number, rows: Name[], cols: Name[], hidden: Hidden }} HeadMap
 * @typedef {HeadMap & { role?: string, scale?: Scale, label?: string, say?: (r: number, c: number) => string }} DrawnMap
 * @typedef {{ key: string, name: string, title: string, value: number, text: string }} Score of a head
 */

const GAP = 20; // CSS pixels between all heads and the one
const [FRAME, THUMBNAIL] = [26, 53]; // CSS pixels around all heads and of each where they stand beside the one
const TALLER = 160; // CSS pixels by which the example may reach below the curves before its answers stand under them
const FIGURE = 100; // CSS pixels that a picture needs beside the heads

/**
 * The example and its heads stand in `root`, what the model answers below it in `answer`.
 * @param {HTMLElement} root
 * @param {Page} page
 * @param {HTMLElement} answer
 */
export function mount(root, page, answer) {
  return new Probe(root, page, answer);
}

class Probe {
  /** of the map, where no position of the answer belongs to its rows */
  row = signal(/** @type {number | null} */ (null));
  /** @type {string} the sizes with which the place of the answers was found */
  stood;

  /**
   * @param {HTMLElement} root
   * @param {Page} page
   * @param {HTMLElement} answer
   */
  constructor(root, page, answer) {
    this.root = root;
    this.page = page;
    this.answer = answer;
    this.width = page.memoize(() => root.clientWidth); // CSS pixels
    this.redraw = page.memoize(() => this.show());
    /** @param {number} row */
    const pick = (row) => this.pick(row);
    const title = make("div", "probe-title");
    this.step = make("span");
    title.append(make("h2", "", "One example"), this.step);
    this.parts = {
      form: form(page),
      choice: choice(page),
      heads: heads(page),
      map: headMap(page, pick),
      picture: picture(page, pick),
      words: words(page),
      written: writing(page),
      next: next(page),
    };
    const {
      form: fields,
      choice: chosen,
      heads: all,
      map,
      picture: pixels,
      words: read,
      written,
      next: likely,
    } = this.parts;
    this.seen = make("div", "probe-seen");
    const pictures = make("div", "probe-pictures");
    pictures.append(all.element, pixels.element, map.element);
    this.scores = make("div", "probe-scores");
    this.said = make("div", "answer-said");
    this.said.append(read.element, written.element);
    answer.append(this.said, likely.element);
    this.seen.append(chosen.element, pictures, this.scores);
    this.nothing = make("p", "probe-cost");
    root.append(title, fields.element, this.nothing, this.seen);
  }

  destroy() {
    this.root.replaceChildren();
    this.answer.replaceChildren();
  }

  mark() {}

  update() {
    this.parts.form.update();
    this.redraw();
  }

  show() {
    const { page } = this;
    const attention = page.attentions.find(({ key }) => key === page.state.attention) ?? page.attentions.at(-1);
    const { frame } = page;
    const there = frame !== null && attention !== undefined && holds(frame, attention.key);
    this.seen.hidden = this.answer.hidden = !there;
    this.nothing.hidden = there;
    if (!there) this.missing();
    else this.draw(frame, attention);
  }

  missing() {
    const { probe, frame } = this.page;
    this.step.textContent = "";
    this.nothing.textContent = probe?.error
      ? ""
      : frame
        ? "This model has no attention to look at."
        : "Nothing has been seen of it yet: the first look comes when training begins.";
  }

  /**
   * @param {Frame} frame
   * @param {Attention} attention
   */
  draw(frame, attention) {
    const { page, parts } = this;
    const chosen = this.row.value;
    const kind = kindOf(page, frame);
    const at = positionOf(page, frame, kind);
    const shown = headOf(page, frame, attention);
    const row =
      rowOf(page, frame, attention, at) ??
      (chosen !== null && chosen < shown.rows.length ? chosen : isPicture(page) ? 0 : null);
    const losses = most(page);
    this.step.textContent = `at step ${frame.step.toLocaleString("en")}`;
    parts.choice.update(attention);
    const [grid, room] = this.rooms(attention, shown);
    parts.heads.update(frame, attention, grid);
    parts.map.update(shown, room, row);
    this.name(frame, attention);
    parts.picture.update(frame, kind, shown, row ?? 0, losses, this.beside(attention));
    parts.words.update(frame, kind, at, attention, losses);
    this.said.hidden = kind === "class" || kind === "pixels";
    this.stand([page.edition, this.width(), attention.key, shown.rows.length, kind].join());
    parts.written.update(frame, kind, at, losses, this.said.clientWidth);
    parts.next.update(frame, kind, at, attention);
  }

  /**
   * The answers stand in a line below both columns, or under the curves where the example is much taller than these. Measured only
   * where something of another size is shown, so that nothing jumps while a model learns.
   * @param {string} sizes
   */
  stand(sizes) {
    if (sizes === this.stood) return;
    this.stood = sizes;
    const { previousElementSibling: curves } = this.root;
    const taller = curves instanceof HTMLElement && this.root.offsetHeight > curves.offsetHeight + TALLER;
    this.answer.classList.toggle("under", taller && !this.page.narrow);
  }

  /**
   * The widths of all heads and of the map: beside each other where the map loses nothing by it.
   * @param {Attention} attention
   * @param {HeadMap} shown
   */
  rooms({ heads: count }, shown) {
    const width = this.width();
    const wanted = FRAME + count * THUMBNAIL;
    const left = width - wanted - GAP;
    return left >= widest(shown) ? [wanted, left] : [width, width];
  }

  /**
   * The room for a picture: that beside all heads, or a line of its own.
   * @param {Attention} attention
   */
  beside({ heads: count }) {
    const left = this.width() - FRAME - count * (THUMBNAIL + 14) - GAP;
    return left >= 2 * FIGURE + GAP ? left : this.width();
  }

  /**
   * @param {Frame} frame
   * @param {Attention} attention
   */
  name(frame, attention) {
    const { layer, head } = this.page.state;
    const found = scoresOf(frame, attention, layer, head);
    if (this.scores.children.length !== found.length) this.scores.replaceChildren(...found.map(() => make("span")));
    found.forEach(({ name, text, title }, i) => {
      const one = this.scores.children[i];
      if (one.dataset.name !== name) {
        Object.assign(one, { title });
        one.dataset.name = name;
        one.replaceChildren(`${name} `, make("b"));
      }
      one.lastChild.textContent = text;
    });
  }

  /**
   * A row of the map is chosen: a position of the answer, or where it has none, just a row.
   * @param {number} row
   */
  pick(row) {
    const { page } = this;
    const attention = page.attentions.find(({ key }) => key === page.state.attention);
    if (page.frame && attention && rowOf(page, page.frame, attention, row) !== null) return page.go({ position: row });
    this.row.value = row;
    this.update();
  }
}

// --- which head is looked at: one attention of several, and arrows to its block and head -----------------------------------------

/**
 * {element, update(attention)}: a press is `page.go`.
 * @param {Page} page
 */
function choice(page) {
  const element = make("div", "probe-choice");
  const place = make("div");
  const [block, head] = [turns(page, "block", "layer", "layers"), turns(page, "head", "head", "heads")];
  element.append(place, block.element, head.element);
  let offered = "";
  /** @type {ReturnType<typeof choices> | undefined} */
  let pressed;
  /** @param {Attention} attention */
  const update = (attention) => {
    const keys = page.attentions.map(({ key }) => key).join();
    if (!pressed || keys !== offered) {
      offered = keys;
      pressed = choices(
        "which attention",
        page.attentions.map(({ key, title }) => [key, title]),
        (chosen) => page.go({ attention: page.attentions.find(({ key }) => key === chosen)?.key }),
      );
      place.replaceChildren(pressed.element);
      place.hidden = page.attentions.length < 2;
    }
    pressed.show(attention.key);
    block.show(page.state.layer, attention);
    head.show(page.state.head, attention);
  };
  return { element, update };
}

/**
 * @param {Page} page
 * @param {string} name
 * @param {"layer" | "head"} entry
 * @param {"layers" | "heads"} many
 */
function turns(page, name, entry, many) {
  const element = make("span", "turns");
  const text = make("span", "number");
  let all = 1;
  /**
   * @param {string} sign
   * @param {number} by
   * @returns {HTMLButtonElement}
   */
  const button = (sign, by) => {
    const one = make("button", "turn", sign);
    one.type = "button";
    one.setAttribute("aria-label", by < 0 ? `the ${name} before` : `the next ${name}`);
    one.addEventListener("click", () => {
      const turned = (page.state[entry] + by + all) % all;
      page.go(entry === "layer" ? { layer: turned } : { head: turned });
    });
    return one;
  };
  const [before, after] = [button("‹", -1), button("›", 1)];
  element.append(before, text, after);
  /**
   * @param {number} i
   * @param {Attention} attention
   */
  const show = (i, attention) => {
    all = attention[many];
    text.textContent = `${name} ${i + 1} of ${all}`;
    before.disabled = after.disabled = all < 2;
  };
  return { element, show };
}

// --- all heads of one attention as thumbnails: while it learns only the pictures change, the buttons stay ------------------------

const THUMB = { most: 58, least: 22, tall: 236, dense: 80, around: 26, between: 9 }; // CSS pixels; `tall` are all of them

/**
 * {element, update(frame, attention, room)}: `room` is the most that they may take of the page's width, CSS pixels.
 * @param {Page} page
 */
function heads(page) {
  const element = make("div", "probe-heads");
  /** @type {Emit} */
  const heard = (_, { layer, head }) => page.go({ layer, head });
  /** @type {ReturnType<typeof headgrid.mount> | undefined} */
  let grid;
  let built = "";
  /** @type {{ frame: Frame, attention: Attention } | undefined} */
  let drawn;

  /** @param {PointerEvent} event */
  const pointed = (event) => {
    const button = event.target instanceof Element ? event.target.closest("button") : null;
    if (!button || !drawn) return page.tip(null);
    const [layer, head] = [Number(button.dataset.layer), Number(button.dataset.head)];
    const said = scoresOf(drawn.frame, drawn.attention, layer, head).map(({ name, text }) => `${name} ${text}`);
    page.tip(`block ${layer + 1}, head ${head + 1}`, said.slice(0, 4).join(" · "));
  };
  element.addEventListener(
    "pointerover",
    (/** @type {PointerEvent} */ event) => event.pointerType !== "touch" && pointed(event),
  );
  element.addEventListener("pointerleave", () => page.tip(null));

  /**
   * @param {Frame} frame
   * @param {Attention} attention
   * @param {number} room
   */
  const update = (frame, attention, room) => {
    const { layers, heads: count, key } = attention;
    /**
     * @param {number} layer
     * @param {number} head
     */
    const of = (layer, head) => pattern(frame, key, layer, head);
    const { block } = of(0, 0);
    const across = Math.floor((room - THUMB.around) / count) - THUMB.between;
    const cells = Math.max(block.rows, block.cols);
    const fitting = Math.max(
      THUMB.least,
      Math.min(THUMB.most, across, Math.floor(THUMB.tall / layers) - THUMB.between),
    );
    const side = cells > fitting && cells <= Math.min(across, THUMB.dense) ? cells : fitting;
    const structure = [page.edition, key, layers, count, side, block.rows, block.cols].join();
    const { layer, head } = page.state;
    const data = { layers, heads: count, side, pattern: of, layer, head };
    if (!grid || structure !== built) {
      const place = make("div");
      element.replaceChildren(place);
      grid = headgrid.mount(place, data, heard);
      built = structure;
    } else if (drawn?.frame !== frame) grid.update(data);
    drawn = { frame, attention };
    grid.mark({ layer, head });
  };
  return { element, update };
}

// --- what is measured of each head on the probe, under the names that people have for it -----------------------------------------

/** @type {Record<AttentionKey, string>} */
const SIDES = { attn: "", encoder: "encoder.", cross_attn: "cross." };

/**
 * [key, name, unit, what it is]: engine.analysis.heads, and for translators that copy or reverse engine.training.probe_frame.
 * @type {[key: string, name: string, unit: "share" | "bits" | "tokens", title: string][]}
 */
const NAMES = [
  ["aligned", "same place", "share", "attention to the source’s token at the same place"],
  ["mirrored", "same place from the end", "share", "attention to the source’s token that is as far from its end"],
  ["previous", "previous token", "share", "attention to the token just before"],
  [
    "induction",
    "induction",
    "share",
    "attention to what followed an earlier occurrence of the token; of a model that reads from left to right, " +
      "on a random sequence read twice",
  ],
  ["duplicate", "same token", "share", "attention to other occurrences of the same token"],
  [
    "strongest",
    "strongest",
    "share",
    "the largest share that goes to one token of the source, averaged over the target",
  ],
  ["first", "first token", "share", "attention to the first token"],
  ["last", "last token", "share", "attention to the last token of the source"],
  ["own", "own place", "share", "attention to the position itself"],
  ["entropy", "entropy", "bits", "0 for one key, log₂ n for n keys alike"],
  ["distance", "distance", "tokens", "how far away the attended keys stand, on average"],
];

/**
 * [{key, name, text, title, value}] of one head, without what is not defined on this example.
 * @param {Frame} frame
 * @param {Attention} attention
 * @param {number} layer
 * @param {number} head
 * @returns {Score[]}
 */
function scoresOf({ arrays }, attention, layer, head) {
  return NAMES.flatMap(([key, name, unit, title]) => {
    const array = arrays[`scores.${SIDES[attention.key]}${key}`];
    const value = array?.data[layer * array.shape[1] + head] ?? NaN;
    if (Number.isNaN(value)) return [];
    return [{ key, name, title, value, text: unit === "share" ? percent(value) : `${value.toFixed(2)} ${unit}` }];
  });
}

// --- one head at one step, large: a row for each position that looks, a column for each that is looked at ------------------------

const CELL = { least: 3, most: 34 }; // CSS pixels

/**
 * What a map of one head shows: {rows, cols, block, max, hidden}, for `draw`.
 * @param {Page} page
 * @param {Frame} frame
 * @param {Attention} attention
 * @returns {HeadMap}
 */
export function headOf(page, frame, attention) {
  const { layer, head } = page.state;
  const [rows, cols] = [axis(page, frame, attention, "rows"), axis(page, frame, attention, "columns")];
  /** @param {ReturnType<typeof axis>} named */
  const listed = ({ pieces, special }) => pieces.map((label, i) => ({ label, special: special[i] }));
  return {
    ...pattern(frame, attention.key, layer, head),
    rows: listed(rows),
    cols: listed(cols),
    hidden: masked(page, frame, attention.key),
  };
}

/**
 * {element, update(shown, width, row)}: `shown` of `headOf`, with `role` and `scale` where it is no pattern; `row` is the chosen one.
 * `pick(row)` is called for a row that is chosen. `say(r, c)` is what stands in a cell, in words.
 * @param {Page} page
 * @param {(row: number) => unknown} pick
 */
export function headMap(page, pick) {
  /** @type {HTMLElement} */
  const element = make("div", "probe-map");
  /** @type {(HeadMap & Required<Pick<DrawnMap, "say">>) | undefined} */
  let shown;
  /** @type {number | null} */
  let chosen = null;
  /** @type {{ row: number | null, col: number | null } | null} */
  let over = null;
  /** @type {Heard} */
  const heard = (event, where) => {
    if (!shown) return;
    if (event === "pick") return where.row !== null && pick(where.row);
    if (event === "step")
      return chosen !== null && where.row && pick(Math.max(0, Math.min(shown.rows.length - 1, chosen + where.row)));
    over = where;
    mark();
    if (!where || where.row === null || where.col === null) return page.tip(null);
    page.tip(`${shown.rows[where.row].label} → ${shown.cols[where.col].label}`, shown.say(where.row, where.col));
  };
  const drawn = map(element, heard);
  const colours = make("div");
  element.append(colours);
  const explain = page.memoize((/** @type {string} */ role, /** @type {Scale} */ scale) => {
    colours.replaceChildren(legend(page.element, { role, scale, width: 72 }).element);
  });

  const mark = () => drawn.mark(over ? over.row : chosen, over ? over.col : null, Boolean(over));
  /**
   * @param {DrawnMap} next
   * @param {number} width
   * @param {number | null} row
   */
  const update = (next, width, row) => {
    shown = { ...next, say: next.say ?? ((r, c) => spoken(next, r, c)) };
    chosen = row;
    const { scale = "unit", role = "attention", max } = next;
    const data = { ...next, scale, role, width, label: next.label ?? labelOf(page, next), written: null };
    const wide = Math.max(CELL.least, Math.min(CELL.most, Math.floor(10 * drawn.room(data)) / 10));
    drawn.update(data, wide);
    const canvas = element.querySelector("canvas");
    if (canvas) writeShares(canvas, element, { ...data, wide }, scale === "unit" ? max : 1);
    mark();
    explain(role, scale);
    const text = colours.querySelector(".legend-text");
    const said = scale === "unit" ? "0 to 100\u00a0% of the row" : `±${percent(max)}`;
    if (text.textContent !== said) text.textContent = said;
  };
  return { element, update };
}

/**
 * How wide a map would be whose cells are as large as they may be.
 * @param {HeadMap} shown
 */
export function widest(shown) {
  return shown.cols.length * CELL.most + 84;
}

/**
 * A byte stands for a weight to within 1 in 510.
 * @param {HeadMap} shown
 * @param {number} r
 * @param {number} c
 */
function spoken({ block, hidden }, r, c) {
  return hidden?.(r, c) ? "masked" : `≈ ${((100 * at(block, r, c)) / 255).toFixed(0)}\u00a0%`;
}

/**
 * @param {Page} page
 * @param {HeadMap} shown
 */
function labelOf(page, { rows, cols }) {
  const { layer, head } = page.state;
  const what = isPicture(page) ? "places of the picture" : "tokens";
  return `block ${layer + 1} head ${head + 1}: ${rows.length} by ${cols.length} ${what}`;
}

// --- what is written into its cells: whole percents, since a frame knows a weight to within 1 in 510 -----------------------------

const READABLE = 22; // CSS pixels from which on a cell holds its number
const FONT = { least: 10, most: 13, share: 0.38 }; // CSS pixels, and of a cell's width

/**
 * Writes into a canvas that cells.js has just painted: `unit` is what a block's number is of 100 %, `signed` says the sign too.
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLElement} root
 * @param {Mapped & { wide: number }} data
 * @param {number} unit
 */
function writeShares(canvas, root, { block, role, scale, max, hidden, wide }, unit) {
  if (wide < READABLE) return;
  const context = pencil(canvas);
  const dpr = window.devicePixelRatio || 1;
  context.setTransform(dpr, 0, 0, dpr, 0, 0);
  context.font = `${Math.max(FONT.least, Math.min(FONT.most, wide * FONT.share))}px ${getComputedStyle(root).getPropertyValue("--mono")}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const table = ramp(root, role, scale);
  const choose = inks(root);
  for (let r = 0; r < block.rows; r++) {
    for (let c = 0; c < block.cols; c++) {
      if (hidden?.(r, c)) continue;
      const value = at(block, r, c);
      context.fillStyle = choose(brightness(css(table[step(value, scale, max)]))).colour;
      context.fillText(
        formatPercent((100 * value) / unit, scale === "signed"),
        (c + 0.5) * wide,
        (r + 0.5) * wide + 0.5,
        wide - 2,
      );
    }
  }
}

/**
 * @param {number} percents
 * @param {boolean} signed
 */
function formatPercent(percents, signed) {
  const size = Math.round(Math.abs(percents));
  return `${percents < 0 && size ? "−" : signed && size ? "+" : ""}${size}`;
}
