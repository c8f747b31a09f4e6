// What a model writes, word by word: after the right words (as it is taught), and by itself (each word of its own read again).
import { make, range } from "../core/dom.js";
import { number, percent } from "../core/format.js";
import { isSpecial, named, parting, written } from "./seen.js";
import { paints, scale, total } from "./probe_words.js";

const ROWS = [
  ["asked", "right"],
  ["taught", "after the right ones"],
  ["free", "by itself"],
  ["loss", "loss, nats"],
];
const WIDTH = { names: 124, letter: 9.5, around: 14, least: 32, most: 96 }; // CSS pixels
const LEAST = 1; // nats, at which the ramp of the losses ends at least

/** {element, update(frame, kind, position, most, room)}. */
export function writing(lab) {
  const element = make("section", "probe-written");
  const place = make("div", "probe-lines");
  const [parts, sums] = [make("p", "probe-parts"), make("p", "probe-cost")];
  const colours = scale(lab);
  element.append(make("h3", "", "What it should write, and what it writes"), place, parts, colours.element, sums);
  let [columns, built] = [[], ""];

  const update = (frame, kind, position, most, room) => {
    element.hidden = kind !== "pair" && kind !== "written";
    if (element.hidden) return;
    const list = words(lab, frame, kind);
    const ends = Math.max(most, LEAST);
    const [across, wide] = fitting(list, room);
    const structure = [list.length, across, wide].join();
    if (structure !== built) {
      columns = build(place, list.length, across, wide, (i) => pick(lab, columns[i].word));
      built = structure;
    }
    const painter = paints(lab, ends);
    const split = parting(list);
    list.forEach((word, i) => columns[i].show(word, i, { chosen: word.row === position && word.row !== null, split, painter }));
    colours.update(ends);
    const said = sentence(list, split);
    if (said !== parts.textContent) parts.textContent = said;
    sums.textContent = total(frame);
  };
  return { element, update };
}

function pick(lab, word) {
  if (word.row !== null) lab.go({ position: word.row });
}

/** The words with their names: {row, right, taught, free, names: {right, taught, free}}. */
export function words(lab, frame, kind) {
  const answer = (list) => list.findLast(({ right }) => right)?.right;
  const longest = Math.max(0, ...Array.from(lab.frames.values(), ({ arrays }) => arrays["free.ids"]?.data.length ?? 0));
  const last = answer(written(frame, kind, true, longest));
  const ended = Boolean(last) && isSpecial(named(lab, last.id, kind));
  const called = (id) => (id === null ? "" : named(lab, id, kind));
  return written(frame, kind, ended, longest).map((word) => ({
    ...word,
    names: { right: word.right ? called(word.right.id) : "", taught: called(word.taught), free: called(word.free) },
  }));
}

/** How many words stand in a line, and how wide each: the right ones decide, since the others change all the time. */
function fitting(list, room) {
  const longest = Math.max(...list.map(({ names }) => [...(names.right || names.free)].length), 1);
  const wide = Math.round(Math.max(WIDTH.least, Math.min(WIDTH.most, longest * WIDTH.letter + WIDTH.around)));
  return [Math.max(1, Math.floor((room - WIDTH.names) / wide)), wide];
}

function build(place, count, across, wide, picked) {
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

function column(picked) {
  const element = make("button", "word");
  element.type = "button";
  element.addEventListener("click", picked);
  const cells = Object.fromEntries(ROWS.map(([key]) => [key, make("bdi", key)]));
  element.append(...Object.values(cells));
  const made = { element, word: null, show };
  let shown = "";
  function show(word, i, { chosen, split, painter }) {
    const { right, names } = word;
    made.word = word;
    element.setAttribute("aria-pressed", String(chosen));
    element.classList.toggle("empty", !names.right && !names.taught && !names.free);
    const said = JSON.stringify([names, right?.loss, i === split.part, painter(right?.loss ?? 0)]);
    if (said === shown) return;
    shown = said;
    cells.asked.textContent = names.right || "·";
    for (const key of ["taught", "free"]) cells[key].textContent = names[key] || "·";
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

function isWrong({ right, taught, free }, which) {
  return right !== null && (which === "taught" ? taught : free) !== right.id;
}

function brief(loss) {
  return loss >= 10 ? loss.toFixed(1) : loss >= 0.005 ? loss.toFixed(2) : "0.00";
}

function spoken(word, i) {
  const { names, right } = word;
  const judged = (which) => (isWrong(word, which) ? ", wrong" : "");
  const answer = right ? `: right is ${names.right}; after the right words it says ${names.taught}${judged("taught")}; by itself it writes` : ": it writes";
  return `token ${i + 1}${answer} ${names.free || "nothing"}${judged("free")}${right ? `; loss ${number(right.loss)} nats` : ""}`;
}

/** Where the two leave each other, in a sentence. */
function sentence(list, { wrong, part }) {
  const at = (i) => `token ${i + 1}`;
  if (!list.some(({ right }) => right)) return "Written by itself: what is right is not known.";
  if (wrong < 0) return "By itself it writes all of it right.";
  const { names } = list[wrong];
  const slip = `${at(wrong)}: ${names.free ? `“${names.free}”` : "it has ended"} instead of “${names.right}”`;
  if (list.findLastIndex(({ right }) => right) === wrong) return `By itself it errs at the last, ${slip}.`;
  const begun = `By itself it first errs at ${slip}, and from there on it reads its own words.`;
  if (part < 0) return `${begun} The two still say the same everywhere.`;
  const [taught, free] = [list[part].names.taught, list[part].names.free].map((name) => (name ? `“${name}”` : "nothing"));
  return `${begun} The two part at ${at(part)}: ${taught} after the right words, ${free} after its own.`;
}
