// The scores of a long text's heads, layer by layer, once one of them is chosen and for as long as it is. Most are of the text's own
// patterns, and come together; the positional share is of many other texts, so that of it a layer takes several questions.
import { inquire } from "../core/store.js";

const PLACED = "positional";
const STALLED = 3; // answers in a row that go no further

export class Scoring {
  constructor(page) {
    this.page = page;
  }

  /** Another run: nothing is scored. */
  begin(data) {
    if (data === this.data) return; // another theme
    const { arrays, lanes, scoreTable } = data;
    for (const [side, { model }] of Object.entries(lanes)) {
      for (const { key } of scoreTable) arrays[named(side, key)] ??= { data: new Float32Array(model.layers * model.heads).fill(NaN) };
    }
    this.data = data;
    this.known = new Map(); // stack and kind of score -> {done, steps, scored: layers, going}
  }

  stop() {
    this.data = null;
  }

  progress(key) {
    const { trace } = this.page;
    const found = this.of(key);
    return found.scored < trace.model.layers ? found : null;
  }

  of(key) {
    const { trace } = this.page;
    const name = `${trace.side} ${key === PLACED}`;
    if (!this.known.has(name)) this.known.set(name, { done: 0, steps: trace.model.layers, scored: 0, going: false });
    return this.known.get(name);
  }

  /** Asks for what the chosen score needs, one answer after the other, until every head has it or another is chosen. */
  async go() {
    const { page, data } = this;
    const { state, trace } = page;
    if (!state.score || state.focus !== "attn") return;
    const placed = state.score === PLACED;
    const found = this.of(state.score);
    if (found.going || found.scored === trace.model.layers) return;
    const wanted = () => data === this.data && page.trace.side === trace.side && state.focus === "attn" && state.score && (state.score === PLACED) === placed;
    found.going = true;
    try {
      while (found.scored < trace.model.layers && wanted()) {
        await (placed ? this.placed(found, trace, data) : this.measured(found, trace, data));
        if (data === this.data) page.scored(found.scored === trace.model.layers);
      }
    } catch (error) {
      if (data === this.data) page.parts.notice(error.message);
    } finally {
      found.going = false;
    }
  }

  async measured(found, trace, data) {
    const { layers, heads } = trace.model;
    const { arrays } = await this.page.request({ ask: "scores", side: trace.side, layer: found.scored });
    for (const [key, { data: values }] of Object.entries(arrays)) data.arrays[named(trace.side, key)].data.set(values, found.scored * heads);
    const scored = found.scored + 1;
    Object.assign(found, { done: scored, steps: layers, scored });
  }

  async placed(found, trace, data) {
    /** @type {import("../core/store.js").Query<"positional">} */
    const query = { ask: PLACED, side: trace.side };
    const whole = () => this.page.request({ ...query, whole: true }); // as a file has it, which has no server that would go on
    const answer = await inquire({ trace: trace.trace, ...query }).catch((error) => whole().catch(() => Promise.reject(error)));
    found.stalled = answer.done > found.done ? 0 : (found.stalled ?? 0) + 1;
    if (found.stalled > STALLED) throw new Error("The server has no room to keep what it has read of other orders of this text; LOUPE_TRACE_MEMORY_MIB gives it more.");
    data.arrays[named(trace.side, PLACED)].data.set(answer.arrays[PLACED].data);
    Object.assign(found, { done: answer.done, steps: answer.steps, scored: answer.scored });
    if (found.scored === trace.model.layers) whole().catch(() => {}); // so that a file of this page has it
  }
}

function named(side, key) {
  return `scores.${side && `${side}.`}attn.${key}`;
}
