// The card of a checkpoint: what it is, its blocks drawn, where its parameters are, and that its numbers are the reference's.
import * as address from "../core/address.js";
import { assemble, BETWEEN, CSS as DRAWING_CSS, drawStacks, named, percent, pile, titleOf } from "../architecture/architecture.js";
import { make } from "../core/dom.js";
import { formula, FORMULA_CSS } from "../core/formula.js";
import { request } from "../core/store.js";

const ONE = 330; // CSS pixels that one stack is drawn in
const TWO = 262; // each of two
const HIGHEST = 500; // of the drawing
const SHRINK = 0.74; // at most, so that it stands beside the rest
const NARROW = 720; // one column below this
const HALF = 1060; // two below this
const GAP = 36;
const [HEADED, LINE] = [26, 24]; // heights of what is told of a block

/** data = {name, says, facts, files, model, ledger, notes, compares}, of views/checkpoint.py. */
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
    if (this.data?.name !== data.name) this.compared = null;
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
    this.element.dataset.columns = this.width < NARROW ? 1 : this.width < HALF ? 2 : 3;
    this.parts = this.partList();
    this.element.replaceChildren(this.facts(), this.drawing(), this.parts);
    this.element.dataset.ready = "true";
    this.show(null);
  }

  facts() {
    const { name, says, facts, notes, files } = this.data;
    const element = make("section", "facts");
    const [stem, ...rest] = name.split(/(?=~)/); // what follows tells apart what people opened
    const heading = make("h2", "", stem);
    heading.append(make("small", "", rest.join("")));
    element.append(heading);
    if (says) element.append(make("p", "says", says));
    const list = make("dl");
    for (const [label, value] of facts) {
      const told = make("dd", "", value);
      if (label === "files") told.title = files.map(([file, bytes]) => `${file}  ${bytes.toLocaleString("en")}`).join("\n");
      list.append(make("dt", "", label), told);
    }
    element.append(list, this.account());
    for (const note of notes) element.append(make("p", "note-line", note));
    if (this.data.compares) element.append(this.badge());
    return element;
  }

  /** Whether every tensor of the file found its place. */
  account() {
    const { ledger } = this.data;
    const whole = !ledger.missing && !ledger.unexpected;
    const total = Object.values(ledger).reduce((sum, count) => sum + count, 0);
    const line = make("p", `account ${whole ? "whole" : "odd"}`);
    line.append(make("strong", "", whole ? `✓ ${total} tensors, every one accounted for` : `${ledger.missing + ledger.unexpected} of ${total} tensors have no place`));
    const counts = Object.entries(ledger).filter(([status, count]) => count || status === "missing" || status === "unexpected");
    line.append(make("span", "", counts.map(([status, count]) => `${count} ${status}`).join(" · ")));
    return line;
  }

  badge() {
    const element = make("div", "badge");
    element.setAttribute("aria-live", "polite");
    if (this.compared) element.append(...verdict(this.compared));
    else {
      const button = make("button", "compare", "compare with transformers");
      button.type = "button";
      button.title = "Runs the same input through transformers and shows the largest differences of logits and attention";
      button.addEventListener("click", () => this.compare(element, button));
      element.append(button);
    }
    return element;
  }

  async compare(element, button) {
    const { name } = this.data;
    button.disabled = true;
    button.textContent = "both models are running …";
    try {
      const answer = await request({ checkpoint: name, compare: true });
      if (this.data.name !== name) return;
      this.compared = answer;
      element.replaceChildren(...verdict(answer));
    } catch (error) {
      element.replaceChildren(button, make("p", "note-line", error.message));
      button.disabled = false;
      button.textContent = "compare with transformers";
    }
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

/** What transformers gave for the same input. */
function verdict({ logits, patterns, layers, against, through, read }) {
  const figures = make("p", "figures");
  for (const [name, value] of [["max |Δlogit|", logits], ["max |Δattention|", patterns]]) {
    if (value === null) continue;
    const figure = make("span");
    figure.append(make("small", "", name), make("strong", "", apart(value)));
    figures.append(figure);
  }
  const found = [figures, make("p", "against", `${against}, ${through}; ${read}`)];
  if (layers.length) found.push(make("p", "against", `attention by layer: ${layers.map(apart).join(" · ")}`));
  return found;
}

/** 9.8e−6 */
function apart(x) {
  return x === 0 ? "0" : x.toExponential(1).replace("e-", "e−").replace("e+", "e");
}

function blockOf(event) {
  return event.target.closest?.("[data-block]")?.dataset.block ?? null;
}

const CSS = `
.card { display: grid; gap: 24px ${GAP}px; align-items: start; font: 14px/1.4 var(--sans); color: var(--ink); }
.card[data-columns="3"] { grid-template-columns: minmax(280px, 390px) auto minmax(250px, 1fr); }
.card[data-columns="2"] { grid-template-columns: minmax(0, 1fr) auto; }
.card[data-columns="2"] .parts { grid-column: 1 / -1; }
.card[data-columns="1"] { grid-template-columns: minmax(0, 1fr); }
.card section, .card figure { min-width: 0; margin: 0; }
.card h2 { font-size: 24px; line-height: 1.2; letter-spacing: -.015em; margin: 0 0 6px; overflow-wrap: anywhere; }
.card h2 small { font: 14px var(--mono); color: var(--soft); letter-spacing: 0; margin-left: 4px; }
.card .says { margin: 0 0 12px; color: var(--soft); display: -webkit-box; -webkit-line-clamp: 4; -webkit-box-orient: vertical; overflow: hidden; }
.facts dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); margin: 0; }
.facts dt, .facts dd { margin: 0; padding: 3px 14px 3px 0; border-top: 1px solid var(--hairline); }
.facts dt { color: var(--soft); }
.facts dd { overflow-wrap: anywhere; }
.account { margin: 14px 0 0; padding: 7px 12px; border-left: 3px solid var(--value); background: var(--panel); }
.account.odd { border-color: var(--edited); }
.account strong { display: block; font-weight: 600; }
.account span { color: var(--soft); font-size: 13px; }
.card .note-line { margin: 8px 0 0; padding: 5px 12px; border-left: 3px solid var(--mlp); background: var(--panel); font-size: 13px; overflow-wrap: anywhere; }
.badge { margin-top: 12px; min-height: 34px; }
.badge .compare { font: inherit; color: var(--ink); background: var(--ground); border: 1px solid var(--hairline); border-radius: 6px; padding: 5px 12px; cursor: pointer; }
.badge .compare:hover { border-color: var(--attention); color: var(--attention); }
.badge .compare:disabled { color: var(--soft); border-color: var(--hairline); cursor: progress; }
.badge :focus-visible, .parts .row:focus-visible { outline: 2px solid var(--attention); outline-offset: 1px; border-radius: 4px; }
.badge .figures { display: flex; gap: 28px; margin: 0; }
.badge .figures small { display: block; color: var(--soft); font-size: 13px; }
.badge .figures strong { font: 600 22px var(--mono); }
.badge .against { margin: 2px 0 0; color: var(--soft); font-size: 13px; overflow-wrap: anywhere; }
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
