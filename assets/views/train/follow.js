// Follows one run: asks again and again what is new of it, as long as somebody looks and something can happen.
import { inquire } from "../core/store.js";

const BUSY = ["queued", "preparing", "running"];
const PACE = { busy: 400, begun: 150, paused: 1500, failed: 3000 }; // ms between two questions
const CURVE = 2; // points that a curve begins with; until they are there, somebody waits for them
const EAGER = 4000; // ms after an order in which the page looks often, for what comes of it
const SLOW = 5000; // ms without an answer after which the page says so

/** Whether something is going on in a run by itself. */
export function busy(state) {
  return BUSY.includes(state);
}

export class Follower {
  /** `heard(answer)` is called for each answer, `failed(sentence)` when there is none, with "" when there is one again. */
  constructor(heard, failed) {
    Object.assign(this, { heard, failed, run: null, cursor: undefined, state: "", points: 0, timer: 0, eager: 0 });
    Object.assign(this, { asking: false, again: false, closed: false });
    this.onSight = () => document.visibilityState === "visible" && this.now();
    document.addEventListener("visibilitychange", this.onSight);
  }

  /** Follows another run, from the beginning; null follows none. */
  follow(run) {
    Object.assign(this, { run, cursor: undefined, state: "", points: 0 });
    if (run !== null) this.later(0);
  }

  /** Asks at once; if a question is on its way, right after its answer. */
  now() {
    clearTimeout(this.timer);
    this.timer = 0;
    if (this.closed || this.run === null) return;
    if (this.asking) this.again = true;
    else this.ask();
  }

  /** After an order: at once, and often for a while. */
  soon() {
    this.eager = performance.now() + EAGER;
    this.now();
  }

  async ask() {
    const { run, cursor } = this;
    this.asking = true;
    this.again = false;
    const slow = setTimeout(() => this.failed("The server has not answered for some seconds; the page goes on asking."), SLOW);
    let wait = PACE.failed;
    try {
      const answer = await inquire({ ask: "live", run, ...(cursor === undefined ? {} : { cursor }) });
      clearTimeout(slow);
      if (this.closed) return;
      if (run === this.run) {
        this.cursor = answer.cursor;
        this.state = answer.status.state;
        this.points += answer.arrays["metrics.step"]?.data.length ?? 0;
        this.failed("");
        this.heard(answer);
        wait = this.pause(answer.status);
      }
    } catch (error) {
      if (run === this.run && !this.closed) this.failed(error.message);
    }
    clearTimeout(slow);
    this.asking = false;
    if (this.again || run !== this.run) this.now();
    else if (wait !== null) this.later(wait);
  }

  /** How long until the next question; null where nothing more can come by itself. */
  pause({ state, catching_up: late }) {
    if (late) return 0;
    const eager = performance.now() < this.eager;
    if (eager && busy(state) && this.points < CURVE) return PACE.begun;
    if (busy(state) || eager) return PACE.busy;
    return state === "paused" ? PACE.paused : null;
  }

  later(wait) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => document.visibilityState === "visible" && this.now(), wait);
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.onSight);
  }
}
