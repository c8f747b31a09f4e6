// A text, token by token: what stands there, what each token was chosen from, and the tree of all that was written from this prompt.
import { make } from "../core/dom.js";
import { mount as mountBranches } from "./branches.js";
import { stepQuery, stepsOf } from "./steps.js";
import { mount as mountStep } from "./step.js";
import { mount as mountText } from "./text.js";
import { CSS as STYLE } from "./write_style.js";

const READABLE = 400; // ms

export const CSS = STYLE;

export function mount(room, page) {
  return new Write(room, page);
}

class Write {
  constructor(room, page) {
    Object.assign(this, { page, room, next: 0 });
    this.build();
    this.text = mountText(this.places.text, page, (at) => this.look(at), (at) => this.glance(at));
    this.step = mountStep(this.places.step, page, { choose: (row) => this.choose(row), look: (at) => this.look(at) });
    this.branches = mountBranches(this.places.branches, page, { show: (leaf) => this.show(leaf), remove: (leaf) => this.remove(leaf) });
  }

  build() {
    const [bar, body] = [make("div", "write-bar"), make("div", "write-body")];
    this.button = this.act("go", ({ detail }) => detail < 2 && this.toggle()); // a double click is one
    this.again = this.act("quiet", () => this.anew());
    this.told = make("p", "write-told");
    this.told.setAttribute("role", "status");
    this.speed = make("p", "write-speed");
    bar.append(this.button, this.again, this.told, this.speed);
    const [left, right] = [make("div", "write-left"), make("div", "write-right")];
    this.places = { text: make("section", "write-text"), step: make("section", "write-step"), branches: make("section", "write-branches") };
    left.append(this.places.text, this.places.branches);
    right.append(this.places.step);
    body.append(left, right);
    this.room.append(bar, body);
  }

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
    const last = tree.nodes.get(tree.shown);
    const ended = this.ended();
    this.button.hidden = page.alone;
    this.button.textContent = run.active ? "Stop" : tree.shown ? "Write on" : "Write";
    this.button.title = run.active ? "Escape" : "Enter";
    this.button.disabled = !run.active && Boolean(ended);
    this.again.textContent = data.settings.method === "sample" ? "Another draw" : "From the prompt";
    this.again.title = "from the prompt again, as another branch";
    this.again.hidden = page.alone || tree.isEmpty || !this.differs();
    this.again.disabled = run.active;
    this.told.textContent = run.active ? "" : run.told || last.stop?.sentence || ended || (tree.isEmpty && !page.alone ? "Enter writes, Escape stops." : "");
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

  tellSpeed(speed) {
    const some = speed && speed.tokens > 0;
    this.speed.textContent = some ? `${(1000 * speed.seconds / speed.tokens).toFixed(1)} ms a token · ${Math.round(speed.tokens / speed.seconds).toLocaleString("en")} tokens/s` : "";
    this.speed.title = "measured by the engine, from reading the prompt on";
  }

  /** Why nothing can follow, whatever the settings. */
  ended() {
    const { tree, data } = this.page;
    const { stop } = tree.nodes.get(tree.shown);
    if (!tree.shown && data.full) return data.full.sentence;
    return stop && ["end", "context", "picture"].includes(stop.kind) ? stop.sentence : "";
  }

  /** Whether writing from the prompt again would give another text: what is not drawn is the same each time. */
  differs() {
    const { tree, data } = this.page;
    if (data.settings.method === "sample") return true;
    const first = tree.nodes.get(0).children.map((key) => JSON.stringify(tree.settingsOf(tree.nodes.get(key))));
    return !first.includes(JSON.stringify(data.settings));
  }

  toggle() {
    const { page } = this;
    const { run, tree } = page;
    if (run.active) return run.stop();
    if (page.alone || this.ended()) return;
    run.begin(tree.shown, tree.nodes.get(tree.shown).shift ?? 0);
  }

  /** From the prompt, with the first seed that it was not written from yet. */
  anew() {
    const { tree, run, data } = this.page;
    const used = new Set([...tree.nodes.values()].filter(({ parent }) => parent === 0).flatMap((node) => this.seeds(node)));
    let shift = 0;
    while (data.settings.method === "sample" && used.has(data.settings.seed + shift)) shift++;
    run.begin(0, shift);
  }

  /** Those with which tokens of a branch were drawn under the present settings. */
  seeds(node) {
    const { tree } = this.page;
    return tree.path(tree.leafOf(node.key)).map((one) => tree.settingsOf(one).seed);
  }

  // --- one step ------------------------------------------------------------------------------------------------------------

  /** Looks at a token of the branch by its place; one behind the last is what would follow, null the newest. */
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

  /** The pointer is on a token: its step, if that is here, until the pointer is gone (null). */
  glance(at) {
    const { tree, run } = this.page;
    if (run.active) return;
    const path = tree.path();
    if (at === null) return this.glanced ? this.showStep() : null;
    const node = path[at];
    this.glanced = Boolean(node?.step);
    if (this.glanced) this.step.update({ at, count: path.length, node, settings: tree.settingsOf(node), step: node.step });
  }

  showStep() {
    const { page } = this;
    const { tree, data } = page;
    Object.assign(this, { glanced: false, asked: null });
    const path = tree.path();
    const node = path[this.at] ?? null;
    const query = node ? stepQuery(tree, node) : { ask: "step", begun: tree.ids(), settings: data.settings };
    const shown = { at: this.at, count: path.length, node, settings: query.settings };
    if (node?.step) return this.step.update({ ...shown, step: node.step });
    if (!node && (this.ended() || page.run.active)) return this.step.update({ ...shown, step: null, sentence: this.ended() });
    const asked = (this.asked = JSON.stringify([data.trace, query]));
    this.step.wait(shown);
    page.request(query).then((answer) => {
      const [step] = stepsOf(answer);
      if (node && step) node.step = step;
      if (asked === this.asked && this.room.firstChild) this.step.update({ ...shown, step: step ?? null, sentence: answer.stop?.sentence });
    }, (error) => asked === this.asked && this.step.update({ ...shown, step: null, sentence: error.message }));
  }

  /** Another token in place of the one that is looked at: the text branches there, and goes on. */
  choose(row) {
    const { page } = this;
    const { tree, run, data } = page;
    const path = tree.path();
    const node = path[this.at];
    if (page.alone || node?.id === row.id) return;
    run.stop();
    const parent = node ? node.parent : tree.shown;
    const shift = (node ?? tree.nodes.get(tree.shown)).shift ?? 0;
    const settings = { ...data.settings, seed: data.settings.seed + shift };
    const key = tree.add(parent, { id: row.id, piece: row.piece, p: row.own, log: row.log_own, drawn: row.probabilities, rank: row.rank, chosen: true, shift, step: null }, settings);
    run.begin(key, shift);
  }

  show(leaf) {
    const { tree, run } = this.page;
    run.stop();
    run.told = "";
    Object.assign(tree, { shown: leaf, at: null });
    tree.save();
    this.page.refresh();
  }

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
    const said = path.at(-1) ? tree.settingsOf(path.at(-1)) : data.settings;
    const begun = Math.max(last + 1, path.findLastIndex((one) => tree.settingsOf(one) !== said) + 1);
    const { count, sum, perplexity } = tree.measure();
    const numbers = count ? `${count} tokens, sum of log-probabilities ${sum.toFixed(2)} nats, perplexity ${perplexity.toFixed(2)}` : "";
    const where = node ? `token ${this.at + 1} of ${count}` : "what follows";
    return { where, sentence: numbers, asks: { begun, settings: said, at: this.at }, file: "written" };
  }
}
