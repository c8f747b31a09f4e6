// What is known of the run that the page looks at, as it was told so far: one place for all parts.
import { busy } from "./follow.js";
import { Metrics, upTo } from "./metrics.js";

export class Run {
  constructor() {
    this.run = null;
    this.editions = { metrics: 0, frames: 0, watch: 0, marks: 0, probe: 0, status: 0 }; // each grows when that is another
    this.forget(null);
  }

  /** Nothing is known of `run` yet. */
  forget(run) {
    this.run = run;
    this.metrics = new Metrics();
    this.frames = new Map(); // step -> {step, kept, arrays}
    this.steps = []; // of the frames, ascending
    this.names = {}; // token id -> piece
    this.watch = [];
    Object.assign(this, { marks: [], attentions: [], status: null, probe: null, task: null, lr: NaN, recipe: "", pictureCount: 0 });
    Object.assign(this, { frame: null, second: null, shown: 0, hover: null });
    for (const name of Object.keys(this.editions)) this.editions[name]++;
  }

  /** Whether its process is there: it learns, waits or rests. */
  get active() {
    return busy(this.status?.state) || this.status?.state === "paused";
  }

  /** Takes in one answer to {ask: "live"}. */
  take(answer) {
    if (answer.fresh) this.forget(this.run);
    const { editions } = this;
    if (answer.anew.includes("metrics")) this.metrics = new Metrics();
    if (answer.columns.length || answer.anew.includes("metrics")) editions.metrics++;
    this.metrics.append(answer);
    this.takeFrames(answer);
    this.takeWatched(answer);
    for (const name of ["marks", "probe", "status", "attentions"]) {
      if (JSON.stringify(answer[name]) === JSON.stringify(this[name])) continue;
      this[name] = answer[name];
      editions[name === "attentions" ? "frames" : name]++;
    }
    Object.assign(this, { task: answer.task, lr: answer.lr, recipe: answer.recipe, pictureCount: answer.pictures });
  }

  takeFrames({ anew, frames, arrays, names }) {
    Object.assign(this.names, names);
    if (anew.includes("frames")) {
      this.frames = new Map();
      this.steps = [];
    }
    if (!frames.length && !anew.includes("frames")) return;
    const made = frames.map(({ step, kept }) => ({ step, kept, arrays: {} }));
    for (const [name, array] of Object.entries(arrays)) {
      const [first, index, ...rest] = name.split(".");
      if (first === "frames") made[index].arrays[rest.join(".")] = array;
    }
    for (const one of made) this.frames.set(one.step, one);
    this.steps = Array.from(this.frames.keys()).sort((a, b) => a - b);
    this.editions.frames++;
  }

  takeWatched({ anew, watch }) {
    if (!watch.length && !anew.includes("watched")) return;
    if (anew.includes("watched")) this.watch = [];
    const known = new Map([...this.watch, ...watch].map((line) => [line.step, line]));
    this.watch = Array.from(known.values()).sort((a, b) => a.step - b.step);
    this.editions.watch++;
  }

  /** Where the page is to look to see what a mark tells of. */
  whereOf({ what, where }) {
    if (where?.layer === undefined) return {};
    const [side] = what.includes(".") ? what.split(".") : [""];
    const own = { cross: "cross_attn", encoder: "encoder" }[side] ?? "attn";
    return { attention: own, layer: where.layer, head: where.head };
  }

  /** The kept step (one with a snapshot) at `step` or before, -1 where there is none. */
  kept(step) {
    const { snapshots = [] } = this.status ?? {};
    return snapshots[upTo(snapshots, snapshots.length, step)] ?? -1;
  }
}
