// What the model says at the chosen position: its likeliest answers as bars, the right one marked, and what that one costs.
import { make, range } from "../core/dom.js";
import { number, percent } from "../core/format.js";
import { axis, count, named, right, top } from "./seen.js";

const CLASSES = 12; // up to which all of them stand there, in their own order

/** {element, update(frame, kind, position, attention)}. */
export function next(lab) {
  const element = make("section", "probe-next");
  const line = make("div", "probe-next-line");
  const title = make("h3");
  const turns = turner(lab);
  line.append(title, turns.element);
  const list = make("div", "probe-bars");
  const cost = make("p", "probe-cost");
  element.append(line, list, cost);
  let bars = [];
  const update = (frame, kind, position, attention) => {
    element.hidden = !count(frame);
    if (element.hidden) return;
    write(title, asked(lab, frame, kind, position, attention));
    turns.update(position, count(frame));
    const rows = candidates(lab, frame, kind, position);
    if (bars.length !== rows.length) {
      bars = rows.map(bar);
      list.replaceChildren(...bars.map((one) => one.element));
    }
    rows.forEach((row, i) => bars[i].show(row));
    spell(cost, lab, right(frame, position), kind);
  };
  return { element, update };
}

/** [{name, p, right, rest}]: always as many, so that nothing moves while it learns. */
export function candidates(lab, frame, kind, position) {
  const answer = right(frame, position);
  const called = ({ id, p }) => ({ name: named(lab, id, kind), p, right: answer?.id === id });
  const all = frame.arrays.p?.data;
  if (kind === "class" && all.length <= CLASSES) return range(0, all.length).map((id) => called({ id, p: all[id] }));
  const listed = top(frame, position);
  const rows = listed.map(called);
  const unlisted = answer && !rows.some((row) => row.right) ? called(answer) : null;
  const rest = 1 - rows.reduce((sum, { p }) => sum + p, unlisted?.p ?? 0);
  return [...rows, { name: "all others", p: Math.max(0, rest), rest: true }, unlisted ?? { name: "", p: NaN }];
}

/** What the model is asked there, as [text, token, text, token, ...]. */
export function asked(lab, frame, kind, position, attention) {
  if (kind === "class") return ["Which class"];
  if (kind === "pixels") return [`The grey of pixel ${position + 1}`];
  const own = lab.attentions.find(({ key }) => key === "attn") ?? attention;
  const { pieces } = axis(lab, frame, own, "rows");
  return [kind === "here" ? "At " : "Next token after ", pieces[position] ?? `position ${position + 1}`];
}

/** Words and tokens, each token apart from the direction of the text around it. */
export function write(element, parts) {
  const said = parts.join("\u0000");
  if (element.dataset.said === said) return;
  element.dataset.said = said;
  const { childNodes: there } = element;
  if (there.length === parts.length) return parts.forEach((part, i) => there[i].textContent !== part && (there[i].textContent = part));
  element.replaceChildren(...parts.map((part, i) => (i % 2 ? make("bdi", "", part) : document.createTextNode(part))));
}

function bar() {
  const element = make("div", "probe-bar");
  const [name, track, share, tick] = [make("bdi"), make("span", "track"), make("span", "share"), make("span", "tick")];
  const filled = track.appendChild(make("i"));
  element.append(name, track, share, tick);
  let shown = "";
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

/** Buttons to the position before and after. */
function turner(lab) {
  const element = make("span", "turns");
  const place = make("span", "number");
  let [position, most] = [0, 0];
  const button = (sign, by, label) => {
    const one = make("button", "turn", sign);
    one.type = "button";
    one.setAttribute("aria-label", label);
    one.addEventListener("click", () => lab.go({ position: Math.max(0, Math.min(most - 1, position + by)) }));
    return one;
  };
  element.append(button("‹", -1, "the position before"), place, button("›", 1, "the next position"));
  const update = (at, all) => {
    [position, most] = [at, all];
    element.hidden = all < 2;
    place.textContent = `position ${at + 1} of ${all}`;
  };
  return { element, update };
}

/** Cross-entropy with a target that is 1 at the right answer and 0 elsewhere is one logarithm. */
function spell(element, lab, answer, kind) {
  const parts = answer
    ? ["Against the one-hot target (1 at ", named(lab, answer.id, kind), `, 0 elsewhere): −ln ${answer.p.toPrecision(4)} = ${number(answer.loss)} nats`]
    : ["What is right here is not known, so nothing is lost."];
  write(element, parts);
}
