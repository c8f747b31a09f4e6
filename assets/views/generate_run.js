// Writing: asks for the next tokens of a branch, some at a time, until something ends it or the person does. What has come is shown one token after the
// other while the next ones are written.
import { stepsOf, tokenOf } from "./generate_steps.js";

const PATIENCE = { first: 300, least: 60, most: 600, trips: 14 }; // ms of writing for an answer: so many times what its way takes
const BEAT = 50; // ms between two tokens that are shown, at least

/** `page` is the shell. `active` says that it writes; `told` is the sentence that says what ended it. */
export class Run {
  constructor(page) {
    this.page = page;
    this.turn = 0;
    this.active = false;
    this.told = "";
    this.speed = null; // {tokens, seconds} of the engine
    this.waiting = []; // what has come and is not shown yet
    this.timer = 0;
  }

  /** Goes on behind the token `from` of the tree; `shift` draws with another seed. */
  async begin(from = this.page.tree.shown, shift = 0) {
    const { page } = this;
    const { tree } = page;
    const turn = ++this.turn;
    clearTimeout(this.timer);
    Object.assign(this, { active: true, told: "", speed: { tokens: 0, seconds: 0 }, from, tree, waiting: [], patience: 0 });
    Object.assign(tree, { shown: from, at: null });
    const ids = tree.ids(from);
    const goal = ids.length + page.data.settings.most;
    page.refresh();
    try {
      let question = this.ask(ids, goal, shift);
      while (question) {
        const { answer, settings } = await question;
        if (turn !== this.turn) return;
        const steps = stepsOf(answer);
        ids.push(...steps.map(({ id }) => id));
        question = answer.stop ? null : this.ask(ids, goal, shift); // written while these are shown
        this.take(steps, answer, settings, shift);
      }
    } catch (error) {
      if (turn !== this.turn) return;
      this.show(this.waiting.length);
      this.end(error.message);
      page.refresh();
    }
  }

  async ask(ids, goal, shift) {
    const { page, patience } = this;
    const settings = { ...page.data.settings, seed: page.data.settings.seed + shift };
    const begun = performance.now();
    const answer = await page.inquire({ ask: "write", begun: [...ids], settings, goal, patience });
    const trip = performance.now() - begun - 1000 * answer.seconds;
    const wanted = Math.max(PATIENCE.least, Math.min(PATIENCE.most, PATIENCE.trips * trip));
    this.patience = Math.min(wanted, Math.max(PATIENCE.first, 2 * patience)); // the first tokens come soon
    return { answer, settings };
  }

  take(steps, { seconds, stop }, settings, shift) {
    this.speed.tokens += steps.length;
    this.speed.seconds += seconds;
    this.show(this.waiting.length); // what came before
    const last = steps.length - 1;
    this.waiting = steps.map((step, i) => ({ token: tokenOf(step, { stop: i === last ? stop : null, shift }), settings }));
    if (!steps.length && stop && this.from) this.tree.nodes.get(this.from).stop = stop;
    if (stop || matchMedia("(prefers-reduced-motion: reduce)").matches) this.show(this.waiting.length);
    else this.play(this.patience / Math.max(1, this.waiting.length));
    if (stop) this.end(stop.sentence);
    this.page.refresh();
  }

  /** Shows what waits, a token every `pace` ms, or several at a time where that is too often. */
  play(pace) {
    const many = Math.max(1, Math.round(BEAT / pace));
    const beat = () => {
      this.show(many);
      this.page.refresh();
      if (this.waiting.length) this.timer = setTimeout(beat, Math.max(BEAT, pace));
    };
    this.show(many);
    if (this.waiting.length) this.timer = setTimeout(beat, Math.max(BEAT, pace));
  }

  /** Puts the first `count` of what waits into the tree. */
  show(count) {
    if (count >= this.waiting.length) clearTimeout(this.timer);
    for (const { token, settings } of this.waiting.splice(0, count)) this.from = this.tree.add(this.from, token, settings);
    this.tree.shown = this.from;
  }

  end(sentence) {
    Object.assign(this, { active: false, told: sentence });
    this.tree.save();
    this.page.tell(sentence);
  }

  /** Another prompt: what was written from the one before says nothing of it. */
  forget() {
    this.stop();
    Object.assign(this, { told: "", speed: null });
  }

  /** What is not shown yet is not kept. */
  stop() {
    if (!this.active) return;
    this.turn++;
    clearTimeout(this.timer);
    const count = this.speed.tokens - this.waiting.length;
    this.waiting = [];
    this.end(`You stopped it after ${count.toLocaleString("en")} ${count === 1 ? "token" : "tokens"}.`);
    this.page.refresh();
  }
}
