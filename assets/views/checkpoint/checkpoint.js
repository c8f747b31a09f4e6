// Ours, since no library draws an architecture: its blocks, and the parameters of each, lit together where one is pointed at.
import * as address from "../core/address.js";
import { assemble, BETWEEN, drawStacks, named, percent, pile, titleOf } from "../architecture/architecture.js";
import { make } from "../core/dom.js";
import { formula } from "../core/formula.js";
import { View } from "../core/shell.js";

/**
 * @typedef {import("../architecture/architecture.js").Model} Model
 * @typedef {{ name: string, model: Model }} Data
 */

const ONE = 330; // CSS pixels that one stack is drawn in
const TWO = 262; // each of two
const HIGHEST = 500; // of the drawing
const SHRINK = 0.74; // at most, so that it stands beside the rest
const NARROW = 640; // one column below this
const [HEADED, LINE] = [26, 24]; // heights of what is told of a block

/**
 * @param {HTMLElement} root
 * @param {Data} data of views/checkpoint/checkpoint.py
 */
export function mount(root, data) {
  const page = new Card(root);
  page.update(data);
  return page;
}

/** @extends {View<Data>} */
class Card extends View {
  /** @type {ReturnType<typeof counted>} */
  blocks;
  /** @type {string} the block that was chosen last */
  chosen;

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root, "card");
    this.chosen = address.read().block;
    this.element.addEventListener("pointerover", (/** @type {Event} */ event) => this.show(blockOf(event)));
    this.element.addEventListener("pointerleave", () => this.show(null));
    this.element.addEventListener("click", (/** @type {Event} */ event) => this.choose(blockOf(event)));
    this.element.addEventListener("focusin", (/** @type {Event} */ event) => this.choose(blockOf(event)));
    this.element.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.key(event));
  }

  /** @param {Data} data */
  update(data) {
    this.data = data;
    this.blocks = counted(data.model);
    const largest = this.blocks.reduce((best, block) => (block.count > best.count ? block : best), { count: -1 });
    if (!this.blocks.some(({ block }) => block === this.chosen)) this.chosen = largest.block;
    this.measure();
  }

  /** What stands behind the # is of the other views of the page. */
  missed() {
    return [];
  }

  refresh() {
    this.element.dataset.columns = this.across < NARROW ? 1 : 2;
    this.parts = this.partList();
    this.element.replaceChildren(this.drawing(), this.parts);
    this.element.dataset.ready = "true";
    this.show(null);
  }

  drawing() {
    const { model } = this.data;
    const element = make("figure", "drawn");
    const two = model.stacks.length > 1;
    const room = this.element.dataset.columns === "1" ? this.across : Infinity;
    const stacked = two && room < 2 * TWO + BETWEEN;
    const wide = Math.min(room - 1, two && !stacked ? TWO : ONE);
    const stacks = drawStacks(model, wide, stacked);
    const height = Math.max(...stacks.map((stack) => stack.height));
    const scale = stacked ? 1 : Math.max(SHRINK, Math.min(1, HIGHEST / height));
    element.append(stacked ? pile(model, stacks, wide) : assemble(model, stacks, wide, scale));
    return element;
  }

  /** Where the parameters are: a bar a block, in the order in which the stream meets them. */
  partList() {
    const { model } = this.data;
    const element = make("section", "parts");
    const heading = make("h3", "", model.total.toLocaleString("en"));
    heading.append(make("span", "", " parameters"));
    const rows = make("div", "rows");
    const most = Math.max(...this.blocks.map((block) => block.count));
    for (const { block, role, count } of this.blocks) {
      const row = make("div", `row role-hue ${role}`);
      row.dataset.block = block;
      row.tabIndex = 0;
      const track = make("span", "track");
      const bar = track.appendChild(make("span", "filled"));
      bar.style.width = `${(100 * count) / most}%`;
      row.append(
        make("span", "what", short(block)),
        track,
        make("span", "count", count.toLocaleString("en")),
        make("span", "share-of", percent(count / model.total)),
      );
      rows.append(row);
    }
    this.detail = make("div", "detail-of");
    this.detail.style.minHeight = `${HEADED + LINE * Math.max(...this.blocks.map((block) => block.parts))}px`; // so that nothing jumps
    this.detail.setAttribute("aria-live", "polite");
    element.append(heading, rows, this.detail);
    return element;
  }

  /** @param {string | null} block */
  choose(block) {
    if (!block || !this.blocks.some((one) => one.block === block)) return;
    if (this.chosen !== block) address.write({ block });
    this.chosen = block;
    this.show(null);
  }

  /**
   * The block pointed at, else the chosen one, lit in the drawing and the list and taken apart below it.
   * @param {string | null} pointed
   */
  show(pointed) {
    const looked = this.blocks.find((one) => one.block === pointed)?.block ?? this.chosen;
    for (const element of this.element.querySelectorAll("[data-block]"))
      element.classList.toggle("looked", element.dataset.block === looked);
    if (this.detail.dataset.of === looked) return;
    this.detail.dataset.of = looked;
    const list = make("dl");
    for (const part of this.data.model.parts.filter((one) => one.block === looked)) {
      const what = make("dt");
      what.append(...named(part.name));
      const written = make("dd", "written");
      written.append(formula(part.tex), make("span", "equals", "="), formula(part.numbers));
      list.append(what, make("dd", "count", part.count.toLocaleString("en")), written);
    }
    this.detail.replaceChildren(make("h4", "", titleOf(looked)), list);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const step = event.key === "ArrowUp" ? -1 : event.key === "ArrowDown" ? 1 : 0;
    const rows = [...this.element.querySelectorAll(".parts .row")];
    const at = rows.indexOf(/** @type {Element} */ (event.target).closest(".row"));
    if (at < 0 || !step) return;
    rows[(at + step + rows.length) % rows.length].focus();
    event.preventDefault();
  }
}

/**
 * [{block, role, count, parts}] of the blocks that have parameters.
 * @param {Model} model
 */
function counted(model) {
  const found = new Map();
  for (const part of model.parts) {
    const block = found.get(part.block) ?? { block: part.block, role: part.role, count: 0, parts: 0 };
    block.count += part.count;
    block.parts += 1;
    found.set(part.block, block);
  }
  return [...found.values()].filter(({ count }) => count > 0);
}

/**
 * "Dec. cross-attention": the name of a block where there is little room.
 * @param {string} block
 */
function short(block) {
  const [words, stack] = titleOf(block)
    .replace(/^(Norm) (?:of|after) the (.*?)(, |$)/, "$1, $2$3")
    .split(/, (?=encoder|decoder)/);
  return stack ? `${stack[0].toUpperCase()}${stack.slice(1, 3)}. ${words.toLowerCase().replace("mlp", "MLP")}` : words;
}

/**
 * @param {Event} event
 * @returns {string | null}
 */
function blockOf(event) {
  /** @type {HTMLElement | null} */
  const block = event.target instanceof Element ? event.target.closest("[data-block]") : null;
  return block?.dataset.block ?? null;
}
