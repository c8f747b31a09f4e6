// Ours, since no library draws an architecture: its blocks, and the parameters of each, lit together where one is pointed at.
import * as address from "../core/address.js";
import { assemble, BETWEEN, CSS as DRAWING_CSS, drawStacks, named, percent, pile, titleOf } from "../architecture/architecture.js";
import { make } from "../core/dom.js";
import { formula, FORMULA_CSS } from "../core/formula.js";

const ONE = 330; // CSS pixels that one stack is drawn in
const TWO = 262; // each of two
const HIGHEST = 500; // of the drawing
const SHRINK = 0.74; // at most, so that it stands beside the rest
const NARROW = 640; // one column below this
const GAP = 36;
const [HEADED, LINE] = [26, 24]; // heights of what is told of a block

/**
 * @param {HTMLElement} root
 * @param {{name: string, model: object}} data of views/checkpoint/checkpoint.py
 */
export function mount(root, data) {
  const page = new Card(root);
  page.update(data);
  return page;
}

class Card {
  constructor(root) {
    const style = make("style", "", DRAWING_CSS + FORMULA_CSS + CSS);
    this.element = make("div", "card");
    root.append(style, this.element);
    this.resize = new ResizeObserver(() => this.element.clientWidth !== this.width && this.build());
    this.resize.observe(this.element);
    this.element.addEventListener("pointerover", (event) => this.show(blockOf(event)));
    this.element.addEventListener("pointerleave", () => this.show(null));
    this.element.addEventListener("click", (event) => this.choose(blockOf(event)));
    this.element.addEventListener("focusin", (event) => this.choose(blockOf(event)));
    this.element.addEventListener("keydown", (event) => this.key(event));
  }

  destroy() {
    this.resize.disconnect();
    this.element.remove();
  }

  update(data) {
    if (!this.data) this.chosen = address.read().block;
    this.data = data;
    this.blocks = counted(data.model);
    const largest = this.blocks.reduce((best, block) => (block.count > best.count ? block : best), { count: -1 });
    if (!this.blocks.some(({ block }) => block === this.chosen)) this.chosen = largest.block;
    this.build();
  }

  /** What stands behind the # is of the other views of the page. */
  missed() {
    return [];
  }

  build() {
    this.width = this.element.clientWidth;
    if (!this.width) return;
    this.element.dataset.columns = this.width < NARROW ? 1 : 2;
    this.parts = this.partList();
    this.element.replaceChildren(this.drawing(), this.parts);
    this.element.dataset.ready = "true";
    this.show(null);
  }

  drawing() {
    const { model } = this.data;
    const element = make("figure", "drawn");
    const two = model.stacks.length > 1;
    const room = this.element.dataset.columns === "1" ? this.width : Infinity;
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
      row.append(make("span", "what", short(block)), track, make("span", "count", count.toLocaleString("en")), make("span", "share-of", percent(count / model.total)));
      rows.append(row);
    }
    this.detail = make("div", "detail-of");
    this.detail.style.minHeight = `${HEADED + LINE * Math.max(...this.blocks.map((block) => block.parts))}px`; // so that nothing jumps
    this.detail.setAttribute("aria-live", "polite");
    element.append(heading, rows, this.detail);
    return element;
  }

  choose(block) {
    if (!block || !this.blocks.some((one) => one.block === block)) return;
    if (this.chosen !== block) address.write({ block });
    this.chosen = block;
    this.show(null);
  }

  /** The block pointed at, else the chosen one, lit in the drawing and the list and taken apart below it. */
  show(pointed) {
    const looked = this.blocks.some((one) => one.block === pointed) ? pointed : this.chosen;
    for (const element of this.element.querySelectorAll("[data-block]")) element.classList.toggle("looked", element.dataset.block === looked);
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

  key(event) {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const rows = [...this.element.querySelectorAll(".parts .row")];
    const at = rows.indexOf(event.target.closest(".row"));
    if (at < 0 || !step) return;
    rows[(at + step + rows.length) % rows.length].focus();
    event.preventDefault();
  }
}

/** [{block, role, count, parts}] of the blocks that have parameters. */
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

/** "Dec. cross-attention": the name of a block where there is little room. */
function short(block) {
  const [words, stack] = titleOf(block).replace(/^(Norm) (?:of|after) the (.*?)(, |$)/, "$1, $2$3").split(/, (?=encoder|decoder)/);
  return stack ? `${stack[0].toUpperCase()}${stack.slice(1, 3)}. ${words.toLowerCase().replace("mlp", "MLP")}` : words;
}

function blockOf(event) {
  return event.target.closest?.("[data-block]")?.dataset.block ?? null;
}

const CSS = `
.card { display: grid; gap: 24px ${GAP}px; align-items: start; font: 14px/1.4 var(--sans); color: var(--ink); }
.card[data-columns="2"] { grid-template-columns: auto minmax(250px, 1fr); }
.card[data-columns="1"] { grid-template-columns: minmax(0, 1fr); }
.card section, .card figure { min-width: 0; margin: 0; }
.parts .row:focus-visible { outline: 2px solid var(--attention); outline-offset: 1px; border-radius: 4px; }
.drawn svg { display: block; max-width: 100%; overflow: visible; font-family: var(--sans); }
.parts h3 { font: 600 24px/1.2 var(--mono); letter-spacing: -.02em; margin: 0 0 10px; }
.parts h3 span { font: 14px var(--sans); color: var(--soft); letter-spacing: 0; }
.parts .rows { display: grid; grid-template-columns: fit-content(52%) minmax(24px, 1fr) max-content max-content; column-gap: 12px; }
.parts .row { --hue: var(--soft); display: grid; grid-template-columns: subgrid; grid-column: 1 / -1; align-items: center; height: 27px; padding: 0 4px; cursor: pointer; }
.parts .row.looked { background: color-mix(in srgb, var(--hue) 12%, transparent); border-radius: 4px; }
.parts .what { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.parts .track { height: 14px; }
.parts .filled { display: block; height: 100%; min-width: 1px; background: var(--hue); border-radius: 2px; }
.parts .count { font: 13px var(--mono); text-align: right; }
.parts .share-of { font: 12px var(--mono); text-align: right; color: var(--soft); }
.role-hue.residual { --hue: var(--residual) !important; } .role-hue.attention { --hue: var(--attention) !important; }
.role-hue.mlp { --hue: var(--mlp) !important; } .role-hue.probability { --hue: var(--probability) !important; }
.detail-of { margin-top: 14px; padding: 0 4px; }
.detail-of h4 { margin: 0; height: 26px; font-size: 14px; font-weight: 600; }
.detail-of dl { display: grid; grid-template-columns: minmax(0, max-content) max-content minmax(0, 1fr); margin: 0; font-size: 13px; line-height: 19px; }
.detail-of dt, .detail-of dd { margin: 0; padding: 2px 12px 2px 0; height: 24px; box-sizing: border-box; border-top: 1px solid var(--hairline); overflow: hidden; white-space: nowrap; text-overflow: ellipsis; }
.detail-of .written { color: var(--soft); }
.detail-of .equals { margin: 0 .35em; }
`;
