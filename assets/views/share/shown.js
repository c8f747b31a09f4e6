// What a page shows at the moment, as far as its view says it: for the caption of a picture, for lines of Python, for data.
import { at } from "../components/cells.js";
import { number, percent } from "../core/format.js";

const PARTS = { scores: "scores", masked: "masked_scores" }; // what a map may show in place of the pattern

/**
 * {where, what, sentence} for a caption, `asks` for the server: {hook, head, row, col} of the element that is looked at, names as
 * the engine has them, or what the view's own `looked()` says; undefined where no single one is. `asks.tab` is what a view that has
 * `taken()` shows in place of that hook, `asks.tables` are questions by the titles of `take.matrices`, `asks.of` completes the page's own. `file` is what a matrix is called, `read` what was read where that is not the page's text.
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

function element(view) {
  const { state, trace } = view;
  if (!trace?.pieces || !state) return { where: "", what: "", sentence: "" };
  const stack = trace.side ? `${trace.side} ` : "";
  const where = `${stack}block ${state.layer + 1} of ${trace.model.layers}, head ${state.head + 1} of ${trace.model.heads}`;
  return { where, ...(state.cell === undefined ? ofAttention(view) : ofWalkthrough(view)) };
}

function ofAttention(view) {
  const { state, trace, element, keys } = view;
  const map = state.view === "map" && (!view.data?.first || state.shows === "weighted"); // of a long text there is no other part
  const shows = map ? state.shows : undefined;
  const part = PARTS[shows] ?? "pattern";
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

function ofWalkthrough({ state, trace }) {
  const { cell } = state;
  if (cell?.candidate !== undefined) return ofCandidate(state, trace);
  if (!cell) return { what: "", sentence: "" };
  const name = cell.hook.replace("{l}", state.layer);
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

function told(trace, name, { head, row, col }, between) {
  if (!trace.has(name)) return between;
  const value = at(trace.block(name, head), row, col);
  return `${between}: ${name.endsWith("pattern") ? percent(value) : number(value)}`;
}
