// What a tab of the page about attention shows in place of the head's pattern, for what is taken away: the question that gives
// its numbers, as views/attention_tables.py knows it, and a sentence about the cell that is looked at.
import { downward, measureOf, span } from "./attention_over.js";
import { number } from "./format.js";

/** {tab, sentence, file, where?} of the open tab, or undefined where it shows the pattern. `where` says of which heads. */
export function taken(page) {
  const { view, side, focus, layer, head, query, key } = page.state;
  const own = { side, focus, layer, head };
  const file = (name) => `${block(page)}-${name}`;
  switch (view) {
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
    flow: { tab: { ask: "flow", side, focus, ...(downward(page) && { pos: state.query }) }, where: `${stack}all ${layers} blocks, all ${heads} heads` },
    sentences: { tab: { ask: "average", side, focus, over: "sentences", layer, head } },
  }[id];
  if (!found) return undefined;
  const name = id === "sentences" && trace.grid ? "over many pictures" : label;
  const of = id === "heads" || id === "sentences" ? block(page) : [trace.side, focus].filter(Boolean).join("-");
  const file = `${of}-${label.replaceAll(" ", "-")}`;
  return { ...found, file, sentence: id === "sentences" ? `mean of the head ${name}, position by position` : said(page, name) };
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
  const { q, k } = view?.answer ?? {};
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
