// The last stage: what the head gives, as a distribution, what temperature and cuts left of it, and the token drawn from it.
import { make } from "../core/dom.js";
import { equation, percent } from "../core/format.js";

/**
 * @typedef {import("../core/trace.js").Trace} Trace
 * @typedef {import("../core/trace.js").Reads} Reads
 * @typedef {import("./walkthrough.js").Page} Page
 * @typedef {import("./flow.js").Parts} Parts
 */

/**
 * The title of the last stage.
 * @param {Trace} trace
 */
export function titleOf(trace) {
  if (trace.grid?.predicts) return "next pixel";
  if (trace.link === "logistic") return trace.count > 1 ? "which labels" : `${trace.names[0]}?`;
  if (trace.link === "identity") return trace.count > 1 ? "scores" : "score";
  if (trace.model.head === "token") return "which class";
  return { next: "next token", here: "which token", class: "which class", answer: "answer" }[
    /** @type {Reads} */ (trace.reads)
  ];
}

/**
 * How the candidate called `name` came about, read at `reader`; of an answer in list 0 (start) or 1 (end).
 * @param {Trace} trace
 * @param {string} name
 * @param {string} reader
 * @param {number} [list]
 */
export function questionOf(trace, name, reader, list) {
  if (trace.reads === "answer") return `How “${name}” came to be where the answer ${list ? "ends" : "starts"}`;
  if (trace.link === "logistic" && trace.reads === "class") return `How “${name}” came about, or not`;
  if (trace.link === "logistic") return `How “${reader}” came to be ${name}, or not`;
  if (trace.reads === "next") return `How “${name}” came to follow “${reader}”`;
  if (trace.model.head === "token") return `How “${reader}” came to be ${name}`;
  return trace.reads === "here" ? `How “${name}” came to stand at “${reader}”` : `How “${name}” came about`;
}

/**
 * What column `unit` of a hook is called: a class has a name.
 * @param {Trace} trace
 * @param {string} hook
 * @param {number} unit
 */
export function column(trace, hook, unit) {
  if (trace.hasSlots(hook)) {
    const [, slots, width] = trace.array(hook).shape;
    return slots > 1 ? `${Math.floor(unit / width) + 1}. expert, ${unit % width}` : unit;
  }
  if (!/^(logits|head\.(cls|distilled))$/.test(hook)) return unit;
  return trace.reads === "answer" ? ["start", "end"][unit] : (trace.names[unit] ?? unit);
}

/**
 * How strongly each row's token is painted, in 0..1; null where the head says nothing of the kind.
 * @param {Trace} trace
 * @returns {((row: number) => number) | null}
 */
export function painted(trace) {
  if (trace.sides.length > 1) return null; // a decoder that reads the text again is one token behind
  const { answer } = trace;
  if (answer) return (row) => (row >= answer.start && row <= answer.end ? 1 : 0);
  if (trace.link !== "logistic" || trace.reads !== "here") return null;
  const { data } = trace.arrays["next.probability"];
  return (row) => data[row];
}

/**
 * Builds the stage; `parts.bars` become the places of the bars and `parts.next()` follows the row that is read.
 * @param {Page} page
 * @param {Parts} parts
 */
export function nextStage(page, parts) {
  const { trace, state, sizes } = page;
  const section = make("section", "stage stage-next");
  const column = make("div", "column");
  column.style.width = page.narrow ? "100%" : `${sizes.next}px`;
  const element = make("div", "stage-head");
  const button = make("button", "role-probability", titleOf(trace));
  button.setAttribute("aria-expanded", String(state.open.has("next")));
  button.title = "from logits to probabilities, every stage";
  button.dataset.stage = "next";
  button.addEventListener("click", () => page.toggle("next"));
  const after = make(
    "span",
    "formula",
    { next: "after ", here: "at ", class: "of the whole", answer: "where it stands" }[
      /** @type {Reads} */ (trace.reads)
    ],
  );
  const whose = make("bdi");
  if (trace.reads === "next" || trace.reads === "here") after.append(whose);
  element.append(button, after);
  const names = trace.lists > 1 ? ["starts at", "ends at"] : [""];
  const lists = names.map((name, list) => {
    const bars = make("div");
    bars.dataset.list = list;
    parts.bars.push(bars);
    return [name && make("span", "formula list-name", name), bars];
  });
  const left = make("p", "cuts");
  const second =
    trace.follows === null ? "" : make("p", "follows", `the second text follows the first: ${percent(trace.follows)}`);
  const { element: sampled, show } = trace.sampled ? drawn(page) : { element: "", show: () => {} };
  column.append(element, ...lists.flat(), trace.answer ? answer(trace.answer) : "", left, second, sampled);
  section.append(column);
  parts.next = () => {
    show();
    whose.textContent = `“${trace.pieces[state.query]}”`;
    left.textContent = cuts(page);
  };
  parts.next();
  return section;
}

/**
 * The likeliest answer, and how likely it is.
 * @param {{ text: string, shares: [number, number] }} answer
 */
function answer({ text, shares: [start, end] }) {
  const element = make("p", "answer");
  const { texts, sign, result } = equation([start, end], (a, b) => a * b, start * end, percent);
  element.append(make("bdi", "", `“${text}”`), make("span", "", `${texts.join(" × ")} ${sign} ${result}`));
  return element;
}

/**
 * What temperature, top-k and top-p left of the vocabulary at the row that is read, and of positions in either list.
 * @param {Page} page
 */
function cuts(page) {
  const { trace } = page;
  const { temperature, top_k: k, top_p: p } = trace.sampling;
  if (trace.link === "identity")
    return trace.count > 1 ? "scores, and no probabilities" : "one number, and no probability";
  if (trace.link === "logistic")
    return temperature === 0
      ? "temperature 0: certain, one way or the other"
      : `temperature ${temperature}: a probability of its own ${trace.reads === "here" ? "at every token" : "for every label"}`;
  if (temperature === 0) return "temperature 0, greedy: the largest logit takes everything";
  const settings = [`temperature ${temperature}`, k ? `top-k ${k}` : "", p < 1 ? `top-p ${p}` : ""]
    .filter(Boolean)
    .join(", ");
  const left = Array.from({ length: trace.lists }, (_, list) => kept(page, list));
  return `${settings}: ${[...new Set(left)].join("; ")}`;
}

/**
 * @param {Page} page
 * @param {number} list
 */
function kept({ trace, state }, list) {
  const row = trace.outcomeRow(state.query, list);
  const count = trace.arrays["next.kept_p"].data[row];
  const all = trace.count.toLocaleString("en");
  if (count === trace.count) return `all ${all} ${trace.noun} kept`;
  return `${count.toLocaleString("en")} of ${all} ${trace.noun} kept, holding ${percent(trace.arrays["next.kept_share"].data[row])}`;
}

/**
 * The token drawn at the end of the text, whichever row is read: {element, show()}.
 * @param {Page} page
 */
function drawn({ trace, state, emit }) {
  const element = make("div", "drawn");
  const { id, probability } = /** @type {NonNullable<Trace["sampled"]>} */ (trace.sampled);
  const name = make("bdi", "token-chip", trace.names[id]);
  const line = make("span");
  const where = make("span");
  line.append(where, name, ` ${percent(probability)}`);
  const append = make("button", "action", "append");
  append.hidden = Boolean(trace.locked);
  append.disabled = Boolean(trace.full);
  append.title = trace.full ? "the text fills the model's context" : "append this token to the text and run again";
  append.addEventListener("click", () => emit("append", { id, length: trace.length }));
  const again = make("button", "action quiet", "draw again");
  again.addEventListener("click", () => emit("again", true));
  element.append(line, append, again);
  const show = () => {
    where.textContent = state.query === trace.length - 1 ? "drawn: " : "drawn at the end: ";
  };
  show();
  return { element, show };
}
