// What the table of runs says of each: a column's name, its text and the number by which it sorts.
import { whole } from "./words.js";

const STATES = { new: "not begun", preparing: "preparing", running: "training", queued: "waiting", paused: "paused", stopped: "stopped", finished: "finished", failed: "failed", killed: "ended", damaged: "damaged" };
export const ACTIVE = ["queued", "preparing", "running", "paused"];
const DAY = 86400;
const alphabet = new Intl.Collator("en", { numeric: true });

/** {key, title, help, text(run), value(run), more(run): a note for the pointer}; numbers sort the least first, where `down` the greatest. */
export const COLUMNS = [
  { key: "name", title: "run", text: ({ name }) => name, value: ({ name }) => name.toLowerCase() },
  { key: "task", title: "task", text: ({ task }) => task || "–", value: ({ task }) => task, more: ({ about }) => about },
  { key: "state", title: "state", text: stateOf, value: stateOf, more: ({ error }) => error },
  { key: "step", title: "step", number: true, down: true, text: steps, value: ({ step }) => step },
  { key: "loss", title: "loss", help: "of the last batch that was logged, in nats", number: true, text: ({ loss }) => real(loss), value: ({ loss }) => loss },
  { key: "held", title: "held out", help: "loss on what is not trained on, when it was measured last, in nats", number: true, text: (run) => real(run.held_out_loss), value: (run) => run.held_out_loss },
  { key: "accuracy", title: "accuracy", help: "on what is not trained on; of the last batch where nothing else was measured", number: true, down: true, text: (run) => share(accuracy(run)), value: accuracy, more: whichAccuracy },
  { key: "parameters", title: "parameters", number: true, down: true, text: ({ parameters }) => (parameters === null ? "–" : whole(parameters)), value: ({ parameters }) => parameters },
  { key: "seconds", title: "time", help: "spent on training", number: true, down: true, text: ({ seconds }) => took(seconds), value: ({ seconds }) => seconds },
  { key: "size", title: "on disk", number: true, down: true, text: ({ size }) => bytes(size), value: ({ size }) => size },
  { key: "created", title: "made", down: true, number: true, text: ({ created }) => when(created), value: ({ created }) => created, more: ({ created }) => (created ? new Date(1000 * created).toLocaleString("en") : "") },
];

/** The rows in the order of a column: "loss" as it comes first, "-loss" the other way round; those without a value last. */
export function sorted(runs, order) {
  const back = order.startsWith("-");
  const column = COLUMNS.find(({ key }) => key === order.replace("-", "")) ?? COLUMNS.at(-1);
  const sign = back !== Boolean(column.down) ? -1 : 1;
  const none = (value) => value === null || value === "";
  return runs
    .map((run, i) => ({ run, i, value: column.value(run) }))
    .sort((a, b) => none(a.value) - none(b.value) || sign * compared(a.value, b.value) || a.i - b.i)
    .map(({ run }) => run);
}

function compared(a, b) {
  return typeof a === "string" ? alphabet.compare(a, b) : (a ?? 0) - (b ?? 0);
}

/** Whether all of the words stand somewhere in what is told of a run. */
export function matches(run, words) {
  const told = [run.name, run.task, stateOf(run), run.about, run.cause, run.fault].join(" ").toLowerCase();
  return words.every((word) => told.includes(word));
}

function stateOf({ state, position, cause }) {
  if (state === "queued" && position) return `waiting, ${position === 1 ? "next" : `number ${position}`}`;
  return state === "failed" || state === "killed" ? cause || STATES[state] : (STATES[state] ?? state);
}

function steps({ step, steps: all }) {
  return all ? `${whole(step)} / ${whole(all)}` : whole(step);
}

function real(x) {
  if (x === null) return "–";
  return x !== 0 && Math.abs(x) < 0.001 ? x.toExponential(1).replace("-", "−") : x.toFixed(3);
}

/** Held-out, else of the batches. */
function accuracy({ held_out_accuracy: held, accuracy: own }) {
  return held ?? own;
}

function whichAccuracy({ held_out_accuracy: held, accuracy: own }) {
  return held !== null ? "held out" : own !== null ? "of the last batch" : "";
}

/** A share is never rounded to all or nothing. */
function share(x) {
  if (x === null) return "–";
  const text = (100 * x).toFixed(1);
  if (text === "100.0") return x < 1 ? ">\u00a099.9\u00a0%" : "100\u00a0%";
  return `${text}\u00a0%`;
}

function took(seconds) {
  if (seconds < 1) return seconds ? "< 1 s" : "–";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

function bytes(size) {
  if (size < 1e6) return `${Math.max(1, Math.round(size / 1e3))} kB`;
  return size < 1e9 ? `${(size / 1e6).toFixed(1)} MB` : `${(size / 1e9).toFixed(1)} GB`;
}

function when(created) {
  if (!created) return "–";
  const past = Math.max(0, Date.now() / 1000 - created);
  if (past < 60) return "just now";
  if (past < 3600) return `${Math.floor(past / 60)} min ago`;
  if (past < DAY) return `${Math.floor(past / 3600)} h ago`;
  if (past < 7 * DAY) return `${Math.floor(past / DAY)} d ago`;
  return new Date(1000 * created).toISOString().slice(0, 10);
}
