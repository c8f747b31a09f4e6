// What happened while the model learned: flags on the track, and the same as a list of sentences.
import { make } from "../core/dom.js";
import { whole } from "./words.js";

const KINDS = {
  head: ["attention", "H", "head"],
  plateau: ["residual", "P", "plateau ends"],
  grokking: ["value", "G", "grokking"],
  overfitting: ["key", "O", "overfitting"],
  learned: ["value", "L", "learned"],
  spike: ["mlp", "S", "spike"],
};
const SOON = "Nothing yet. A head that forms, the end of a plateau, grokking, overfitting and jumps of the gradient are told of here.";
const NOTHING = "Nothing that stands out was found in the curves and the attention.";
const WIDTH = 17; // px that a flag takes
const LEVEL = 13; // px between two flags above each other
const LEVELS = 2; // that there is room for

/** Goes to where it happened, and to the head that it tells of. */
function look(lab, mark) {
  lab.go({ step: mark.step, ...lab.whereOf(mark) });
  lab.tell(mark.sentence);
}

function flag({ kind }) {
  const [role, letter, called] = KINDS[kind];
  const sign = make("span", "flag-sign", letter);
  sign.style.background = `var(--${role})`;
  sign.title = called;
  return sign;
}

/** {element, draw(at), move()}: a button for each mark above the rail. */
export function flags(lab) {
  const element = make("div", "flags");
  const told = make("p", "flag-told");
  told.hidden = true;
  element.append(told);
  let drawn = "";
  let buttons = [];
  const say = (button, mark, at) => {
    told.textContent = mark.sentence;
    told.hidden = false;
    const width = Math.min(330, at.width - 16);
    told.style.width = `${width}px`;
    told.style.left = `${Math.max(8, Math.min(at.width - width - 8, at.scale.to(mark.step) - width / 2))}px`;
    told.style.bottom = `${at.height - button.offsetTop + 8}px`;
  };
  const hide = () => (told.hidden = true);
  const draw = (at) => {
    const key = [lab.editions.marks, at.most, at.width, at.rail, lab.state.log, lab.edition].join();
    if (key === drawn) return;
    drawn = key;
    const focused = buttons.findIndex(({ button }) => button.matches(":focus"));
    const taken = Array(LEVELS).fill(-Infinity);
    hide();
    buttons = lab.marks.map((mark) => {
      const x = at.scale.to(mark.step);
      const level = Math.max(0, taken.findIndex((end) => end <= x));
      taken[level] = x + WIDTH;
      const button = make("button", "flag");
      button.type = "button";
      button.append(flag(mark));
      button.setAttribute("aria-label", mark.sentence);
      button.style.left = `${x}px`;
      button.style.top = `${at.track + 2 + (LEVELS - 1 - level) * LEVEL}px`;
      button.style.height = `${at.rail - at.track - 2 - (LEVELS - 1 - level) * LEVEL}px`;
      button.addEventListener("click", () => look(lab, mark));
      button.addEventListener("pointerenter", () => say(button, mark, at));
      button.addEventListener("pointerleave", hide);
      button.addEventListener("focus", () => say(button, mark, at));
      button.addEventListener("blur", hide);
      return { button, mark };
    });
    element.replaceChildren(...buttons.map(({ button }) => button), told);
    buttons[focused]?.button.focus({ preventScroll: true });
  };
  const move = () => {
    for (const { button, mark } of buttons) button.classList.toggle("here", mark.step === lab.shown);
  };
  return { element, draw, move };
}

/** {element, update()}: the sentences, each leading to its step. */
export function list(lab) {
  const element = make("section", "happened");
  const heading = make("h3", "", "What happened");
  const items = make("ol", "happened-list");
  element.append(heading, items);
  let drawn = "";
  let buttons = [];
  const draw = (waits) => {
    buttons = lab.marks.map((mark) => {
      const button = make("button", "happening");
      button.type = "button";
      button.append(flag(mark), make("span", "happening-step", whole(mark.step)), make("span", "", mark.sentence));
      button.addEventListener("click", () => look(lab, mark));
      return { button, mark };
    });
    const rows = buttons.map(({ button }) => {
      const row = make("li");
      row.append(button);
      return row;
    });
    const nothing = make("li", "sentence", waits ? SOON : NOTHING);
    items.replaceChildren(...(rows.length ? rows : [nothing]));
  };
  const update = () => {
    element.hidden = lab.status === null;
    const waits = lab.active || !lab.metrics.length; // nothing can have happened yet, or more may
    const key = `${lab.editions.marks} ${waits}`;
    if (key !== drawn) draw(waits);
    drawn = key;
    for (const { button, mark } of buttons) button.setAttribute("aria-current", String(mark.step === lab.shown));
  };
  return { element, update };
}
