// Beside the tree of a search: what it found, why greedy missed that, and one hypothesis in full.
import { idsOf, lineOf, nats, points, why } from "./beam_data.js";
import { make } from "../core/dom.js";
import { colourOf } from "./pixels.js";

const THUMB = 64; // CSS pixels of a small picture

/** What is searched for. */
export function noun(page) {
  return page.data.grid ? "picture" : "text";
}

/** A token, or of a picture the colour of a pixel. */
export function face(page, { id, piece, given }) {
  const token = make("bdi", `tok${given ? " given" : ""}`);
  if (page.data.grid && id < page.data.vocab) {
    const colour = make("span", "swatch");
    colour.style.background = colourOf(page.data, id);
    token.append(colour, piece);
  } else if (piece.startsWith("·") && piece.length > 1) token.append(make("i", "", "·"), piece.slice(1));
  else token.textContent = piece;
  return token;
}

/** Tokens one behind the other, each with its log-probability below; the first `shared` are those of both paths. */
function chain(page, line, shared, dear) {
  const row = make("div", "beam-chain");
  line.forEach((node, i) => {
    const one = make("span", `beam-link${i < shared ? " is-shared" : ""}${node === dear ? " is-dear" : ""}`);
    if (node === dear) one.title = "the least probable token behind the fork";
    one.append(face(page, node), make("span", "beam-own", nats(node.own)));
    row.append(one);
  });
  return row;
}

/** What was found when `at` steps were done: the n best, or before the end what was finished so far and the most probable that goes on. */
export function foundList(page, search, at, picked, pick) {
  const last = at >= search.columns;
  const over = last && search.state === "whole";
  const list = make("section", "beam-found");
  const shown = over ? search.best : search.found[Math.min(at, search.steps) - 1];
  list.append(make("h3", "", over ? (shown.length === 1 ? `The best ${noun(page)} found` : `The ${shown.length} best ${noun(page)}s found`) : "Finished so far, the best first"));
  const head = make("div", "beam-row heading");
  head.append(make("span", ""), make("span", "", noun(page)), make("span", "number", "log p"), make("span", "number", "tokens"), make("span", "number", "score"));
  list.append(head);
  shown.forEach((node, i) => list.append(entry(page, node, String(i + 1), node === picked, pick)));
  if (!shown.length) list.append(make("p", "sentence", `No ${noun(page)} is finished yet.`));
  if (!last) return list;
  const [going, greedy] = [over ? null : search.leading, search.greedy.at(-1)];
  if (going) list.append(entry(page, going, "going", going === picked, pick));
  list.append(entry(page, greedy, "greedy", greedy === picked, pick));
  return list;
}

function entry(page, node, name, isPicked, pick) {
  const row = make("button", `beam-row${name === "greedy" ? " of-greedy" : ""}`);
  row.type = "button";
  row.setAttribute("aria-pressed", String(isPicked));
  const words = page.data.grid ? thumb(page, idsOf(node)) : make("bdi", "beam-text", node.text.trim());
  row.append(make("span", "beam-name", name), words, make("span", "number", nats(node.log)), make("span", "number", String(node.step + 1)), make("span", "number", points(node.score)));
  row.addEventListener("click", () => pick(node));
  return row;
}

/** The picture so far: what was given, and the pixels of a hypothesis. */
function thumb(page, ids) {
  const { rows, columns } = page.data.grid;
  const canvas = make("canvas", "beam-thumb");
  Object.assign(canvas, { width: columns, height: rows });
  Object.assign(canvas.style, { width: `${THUMB}px`, height: `${(THUMB * rows) / columns}px` });
  const context = canvas.getContext("2d");
  const given = page.data.prompt.ids.slice(1);
  [...given, ...ids].forEach((id, i) => {
    context.fillStyle = colourOf(page.data, id);
    context.fillRect(i % columns, Math.floor(i / columns), 1, 1);
  });
  return canvas;
}

/** Greedy and the best, token by token, with the sentences that compare them. */
export function comparison(page, search) {
  const place = make("section", "beam-why");
  const [best] = search.best;
  const greedy = search.greedy;
  const line = lineOf(best);
  const fork = greedy.findIndex((node, i) => node !== line[i]);
  place.append(make("h3", "", fork < 0 ? "Greedy and the search agree" : best.score >= greedy.at(-1).score ? "Why greedy missed it" : "Here greedy is ahead"));
  for (const sentence of search.told) place.append(make("p", "", sentence));
  const rows = make("div", "beam-paths");
  for (const [name, path] of fork < 0 ? [["both", line]] : [["best", line], ["greedy", greedy]]) {
    const dear = name !== "greedy" ? null : path.slice(fork).reduce((low, node) => (node.own < low.own ? node : low));
    const sum = make("span", "beam-sum", `log p ${nats(path.at(-1).log)}`);
    const row = make("div", `beam-path of-${name}`);
    row.append(make("span", "beam-name", name), chain(page, path, Math.max(0, fork), dear), sum);
    rows.append(row);
  }
  place.append(rows);
  return place;
}

/** One hypothesis: `act(node, on)` puts it into the tab Write. */
export function details(page, search, node, act) {
  const place = make("section", "beam-details");
  const title = make("h3", "", node.place === 1 ? `The best ${noun(page)}${search.state === "whole" ? "" : " so far"}` : `A hypothesis of ${node.step + 1} ${node.step ? "tokens" : "token"}`);
  place.append(title, make("p", "beam-state", why(node, search)), chain(page, lineOf(node), 0, null), arithmetic(search, node));
  const whole = node.place ? search.texts[node.place - 1] : node === search.greedy.at(-1) ? search.greedy_text : "";
  if (whole && !page.data.grid) place.append(make("p", "beam-whole", whole));
  const ended = node.stop && ["end", "context", "picture"].includes(node.stop.kind);
  const acts = make("div", "beam-acts");
  acts.append(button("Write on from here", "go", () => act(node, true), ended ? "nothing follows it" : ""), button("Show in Write", "quiet", () => act(node, false)));
  place.append(acts);
  return place;
}

function arithmetic(search, node) {
  const list = make("dl", "beam-sums");
  const { length } = lineOf(node);
  const penalty = search.penalty;
  const power = penalty === 1 ? `${length}` : `${length}^${penalty}`.replace("-", "−");
  const put = (name, value) => list.append(make("dt", "", name), make("dd", "", value));
  put("log-probability, the sum", `${nats(node.log)} nats`);
  put("score", `${nats(node.log)} ÷ ${power} = ${points(node.score)}`);
  if (node.rank !== null) put("rank in its step", String(node.rank));
  return list;
}

function button(name, kind, work, refused = "") {
  const made = make("button", `beam-button ${kind}`, name);
  made.type = "button";
  made.disabled = Boolean(refused);
  made.title = refused;
  made.addEventListener("click", work);
  return made;
}
