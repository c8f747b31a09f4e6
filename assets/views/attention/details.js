// What is to be said about the chosen row, the chosen column and the head, in numbers and in a sentence.
import { written as widest } from "./axes.js";
import { called } from "./names.js";
import { inColumn, measures } from "./scores.js";
import { at } from "../components/cells.js";
import { make, range, section } from "../core/dom.js";
import { percent } from "../core/format.js";

const BRIGHT = 1.5; // times what an even row would give, as engine/analysis/sinks.py has it
const LISTED = 8; // keys of a row
const READERS = 3; // queries of a column
const NAMED = { least: 84, most: 148 }; // CSS pixels of a token beside its bar
const PATIENCE = 250; // ms that a column is looked at before the server is asked about it

export function mount(root, page) {
  const row = rowPart(page);
  const column = columnPart(page);
  const head = headPart(page);
  root.append(row.element, column.element, head.element);
  return {
    update() {
      const named = Math.min(NAMED.most, Math.max(NAMED.least, Math.ceil(widest([...page.trace.pieces, ...page.keys]))));
      root.style.setProperty("--named", `${named}px`);
      row.show();
      column.show();
      head.show();
    },
    mark: () => row.show(),
    destroy() {
      column.stop();
      root.replaceChildren();
    },
  };
}

/** The keys that a row gives most, as bars, and the sum of all others; follows the pointer. */
function rowPart(page) {
  const element = section("", "");
  const list = make("div", "weights");
  const note = make("p", "sentence");
  element.append(list, note);
  const show = () => {
    const { trace, state, hover } = page;
    const query = hover?.row ?? state.query;
    const { block, max } = page.pattern(state.layer, state.head);
    const start = block.offset + query * block.stride;
    const weights = Array.from(block.data.subarray(start, start + block.cols), (w) => w / max);
    const total = weights.reduce((sum, w) => sum + w, 0);
    element.firstChild.replaceChildren("What ", make("bdi", "", called(trace, trace.pieces[query])), " looks at");
    const best = range(0, weights.length).sort((a, b) => weights[b] - weights[a] || a - b).slice(0, LISTED).filter((i) => weights[i] > 0);
    const rest = best.reduce((left, i) => left - weights[i], total);
    const others = weights.filter((w) => w > 0).length - best.length;
    const most = weights[best[0]] || 1;
    const exact = max === 1;
    list.replaceChildren(...best.map((key) => weightLine(page, query, key, weights[key], most, exact)));
    if (others > 0) list.append(restLine(others, Math.max(0, rest), most, exact));
    note.hidden = total > 0;
    note.textContent = total > 0 ? "" : trace.grid ? "This row may attend to nothing: its weights are zero, and the head adds nothing there." : "This token may attend to nothing: its row of the pattern is zero, and the head adds nothing there.";
  };
  return { element, show };
}

/** One weight with its token: the key, or with `reads` the query that reads it. */
function weightLine(page, query, key, weight, most, exact, reads = false) {
  const button = make("button", "weight");
  const piece = reads ? page.trace.pieces[query] : page.keys[key];
  const name = make("bdi", "", piece);
  name.title = piece;
  button.classList.toggle(reads ? "as-query" : "as-key", key === page.state.key && query === page.state.query);
  button.setAttribute("aria-label", `${piece}: ${written(weight, exact)}, look at this ${reads ? "query" : "key"}`);
  button.append(name, bar(weight / most), make("span", "share", written(weight, exact)));
  button.addEventListener("click", () => page.go({ query, key }));
  return button;
}

function restLine(count, weight, most, exact) {
  const line = make("div", "weight rest");
  line.append(make("span", "", `${count} more`), bar(Math.min(1, weight / most)), make("span", "share", written(weight, exact)));
  return line;
}

function bar(share) {
  const track = make("span");
  const element = make("span", "bar");
  element.style.width = `${100 * share}%`;
  track.append(element);
  return track;
}

/** A weight that is known in steps of 1/255 only, until its layer is here, says so. */
function written(weight, exact) {
  return exact ? percent(weight) : `≈ ${(100 * weight).toFixed(0)}\u00a0%`;
}

/**
 * What looks at the chosen column, and what was measured of it: the server's sentence, asked for once a column that was picked is
 * looked at for a while. Another head asks nothing by itself: there a button does. Only a column that is bright is asked why.
 */
/** @param {import("./page.js").Page} page */
function columnPart(page) {
  const element = section("", "");
  const why = make("p", "why");
  why.setAttribute("aria-live", "polite");
  const button = make("button", "chip", "say more, for this head");
  const list = make("div", "weights");
  const bright = make("p", "how-bright");
  element.append(list, bright, why, button);
  const kept = new Map(); // of this run: name of a question -> sentence
  let timer = 0;
  /** @type {Record<string, any>} */
  let shown = {};
  const say = (sentence) => {
    why.textContent = sentence;
    why.hidden = sentence === null;
    button.hidden = sentence !== null;
    bright.hidden = Boolean(sentence); // which says it too
  };
  /** @param {Record<string, any>} question */
  const ask = async ({ name, query }) => {
    const sentence = await page.request(query).then((answer) => answer.sentence, (error) => error.message);
    kept.set(name, sentence);
    if (shown.name === name) say(sentence);
  };
  button.addEventListener("click", () => ask(shown));
  const show = () => {
    const { side, focus, layer, head, key } = page.state;
    const query = { ask: "sink", side, focus, layer, head, key };
    const found = columnOf(page, layer, head, key);
    const name = make("bdi", "", called(page.trace, page.keys[key]));
    element.firstChild.replaceChildren(...(found.mean >= BRIGHT * found.even ? ["Why is column ", name, " bright?"] : ["What looks at ", name]));
    bright.textContent = found.count ? `mean ${written(found.mean, found.exact)}, an even row would give ${written(found.even, true)}` : "";
    const most = found.weights[found.best[0]] || 1;
    list.replaceChildren(...found.best.map((row) => weightLine(page, row, key, found.weights[row], most, found.exact, true)));
    const next = { run: page.trace.trace, where: [side, focus, layer, head].join(), name: JSON.stringify(query), query };
    if (next.run === shown.run && next.name === shown.name) return;
    if (next.run !== shown.run) kept.clear();
    const switched = next.run === shown.run && next.where !== shown.where;
    shown = next;
    clearTimeout(timer);
    if (kept.has(next.name)) say(kept.get(next.name));
    else {
      say(switched ? null : "");
      if (!switched) timer = setTimeout(() => ask(next), PATIENCE);
    }
  };
  return { element, show, stop: () => clearTimeout(timer) };
}

/**
 * The chosen column: {weights, best, mean, even, count, exact}. `mean` is over the `count` queries that may see the key, and `even`
 * what they would give it if each attended to all that it may see alike.
 */
function columnOf(page, layer, head, key) {
  const { block, max } = page.pattern(layer, head);
  const seen = counts(page, layer, head, block);
  const weights = range(0, block.rows).map((row) => at(block, row, key) / max);
  const may = range(0, block.rows).filter((row) => seen(row, key) > 0);
  const over = (value) => may.reduce((sum, row) => sum + value(row), 0) / (may.length || 1);
  const best = range(0, block.rows).filter((row) => weights[row] > 0).sort((a, b) => weights[b] - weights[a] || a - b).slice(0, READERS);
  return { weights, best, mean: over((row) => weights[row]), even: over((row) => 1 / seen(row, key)), count: may.length, exact: max === 1 };
}

/** (row, key) => how many keys a row may see, 0 where not this one. Until the layer's mask is here, those that it gives any weight. */
function counts({ trace, state }, layer, head, block) {
  const name = `blocks.${layer}.${state.focus}.mask`;
  const mask = trace.has(name) ? trace.block(name, head) : block;
  const totals = new Map();
  return (row, key) => {
    if (!at(mask, row, key)) return 0;
    if (!totals.has(row)) totals.set(row, mask.data.subarray(mask.offset + row * mask.stride, mask.offset + row * mask.stride + mask.cols).reduce((sum, one) => sum + Boolean(one), 0));
    return totals.get(row);
  };
}

/** The head's scores with what they mean and their rank among all heads; a click measures all heads by one. */
function headPart(page) {
  const element = section("", "");
  const heading = make("div", "score-heading");
  heading.append(make("span"), make("span", "", "this head"), make("span", "", "rank"));
  const list = make("div");
  const definition = make("p", "definition");
  definition.id = "attention-definition";
  element.append(heading, list, definition);
  const explain = (score) => {
    definition.textContent = score ? `${score.title}: ${score.definition} ${score.source}` : "";
  };
  const show = () => {
    const { trace, state } = page;
    element.firstChild.textContent = `This head, on this ${trace.grid ? "picture" : "text"}`;
    const scores = measures(page);
    element.hidden = !scores.length;
    const focused = list.getRootNode().activeElement?.dataset?.score;
    list.replaceChildren(...scores.map((score) => scoreLine(page, score, explain)));
    if (focused) list.querySelector(`[data-score="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    explain(scores.find(({ key }) => key === (focused ?? state.score)) ?? scores[0]);
  };
  return { element, show };
}

function scoreLine(page, score, explain) {
  const { state, trace } = page;
  const button = make("button", "score");
  const value = score.values ? score.values[state.layer * trace.model.heads + state.head] : NaN;
  const defined = score.values?.filter((x) => !Number.isNaN(x)) ?? [];
  const rank = !score.values ? "…" : Number.isNaN(value) ? "not here" : `${1 + defined.filter((x) => x > value).length} of ${defined.length}`;
  button.dataset.score = score.key;
  button.setAttribute("aria-pressed", String(score.key === state.score));
  button.setAttribute("aria-describedby", "attention-definition");
  button.append(make("span", "", score.title), make("span", "value", inColumn(value, score.unit)), make("span", "rank", rank));
  button.addEventListener("pointerenter", () => explain(score));
  button.addEventListener("focus", () => explain(score));
  button.addEventListener("click", () => page.go({ score: score.key === state.score ? undefined : score.key, threshold: undefined }));
  return button;
}
