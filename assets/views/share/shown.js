// What a page shows at the moment, as far as its view says it: for the caption of a picture, for lines of Python, for data.
import { at } from "../components/cells.js";
import { number, percent } from "../core/format.js";

/**
 * @typedef {import("../core/trace.js").Trace} Trace
 * @typedef {{ ask: string, [option: string]: unknown }} Asked
 * @typedef {{ hook?: string, head?: number | null, row?: number | null, col?: number | null, moved?: string, tab?: Asked, tables?: Record<string, Asked>,
 *   file?: object, of?: object }} Asks
 * @typedef {{ where?: string, what?: string, sentence?: string, read?: string, asks?: Asks, file?: string }} Said
 * @typedef {{ what: string, sentence?: string, hook?: string, head?: number | null, row?: number, col?: number, moved?: string, tab?: Asked,
 *   file?: string, read?: string }} Found
 * @typedef {{ layer: number, head: number, query: number, key: number, focus: string, view?: string, shows?: string, shares?: boolean,
 *   cell?: import("../walkthrough/arithmetic.js").Cell | null }} State
 * @typedef {{ said?: (query: number, key: number) => string }} Drawn
 * @typedef {import("../core/host.js").Mounted & { looked?: () => Said, missed?: (state: Record<string, unknown>) => string[], remember?: () => void,
 *   pictures?: () => [value: string, title: string][], unfold?: (on: boolean, part?: string) => void, taken?: () => Partial<Found> | null,
 *   row?: () => { weights: ArrayLike<number> } | null, state: State, trace: Trace, element: HTMLElement, keys: string[],
 *   data?: import("../core/payload.js").Payload, map?: Drawn | null, view?: Drawn | null }} View what a view has for this, each where it means something there
 */

/** @type {Record<string, string>} */
const PARTS = { scores: "scores", masked: "masked_scores" }; // what a map may show in place of the pattern

/**
 * {where, what, sentence} for a caption, `asks` for the server: {hook, head, row, col} of the element that is looked at, names as
 * the engine has them, or what the view's own `looked()` says; undefined where no single one is. `asks.tab` is what a view that has
 * `taken()` shows in place of that hook, `asks.tables` are questions by the titles of `take.matrices`, `asks.of` completes the page's own. `file` is what a matrix is called, `read` what was read where that is not the page's text.
 * @param {View} view
 * @returns {Said}
 */
export function shown(view) {
  if (view.looked) return view.looked();
  const { where, what, sentence, read, hook, head, row, col, moved, tab, file } = element(view);
  const asks = { hook, head, row, col, ...(moved && { moved }), ...(tab && { tab }) }; // "length" or "share" of what a weight moves, in place of the weight
  return {
    where,
    what,
    sentence,
    read,
    ...(hook && { asks, file: file ?? [hook.replaceAll(".", "-"), moved].filter(Boolean).join("-") }),
  };
}

/**
 * @param {View} view
 * @returns {Found & { where: string }}
 */
function element(view) {
  const { state, trace } = view;
  if (!trace?.pieces || !state) return { where: "", what: "", sentence: "" };
  const stack = trace.side ? `${trace.side} ` : "";
  const where = `${stack}block ${state.layer + 1} of ${trace.model.layers}, head ${state.head + 1} of ${trace.model.heads}`;
  return { where, ...(state.cell === undefined ? ofAttention(view) : ofWalkthrough(view)) };
}

/**
 * @param {View} view
 * @returns {Found}
 */
function ofAttention(view) {
  const { state, trace, element, keys } = view;
  const map = state.view === "map" && (!view.data?.first || state.shows === "weighted"); // of a long text there is no other part
  const shows = map ? state.shows : undefined;
  const part = PARTS[shows ?? ""] ?? "pattern";
  const name = `blocks.${state.layer}.${state.focus}.${part}`;
  const what = element.querySelector('.tab[aria-selected="true"]')?.textContent ?? "";
  const moved = shows === "weighted" ? (state.shares ? "share" : "length") : undefined;
  const found = { what, hook: trace.named(name), head: state.head, row: state.query, col: state.key, moved };
  const between = `${trace.pieces[state.query]} → ${keys[state.key]}`;
  const other = view.taken?.();
  if (other) return { ...found, ...other };
  if (moved)
    return { ...found, sentence: `${between}: ${(view.map ?? view.view)?.said?.(state.query, state.key) ?? ""}` };
  const weight = trace.has(name) ? undefined : view.row?.()?.weights[state.key]; // of a long text one row is here
  return {
    ...found,
    sentence: weight === undefined ? told(trace, name, found, between) : `${between}: ${percent(weight)}`,
  };
}

/**
 * @param {View} view
 * @returns {Found}
 */
function ofWalkthrough({ state, trace }) {
  const { cell } = state;
  if (cell?.candidate !== undefined) return ofCandidate({ ...state, cell }, trace);
  if (!cell) return { what: "", sentence: "" };
  const name = cell.hook.replace("{l}", String(state.layer));
  const array = trace.array(name);
  const shared = array?.dims.includes("head") && array.shape[array.dims.indexOf("head")] < trace.model.heads; // grouped queries
  const head = cell.flat ? null : shared ? trace.keyHead(state.head) : state.head;
  const found = { what: trace.named(name), hook: trace.named(name), head, row: cell.row, col: cell.col };
  const square = trace.isSquare(name);
  const reader = trace.readers(name)[cell.row];
  return {
    ...found,
    sentence: told(
      trace,
      name,
      found,
      square ? `${reader} → ${trace.keys(name)[cell.col]}` : `${reader} [${cell.col}]`,
    ),
  };
}

/**
 * @param {State & { cell: import("../walkthrough/arithmetic.js").Candidate }} state
 * @param {Trace} trace
 * @returns {Found}
 */
function ofCandidate({ cell, query }, trace) {
  const count = trace.arrays["next.id"].shape[1];
  const row = trace.outcomeRow(query, cell.list ?? 0);
  const id = trace.arrays["next.id"].data[row * count + cell.candidate];
  const probability = trace.arrays["next.probability"].data[row * count + cell.candidate];
  const place = trace.reads === "answer" ? { row: id, col: row } : { row, col: id };
  return {
    what: "logits",
    hook: "logits",
    head: null,
    ...place,
    sentence: `${trace.names[id]}: ${percent(probability)}`,
  };
}

/**
 * @param {Trace} trace
 * @param {string} name
 * @param {{ head: number | null, row: number, col: number }} place
 * @param {string} between
 */
function told(trace, name, { head, row, col }, between) {
  if (!trace.has(name)) return between;
  const value = at(trace.block(name, head), row, col);
  return `${between}: ${name.endsWith("pattern") ? percent(value) : number(value)}`;
}
