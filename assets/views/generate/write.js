// A text, token by token: what stands there, what each token was chosen from, and the tree of all that was written from this prompt. It is ours because no
// library draws a text that grows, branches where a token is replaced, and can be stopped.
import { svg } from "../components/stack.js";
import { make } from "../core/dom.js";
import { counted, number } from "../core/format.js";
import { StepView } from "./step.js";
import { colourOf, Text } from "./text.js";
import { stepQuery, stepsOf } from "./tree.js";

/**
 * @typedef {import("./generate.js").Page} Page
 * @typedef {import("./tree.js").Tree} Tree
 * @typedef {import("./tree.js").Token} Token
 * @typedef {import("./tree.js").Row} Row
 * @typedef {import("./streams.js").Run} Run
 * @typedef {ReturnType<typeof branchesOf>[number]} Branch
 * @typedef {{ show: (leaf: number) => void, remove: (leaf: number | null) => void }} On
 */

const READABLE = 400; // ms from one drawing of the step to the next while tokens come

/**
 * @param {HTMLElement} room
 * @param {Page} page
 */
export function mount(room, page) {
  return new Write(room, page);
}

class Write {
  /** @type {Record<string, HTMLElement>} */
  places;

  /**
   * @param {HTMLElement} room
   * @param {Page} page
   */
  constructor(room, page) {
    this.page = page;
    this.room = room;
    this.next = 0;
    this.build();
    this.text = new Text(
      this.places.text,
      page,
      (at) => this.look(at),
      (at) => this.glance(at),
    );
    this.step = new StepView(this.places.step, page, {
      choose: (row) => this.choose(row),
      look: (at) => this.look(at),
    });
    this.branches = new Branches(this.places.branches, page, {
      show: (leaf) => this.show(leaf),
      remove: (leaf) => this.remove(leaf),
    });
  }

  build() {
    const { page } = this;
    const [bar, body] = [make("div", "write-bar"), make("div", "write-body")];
    this.button = this.act("go", ({ detail }) => detail < 2 && this.toggle()); // a double click is one
    this.again = this.act("quiet", () => this.anew());
    this.keep = this.act("quiet", () => page.emit?.("keep", { trace: page.data.trace, ids: page.tree.ids() }));
    this.keep.textContent = "Keep as a turn";
    this.keep.title = "put this into the conversation, with an empty turn of the user's after it";
    this.told = make("p", "write-told");
    this.told.setAttribute("role", "status");
    this.speed = make("p", "write-speed");
    bar.append(this.button, this.again, this.keep, this.told, this.speed);
    const [left, right] = [make("div", "write-left"), make("div", "write-right")];
    this.places = {
      text: make("section", "write-text"),
      step: make("section", "write-step"),
      branches: make("section", "write-branches"),
    };
    left.append(this.places.text, this.places.branches);
    right.append(this.places.step);
    body.append(left, right);
    this.room.append(bar, body);
  }

  /**
   * @param {string} name
   * @param {(event: MouseEvent) => unknown} work
   */
  act(name, work) {
    const button = make("button", `write-button ${name}`);
    button.type = "button";
    button.addEventListener("click", work);
    return button;
  }

  destroy() {
    this.room.replaceChildren();
  }

  update() {
    const { page } = this;
    const { tree, run, data } = page;
    const last = tree.node(tree.shown);
    const ended = this.ended();
    this.button.hidden = page.alone;
    this.button.textContent = run.active ? "Stop" : tree.shown ? "Continue" : "Write";
    this.button.title = run.active ? "Escape" : "Enter";
    this.button.disabled = !run.active && Boolean(ended);
    this.again.textContent = data.settings.method === "sample" ? "Try again" : "From the prompt";
    this.again.title = "from the prompt again, as another branch";
    this.again.hidden = page.alone || tree.isEmpty || !this.differs();
    this.again.disabled = run.active;
    this.keep.hidden = page.alone || !data.talks || !tree.shown;
    this.keep.disabled = run.active;
    this.told.textContent = run.active
      ? ""
      : run.told ||
        last.stop?.sentence ||
        ended ||
        (tree.isEmpty && !page.alone ? "Press Enter to write, Escape to stop." : "");
    this.tellSpeed(run.speed);
    this.text.update();
    if (this.isAwaited()) return;
    this.branches.update();
    this.showStep();
  }

  /** While tokens come, the newest step and the branches are drawn as often as they can be read. */
  isAwaited() {
    const { run, tree } = this.page;
    const now = performance.now();
    if (run.active && tree.at === null && now < this.next) return true;
    this.next = run.active && tree.shown ? now + READABLE : 0;
    return false;
  }

  /** @param {Run["speed"]} speed */
  tellSpeed(speed) {
    const some = speed && speed.tokens > 0;
    this.speed.textContent = some
      ? `${((1000 * speed.seconds) / speed.tokens).toFixed(1)} ms a token · ${Math.round(speed.tokens / speed.seconds).toLocaleString("en")} tokens/s`
      : "";
    this.speed.title = "measured by the engine, from reading the prompt on";
  }

  /** Why nothing can follow, whatever the settings. */
  ended() {
    const { tree, data } = this.page;
    const { stop } = tree.node(tree.shown);
    if (!tree.shown && data.full) return data.full.sentence;
    return stop && ["end", "context", "picture"].includes(stop.kind) ? stop.sentence : "";
  }

  /** Whether writing from the prompt again would give another text: what is not drawn is the same each time. */
  differs() {
    const { tree, data } = this.page;
    if (data.settings.method === "sample") return true;
    const first = tree.node(0).children.map((key) => JSON.stringify(tree.settingsOf(tree.node(key))));
    return !first.includes(JSON.stringify(data.settings));
  }

  toggle() {
    const { page } = this;
    const { run, tree } = page;
    if (run.active) return run.stop();
    if (page.alone || this.ended()) return;
    run.begin(tree.shown, tree.node(tree.shown).shift ?? 0);
  }

  /** From the prompt, with the first seed that it was not written from yet. */
  anew() {
    const { tree, run, data } = this.page;
    const used = new Set(
      [...tree.nodes.values()].filter(({ parent }) => parent === 0).flatMap((node) => this.seeds(node)),
    );
    let shift = 0;
    while (data.settings.method === "sample" && used.has(data.settings.seed + shift)) shift++;
    run.begin(0, shift);
  }

  /**
   * Those with which tokens of a branch were drawn under the present settings.
   * @param {Token} node
   */
  seeds(node) {
    const { tree } = this.page;
    return tree.path(tree.leafOf(node.key)).map((one) => tree.settingsOf(one).seed);
  }

  // --- one step ------------------------------------------------------------------------------------------------------------

  /**
   * Looks at a token of the branch by its place; one behind the last is what would follow, null the newest.
   * @param {number | null} at
   */
  look(at) {
    const { tree, run } = this.page;
    const count = tree.path().length;
    tree.at = at === null || (at === count - 1 && run.active) ? null : Math.max(0, Math.min(count, at));
    this.page.refresh();
  }

  /** Which token is looked at. */
  get at() {
    const { tree } = this.page;
    const count = tree.path().length;
    return tree.at === null ? Math.max(0, count - 1) : Math.min(tree.at, count);
  }

  /**
   * The pointer is on a token: its step, if that is here, until the pointer is gone (null).
   * @param {number | null} at
   */
  glance(at) {
    const { tree, run } = this.page;
    if (run.active) return;
    const path = tree.path();
    if (at === null) return this.glanced ? this.showStep() : null;
    const node = path[at];
    this.glanced = Boolean(node?.step);
    if (this.glanced)
      this.step.update({ at, count: path.length, node, settings: tree.settingsOf(node), step: node.step });
  }

  showStep() {
    const { page } = this;
    const { tree, data } = page;
    this.glanced = false;
    this.asked = null;
    const path = tree.path();
    const node = path[this.at] ?? null;
    const query = node
      ? stepQuery(tree, node)
      : { ask: /** @type {const} */ ("step"), begun: tree.ids(), settings: data.settings };
    const shown = { at: this.at, count: path.length, node, settings: query.settings };
    if (node?.step) {
      this.step.update({ ...shown, step: node.step });
      return this.explain(query.begun);
    }
    if (!node && (this.ended() || page.run.active))
      return this.step.update({ ...shown, step: null, sentence: this.ended() });
    const asked = (this.asked = JSON.stringify([data.trace, query]));
    this.step.wait(shown);
    page.request(query).then(
      (answer) => {
        const [step] = stepsOf(answer);
        if (node && step) node.step = step;
        if (asked !== this.asked || !this.room.firstChild) return;
        this.step.update({ ...shown, step: step ?? null, sentence: answer.stop?.sentence });
        if (step) this.explain(query.begun);
      },
      (error) => asked === this.asked && this.step.update({ ...shown, step: null, sentence: error.message }),
    );
  }

  /**
   * Leads from the step that is shown to what wrote its logits, where another page reads the text up to it.
   * @param {number[]} begun
   */
  explain(begun) {
    const { page } = this;
    if (page.alone || page.run.active) return;
    const shown = this.step.shown;
    page.request({ ask: "reread", begun }).then(
      ({ address, row }) => address && shown === this.step.shown && this.step.explain(address, row),
      () => {}, // the step is shown without
    );
  }

  /**
   * Another token in place of the one that is looked at: the text branches there, and goes on.
   * @param {Row} row
   */
  choose(row) {
    const { page } = this;
    const { tree, run, data } = page;
    const path = tree.path();
    const node = path[this.at];
    if (page.alone || node?.id === row.id) return;
    run.stop();
    const parent = node ? (node.parent ?? 0) : tree.shown;
    const shift = (node ?? tree.node(tree.shown)).shift ?? 0;
    const settings = { ...data.settings, seed: data.settings.seed + shift };
    const key = tree.add(
      parent,
      {
        id: row.id,
        piece: row.piece,
        p: row.own,
        log: row.log_own,
        drawn: row.probabilities,
        rank: row.rank,
        chosen: true,
        shift,
        step: null,
      },
      settings,
    );
    run.begin(key, shift);
  }

  /** @param {number} leaf */
  show(leaf) {
    const { tree, run } = this.page;
    run.stop();
    run.told = "";
    Object.assign(tree, { shown: leaf, at: null });
    tree.save();
    this.page.refresh();
  }

  /** @param {number | null} leaf */
  remove(leaf) {
    const { tree, run } = this.page;
    run.stop();
    run.told = "";
    if (leaf === null) tree.clear();
    else tree.remove(leaf);
    tree.save();
    this.page.refresh();
  }

  // --- keyboard, take away -------------------------------------------------------------------------------------------------

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "Enter") {
      event.preventDefault();
      this.toggle();
    }
  }

  looked() {
    const { page } = this;
    const { tree, data } = page;
    const path = tree.path();
    const node = path[this.at];
    const last = path.findLastIndex(({ chosen }) => chosen);
    const newest = path.at(-1);
    const said = newest ? tree.settingsOf(newest) : data.settings;
    const begun = Math.max(last + 1, path.findLastIndex((one) => tree.settingsOf(one) !== said) + 1);
    const { count, sum, perplexity } = tree.measure();
    const numbers = count
      ? `${counted(count, "token")}, sum of log-probabilities ${sum.toFixed(2)} nats, perplexity ${perplexity.toFixed(2)}`
      : "";
    const where = node ? `token ${this.at + 1} of ${count}` : "what follows";
    return {
      where,
      sentence: numbers,
      asks: {
        tab: { ask: "written", ids: tree.ids(), begun, settings: said },
        tables: { "Write: one step": { ask: "step", begun: tree.ids().slice(0, this.at), settings: said } },
      },
      file: "written",
    };
  }
}

const ROW = 46; // CSS pixels
const WIDTH = { wide: 96, narrow: 74 };
const SWATCHES = 24; // pixels of a branch of a picture that are shown
const FINAL = ["end", "context", "picture"]; // behind which nothing follows: their dots are filled
const LETTERS = 90; // of a branch that are shown

/** The tree of everything that was written from a prompt: a line for each branch, from where it left another one to its end. `on.show(leaf)` and `on.remove(leaf)`, null for all. */
class Branches {
  /** @type {string} what is drawn, in words */
  drawn;

  /**
   * @param {HTMLElement} root
   * @param {Page} page
   * @param {On} on
   */
  constructor(root, page, on) {
    this.root = root;
    this.page = page;
    this.on = on;
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
    const drawn = JSON.stringify([
      branches.map(({ leaf, fork }) => [leaf, fork.depth]),
      tree.nodes.size,
      tree.shown,
      page.narrow,
      run.active,
    ]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.title.textContent = counted(branches.length, "branch", "branches");
    this.all.hidden = run.active;
    const width = page.narrow ? WIDTH.narrow : WIDTH.wide;
    const rows = make("div", "branches-rows");
    rows.append(...branches.map((branch) => this.row(branch)));
    const focused = this.body.getRootNode().activeElement?.dataset?.leaf;
    this.body.replaceChildren(this.lines(branches, width), rows);
    if (focused) this.body.querySelector(`.branch[data-leaf="${focused}"]`)?.focus({ preventScroll: true });
  }

  /**
   * @param {Branch[]} branches
   * @param {number} width
   */
  lines(branches, width) {
    const deepest = Math.max(...branches.map(({ depth }) => depth));
    /** @param {number} depth */
    const x = (depth) => 6 + (depth / deepest) * (width - 14);
    const picture = svg("svg", { width, height: branches.length * ROW, "aria-hidden": "true" });
    /** @param {number} row */
    const y = (row) => row * ROW + ROW / 2;
    branches.forEach(({ fork, depth, leaf }, row) => {
      const shown = leaf === this.page.tree.shown ? " is-shown" : "";
      if (row) picture.append(svg("path", { class: `joint${shown}`, d: `M${x(fork.depth)} ${y(fork.row)}V${y(row)}` }));
      picture.append(svg("path", { class: `line${shown}`, d: `M${x(fork.depth)} ${y(row)}H${x(depth)}` }));
      const over = FINAL.includes(this.page.tree.node(leaf).stop?.kind ?? "") ? " is-over" : "";
      picture.append(svg("circle", { class: `end${shown}${over}`, cx: x(depth), cy: y(row), r: 4 }));
      if (row) picture.append(svg("circle", { class: "fork", cx: x(fork.depth), cy: y(fork.row), r: 3 }));
    });
    return picture;
  }

  /** @param {Branch} branch */
  row({ leaf, own, fork }) {
    const { tree, run } = this.page;
    const line = make("div", "branch-line");
    const button = make("button", "branch");
    button.type = "button";
    button.dataset.leaf = leaf;
    button.setAttribute("aria-pressed", String(leaf === tree.shown));
    const { count, sum, perplexity } = tree.measure(leaf);
    const text = this.text(own);
    const said = make(
      "bdi",
      "branch-text",
      this.page.data.grid
        ? ""
        : `${fork.depth ? "… " : ""}${text.slice(0, LETTERS)}${text.length > LETTERS ? "…" : ""}`,
    );
    if (this.page.data.grid) said.append(...this.swatches(own, fork));
    const numbers = make(
      "span",
      "branch-numbers",
      `${count} ${this.page.data.grid ? "pixels" : "tokens"} · Σ log p ${signed(sum)} · perplexity ${perplexity < 1000 ? perplexity.toFixed(2) : number(perplexity)}`,
    );
    numbers.title =
      "the sum of the tokens' log-probabilities (nats) in the model's own distribution; perplexity is exp(−sum / tokens)";
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

  /** @param {Token[]} own */
  text(own) {
    const { data } = this.page;
    return own
      .map(({ piece }) => piece)
      .join(data.spaced ? " " : "")
      .replaceAll("·", " ")
      .trim();
  }

  /**
   * Of a picture the colours of the first pixels that only this branch has.
   * @param {Token[]} own
   * @param {Branch["fork"]} fork
   */
  swatches(own, fork) {
    const first = own.slice(0, SWATCHES).map(({ id }) => {
      const swatch = make("i", "swatch");
      swatch.style.background = colourOf(this.page.data, id);
      return swatch;
    });
    return [...(fork.depth ? ["… "] : []), ...first];
  }
}

/** @param {number} sum */
function signed(sum) {
  return sum.toFixed(2).replace("-0.00", "0.00").replace("-", "−");
}

/**
 * Every leaf with the tokens of its own: {leaf, depth, own, fork: {depth, row}}, `fork` being where it left a branch above it.
 * @param {Tree} tree
 */
function branchesOf(tree) {
  const rows = new Map([[0, 0]]); // token -> the row of the branch that had it first
  return tree.leaves().map((leaf, row) => {
    const path = tree.path(leaf);
    const known = path.findLastIndex(({ key }) => rows.has(key));
    const fork = { depth: known + 1, row: rows.get(path[known]?.key ?? 0) ?? 0 };
    const own = path.slice(known + 1);
    for (const { key } of own) rows.set(key, row);
    return { leaf, depth: path.length, own, fork };
  });
}
