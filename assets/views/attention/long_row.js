// The chosen row of a long text: its heaviest keys with their weights, what all others share, and the words around both ends.
import { make, section } from "../core/dom.js";
import { percent } from "../core/format.js";

const READERS = 5; // queries of a column
const AROUND = 12; // tokens before and behind

export function mount(root, page) {
  const row = rowPart(page);
  const column = columnPart(page);
  const words = wordsPart(page);
  root.append(row.element, column.element, words.element);
  return {
    update() {
      row.show();
      column.show();
      words.show();
    },
    destroy: () => root.replaceChildren(),
  };
}

function rowPart(page) {
  const element = section("", "");
  element.className = "long-row";
  const cell = make("p", "long-cell");
  const list = make("div", "weights");
  element.append(cell, list);
  const show = () => {
    const { trace, state, keys } = page;
    const { query, key } = state;
    const found = page.row();
    element.firstChild.replaceChildren(`What ${query} `, make("bdi", "", trace.pieces[query]), " looks at");
    const focused = list.getRootNode().activeElement?.dataset?.key;
    const moved = found && state.view === "map" && state.shows === "weighted" ? page.map.said(query, key) : "";
    if (found) cell.replaceChildren(...spelled(trace.pieces[query], keys[key], query, key, percent(found.weights[key])), moved && `; ${moved}`);
    else cell.textContent = page.refused ? "" : "On its way …";
    list.style.opacity = found ? "" : 0.3;
    if (page.refused && !found) list.replaceChildren();
    if (!found) return;
    const most = found.weight[0] || 1;
    const lines = Array.from(found.key, (i, n) => [i, found.weight[n]]).filter(([, weight]) => weight > 0);
    list.replaceChildren(...lines.map(([i, weight]) => line(page, i, weight, most)));
    if (found.others > 0) list.append(rest(found, most));
    if (!lines.length) list.append(make("p", "sentence", "This token may attend to nothing: its row of the pattern is zero."));
    if (focused) list.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  };
  return { element, show };
}

function spelled(query, key, row, col, weight) {
  const end = (role, piece, place) => {
    const named = make("span", `role-${role}`);
    named.append(make("bdi", "", piece), ` ${place}`);
    return named;
  };
  return [end("query", query, row), " → ", end("key", key, col), ": ", make("span", "share", weight)];
}

function line(page, key, weight, most) {
  const { state, keys } = page;
  const button = make("button", "weight");
  button.dataset.key = key;
  button.classList.toggle("as-key", key === state.key);
  button.setAttribute("aria-label", `${key}, ${keys[key]}: ${percent(weight)}, go to this key`);
  const name = make("bdi", "", keys[key]);
  name.title = keys[key];
  button.append(make("span", "place", key), name, bar(weight / most), make("span", "share", percent(weight)));
  button.addEventListener("click", () => page.go({ key, jump: true }));
  return button;
}

/** What looks at the chosen key: its heaviest queries and why it is bright or not, once somebody asks. */
function columnPart(page) {
  const element = section("", "");
  element.className = "long-row";
  const ask = make("button", "chip", "say how much, and why");
  const list = make("div", "weights");
  const why = make("p", "why");
  why.setAttribute("aria-live", "polite");
  element.append(ask, list, why);
  let about = "";
  const blank = () => {
    list.replaceChildren();
    why.textContent = "";
    [ask.hidden, why.hidden] = [false, true];
  };
  ask.addEventListener("click", async () => {
    const wanted = about;
    const { trace, state } = page;
    const found = await page.column(state.key).catch((error) => ({ sentence: error.message }));
    if (wanted !== about) return;
    [ask.hidden, why.hidden] = [true, false];
    why.textContent = found.sentence;
    const weights = found.arrays?.weights.data ?? [];
    const best = Array.from(weights.keys()).filter((row) => weights[row] > 0).sort((a, b) => weights[b] - weights[a] || a - b).slice(0, READERS);
    list.replaceChildren(...best.map((row) => reader(page, trace.pieces[row], row, weights[row], weights[best[0]])));
  });
  const show = () => {
    const { trace, state, keys } = page;
    element.firstChild.replaceChildren(`What looks at ${state.key} `, make("bdi", "", keys[state.key]));
    const now = JSON.stringify([trace.trace, page.head, state.key]);
    if (now !== about) blank();
    about = now;
  };
  return { element, show };
}

function reader(page, piece, row, weight, most) {
  const button = make("button", "weight");
  button.classList.toggle("as-query", row === page.state.query);
  button.setAttribute("aria-label", `${row}, ${piece}: ${percent(weight)}, go to this query`);
  const name = make("bdi", "", piece);
  name.title = piece;
  button.append(make("span", "place", row), name, bar(weight / most), make("span", "share", percent(weight)));
  button.addEventListener("click", () => page.go({ query: row, key: page.state.key, jump: true }));
  return button;
}

function rest({ others, rest: weight }, most) {
  const element = make("div", "weight rest");
  const count = `${others.toLocaleString("en")} more`;
  element.append(make("span", "", count), bar(Math.min(1, weight / most)), make("span", "share", percent(weight)));
  return element;
}

function bar(share) {
  const track = make("span");
  const element = make("span", "bar");
  element.style.width = `${100 * share}%`;
  track.append(element);
  return track;
}

/** The words around the row and around the key, tinted by what the row gives them. */
function wordsPart(page) {
  const element = section("In the text");
  element.className = "long-words";
  const [reader, read] = [make("p"), make("p")];
  element.append(reader, read);
  const show = () => {
    const { trace, state, keys } = page;
    const { query, key } = state;
    const crosses = state.focus === "cross_attn";
    const found = page.row();
    const weights = found?.weights;
    const most = found?.weight[0] || 1;
    const tint = (i) => (weights ? Math.round(55 * Math.sqrt(weights[i] / most)) : 0);
    const near = !crosses && Math.abs(query - key) <= AROUND;
    reader.replaceChildren(...around(trace.pieces, query, (i) => [i === query ? "as-query" : i === key && !crosses ? "as-key" : "", crosses ? 0 : tint(i)]));
    read.hidden = near;
    if (!near) read.replaceChildren(...around(keys, key, (i) => [i === key ? "as-key" : i === query && !crosses ? "as-query" : "", tint(i)]));
  };
  return { element, show };
}

function around(pieces, at, look) {
  const [from, to] = [Math.max(0, at - AROUND), Math.min(pieces.length, at + AROUND + 1)];
  const parts = [make("span", "place", `${from} `)];
  for (let i = from; i < to; i++) {
    const [role, tint] = look(i);
    const word = make("bdi", role, pieces[i]);
    if (tint) word.style.background = `color-mix(in srgb, var(--attention) ${tint}%, transparent)`;
    parts.push(word, document.createElement("wbr"));
  }
  parts.push(make("span", "place", ` ${to - 1}`));
  return parts;
}
