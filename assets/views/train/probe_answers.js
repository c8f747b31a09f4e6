// What the model says of the example: what each word costs, what it writes, and its likeliest answers at the chosen position.
import * as prose from "../components/prose.js";
import { make, range } from "../core/dom.js";
import { counted, equation, number, percent } from "../core/format.js";
import { colour, css, ramp, STEPS } from "../core/palette.js";
import { axis, cost, count, isSpecial, named, parting, right, top, written } from "./frames.js";

/**
 * @import { Emit } from "../components/prose.js"
 * @import { Kind, Parting, RightAnswer, Word } from "./frames.js"
 * @import { Attention, Frame } from "./run.js"
 * @import { Page } from "./train.js"
 */

/**
 * @typedef {(loss: number) => { ground: string, ink: string }} Painter
 * @typedef {{ piece: string, row: number | null, answer: RightAnswer | null }} Cell a word, and the row of the answer about it
 * @typedef {Word & { names: { right: string, taught: string, free: string } }} NamedWord
 * @typedef {{ name: string, p: number, right?: boolean, rest?: boolean }} Row of the likeliest answers
 * @typedef {ReturnType<typeof column>} Column
 */

// --- a text word by word, on a ground that is the fuller the more the word costs -------------------------------------------------

const LEAST = 1; // nats: where the ramp of a model that knows everything ends

/**
 * {element, update(frame, kind, position, attention, most)}: `most` is the loss at which the ground is fullest.
 * @param {Page} page
 */
export function words(page) {
  const element = make("section", "probe-words");
  const title = make("h3");
  const place = make("div");
  const sums = make("p", "probe-cost");
  const colours = scale(page);
  element.append(title, place, colours.element, sums);
  /** @type {ReturnType<typeof prose.mount> | undefined} */
  let text;
  /** @type {Cell[]} */
  let said = [];
  /** @type {Emit} */
  const heard = (event, where) => {
    const { piece, answer, row } = where ? said[where.row] : { piece: null, answer: null, row: null };
    if (event === "pick") return row !== null && page.go({ position: row });
    text?.mark(where?.row ?? null);
    page.tip(piece, answer ? `${number(answer.loss)} nats, p = ${percent(answer.p)}` : "");
  };
  /**
   * @param {Frame} frame
   * @param {Kind} kind
   * @param {number} position
   * @param {Attention} attention
   * @param {number} most
   */
  const update = (frame, kind, position, attention, most) => {
    element.hidden = kind !== "text" && kind !== "here";
    if (element.hidden) return;
    said = cells(page, frame, kind, attention);
    const ends = Math.max(most, LEAST);
    const painter = paints(page, ends);
    const data = {
      name: "loss at each token; arrow keys choose one",
      pieces: said.map(({ piece }) => piece),
      special: said.map(({ piece }) => isSpecial(piece)),
      size: said.length <= 40 ? 17 : 14,
      chosen: said.findIndex(({ row }) => row === position),
      /** @param {number} i */
      paint: (i) => {
        const { answer } = said[i];
        return answer ? painter(answer.loss) : null;
      },
      quiet: () => false,
    };
    if (text) text.update(data);
    else text = prose.mount(place, data, heard);
    const of =
      kind === "text" ? "token, given those before it" : page.task?.objective === "masked" ? "hidden token" : "token";
    title.textContent = `Loss at each ${of}`;
    sums.textContent = total(frame);
    colours.update(ends);
  };
  return { element, update };
}

/**
 * The loss of the example in words.
 * @param {Frame} frame
 */
export function total(frame) {
  const { sum, mean, asked } = cost(frame);
  if (!asked) return "No known answers here.";
  return asked === 1
    ? `Loss ${number(sum)} nats`
    : `Loss: sum ${number(sum)} nats over ${counted(asked, "position")}, mean ${number(mean)} nats`;
}

/**
 * [{piece, row, answer}]: a word and the row of the answer that is about it.
 * @param {Page} page
 * @param {Frame} frame
 * @param {Kind} kind
 * @param {Attention} attention
 * @returns {Cell[]}
 */
function cells(page, frame, kind, attention) {
  const own = page.attentions.find(({ key }) => key === "attn") ?? attention;
  const { pieces } = axis(page, frame, own, "rows");
  if (kind === "here") return pieces.map((piece, row) => ({ piece, row, answer: right(frame, row) }));
  const later = range(0, count(frame)).map((row) => {
    const answer = right(frame, row);
    return { piece: pieces[row + 1] ?? (answer ? named(page, answer.id, kind) : "…"), row, answer };
  });
  return [{ piece: pieces[0], row: null, answer: null }, ...later];
}

/**
 * loss -> {ground, ink}, from the ground up to `ends` nats.
 * @param {Page} page
 * @param {number} ends
 * @returns {Painter}
 */
export function paints(page, ends) {
  const table = ramp(page.element, "probability", "unit");
  const choose = inks(page.element);
  return (loss) => {
    const ground = css(table[evenly(loss / ends)]);
    return { ground, ink: choose(brightness(ground)).name };
  };
}

/**
 * The step of a ramp at which its colour is the share `t` of the way: losses are not looked at through a square root, as weights are.
 * @param {number} t
 */
export function evenly(t) {
  return Math.round(Math.min(1, Math.max(0, t)) ** 2 * (STEPS - 1));
}

/**
 * The ramp with its two ends in nats.
 * @param {Page} page
 */
export function scale(page) {
  const element = make("div", "legend probe-scale");
  const [bar, text] = [make("span", "legend-bar"), make("span", "legend-text")];
  bar.style.width = "72px";
  element.append(bar, text);
  let shown = "";
  const paint = page.memoize(() => {
    const table = ramp(page.element, "probability", "unit");
    bar.style.background = `linear-gradient(to right, ${range(0, 9)
      .map((i) => css(table[evenly(i / 8)]))
      .join(", ")})`;
  });
  /** @param {number} ends */
  const update = (ends) => {
    const said = `0 to ${ends.toFixed(1)} nats`;
    if (said !== shown) text.textContent = shown = said;
    paint();
  };
  return { element, update };
}

// --- what a model writes, word by word: given the correct prefix (as it is taught), and unaided (each word of its own read again) ---

/** @type {[key: string, name: string][]} */
const ROWS = [
  ["asked", "right"],
  ["taught", "given the correct prefix"],
  ["free", "unaided"],
  ["loss", "loss, nats"],
];
const WIDTH = { names: 156, letter: 9.5, around: 14, least: 32, most: 96 }; // CSS pixels

/**
 * {element, update(frame, kind, position, most, room)}.
 * @param {Page} page
 */
export function writing(page) {
  const element = make("section", "probe-written");
  const place = make("div", "probe-lines");
  const [parts, sums] = [make("p", "probe-parts"), make("p", "probe-cost")];
  const colours = scale(page);
  element.append(make("h3", "", "What it should write, and what it writes"), place, parts, colours.element, sums);
  /** @type {Column[]} */
  let columns = [];
  let built = "";

  /**
   * @param {Frame} frame
   * @param {Kind} kind
   * @param {number} position
   * @param {number} most
   * @param {number} room
   */
  const update = (frame, kind, position, most, room) => {
    element.hidden = kind !== "pair" && kind !== "written";
    if (element.hidden) return;
    const list = pairs(page, frame, kind);
    const ends = Math.max(most, LEAST);
    const [across, wide] = fitting(list, room);
    const structure = [list.length, across, wide].join();
    if (structure !== built) {
      columns = build(place, list.length, across, wide, (i) => pick(page, columns[i].word));
      built = structure;
    }
    const painter = paints(page, ends);
    const split = parting(list);
    list.forEach((word, i) =>
      columns[i].show(word, i, { chosen: word.row === position && word.row !== null, split, painter }),
    );
    colours.update(ends);
    const said = describeParting(list, split);
    if (said !== parts.textContent) parts.textContent = said;
    sums.textContent = total(frame);
  };
  return { element, update };
}

/**
 * @param {Page} page
 * @param {Word | null} word
 */
function pick(page, word) {
  if (word && word.row !== null) page.go({ position: word.row });
}

/**
 * The words with their names: {row, right, taught, free, names: {right, taught, free}}.
 * @param {Page} page
 * @param {Frame} frame
 * @param {Kind} kind
 * @returns {NamedWord[]}
 */
function pairs(page, frame, kind) {
  const longest = Math.max(
    0,
    ...Array.from(page.frames.values(), ({ arrays }) => arrays["free.ids"]?.data.length ?? 0),
  );
  const last = written(frame, kind, true, longest).findLast(({ right }) => right)?.right;
  const ended = Boolean(last && isSpecial(named(page, last.id, kind)));
  /** @param {number | null} id */
  const called = (id) => (id === null ? "" : named(page, id, kind));
  return written(frame, kind, ended, longest).map((word) => ({
    ...word,
    names: { right: word.right ? called(word.right.id) : "", taught: called(word.taught), free: called(word.free) },
  }));
}

/**
 * How many words stand in a line, and how wide each: the right ones decide, since the others change all the time.
 * @param {NamedWord[]} list
 * @param {number} room
 */
function fitting(list, room) {
  const longest = Math.max(...list.map(({ names }) => [...(names.right || names.free)].length), 1);
  const wide = Math.round(Math.max(WIDTH.least, Math.min(WIDTH.most, longest * WIDTH.letter + WIDTH.around)));
  return [Math.max(1, Math.floor((room - WIDTH.names) / wide)), wide];
}

/**
 * @param {HTMLElement} place
 * @param {number} count
 * @param {number} across
 * @param {number} wide
 * @param {(i: number) => void} picked
 */
function build(place, count, across, wide, picked) {
  /** @type {Column[]} */
  const columns = [];
  const lines = range(0, Math.ceil(count / across)).map((line) => {
    const element = make("div", "probe-line");
    const names = make("div", "names");
    names.append(...ROWS.map(([key, name]) => make("span", key, name)));
    element.append(names);
    for (const i of range(line * across, Math.min(count, (line + 1) * across))) {
      const one = column(() => picked(i));
      one.element.style.width = `${wide}px`;
      columns.push(one);
      element.append(one.element);
    }
    return element;
  });
  place.replaceChildren(...lines);
  return columns;
}

/** @param {() => void} picked */
function column(picked) {
  /** @type {HTMLButtonElement} */
  const element = make("button", "word");
  element.type = "button";
  element.addEventListener("click", picked);
  /** @type {Record<string, HTMLElement>} */
  const cells = Object.fromEntries(ROWS.map(([key]) => [key, make("bdi", key)]));
  element.append(...Object.values(cells));
  const made = { element, word: /** @type {NamedWord | null} */ (null), show };
  let shown = "";
  /**
   * @param {NamedWord} word
   * @param {number} i
   * @param {{ chosen: boolean, split: Parting, painter: Painter }} how
   */
  function show(word, i, { chosen, split, painter }) {
    const { right, names } = word;
    made.word = word;
    element.setAttribute("aria-pressed", String(chosen));
    element.classList.toggle("empty", !names.right && !names.taught && !names.free);
    const said = JSON.stringify([names, right?.loss, i === split.part, painter(right?.loss ?? 0)]);
    if (said === shown) return;
    shown = said;
    cells.asked.textContent = names.right || "·";
    for (const key of /** @type {const} */ (["taught", "free"])) cells[key].textContent = names[key] || "·";
    cells.taught.classList.toggle("wrong", isWrong(word, "taught"));
    cells.free.classList.toggle("wrong", isWrong(word, "free"));
    element.classList.toggle("parts", i === split.part);
    cells.loss.textContent = right ? brief(right.loss) : "";
    const { ground, ink } = right ? painter(right.loss) : { ground: "", ink: "" };
    Object.assign(cells.loss.style, { background: ground, color: ink });
    element.title = right ? `p(${names.right}) = ${percent(right.p)}, loss ${number(right.loss)} nats` : "";
    element.setAttribute("aria-label", spoken(word, i));
  }
  return made;
}

/**
 * @param {Word} word
 * @param {"taught" | "free"} which
 */
function isWrong({ right, taught, free }, which) {
  return right !== null && (which === "taught" ? taught : free) !== right.id;
}

/** @param {number} loss */
function brief(loss) {
  return loss >= 10 ? loss.toFixed(1) : loss >= 0.005 ? loss.toFixed(2) : "0.00";
}

/**
 * @param {NamedWord} word
 * @param {number} i
 */
function spoken(word, i) {
  const { names, right } = word;
  /** @param {"taught" | "free"} which */
  const judged = (which) => (isWrong(word, which) ? ", wrong" : "");
  const answer = right
    ? `: right is ${names.right}; given the correct prefix (teacher forcing) ${names.taught}${judged("taught")}; unaided`
    : ": it writes";
  return `token ${i + 1}${answer} ${names.free || "nothing"}${judged("free")}${right ? `; loss ${number(right.loss)} nats` : ""}`;
}

/**
 * Where the two leave each other, in a sentence.
 * @param {NamedWord[]} list
 * @param {Parting} parting
 */
function describeParting(list, { wrong, part }) {
  /** @param {number} i */
  const at = (i) => `token ${i + 1}`;
  if (!list.some(({ right }) => right)) return "Unaided; what is right is not known.";
  if (wrong < 0) return "Unaided: all correct.";
  const { names } = list[wrong];
  const slip = `${at(wrong)}: ${names.free ? `“${names.free}”` : "it has ended"} instead of “${names.right}”`;
  if (list.findLastIndex(({ right }) => right) === wrong) return `Unaided, the only error is the last one, at ${slip}.`;
  const begun = `Unaided, the first error is at ${slip}; from there on the model reads its own tokens.`;
  if (part < 0) return `${begun} Both rows still agree everywhere.`;
  const [taught, free] = [list[part].names.taught, list[part].names.free].map((name) =>
    name ? `“${name}”` : "nothing",
  );
  return `${begun} The two rows part at ${at(part)}: ${taught} given the correct prefix, ${free} unaided.`;
}

// --- its likeliest answers at the chosen position as bars, the right one marked, and what that one costs -------------------------

const CLASSES = 12; // up to which all of them stand there, in their own order

/**
 * {element, update(frame, kind, position, attention)}.
 * @param {Page} page
 */
export function next(page) {
  const element = make("section", "probe-next");
  const line = make("div", "probe-next-line");
  const title = make("h3");
  const turns = turner(page);
  line.append(title, turns.element);
  const list = make("div", "probe-bars");
  const cost = make("p", "probe-cost");
  element.append(line, list, cost);
  /** @type {ReturnType<typeof bar>[]} */
  let bars = [];
  /**
   * @param {Frame} frame
   * @param {Kind} kind
   * @param {number} position
   * @param {Attention} attention
   */
  const update = (frame, kind, position, attention) => {
    element.hidden = !count(frame) || isNumber(frame);
    if (element.hidden) return;
    write(title, asked(page, frame, kind, position, attention));
    turns.update(position, count(frame));
    const rows = listed(page, frame, kind, position);
    if (bars.length !== rows.length) {
      bars = rows.map(bar);
      list.replaceChildren(...bars.map((one) => one.element));
    }
    rows.forEach((row, i) => bars[i].show(row));
    spell(cost, page, right(frame, position), kind);
  };
  return { element, update };
}

/**
 * [{name, p, right, rest}]: always as many, so that nothing moves while it learns.
 * @param {Page} page
 * @param {Frame} frame
 * @param {Kind} kind
 * @param {number} position
 * @returns {Row[]}
 */
function listed(page, frame, kind, position) {
  const answer = right(frame, position);
  /** @param {{ id: number, p: number }} likely */
  const called = ({ id, p }) => ({ name: named(page, id, kind), p, right: answer?.id === id });
  const all = frame.arrays.p?.data;
  if (all && all.length <= CLASSES) return range(0, all.length).map((id) => called({ id, p: all[id] }));
  const best = top(frame, position);
  const rows = best.map(called);
  const unlisted = answer && !rows.some((row) => row.right) ? called(answer) : null;
  const rest = 1 - rows.reduce((sum, { p }) => sum + p, unlisted?.p ?? 0);
  return [...rows, { name: "all others", p: Math.max(0, rest), rest: true }, unlisted ?? { name: "", p: NaN }];
}

/**
 * What the model is asked there, as [text, token, text, token, ...].
 * @param {Page} page
 * @param {Frame} frame
 * @param {Kind} kind
 * @param {number} position
 * @param {Attention} attention
 */
export function asked(page, frame, kind, position, attention) {
  if (kind === "class") return ["Which class"];
  if (kind === "pixels") return [`The grey of pixel ${position + 1}`];
  const own = page.attentions.find(({ key }) => key === "attn") ?? attention;
  const { pieces } = axis(page, frame, own, "rows");
  return [kind === "here" ? "At " : "Next token after ", pieces[position] ?? `position ${position + 1}`];
}

/**
 * A reward model gives one number, and nothing to choose from.
 * @param {Frame} frame
 */
export function isNumber(frame) {
  return frame.arrays.p?.data.length === 1;
}

/**
 * Words and tokens, each token apart from the direction of the text around it.
 * @param {HTMLElement} element
 * @param {string[]} parts
 */
export function write(element, parts) {
  const said = parts.join("\u0000");
  if (element.dataset.said === said) return;
  element.dataset.said = said;
  const { childNodes: there } = element;
  if (there.length === parts.length)
    return parts.forEach((part, i) => there[i].textContent !== part && (there[i].textContent = part));
  element.replaceChildren(...parts.map((part, i) => (i % 2 ? make("bdi", "", part) : document.createTextNode(part))));
}

function bar() {
  const element = make("div", "probe-bar");
  const [name, track, share, tick] = [make("bdi"), make("span", "track"), make("span", "share"), make("span", "tick")];
  const filled = track.appendChild(make("i"));
  element.append(name, track, share, tick);
  let shown = "";
  /** @param {Row} row */
  const show = (row) => {
    const said = [row.name, row.p, row.right, row.rest].join();
    if (said === shown) return;
    shown = said;
    const empty = Number.isNaN(row.p);
    element.style.visibility = empty ? "hidden" : "";
    name.textContent = row.name;
    name.title = row.name;
    filled.style.transform = `scaleX(${empty ? 0 : row.p})`;
    share.textContent = empty ? "" : percent(row.p);
    tick.textContent = row.right ? "✓ right" : "";
    element.classList.toggle("is-right", Boolean(row.right));
    element.classList.toggle("rest", Boolean(row.rest));
  };
  return { element, show };
}

/**
 * Buttons to the position before and after.
 * @param {Page} page
 */
function turner(page) {
  const element = make("span", "turns");
  const place = make("span", "number");
  let [position, most] = [0, 0];
  /**
   * @param {string} sign
   * @param {number} by
   * @param {string} label
   * @returns {HTMLButtonElement}
   */
  const button = (sign, by, label) => {
    const one = make("button", "turn", sign);
    one.type = "button";
    one.setAttribute("aria-label", label);
    one.addEventListener("click", () => page.go({ position: Math.max(0, Math.min(most - 1, position + by)) }));
    return one;
  };
  element.append(button("‹", -1, "the position before"), place, button("›", 1, "the next position"));
  /**
   * @param {number} at
   * @param {number} all
   */
  const update = (at, all) => {
    [position, most] = [at, all];
    element.hidden = all < 2;
    place.textContent = `position ${at + 1} of ${all}`;
  };
  return { element, update };
}

/**
 * Cross-entropy with a target that is 1 at the right answer and 0 elsewhere is one logarithm.
 * @param {HTMLElement} element
 * @param {Page} page
 * @param {RightAnswer | null} answer
 * @param {Kind} kind
 */
function spell(element, page, answer, kind) {
  if (!answer) return write(element, ["Answer unknown, so no loss."]);
  const { id, loss } = answer;
  // Near 1 a float32 has fewer digits than its logarithm: the loss, which is computed from the logits, says what p is.
  const { texts, sign, result } = equation([Math.exp(-loss)], (p) => -Math.log(p), loss);
  const called = named(page, id, kind);
  write(element, [
    "Against the one-hot target (1 at ",
    called,
    `, 0 elsewhere): −ln ${texts[0]} ${sign} ${result} nats`,
  ]);
}

// --- the ink that can be read on a coloured ground -------------------------------------------------------------------------------

const MIDDLE = 110; // of 0 to 255: grounds above it carry the darker of the two inks

/**
 * brightness of a ground -> {colour, name}: of the theme's ink and ground the one that stands out, as a colour and as a variable.
 * @param {Element} root
 * @returns {(ground: number) => { colour: string, name: string }}
 */
export function inks(root) {
  const both = ["ink", "ground"].map((name) => ({ colour: colour(root, name), name: `var(--${name})` }));
  const [dark, bright] = both.sort((a, b) => brightness(a.colour) - brightness(b.colour));
  return (ground) => (ground > MIDDLE ? dark : bright);
}

/**
 * 0 to 255, of "#rrggbb" or "rgb(r g b)".
 * @param {string} said
 */
export function brightness(said) {
  const [r, g, b] = said.startsWith("#")
    ? [1, 3, 5].map((i) => parseInt(said.slice(i, i + 2), 16))
    : (said.match(/\d+/g) ?? []).map(Number);
  return 0.299 * r + 0.587 * g + 0.114 * b;
}
