// What is to be said about the chosen row, the chosen column and the head, in numbers and in a sentence; of a long text, whose tokens
// go by their positions, also the words around both ends.
import { called, written as widest } from "./axes.js";
import { inColumn, measures } from "./scores.js";
import { at } from "../components/cells.js";
import { make, range, section } from "../core/dom.js";
import { percent } from "../core/format.js";
import { colourOf, nameOf } from "../core/turns.js";
import { aim, whyLink } from "../core/why.js";

/**
 * @typedef {import("./attention.js").Page} Page
 * @typedef {import("./source.js").Row} Row
 * @typedef {import("./source.js").Column} Column
 * @typedef {ReturnType<typeof measures>[number]} Score
 * @typedef {import("../core/store.js").Query<"sink"> | import("../core/store.js").Query<"column">} Query
 * @typedef {{ sentence?: string, arrays?: Record<string, import("../core/payload.js").NamedArray> }} Answer
 * @typedef {{ run: string, where: string, name: string, query: Query }} Question
 */

const BRIGHT = 1.5; // times what an even row would give, as engine/analysis/sinks.py has it
const NAMED = { least: 84, most: 148 }; // CSS pixels of a token beside its bar
const PATIENCE = 250; // ms that a column is looked at before the server is asked about it
const AROUND = 12; // tokens before and behind

/**
 * @param {HTMLElement} root
 * @param {Page} page
 */
export function mount(root, page) {
  const parts = {
    row: rowPart(page),
    column: columnPart(page),
    head: headPart(page),
    roles: rolesPart(page),
    words: wordsPart(page),
  };
  root.append(...Object.values(parts).map(({ element }) => element));
  return {
    update() {
      const { tiled } = page.source;
      const named = Math.min(
        NAMED.most,
        Math.max(NAMED.least, Math.ceil(tiled ? 0 : widest([...page.trace.pieces, ...page.keys]))),
      );
      root.style.setProperty("--named", `${named}px`);
      for (const { element } of [parts.row, parts.column]) element.classList.toggle("long-row", tiled);
      parts.words.element.hidden = !tiled;
      for (const { show } of Object.values(parts)) show();
    },
    mark: () => parts.row.show(),
    destroy() {
      parts.column.stop();
      root.replaceChildren();
    },
  };
}

/**
 * The keys that a row gives most, as bars, and the sum of all others; of a text that is here whole it follows the pointer.
 * @param {Page} page
 */
function rowPart(page) {
  const element = section("", "");
  const cell = make("p", "long-cell");
  const list = make("div", "weights");
  const note = make("p", "sentence");
  const why = whyLink("why_head", "Why does this head look there?", {});
  element.append(cell, list, note, why);
  const inFile = why.hidden;
  const show = () => {
    const { trace, state, hover, source, refused } = page;
    const sides = trace.sides.length > 1 ? { side: state.side, focus: state.focus } : {};
    aim(why, "why_head", { ...sides, layer: state.layer, head: state.head, pos: state.query, key: state.key });
    why.hidden = inFile || source.tiled; // of a long text the parts are not kept
    const query = (source.tiled ? null : hover?.row) ?? state.query;
    const found = source.row(query);
    element.firstChild.replaceChildren("What ", ...place(page, query, trace.pieces[query]), " looks at");
    cell.hidden = !source.tiled;
    if (source.tiled) cell.replaceChildren(...(found ? spelled(page, found) : [refused ? "" : "On its way …"]));
    list.style.opacity = found ? "" : 0.3;
    if (!found && refused) list.replaceChildren();
    if (!found) return;
    const { key, weight, exact } = found;
    const most = weight[0] || 1;
    const focused = list.getRootNode().activeElement?.dataset?.key;
    const lines = Array.from(key, (i, n) => ({ i, share: weight[n] })).filter(({ share }) => share > 0);
    list.replaceChildren(
      ...lines.map(({ i, share }) => weightLine(page, { query, key: i }, "key", share, most, exact)),
    );
    if (found.others > 0) list.append(restLine(found.others, written(found.rest, exact)));
    if (focused) list.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    note.hidden = lines.length > 0;
    note.textContent = note.hidden
      ? ""
      : `This ${trace.grid ? "row" : "token"} may attend to nothing: its ${trace.grid ? "weights are" : "row of the pattern is"} zero, and the head adds nothing there.`;
  };
  return { element, show };
}

/**
 * A token as a heading names it: of a long text with its position.
 * @param {Page} page
 * @param {number} i
 * @param {string} piece
 */
function place(page, i, piece) {
  const name = make("bdi", "", called(page.trace, piece));
  return page.source.tiled ? [`${i} `, name] : [name];
}

/**
 * The chosen cell of a long text, which its map may show as a point: both ends, the weight, and what that moves.
 * @param {Page} page
 * @param {Row} row
 */
function spelled({ trace, keys, state, map }, { weights }) {
  const { query, key } = state;
  /**
   * @param {string} role
   * @param {string} piece
   * @param {number} i
   */
  const end = (role, piece, i) => {
    const named = make("span", `role-${role}`);
    named.append(make("bdi", "", piece), ` ${i}`);
    return named;
  };
  const moved = state.shows === "weighted" ? map?.said(query, key) : "";
  const value = make("span", "share", percent(weights[key]));
  return [
    end("query", trace.pieces[query], query),
    " → ",
    end("key", keys[key], key),
    ": ",
    value,
    moved ? `; ${moved}` : "",
  ];
}

/**
 * One weight with the token at its end `as`: the key, or the query that reads it.
 * @param {Page} page
 * @param {{ query: number, key: number }} cell
 * @param {"key" | "query"} as
 * @param {number} weight
 * @param {number} most
 * @param {boolean} exact
 */
function weightLine(page, { query, key }, as, weight, most, exact) {
  const { trace, keys, state, source } = page;
  const button = make("button", "weight");
  const i = as === "key" ? key : query;
  const piece = (as === "key" ? keys : trace.pieces)[i];
  const name = make("bdi", "", piece);
  name.title = piece;
  button.dataset[as] = i;
  button.classList.toggle(`as-${as}`, key === state.key && query === state.query);
  button.setAttribute("aria-description", `look at this ${as}`);
  button.append(
    ...(source.tiled ? [make("span", "place", i)] : []),
    name,
    bar(weight / most),
    make("span", "share", written(weight, exact)),
  );
  button.addEventListener("click", () => page.go({ query, key, jump: true }));
  return button;
}

/**
 * How many others there are, and of a row their sum, without a bar: those above are drawn to the scale of single weights.
 * @param {number} others
 */
function restLine(others, sum = "") {
  const line = make("div", "weight rest");
  line.append(make("span", "", `${others.toLocaleString("en")} more`), make("span"), make("span", "share", sum));
  return line;
}

/** @param {number} share */
function bar(share) {
  const track = make("span");
  const element = make("span", "bar");
  element.style.width = `${100 * share}%`;
  track.append(element);
  return track;
}

/**
 * A weight that is known in steps of 1/255 only, until its layer is here, says so.
 * @param {number} weight
 * @param {boolean} exact
 */
function written(weight, exact) {
  return exact ? percent(weight) : `≈ ${(100 * weight).toFixed(0)}\u00a0%`;
}

/**
 * What looks at the chosen column, and what was measured of it: the server's sentence, asked for once a column that was picked is
 * looked at for a while. Another head asks nothing by itself: there a button does, and always where the server has to read the column
 * first, of a long text. Only a column that is bright is asked why.
 * @param {Page} page
 */
function columnPart(page) {
  const element = section("", "");
  const why = make("p", "why");
  why.setAttribute("aria-live", "polite");
  const button = make("button", "chip");
  const list = make("div", "weights");
  const bright = make("p", "how-bright");
  element.append(list, bright, why, button);
  /** @type {Map<string, Answer>} */
  const kept = new Map(); // of this run: name of a question -> its answer, {sentence}
  let timer = 0;
  /** @type {Question | null} */
  let shown = null;
  /** @param {Answer | null | undefined} answer */
  const say = (answer) => {
    why.textContent = answer?.sentence ?? "";
    why.hidden = answer === null;
    button.hidden = answer !== null;
    bright.hidden = Boolean(answer?.sentence) || !bright.textContent; // the sentence says it too
  };
  /** @param {Question} question */
  const ask = async ({ name, query }) => {
    /** @type {Answer} */
    const answer = await page.request(query).catch((error) => ({ sentence: error.message }));
    kept.set(name, answer);
    if (shown?.name !== name) return;
    say(answer);
    show();
  };
  button.addEventListener("click", () => shown && ask(shown));
  const show = () => {
    const { side, focus, layer, head, key } = page.state;
    const { source, trace } = page;
    const query = source.about(key);
    const next = { run: trace.trace, where: [side, focus, layer, head].join(), name: JSON.stringify(query), query };
    if (next.run !== shown?.run) kept.clear();
    const answer = kept.get(next.name);
    const found = columnOf(source, key, answer);
    const { mean = NaN, even = NaN, count = 0 } = found;
    const name = place(page, key, page.keys[key]);
    element.firstChild.replaceChildren(
      ...(mean >= BRIGHT * even ? ["Why is column ", ...name, " bright?"] : ["What looks at ", ...name]),
    );
    bright.textContent = count
      ? `mean ${written(mean, found.exact)}, an even row would give ${written(even, true)}`
      : "";
    const most = found.weights[found.best[0]] || 1;
    list.replaceChildren(
      ...found.best.map((row) => weightLine(page, { query: row, key }, "query", found.weights[row], most, found.exact)),
    );
    if (count > found.best.length) list.append(restLine(count - found.best.length));
    button.textContent = source.tiled ? "say how much, and why" : "say more, for this head";
    if (next.run === shown?.run && next.name === shown.name) return;
    const waits = source.tiled || (next.run === shown?.run && next.where !== shown.where); // for the button
    shown = next;
    clearTimeout(timer);
    say(answer ?? (waits ? null : undefined));
    if (!answer && !waits) timer = setTimeout(() => ask(next), PATIENCE);
  };
  return { element, show, stop: () => clearTimeout(timer) };
}

/**
 * A column that is here, or that an answer brought; else an empty one.
 * @param {Page["source"]} source
 * @param {number} key
 * @param {Answer | undefined} answer
 * @returns {Column}
 */
function columnOf(source, key, answer) {
  const here = source.column(key);
  if (here) return here;
  if (source.tiled && answer?.arrays) return source.columnIn({ arrays: answer.arrays });
  return { weights: [], best: [], exact: true };
}

/**
 * The head's scores with what they mean and their rank among all heads; a click measures all heads by one.
 * @param {Page} page
 */
function headPart(page) {
  const element = section("", "");
  const heading = make("div", "score-heading");
  heading.append(make("span"), make("span", "", "this head"), make("span", "", "rank"));
  const list = make("div");
  const definition = make("p", "definition");
  definition.id = "attention-definition";
  element.append(heading, list, definition);
  /** @param {Score | undefined} score */
  const explain = (score) => {
    definition.textContent = score ? `${score.title}: ${score.definition} ${score.source}` : "";
  };
  const show = () => {
    const { trace, state } = page;
    element.firstChild.textContent = `This head, on this ${trace.grid ? "picture" : "text"}`;
    const scores = measures(page);
    element.hidden = page.source.tiled || !scores.length;
    const focused = list.getRootNode().activeElement?.dataset?.score;
    list.replaceChildren(...scores.map((score) => scoreLine(page, score, explain)));
    if (focused) list.querySelector(`[data-score="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    explain(scores.find(({ key }) => key === (focused ?? state.score)) ?? scores[0]);
  };
  return { element, show };
}

/**
 * @param {Page} page
 * @param {Score} score
 * @param {(score: Score) => void} explain
 */
function scoreLine(page, score, explain) {
  const { state, trace } = page;
  const button = make("button", "score");
  const value = score.values ? score.values[state.layer * trace.model.heads + state.head] : NaN;
  const defined = score.values?.filter((x) => !Number.isNaN(x)) ?? [];
  const rank = !score.values
    ? "…"
    : Number.isNaN(value)
      ? defined.length
        ? "not here"
        : "no value"
      : `${1 + defined.filter((x) => x > value).length} of ${defined.length}`;
  button.dataset.score = score.key;
  button.setAttribute("aria-pressed", String(score.key === state.score));
  button.setAttribute("aria-describedby", "attention-definition");
  button.append(
    make("span", "", score.title),
    make("span", "value", inColumn(value, score.unit)),
    make("span", "rank", rank),
  );
  button.addEventListener("pointerenter", () => explain(score));
  button.addEventListener("focus", () => explain(score));
  button.addEventListener("click", () =>
    page.go({ score: score.key === state.score ? undefined : score.key, threshold: undefined }),
  );
  return button;
}

/**
 * How much of this head's attention goes from each role's tokens to each role's: the mean of their rows, summed over the keys.
 * @param {Page} page
 */
function rolesPart(page) {
  const element = section("From role to role", "of who looks, at the left, the mean");
  const table = make("table", "by-role");
  element.append(table);
  const show = () => {
    const { trace, state, source } = page;
    element.hidden = source.tiled || state.focus !== "attn" || !trace.roles.length;
    if (element.hidden) return;
    const roles = [...new Set(trace.roles)];
    const { block } = page.pattern(state.layer, state.head);
    const head = make("tr");
    head.append(make("td"), ...roles.map((role) => named("th", role)));
    table.replaceChildren(
      head,
      ...roles.map((role) => {
        const row = make("tr");
        row.append(named("th", role), ...attendedShares(block, trace.roles, role, roles).map(shareCell));
        return row;
      }),
    );
  };
  return { element, show };
}

/**
 * Weights of the rows of `role`'s tokens, summed over the keys of each of `to`: their mean.
 * @param {Block} block
 * @param {string[]} roles
 * @param {string} role
 * @param {string[]} to
 */
export function attendedShares(block, roles, role, to) {
  const rows = range(0, block.rows).filter((row) => roles[row] === role);
  return to.map((other) => {
    const cols = range(0, block.cols).filter((col) => roles[col] === other);
    return rows.reduce((sum, row) => cols.reduce((total, col) => total + at(block, row, col), sum), 0) / rows.length;
  });
}

/**
 * @param {"td" | "th"} tag
 * @param {string} role
 */
function named(tag, role) {
  const element = make(tag, "", nameOf(role));
  element.style.setProperty("--of-role", colourOf(role));
  return element;
}

/** @param {number} share */
function shareCell(share) {
  const cell = make("td", "", percent(share));
  cell.style.setProperty("--share", `${Math.round(60 * share)}%`);
  return cell;
}

/**
 * The words around the row and around the key, tinted by what the row gives them.
 * @param {Page} page
 */
function wordsPart(page) {
  const element = section("In the text");
  element.className = "long-words";
  const [reader, read] = [make("p"), make("p")];
  element.append(reader, read);
  const show = () => {
    if (element.hidden) return;
    const { trace, state, keys } = page;
    const { query, key } = state;
    const crosses = state.focus === "cross_attn";
    const found = page.row();
    const weights = found?.weights;
    const most = found?.weight[0] || 1;
    /** @param {number} i */
    const tint = (i) => (weights ? Math.round(55 * Math.sqrt(weights[i] / most)) : 0);
    const near = !crosses && Math.abs(query - key) <= AROUND;
    reader.replaceChildren(
      ...around(trace.pieces, query, (i) => [
        i === query ? "as-query" : i === key && !crosses ? "as-key" : "",
        crosses ? 0 : tint(i),
      ]),
    );
    read.hidden = near;
    if (!near)
      read.replaceChildren(
        ...around(keys, key, (i) => [i === key ? "as-key" : i === query && !crosses ? "as-query" : "", tint(i)]),
      );
  };
  return { element, show };
}

/**
 * @param {string[]} pieces
 * @param {number} at
 * @param {(i: number) => [role: string, tint: number]} look
 */
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
