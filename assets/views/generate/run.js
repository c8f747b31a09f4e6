// Writing: asks for the next tokens of a branch until something ends it or the person does. They come some at a time, and stand in the text as they come.
import { Asking } from "./asking.js";
import { stepsOf, tokenOf } from "./steps.js";

/** `page` is the shell. `active` says that it writes; `told` is the sentence that says what ended it. */
export class Run {
  constructor(page) {
    this.page = page;
    this.asking = new Asking(page);
    this.active = false;
    this.told = "";
    this.speed = null; // {tokens, seconds} of the engine
  }

  /** Goes on behind the token `from` of the tree; `shift` draws with another seed. */
  async begin(from = this.page.tree.shown, shift = 0) {
    const { page } = this;
    const { tree } = page;
    Object.assign(this, { active: true, told: "", speed: { tokens: 0, seconds: 0 }, from, tree, ids: tree.ids(from) });
    Object.assign(tree, { shown: from, at: null });
    const { most } = page.data.settings; // of this run, whatever is set meanwhile
    const goal = this.ids.length + most;
    page.refresh();
    let settings = null; // of the tokens that are asked for
    const query = () => {
      settings = { ...page.data.settings, most, seed: page.data.settings.seed + shift };
      return { ask: "write", begun: this.ids, settings, goal, shared: page.isShared };
    };
    try {
      await this.asking.go(query, (part) => this.take(part, settings, shift));
    } catch (error) {
      this.end(error.message);
      page.refresh();
    }
  }

  /** A part that does not follow what stands there was asked for before a rerun of the page, and is here already. */
  take(part, settings, shift) {
    const { before, seconds, stop } = part;
    if (before !== this.ids.length) return;
    const steps = stepsOf(part);
    this.ids = [...this.ids, ...steps.map(({ id }) => id)];
    this.speed.tokens += steps.length;
    this.speed.seconds += seconds;
    steps.forEach((step, i) => {
      this.from = this.tree.add(this.from, tokenOf(step, { stop: i === steps.length - 1 ? stop : null, shift }), settings);
    });
    this.tree.shown = this.from;
    if (!steps.length && stop && this.from) this.tree.nodes.get(this.from).stop = stop;
    if (stop) this.end(stop.sentence);
    this.page.refresh();
  }

  end(sentence) {
    this.asking.end();
    Object.assign(this, { active: false, told: sentence });
    this.tree.save();
    this.page.tell(sentence);
  }

  /** Another prompt: what was written from the one before says nothing of it. */
  forget() {
    this.leave();
    Object.assign(this, { told: "", speed: null });
  }

  stop() {
    if (!this.active) return;
    this.leave();
    this.page.interrupt();
    this.page.refresh();
  }

  /** The page is rerun anyway, or left. */
  leave() {
    if (!this.active) return;
    const count = this.speed.tokens;
    this.end(`You stopped it after ${count.toLocaleString("en")} ${count === 1 ? "token" : "tokens"}.`);
  }
}
