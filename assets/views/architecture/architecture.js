// A model drawn as its blocks, or two side by side; pointing at a block shows its parameters and their formulas.
import * as address from "../core/address.js";
import { make } from "../core/dom.js";
import { View } from "../core/shell.js";
import { formula } from "../core/formula.js";
import { pageTop, windowSize } from "../core/place.js";
import { drawStack, svg } from "../components/stack.js";

/**
 * @typedef {{ name: string, block: string, role: string, each: number | null, tex: string, numbers: string, count: number }} Part
 * @typedef {{ name: string, total: number, stacks: import("../components/stack.js").Stack[], ends: import("../components/stack.js").Ends,
 *   parts: Part[] }} Model
 * @typedef {{ models: Model[], marked: string[], source?: string }} Drawings
 * @typedef {{ model: number, block: string }} Target
 * @typedef {ReturnType<typeof drawStack>} Drawn
 */

const PANEL = { one: 380, two: 290 }; // CSS pixels that the panel takes beside the drawing of so many stacks
const LEAST = 250; // of a stack that has others beside it
const SHRINK = 0.86; // at most, so that the whole picture stands in the window
const WIDEST = 440; // of one stack
export const BETWEEN = 34; // the two stacks of a model
const APART = 56; // two models, as .drawing has it
const ASIDE = 22; // a decoder above its encoder leaves for what comes from it
const FIRST = "attn";
/** @type {Record<string, number>} upward through the targets */
const STEPS = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 };

/**
 * data = {models: [{name, total, stacks, ends, parts}], marked, source}, of views/architecture/architecture.py.
 * @param {HTMLElement} root
 * @param {Drawings} data
 */
export function mount(root, data) {
  const page = new Architecture(root);
  page.update(data);
  return page;
}

/** @extends {View<Drawings>} */
class Architecture extends View {
  /** @param {HTMLElement} root */
  constructor(root) {
    super(root, "architecture");
    this.drawing = make("div", "drawing");
    this.panel = make("section", "panel");
    this.panel.setAttribute("aria-live", "polite");
    this.shares = make("div", "shares");
    this.element.append(this.drawing, this.panel, this.shares);
    this.chosen = { model: 0, block: address.read().block ?? FIRST };
    this.element.addEventListener("pointerover", (/** @type {Event} */ event) => this.show(found(event)));
    this.element.addEventListener("pointerleave", () => this.show(null));
    this.element.addEventListener("click", (/** @type {Event} */ event) => this.choose(found(event)));
    this.element.addEventListener("focusin", (/** @type {Event} */ event) => this.choose(found(event)));
    this.element.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.key(event));
  }

  /** @param {Drawings} data */
  update(data) {
    this.data = data;
    if (this.chosen.model >= data.models.length || !this.rows(this.chosen).length)
      this.chosen = { model: 0, block: this.nearest() };
    this.measure();
  }

  /** A block of the first model like the chosen one, so that a change of model keeps what is looked at. */
  nearest() {
    const last = this.chosen.block.split(".").at(-1);
    const blocks = this.data.models[0].parts.map((part) => part.block);
    return (
      blocks.find((block) => block.split(".").at(-1) === last) ??
      blocks.find((block) => block.endsWith(FIRST)) ??
      blocks[0]
    );
  }

  refresh() {
    const { models } = this.data;
    const focused = this.element.getRootNode().activeElement?.dataset?.block;
    const stacks = models.reduce((count, model) => count + model.stacks.length, 0);
    const panel = stacks > 1 ? PANEL.two : PANEL.one;
    const gaps = (models.length - 1) * APART + (stacks - models.length) * BETWEEN;
    /** @param {number} room */
    const each = (room) => Math.floor((room - gaps) / stacks) - 1; // less than there is: widths are rounded
    const beside = each(this.across - panel - 28) >= LEAST;
    this.element.classList.toggle("beside", beside);
    this.element.style.setProperty("--panel-width", `${panel}px`);
    const room = this.across - (beside ? panel + 28 : 0);
    this.stacked = each(room) < LEAST; // a phone: models one above the other
    const wide = this.stacked ? room : Math.min(WIDEST, each(room));
    const drawn = models.map((model) => this.draw(model, wide));
    const scale = this.scale(Math.max(...drawn.flat().map((stack) => stack.height)));
    this.drawing.replaceChildren(...models.map((model, i) => this.model(model, i, wide, drawn[i], scale)));
    this.bar();
    this.element.dataset.ready = "true";
    this.show(null);
    if (focused) this.element.querySelector(`[data-block="${focused}"]`)?.focus({ preventScroll: true });
  }

  /**
   * @param {Model} model
   * @param {number} wide
   */
  draw(model, wide) {
    return drawStacks(model, wide, this.stacked, new Set(this.data.models.length > 1 ? this.data.marked : []));
  }

  /**
   * @param {Model} model
   * @param {number} index
   * @param {number} wide
   * @param {Drawn[]} drawn
   * @param {number} scale
   */
  model(model, index, wide, drawn, scale) {
    const figure = make("figure", "model");
    figure.dataset.model = index;
    figure.style.maxWidth = `${drawn.length * wide + (drawn.length - 1) * BETWEEN}px`;
    const caption = make("figcaption");
    caption.classList.toggle("two-lines", this.data.models.length > 1);
    caption.append(
      make("strong", "", model.name),
      make("span", "total", `${model.total.toLocaleString("en")} parameters`),
    );
    figure.append(
      caption,
      this.stacked && drawn.length > 1 ? pile(model, drawn, wide) : assemble(model, drawn, wide, scale),
    );
    return figure;
  }

  /**
   * So that what stands below the caption is in the window whole, if that takes no more than SHRINK.
   * @param {number} height
   */
  scale(height) {
    const room = windowSize().height - pageTop(this.element) - 52;
    return this.stacked ? 1 : Math.max(SHRINK, Math.min(1, room / height));
  }

  /** @param {Target} target */
  rows({ model, block }) {
    return this.data.models[model].parts.filter((part) => part.block === block);
  }

  /** @param {Target | null} target */
  choose(target) {
    if (!target) return;
    this.chosen = target;
    address.write({ block: target.block });
    this.show(null);
  }

  /**
   * Another block in the panel: the one pointed at, else the chosen one.
   * @param {Target | null} target
   */
  show(target) {
    const looked = target ?? this.chosen;
    const key = `${looked.model} ${looked.block}`;
    for (const element of this.element.querySelectorAll("[data-block]")) {
      const same = element.dataset.block === looked.block && modelOf(element) === looked.model;
      element.classList.toggle("looked", same);
    }
    if (this.shown === key + this.data.models.map((model) => model.name + model.total)) return;
    this.shown = key + this.data.models.map((model) => model.name + model.total);
    this.panel.replaceChildren(...details(this.data.models[looked.model], looked.block, this.data.source));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const step = STEPS[event.key];
    const targets = [...this.element.querySelectorAll("g.target")];
    const at = targets.indexOf(/** @type {Element} */ (event.target).closest("g.target"));
    if (at < 0) return;
    if (step) targets[(at + step + targets.length) % targets.length].focus();
    else if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
  }

  /** Where the parameters are: one bar a model, as wide as the page. */
  bar() {
    this.shares.replaceChildren(
      ...this.data.models.map((model, i) => {
        const row = make("div", "share-row");
        row.dataset.model = i;
        for (const [block, count] of byBlock(model)) row.append(share(block, count, model, this.across));
        const line = make("div", "share-line");
        line.append(...(this.data.models.length > 1 ? [make("p", "share-name", model.name)] : []), row);
        return line;
      }),
    );
  }
}

/**
 * The stacks of a model, each `wide`, as drawStack gives them; `stacked` ones stand one above the other.
 * @param {Model} model
 * @param {number} wide
 */
export function drawStacks(model, wide, stacked = false, marked = new Set()) {
  const counts = new Map();
  for (const part of model.parts) counts.set(part.block, (counts.get(part.block) ?? 0) + (part.each ?? part.count));
  const two = model.stacks.length > 1;
  return model.stacks.map((stack, i) => {
    const ends = i === model.stacks.length - 1 ? model.ends : null;
    return drawStack(stack, {
      width: stacked && i ? wide - ASIDE : wide,
      mirror: two && i === 1,
      ends,
      counts,
      marked,
    });
  });
}

/**
 * The decoder above the encoder, where there is no room beside it.
 * @param {Model} model
 * @param {Drawn[]} stacks
 * @param {number} wide
 */
export function pile(model, [encoder, decoder], wide) {
  const apart = 34;
  const height = encoder.height + decoder.height + apart + 4;
  const picture = canvas(model, wide, height, 1);
  encoder.element.setAttribute("transform", `translate(0 ${height - 2})`);
  decoder.element.setAttribute("transform", `translate(${ASIDE} ${decoder.height + 2})`);
  const { x, y } = decoder.cross ?? decoder.top;
  const [top, enters] = [height - 2 + encoder.top.y, decoder.height + 2 + y];
  const d = `M${encoder.top.x} ${top + 1}L4 ${top + 1}L4 ${enters}L${ASIDE + x - 2} ${enters}`;
  picture.append(
    encoder.element,
    decoder.element,
    svg("path", { d, class: "stream across", "marker-end": "url(#stream-tip)" }),
  );
  return picture;
}

/**
 * @param {Model} model
 * @param {number} width
 * @param {number} height
 * @param {number} scale
 */
function canvas(model, width, height, scale) {
  const size = { viewBox: `0 0 ${width} ${height}`, width: width * scale, height: height * scale };
  const picture = svg("svg", { ...size, role: "group", "aria-label": `${model.name}, drawn as its blocks` });
  picture.append(arrowhead());
  return picture;
}

/**
 * The stacks of a model next to each other, feet level, with the encoder's result on its way to the decoder.
 * @param {Model} model
 * @param {Drawn[]} drawn
 * @param {number} wide
 * @param {number} scale
 */
export function assemble(model, drawn, wide, scale) {
  const height = Math.max(...drawn.map((one) => one.height)) + 8;
  const width = drawn.length * wide + (drawn.length - 1) * BETWEEN;
  const picture = canvas(model, width, height, scale);
  drawn.forEach((one, i) => {
    one.element.setAttribute("transform", `translate(${i * (wide + BETWEEN)} ${height - 2})`);
    picture.append(one.element);
  });
  const [encoder, decoder] = drawn;
  if (decoder?.cross) {
    const [top, enters] = [height - 2 + encoder.top.y, height - 2 + decoder.cross.y];
    const corridor = wide + BETWEEN / 2;
    const into = wide + BETWEEN + decoder.cross.x - 2;
    const d = `M${encoder.top.x} ${top + 1}L${corridor} ${top + 1}L${corridor} ${enters}L${into} ${enters}`;
    picture.append(svg("path", { d, class: "stream across", "marker-end": "url(#stream-tip)" }));
    picture.append(
      svg("text", { x: corridor - 8, y: top - 8, class: "note", "text-anchor": "end" }, "what the encoder gave"),
    );
  }
  return picture;
}

function arrowhead() {
  const definitions = svg("defs");
  for (const [id, size] of [
    ["tip", 7],
    ["stream-tip", 4],
  ]) {
    const marker = svg("marker", {
      id,
      viewBox: "0 0 8 8",
      refX: 7,
      refY: 4,
      markerWidth: size,
      markerHeight: size,
      orient: "auto-start-reverse",
    });
    marker.append(svg("path", { d: "M0 0L8 4L0 8z", class: id }));
    definitions.append(marker);
  }
  return definitions;
}

/** @type {Record<string, string>} by the last part of the name of a block */
const TITLES = {
  tokens: "Token embedding",
  patches: "Patch embedding",
  positions: "Positions",
  segments: "Segments",
  relative: "Relative positions",
  sound: "Convolutions",
  distances: "Distances",
  embed_norm: "Norm of the embedding",
  norm1: "Norm of the attention",
  norm2: "Norm of the MLP",
  norm_cross: "Norm of the cross-attention",
  norm1_after: "Norm after the attention",
  norm2_after: "Norm after the MLP",
  final_norm: "Final norm",
  attn: "Attention",
  cross_attn: "Cross-attention",
  mlp: "MLP",
  pooler: "Pooler",
  next_sentence: "Next sentence",
  vector: "Vector of the whole",
  head: "Head",
};

/** @param {string} block */
export function titleOf(block) {
  const [last, stack] = block.split(".").reverse();
  return stack ? `${TITLES[last]}, ${stack}` : TITLES[last];
}

/**
 * The panel: each part of a block with its formula, the numbers put in, and the count.
 * @param {Model} model
 * @param {string} block
 * @param {string | undefined} source
 */
function details(model, block, source) {
  const parts = model.parts.filter((part) => part.block === block);
  const count = parts.reduce((sum, part) => sum + part.count, 0);
  const each = parts.reduce((sum, part) => sum + (part.each ?? 0), 0);
  const heading = make("h3", "", titleOf(block));
  const whose = make("p", "whose", `${model.name} · ${percent(count / model.total)} of its parameters`);
  const total = make("p", "sum");
  total.append(make("span", "big", count.toLocaleString("en")));
  if (each && each !== count) total.append(make("span", "soft", `${each.toLocaleString("en")} in each layer`));
  const list = make("dl");
  for (const part of parts) {
    const name = make("dt");
    name.append(...named(part.name));
    const value = make("dd", "number", part.count.toLocaleString("en"));
    const written = make("dd", "arithmetic-line");
    written.append(formula(part.tex), make("span", "equals", "="), formula(part.numbers));
    list.append(name, value, written);
  }
  const none = parts.length ? [] : [make("p", "whose", "It has no parameters.")];
  const foot = source ? [make("p", "source", source)] : [];
  return [heading, whose, total, list, ...none, ...foot];
}

/**
 * "queries, W_Q" with its matrix as in a formula.
 * @param {string} name
 */
export function named(name) {
  const [, words, matrix] = /^(.*?)(W_.|W_. = W_.)?$/.exec(name) ?? ["", name];
  return matrix ? [words, formula(matrix)] : [words];
}

/** @param {Model} model */
function byBlock(model) {
  const found = new Map();
  for (const part of model.parts) found.set(part.block, (found.get(part.block) ?? 0) + part.count);
  return [...found].filter(([, count]) => count > 0);
}

/**
 * @param {string} block
 * @param {number} count
 * @param {Model} model
 * @param {number} width
 */
function share(block, count, model, width) {
  const part = model.parts.find((one) => one.block === block);
  const wide = (width * count) / model.total;
  const element = make("div", `share ${part?.role}`);
  element.dataset.block = block;
  element.style.width = `${(100 * count) / model.total}%`;
  element.title = `${titleOf(block)}: ${count.toLocaleString("en")}, ${percent(count / model.total)}`;
  const short = titleOf(block).replace("Token embedding", "Tokens").replace(", encoder", "").replace(", decoder", "");
  if (wide > short.length * 7.6 + 14) element.append(make("span", "", short));
  if (wide > short.length * 7.6 + 70) element.append(make("span", "share-percent", percent(count / model.total)));
  return element;
}

/** @param {number} share */
export function percent(share) {
  const value = 100 * share;
  return `${value >= 10 ? value.toFixed(1) : value >= 0.1 ? value.toFixed(2) : value.toPrecision(2)}\u00a0%`;
}

/** @param {Event} event */
function found(event) {
  /** @type {HTMLElement | null} */
  const element = event.target instanceof Element ? event.target.closest("[data-block]") : null;
  return element ? { model: modelOf(element), block: element.dataset.block ?? "" } : null;
}

/** @param {Element} element */
function modelOf(element) {
  /** @type {HTMLElement | null} */
  const model = element.closest("[data-model]");
  return Number(model?.dataset.model ?? 0);
}
