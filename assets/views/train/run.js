// What is known of the run that the page looks at, as it was told so far, and how more is asked for: one place for all parts.
import { observe, settle } from "../core/observe.js";
import { Shell } from "../core/shell.js";
import { inquire } from "../core/store.js";

/**
 * @import { NamedArray } from "../core/payload.js"
 * @import { Keeping } from "../core/shell.js"
 * @import { Data, Parts, State } from "./train.js"
 */

/**
 * @typedef {"attn" | "encoder" | "cross_attn"} AttentionKey
 * @typedef {"read" | "target"} TextSide
 * @typedef {{ key: AttentionKey, title: string, layers: number, heads: number, rows: TextSide, columns: TextSide }} Attention
 * @typedef {Omit<NamedArray, "data"> & { data: Float32Array }} Floats
 * @typedef {Omit<NamedArray, "data"> & { data: Int32Array }} Ints
 * @typedef {Omit<NamedArray, "data"> & { data: Uint8Array }} Bytes
 * @typedef {{ ids?: Ints, "target.ids"?: Ints, "free.ids"?: Ints, "top.ids"?: Ints, "top.p"?: Floats, asked?: Ints,
 *   loss?: Floats, p?: Floats, [pattern: `patterns.${string}`]: Bytes, [score: `scores.${string}`]: Floats | undefined }} FrameArrays
 *   as engine/training/probe/frames.py names them
 * @typedef {{ step: number, kept: boolean, arrays: FrameArrays }} Frame
 * @typedef {[low: number, high: number, counts: number[]]} Histogram
 * @typedef {{ step: number, gradients: Record<string, number>, weights: Record<string, Histogram>, activations: Record<string, Histogram>,
 *   certain: Record<string, number>, quiet: Record<string, number>, kept: boolean }} WatchLine of a step, by the parts of the model
 * @typedef {"head" | "plateau" | "grokking" | "overfitting" | "learned" | "spike"} MarkKind
 * @typedef {{ layer: number, head: number } | { layer?: undefined, head?: undefined, trained?: number }} MarkPlace
 * @typedef {{ step: number, kind: MarkKind, sentence: string, before: number, after: number, where: MarkPlace, what: string }} Mark
 * @typedef {"new" | "queued" | "preparing" | "running" | "paused" | "stopped" | "killed" | "failed" | "finished"} RunState
 * @typedef {{ state: RunState, step: number, steps: number, error: string, cause: string, resumable: boolean, chosen: string[],
 *   where: string, position: number, seconds_left: number | null, lr: number | null, snapshots: number[], catching_up: boolean,
 *   recorded: boolean, locked: string }} Status
 * @typedef {{ before: number, side: number }} Grid of a picture's places, behind those that stand for no place
 * @typedef {{ text: string | null, target: string | null, picture: number | null }} Example
 * @typedef {Example & { error: string, pieces: string[], target_pieces: string[], labels?: string[] }
 *   & ({ pixels: number[][], grid: Grid } | { pixels?: undefined, grid?: undefined })} Probe
 * @typedef {{ data: string, objective: string, about: string, name: string }} Task
 * @typedef {{ columns: string[], arrays: Record<string, NamedArray> }} Lines
 * @typedef {Lines & { run: string, cursor: number, fresh: boolean, anew: ("metrics" | "frames" | "watched")[],
 *   frames: { step: number, kept: boolean }[], names: Record<number, string>, watch: WatchLine[], marks: Mark[], status: Status,
 *   attentions: Attention[], task: Task, lr: number, recipe: string, probe: Probe | null, pictures: number }} Update
 * @typedef {[column: string, called: string, bold: boolean, role?: string]} CurveLine
 * @typedef {{ title: string, kinds: CurveLine[], format: (x: number) => string }} Curve
 */

/** @type {Record<string, AttentionKey>} of two stacks, by how the names of their scores begin */
const ATTENTIONS = { cross: "cross_attn", encoder: "encoder" };

/** @extends {Shell<State, Parts, Data>} */
export class Run extends Shell {
  /** @type {string | null} its name, "" of the recorded one */
  run;
  /** @type {Metrics} */
  metrics;
  /** @type {Map<number, Frame>} by its step */
  frames;
  /** @type {number[]} of the frames, ascending */
  steps;
  /** @type {Record<number, string>} token id -> piece */
  names;
  /** @type {WatchLine[]} in the order of their steps */
  watch;
  /** @type {Mark[]} */
  marks;
  /** @type {Attention[]} */
  attentions;
  /** @type {Status | null} */
  status;
  /** @type {Probe | null} */
  probe;
  /** @type {Task | null} */
  task;
  /** @type {Frame | null} that is looked at */
  frame;
  /** @type {Frame | null} that it is compared with */
  second;
  /** @type {number} the step at the handle */
  shown;
  /** @type {number} the learning rate of its recipe */
  lr;
  /** @type {string} which recipe it has */
  recipe;
  /** @type {number} of pictures that are held out */
  pictureCount;

  /**
   * @param {HTMLElement} root
   * @param {string} name
   * @param {Keeping} keeping
   */
  constructor(root, name, keeping) {
    super(root, name, keeping);
    this.run = null;
    this.answers = 0; // that were taken in
    this.forget(null);
  }

  /**
   * Nothing is known of `run` yet.
   * @param {string | null} run
   */
  forget(run) {
    this.run = run;
    this.metrics = new Metrics();
    this.frames = new Map();
    this.steps = [];
    this.names = {};
    this.watch = [];
    this.marks = [];
    this.attentions = [];
    this.status = null;
    this.probe = null;
    this.task = null;
    this.lr = NaN;
    this.recipe = "";
    this.pictureCount = 0;
    this.frame = null;
    this.second = null;
    this.shown = 0;
    this.hover = null;
  }

  /** Whether its process is there: it learns, waits or rests. */
  get active() {
    return isBusy(this.status?.state) || this.status?.state === "paused";
  }

  /**
   * Takes in one answer to {ask: "live"}.
   * @param {Update} answer
   */
  take(answer) {
    if (answer.fresh) this.forget(this.run);
    this.answers++;
    if (answer.anew.includes("metrics")) this.metrics = new Metrics();
    this.metrics.append(answer);
    this.takeFrames(answer);
    this.takeWatched(answer);
    const { marks, probe, attentions, task, lr, recipe, pictures } = answer;
    settle(/** @type {Run} */ (this), { marks, probe, attentions, task, lr, recipe, pictureCount: pictures });
    if (this.status) settle(this.status, answer.status);
    else this.status = observe({ ...answer.status });
  }

  /** @param {Update} answer */
  takeFrames({ anew, frames, arrays, names }) {
    if (Object.keys(names).length) this.names = { ...this.names, ...names };
    if (!frames.length && !anew.includes("frames")) return;
    /** @type {Record<string, NamedArray>[]} */
    const made = frames.map(() => ({}));
    for (const [name, array] of Object.entries(arrays)) {
      const [first, index, ...rest] = name.split(".");
      if (first === "frames") made[Number(index)][rest.join(".")] = array;
    }
    /** @type {[step: number, frame: Frame][]} */
    const added = frames.map(({ step, kept }, i) => [step, { step, kept, arrays: made[i] }]);
    this.frames = new Map([...(anew.includes("frames") ? [] : this.frames), ...added]);
    this.steps = Array.from(this.frames.keys()).sort((a, b) => a - b);
  }

  /** @param {Update} answer */
  takeWatched({ anew, watch }) {
    if (!watch.length && !anew.includes("watched")) return;
    const before = anew.includes("watched") ? [] : this.watch;
    const known = new Map([...before, ...watch].map((line) => [line.step, line]));
    this.watch = Array.from(known.values()).sort((a, b) => a.step - b.step);
  }

  /**
   * Where the page is to look to see what a mark tells of.
   * @param {Mark} mark
   * @returns {Partial<State>}
   */
  whereOf({ what, where }) {
    if (where?.layer === undefined) return {};
    const [side] = what.includes(".") ? what.split(".") : [""];
    return { attention: ATTENTIONS[side] ?? "attn", layer: where.layer, head: where.head };
  }

  /**
   * The kept step (one with a snapshot) at `step` or before, -1 where there is none.
   * @param {number} step
   */
  kept(step) {
    const { snapshots = [] } = this.status ?? {};
    return snapshots[upTo(snapshots, snapshots.length, step)] ?? -1;
  }
}

// --- the curves: a column of numbers for each thing that is measured, NaN where it was not ---------------------------------------

const ROOM = 256; // lines that a column begins with

export class Metrics {
  constructor() {
    this.length = 0;
    /** @type {Record<string, Float64Array>} of which the first `length` count */
    this.columns = {};
    observe(this);
  }

  /**
   * Adds the lines of one answer, {columns, arrays} with `metrics.<name>` each.
   * @param {Lines} answer
   */
  append({ columns, arrays }) {
    const count = columns.length ? arrays[`metrics.${columns[0]}`].data.length : 0;
    if (!count) return;
    const held = { ...this.columns };
    for (const name of columns) held[name] ??= new Float64Array(ROOM).fill(NaN);
    for (const [name, column] of Object.entries(held)) {
      const roomy = grown(column, this.length + count);
      const added = arrays[`metrics.${name}`]?.data;
      if (added) roomy.set(added, this.length);
      held[name] = roomy;
    }
    this.columns = held;
    this.length += count;
  }

  /** @param {string} name */
  has(name) {
    return name in this.columns;
  }

  /**
   * All that was measured, one number a line.
   * @param {string} name
   */
  column(name) {
    return this.columns[name]?.subarray(0, this.length) ?? new Float64Array(0);
  }

  get last() {
    return this.length ? this.columns.step[this.length - 1] : 0;
  }

  /**
   * What `name` was at `step` or, where nothing was measured there, before; NaN where it never was.
   * @param {string} name
   * @param {number} step
   */
  at(name, step) {
    const [steps, values] = [this.columns.step, this.columns[name]];
    if (!values) return NaN;
    for (let i = upTo(steps, this.length, step); i >= 0; i--) if (!Number.isNaN(values[i])) return values[i];
    return NaN;
  }
}

/**
 * @param {Float64Array} column
 * @param {number} length
 */
function grown(column, length) {
  if (length <= column.length) return column;
  const wider = new Float64Array(Math.max(length, 2 * column.length)).fill(NaN);
  wider.set(column);
  return wider;
}

/**
 * The index of the last of the first `length` ascending numbers that is at most `x`, -1 where none is.
 * @param {ArrayLike<number>} numbers
 * @param {number} length
 * @param {number} x
 */
export function upTo(numbers, length, x) {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** @type {Record<string, Curve>} */
const OWN = {
  lr: { title: "learning rate", kinds: [["lr", "", false]], format: formatRate },
  grad_norm: { title: "gradient norm", kinds: [["grad_norm", "", false]], format: (x) => x.toPrecision(3) },
  tokens_per_second: {
    title: "tokens/s",
    kinds: [["tokens_per_second", "", false]],
    format: (x) => Math.round(x).toLocaleString("en"),
  },
};
const ROLES = 12; // colours of lines that stand side by side
const SHARE = /^expert_share_/; // one column an expert, drawn together
const KNOWN = [
  "step",
  "loss",
  "accuracy",
  "held_out_loss",
  "held_out_accuracy",
  "held_out_targets",
  "tokens",
  "seconds",
  ...Object.keys(OWN),
];
/** @type {Record<string, string>} */
const TITLES = { exact: "whole answers right", held_out_exact: "whole answers right" };

/**
 * What can be chosen: always the same three, and what this run's objective counts.
 * @param {Metrics} metrics
 * @returns {[name: string, curve: Curve][]}
 */
export function measuredCurves(metrics) {
  const others = Object.keys(metrics.columns)
    .filter((name) => !KNOWN.includes(name))
    .map((name) => name.replace(/^held_out_/, ""));
  const names = others.filter((name) => !SHARE.test(name));
  const shares = [...new Set(others.filter((name) => SHARE.test(name)))];
  /** @type {[name: string, curve: Curve][]} */
  const more = [...new Set(names)].map((name) => {
    /** @type {CurveLine[]} */
    const kinds = [
      [name, "train", false],
      [`held_out_${name}`, "held out", true],
    ];
    return [name, { title: TITLES[name] ?? name.replaceAll("_", " "), kinds, format: (x) => x.toPrecision(4) }];
  });
  if (shares.length) {
    /** @type {CurveLine[]} */
    const kinds = shares.map((name, i) => [name, name.replace(SHARE, ""), false, `head-${(i % ROLES) + 1}`]);
    more.push(["expert_shares", { title: "experts’ shares", kinds, format: (x) => x.toFixed(3) }]);
  }
  return [...Object.entries(OWN), ...more];
}

/**
 * 0.003 and 3e-5.
 * @param {number} lr
 */
export function formatRate(lr) {
  if (lr === 0) return "0";
  return lr >= 0.0009995 ? String(Number(lr.toPrecision(3))) : lr.toExponential(2).replace(/\.?0+e/, "e");
}

// --- following one run: what is new of it is asked for as long as somebody looks and something can happen ------------------------

/** @type {(RunState | undefined)[]} */
const BUSY = ["queued", "preparing", "running"];
const POLL = { busy: 400, begun: 150, paused: 1500, failed: 3000 }; // ms between two questions
const CURVE = 2; // points that a curve begins with; until they are there, somebody waits for them
const EAGER = 4000; // ms after an order in which the page looks often, for what comes of it
const SLOW = 5000; // ms without an answer after which the page says so

/**
 * Whether something is going on in a run by itself.
 * @param {RunState | undefined} state
 */
export function isBusy(state) {
  return BUSY.includes(state);
}

export class Follower {
  /** @type {string | null} */
  run = null;
  /** @type {number | undefined} up to where it has been told */
  cursor;

  /**
   * `heard(answer)` is called for each answer, `failed(sentence)` when there is none, with "" when there is one again.
   * @param {(answer: Update) => void} heard
   * @param {(sentence: string) => void} failed
   */
  constructor(heard, failed) {
    this.heard = heard;
    this.failed = failed;
    this.state = "";
    this.points = 0;
    this.timer = 0;
    this.eager = 0;
    this.asking = false;
    this.again = false;
    this.closed = false;
    this.onSight = () => document.visibilityState === "visible" && this.now();
    document.addEventListener("visibilitychange", this.onSight);
  }

  /**
   * Follows another run, from the beginning; null follows none.
   * @param {string | null} run
   */
  follow(run) {
    this.run = run;
    this.cursor = undefined;
    this.state = "";
    this.points = 0;
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
    if (run === null) return;
    this.asking = true;
    this.again = false;
    const slow = setTimeout(
      () => this.failed("The server has not answered for some seconds; the page goes on asking."),
      SLOW,
    );
    /** @type {number | null} */
    let wait = POLL.failed;
    try {
      const answer = /** @type {Update} */ (
        await inquire({ ask: "live", run, ...(cursor === undefined ? {} : { cursor }) })
      );
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

  /**
   * How long until the next question; null where nothing more can come by itself.
   * @param {Status} status
   */
  pause({ state, catching_up: late }) {
    if (late) return 0;
    const eager = performance.now() < this.eager;
    if (eager && isBusy(state) && this.points < CURVE) return POLL.begun;
    if (isBusy(state) || eager) return POLL.busy;
    return state === "paused" ? POLL.paused : null;
  }

  /** @param {number} wait */
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

// --- the curves of other runs, laid over those of the one that is looked at ------------------------------------------------------

const PACE = 2500; // ms between two looks at runs that may still grow
const PATIENCE = 4; // looks without anything new until a run is taken to be at rest

export class Overlays {
  /** @type {Map<string, Metrics>} by the names of their runs, in the order in which they were chosen */
  metrics = new Map();
  /** @type {Map<string, number>} looks without anything new, by the same names */
  still = new Map();

  /**
   * `changed(name, sentence)` is called when there is more of one, or when it cannot be told.
   * @param {(name: string, sentence: string) => void} changed
   */
  constructor(changed) {
    this.changed = changed;
    this.timer = 0;
    this.closed = false;
    observe(this);
  }

  /**
   * These are overlaid from now on.
   * @param {string[]} names
   */
  show(names) {
    const [before, after] = [JSON.stringify([...this.metrics.keys()]), JSON.stringify(names)];
    if (before === after) return;
    this.metrics = new Map(names.map((name) => [name, this.metrics.get(name) ?? new Metrics()]));
    this.still = new Map(names.map((name) => [name, 0]));
    this.look();
  }

  /**
   * Of runs that are told whole, {name, columns} with the arrays `laid.<number>.<column>`.
   * @param {{ name: string, columns: string[] }[]} runs
   * @param {Record<string, NamedArray>} arrays
   */
  hold(runs, arrays) {
    const told = runs.map(({ name, columns }, i) => {
      const made = new Metrics();
      made.append({
        columns,
        arrays: Object.fromEntries(columns.map((column) => [`metrics.${column}`, arrays[`laid.${i}.${column}`]])),
      });
      return /** @type {[name: string, metrics: Metrics]} */ ([name, made]);
    });
    this.metrics = new Map([...this.metrics, ...told]);
  }

  /**
   * While the run that is looked at goes on, the others may too: runs are started side by side.
   * @param {Status} status
   */
  follow({ state }) {
    if (state !== "running" && state !== "preparing") return;
    for (const [name, count] of this.still) if (count >= PATIENCE) this.still.set(name, PATIENCE - 1);
    if (!this.timer && this.metrics.size) this.timer = setTimeout(() => this.look(), PACE);
  }

  async look() {
    clearTimeout(this.timer);
    const names = [...this.still].filter(([, count]) => count < PATIENCE).map(([name]) => name);
    this.timer = -1; // on its way
    if (document.visibilityState === "visible") await Promise.all(names.map((name) => this.ask(name)));
    const more = [...this.still.values()].some((count) => count < PATIENCE);
    this.timer = more && !this.closed ? setTimeout(() => this.look(), PACE) : 0;
  }

  /** @param {string} name */
  async ask(name) {
    try {
      const { columns, arrays } = await inquire({ ask: "curve", run: name });
      const before = this.metrics.get(name);
      if (this.closed || !before) return;
      const made = new Metrics();
      made.append({ columns, arrays });
      const same = before.length === made.length && before.last === made.last;
      this.still.set(name, same ? (this.still.get(name) ?? 0) + 1 : 0);
      if (same) return;
      this.metrics = new Map(this.metrics).set(name, made);
      this.changed(name, "");
    } catch (error) {
      this.still.set(name, PATIENCE);
      if (!this.closed) this.changed(name, error.message);
    }
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
  }
}
