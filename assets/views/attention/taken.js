// What a tab of the page about attention shows in place of the head's pattern, for what is taken away: the question that gives
// its numbers, as views/attention_tables.py knows it, and a sentence about the cell that is looked at.
import { downward, measureOf, span } from "./over.js";
import { at } from "../components/cells.js";
import { number, percent } from "../core/format.js";

/** {tab, sentence, file, where?} of the open tab, or undefined where it shows the pattern. `where` says of which heads. */
export function taken(page) {
  const { view, side, focus, layer, head, query, key } = page.state;
  const own = { side, focus, layer, head };
  const file = (name) => `${block(page)}-${name}`;
  switch (view) {
    case "lines":
      return lines(page, own, file);
    case "alignment":
      return { tab: { ask: "alignment", ...own, by: page.view?.shift === 0 ? "own" : "written" }, sentence: aligned(page), file: file("alignment") };
    case "text":
      return painted(page, own);
    case "points":
      return { tab: { ask: "points", ...own, how: page.state.how === "tsne" ? "tsne" : "pca" }, sentence: points(page), file: file("points") };
    case "circuits":
      return { tab: { ask: "circuits", ...own }, sentence: "OV: the tokens that each token of the text promotes; QK: the scores between tokens, by content alone", file: file("circuits") };
    case "product":
      return { tab: { ask: "product", ...own, pos: query, key }, sentence: product(page), file: file("product") };
    case "steps":
      return { tab: { ask: "steps", ...own }, sentence: steps(page), file: file("steps") };
  }
  return undefined;
}

function block({ state, trace }) {
  return trace.named(`blocks.${state.layer}.${state.focus}`).replaceAll(".", "-");
}

/** The lines that are drawn: of which heads, from which weight on, and whose where they are one token's. */
function lines(page, { side, focus }, file) {
  const { view, trace, keys } = page;
  const { compared: heads, only } = view;
  const { curves, cut } = view.drawn();
  const least = cut ?? view.slider.value();
  const one = only && (only.query === undefined ? { key: only.key } : { pos: only.query });
  const whose = !only ? "" : only.query === undefined ? ` into ${keys[only.key]}` : ` of what ${trace.pieces[only.query]} reads`;
  const sentence = `${weight(page)}; ${curves.length.toLocaleString("en")} ${curves.length === 1 ? "line" : "lines"}${whose}, for weights from ${percent(least)} on`;
  const stack = trace.side ? `${trace.side} ` : "";
  const where = heads.length > 1 ? { where: stack + heads.map(([layer, head]) => `block ${layer + 1} head ${head + 1}`).join(", ") } : {};
  return { tab: { ask: "lines", side, focus, heads, least, ...one }, sentence, file: file("lines"), ...where };
}

/** The cell that is looked at and its weight. */
function weight(page, called = `${page.trace.pieces[page.state.query]} → ${page.keys[page.state.key]}`) {
  const { state } = page;
  const { block, max } = page.pattern(state.layer, state.head);
  return `${called}: ${percent(at(block, state.query, state.key) / max)}`;
}

function aligned(page) {
  const { view, state, trace, keys } = page;
  const word = trace.pieces[state.query + (view?.shift ?? 1)];
  const by = view?.shift === 0 ? "a word stands with its own row" : "a word stands with the row before it, which wrote it";
  return word === undefined ? by : `${weight(page, `${word} from ${keys[state.key]}`)}; ${by}`;
}

function painted(page, { side, focus, layer, head }) {
  const { state, trace } = page;
  const { layers, heads } = trace.model;
  const alone = Boolean(state.alone);
  const [id, label] = measureOf(page);
  const [first, last] = span(state, trace);
  const stack = trace.side ? `${trace.side} ` : "";
  const every = alone ? `head ${head + 1} of each` : `all ${heads} heads`;
  const found = {
    heads: { tab: { ask: "average", side, focus, over: "heads", layer, head }, where: `${stack}block ${layer + 1} of ${layers}, mean of ${heads} heads` },
    layers: { tab: { ask: "average", side, focus, over: "layers", layer, head, alone }, where: `${stack}mean of ${layers} blocks, ${every}` },
    rollout: { tab: { ask: "rollout", side, focus, first, last, head: alone ? head : null }, where: `${stack}blocks ${first + 1} to ${last + 1} of ${layers}, ${every}` },
    flow: { tab: downward(page) ? { ask: "flow", side, focus, pos: state.query } : { ask: "flows", side, focus }, where: `${stack}all ${layers} blocks, all ${heads} heads` },
    sentences: { tab: { ask: "text_average", side, focus, layer, head } },
  }[id];
  if (!found) return undefined;
  const of = id === "heads" || id === "sentences" ? block(page) : [trace.side, focus].filter(Boolean).join("-");
  const file = `${of}-${label.replaceAll(" ", "-")}`;
  return id === "sentences" ? { ...found, file, ...many(page) } : { ...found, file, sentence: said(page, label) };
}

/** Of a mean over many texts: what was read, which is not the text of the page, and the cell that is looked at. */
function many({ view, state, trace }) {
  const what = trace.grid ? "pictures" : "texts";
  const { pattern, count } = (!view?.waiting && view?.many) || {};
  if (!count) return { read: `many ${what}`, sentence: `mean over many ${what}, position by position` };
  const [rows, cols] = pattern.shape;
  const [row, col] = [Math.min(state.query, rows - 1), Math.min(state.key, cols - 1)];
  const value = percent(pattern.data[row * cols + col]);
  const cell = `position ${row + 1} → position ${col + 1}: ${value}, mean of the ${count.data[row].toLocaleString("en")} ${what} that reach it`;
  return { read: `${Math.max(...count.data).toLocaleString("en")} ${what} made for the model`, sentence: `mean over them, position by position; ${cell}` };
}

/** The measure and its value at the cell that is chosen, where it is painted already. */
function said(page, name) {
  const { view, state, trace, keys } = page;
  const at = view?.way === "in" ? state.query : state.key;
  const between = `${name}, ${trace.pieces[state.query]} → ${keys[state.key]}`;
  const value = view?.waiting ? undefined : view?.line?.[at];
  return value === undefined ? between : `${between}: ${view.spelled(value)}`;
}

function points({ view, state, trace, keys }) {
  const way = state.how === "tsne" ? "t-SNE" : "PCA";
  const place = ({ data }, i) => `(${number(data[2 * i])}, ${number(data[2 * i + 1])})`;
  const { queries: q, keys: k } = view?.answer ?? {};
  const at = q ? `: query ${trace.pieces[state.query]} at ${place(q, state.query)}, key ${keys[state.key]} at ${place(k, state.key)}` : "";
  return `${way} of queries and keys${at}`;
}

function product({ view, state, trace, keys }) {
  const dot = view?.found?.chosen?.dot;
  return `q of ${trace.pieces[state.query]} · k of ${keys[state.key]}${dot === undefined ? "" : ` = ${number(dot)}`}`;
}

function steps({ view, state, trace, keys }) {
  const cell = { row: state.query, col: state.key };
  const stages = (view?.list ?? []).filter(({ block }) => block).map((panel) => `${panel.title} ${view.spelled(panel, cell)}`);
  return [`${trace.pieces[state.query]} → ${keys[state.key]}`, stages.join(", ")].filter(Boolean).join(": ");
}
