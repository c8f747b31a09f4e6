// What is to be said about the chosen row, the chosen column and the head, in numbers and in a sentence.
import { inColumn, measures } from "./attention_scores.js";
import { make, range, section } from "./dom.js";
import { percent } from "./format.js";

const LISTED = 8; // keys of a row
const PATIENCE = 250; // ms that a column is looked at before the server is asked about it

export function mount(root, page) {
  const row = rowPart(page);
  const column = columnPart(page);
  const head = headPart(page);
  root.append(row.element, column.element, head.element);
  return {
    update() {
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
    element.firstChild.replaceChildren("What ", make("bdi", "", trace.pieces[query]), " looks at");
    const best = range(0, weights.length).sort((a, b) => weights[b] - weights[a] || a - b).slice(0, LISTED).filter((i) => weights[i] > 0);
    const rest = best.reduce((left, i) => left - weights[i], total);
    const others = weights.filter((w) => w > 0).length - best.length;
    const most = weights[best[0]] || 1;
    const exact = max === 1;
    list.replaceChildren(...best.map((key) => weightLine(page, query, key, weights[key], most, exact)));
    if (others > 0) list.append(restLine(others, Math.max(0, rest), most, exact));
    note.hidden = total > 0;
    note.textContent = total > 0 ? "" : "This token may attend to nothing: its row of the pattern is zero, and the head adds nothing there.";
  };
  return { element, show };
}

function weightLine(page, query, key, weight, most, exact) {
  const button = make("button", "weight");
  const name = make("bdi", "", page.keys[key]);
  name.title = page.keys[key];
  button.classList.toggle("as-key", key === page.state.key && query === page.state.query);
  button.setAttribute("aria-label", `${page.keys[key]}: ${percent(weight)}, look at this key`);
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
 * Why the chosen column is bright: the server's sentence, asked for once a column that was picked is looked at for a while.
 * Another head asks nothing by itself: there a button does.
 */
function columnPart(page) {
  const element = section("", "");
  const why = make("p", "why");
  why.setAttribute("aria-live", "polite");
  const button = make("button", "chip", "say why, for this head");
  element.append(why, button);
  const kept = new Map(); // of this run: name of a question -> sentence
  let timer = 0;
  let shown = {};
  const say = (sentence) => {
    why.textContent = sentence;
    why.hidden = sentence === null;
    button.hidden = sentence !== null;
  };
  const ask = async ({ name, query }) => {
    const sentence = await page.request(query).then((answer) => answer.sentence, (error) => error.message);
    kept.set(name, sentence);
    if (shown.name === name) say(sentence);
  };
  button.addEventListener("click", () => ask(shown));
  const show = () => {
    const { side, focus, layer, head, key } = page.state;
    const query = { ask: "sink", side, focus, layer, head, key };
    const next = { run: page.trace.trace, where: [side, focus, layer, head].join(), name: JSON.stringify(query), query };
    if (next.run === shown.run && next.name === shown.name) return;
    if (next.run !== shown.run) kept.clear();
    const switched = next.run === shown.run && next.where !== shown.where;
    shown = next;
    element.firstChild.replaceChildren("Why is column ", make("bdi", "", page.keys[key]), " bright?");
    clearTimeout(timer);
    if (kept.has(next.name)) say(kept.get(next.name));
    else {
      say(switched ? null : "");
      if (!switched) timer = setTimeout(() => ask(next), PATIENCE);
    }
  };
  return { element, show, stop: () => clearTimeout(timer) };
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
