// The tree of everything that was written from a prompt: a line for each branch, from where it left another one to its end.
import { make } from "../core/dom.js";
import { number } from "../core/format.js";
import { colourOf } from "./pixels.js";
import { svg } from "../components/stack.js";

const ROW = 46; // CSS pixels
const WIDTH = { wide: 96, narrow: 74 };
const SWATCHES = 24; // pixels of a branch of a picture that are shown
const FINAL = ["end", "context", "picture"]; // behind which nothing follows: their dots are filled
const LETTERS = 90; // of a branch that are shown

/** `on.show(leaf)` and `on.remove(leaf)`, null for all. */
export function mount(root, page, on) {
  return new Branches(root, page, on);
}

class Branches {
  constructor(root, page, on) {
    Object.assign(this, { root, page, on });
    this.title = make("h3");
    this.all = make("button", "quiet-link", "Delete all");
    this.all.type = "button";
    this.all.addEventListener("click", () => on.remove(null));
    this.head = make("div", "branches-head");
    this.head.append(this.title, this.all);
    this.body = make("div", "branches-body");
    root.append(this.head, this.body);
  }

  update() {
    const { page } = this;
    const { tree, run } = page;
    this.root.hidden = tree.isEmpty;
    if (tree.isEmpty) return;
    const branches = branchesOf(tree);
    const drawn = JSON.stringify([branches.map(({ leaf, fork }) => [leaf, fork.depth]), tree.nodes.size, tree.shown, page.narrow, run.active]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.title.textContent = branches.length === 1 ? "1 branch" : `${branches.length} branches`;
    this.all.hidden = run.active;
    const width = page.narrow ? WIDTH.narrow : WIDTH.wide;
    const rows = make("div", "branches-rows");
    rows.append(...branches.map((branch) => this.row(branch)));
    const focused = this.body.getRootNode().activeElement?.dataset?.leaf;
    this.body.replaceChildren(this.lines(branches, width), rows);
    if (focused) this.body.querySelector(`.branch[data-leaf="${focused}"]`)?.focus({ preventScroll: true });
  }

  lines(branches, width) {
    const deepest = Math.max(...branches.map(({ depth }) => depth));
    const x = (depth) => 6 + (depth / deepest) * (width - 14);
    const picture = svg("svg", { width, height: branches.length * ROW, "aria-hidden": "true" });
    const y = (row) => row * ROW + ROW / 2;
    branches.forEach(({ fork, depth, leaf }, row) => {
      const shown = leaf === this.page.tree.shown ? " is-shown" : "";
      if (row) picture.append(svg("path", { class: `joint${shown}`, d: `M${x(fork.depth)} ${y(fork.row)}V${y(row)}` }));
      picture.append(svg("path", { class: `line${shown}`, d: `M${x(fork.depth)} ${y(row)}H${x(depth)}` }));
      const over = FINAL.includes(this.page.tree.nodes.get(leaf).stop?.kind) ? " is-over" : "";
      picture.append(svg("circle", { class: `end${shown}${over}`, cx: x(depth), cy: y(row), r: 4 }));
      if (row) picture.append(svg("circle", { class: "fork", cx: x(fork.depth), cy: y(fork.row), r: 3 }));
    });
    return picture;
  }

  row({ leaf, own, fork }) {
    const { tree, run } = this.page;
    const line = make("div", "branch-line");
    const button = make("button", "branch");
    button.type = "button";
    button.dataset.leaf = leaf;
    button.setAttribute("aria-pressed", String(leaf === tree.shown));
    const { count, sum, perplexity } = tree.measure(leaf);
    const text = this.text(own);
    const said = make("bdi", "branch-text", this.page.data.grid ? "" : `${fork.depth ? "… " : ""}${text.slice(0, LETTERS)}${text.length > LETTERS ? "…" : ""}`);
    if (this.page.data.grid) said.append(...this.swatches(own, fork));
    const numbers = make("span", "branch-numbers", `${count} ${this.page.data.grid ? "pixels" : "tokens"} · Σ log p ${signed(sum)} · perplexity ${perplexity < 1000 ? perplexity.toFixed(2) : number(perplexity)}`);
    numbers.title = "the sum of the tokens' log-probabilities (nats) in the model's own distribution; perplexity is exp(−sum / tokens)";
    button.append(said, numbers);
    button.addEventListener("click", () => this.on.show(leaf));
    const remove = make("button", "branch-remove", "×");
    remove.type = "button";
    remove.title = "delete this branch";
    remove.setAttribute("aria-label", `delete the branch ${text.slice(0, 40)}`);
    remove.hidden = run.active;
    remove.addEventListener("click", () => this.on.remove(leaf));
    line.append(button, remove);
    return line;
  }

  text(own) {
    const { data } = this.page;
    return own.map(({ piece }) => piece).join(data.spaced ? " " : "").replaceAll("·", " ").trim();
  }

  /** Of a picture the colours of the first pixels that only this branch has. */
  swatches(own, fork) {
    const first = own.slice(0, SWATCHES).map(({ id }) => {
      const swatch = make("i", "swatch");
      swatch.style.background = colourOf(this.page.data, id);
      return swatch;
    });
    return [...(fork.depth ? ["… "] : []), ...first];
  }
}

function signed(sum) {
  return sum.toFixed(2).replace("-0.00", "0.00").replace("-", "−");
}

/** Every leaf with the tokens of its own: {leaf, depth, own, fork: {depth, row}}, `fork` being where it left a branch above it. */
function branchesOf(tree) {
  const rows = new Map([[0, 0]]); // token -> the row of the branch that had it first
  return tree.leaves().map((leaf, row) => {
    const path = tree.path(leaf);
    const known = path.findLastIndex(({ key }) => rows.has(key));
    const fork = { depth: known + 1, row: rows.get(path[known]?.key ?? 0) };
    const own = path.slice(known + 1);
    for (const { key } of own) rows.set(key, row);
    return { leaf, depth: path.length, own, fork };
  });
}
