// A beam search as it goes: the server is asked for what it finds in a while, again and again, until all of it is here or the person stops it. Searches
// outlive the page; those not looked at longest go.
import { canonical } from "./store.js";

const PATIENCE = 250; // ms of searching for an answer
const MOST = 12; // searches that are kept

const known = new Map(); // canonical [prompt and model, query] -> {trace, query, answer, stopped}, the newest last

function remember(key, found) {
  known.delete(key);
  known.set(key, found);
  for (const old of known.keys()) if (known.size > MOST) known.delete(old);
}

/** Those of a prompt, for a file: [{query, steps}], `steps` null where all of a search is here. */
export function searchesOf(trace) {
  const here = [...known.values()].filter((one) => one.trace === trace && one.answer);
  return here.map(({ query, answer }) => ({ query, steps: answer.whole ? null : answer.count }));
}

/** What is asked to have as much of a search again. */
export function searchQuery({ query, steps }) {
  return { ...query, ...(steps && { steps }) };
}

/** `on` = {take(run), fail(error)}: there is more of it, or it was stopped; it cannot be searched. `answer` is what is here, null at first. */
export class SearchRun {
  constructor(page, query, on) {
    Object.assign(this, { page, query, on, turn: 0, answers: 0, answer: null, stopped: false });
    this.trace = page.data.trace;
    this.key = canonical([this.trace, query]);
    Object.assign(this, known.get(this.key));
  }

  get isActive() {
    return !this.stopped && !this.answer?.whole;
  }

  begin() {
    if (this.page.alone) return this.read();
    if (this.answer) this.on.take(this);
    if (this.isActive) this.go();
  }

  /** In a file, which has what was here when it was made. */
  read() {
    const kept = this.page.data.kept.searches?.find(({ query }) => canonical(query) === canonical(this.query));
    const turn = ++this.turn;
    const found = this.page.request(searchQuery({ query: this.query, steps: kept?.steps }));
    found.then((answer) => turn === this.turn && this.take(answer, !answer.whole), (error) => turn === this.turn && this.on.fail(error));
  }

  async go() {
    const turn = ++this.turn;
    this.stopped = false;
    try {
      let question = this.ask();
      while (question) {
        const answer = await question;
        if (turn !== this.turn) return;
        question = answer.whole ? null : this.ask(); // searched while this is drawn
        this.answers++;
        if (!this.answer || answer.whole || answer.count > this.answer.count) this.take(answer); // where it began anew there is less at first
      }
    } catch (error) {
      if (turn === this.turn) this.on.fail(error);
    }
  }

  ask() {
    return this.page.inquire({ ...this.query, trace: this.trace, patience: PATIENCE });
  }

  take(answer, stopped = false) {
    Object.assign(this, { answer, stopped });
    this.keep();
    this.on.take(this);
  }

  keep() {
    const { trace, query, answer, stopped } = this;
    remember(this.key, { trace, query, answer, stopped });
  }

  stop() {
    this.leave();
    this.stopped = true;
    this.keep();
    this.on.take(this);
  }

  /** Nobody looks at it now; it goes on where somebody does again. */
  leave() {
    this.turn++;
  }
}
