// The row of buttons above everything: play, pause, steps, stop, begin again; the learning rate; and how it is going, in words.
import { make } from "../core/dom.js";
import { planLine } from "./plan.js";
import { rate } from "./rate.js";
import { able, hindered, main, told, whole } from "./words.js";
import { svg } from "../components/stack.js";

const ICONS = { play: "M4 2.2 13.6 8 4 13.8Z", pause: "M3.5 2.5h3.2v11H3.5zM9.3 2.5h3.2v11H9.3z" };
const SMALL = [
  ["step", "1 step", "one step more, then pause"],
  ["ten", "10 steps", "ten steps more, then pause"],
  ["stop", "Stop", "end the training here; it can be resumed"],
  ["reset", "Reset", "begin again from step 0 with the same seed; what was learned can be had back from the runs below"],
  ["fork", "Fork from here", ""],
];

/** `say(sentence)` shows what went wrong. */
export function mount(root, lab, say) {
  const large = largeButton();
  const small = Object.fromEntries(SMALL.map(([name, label, title]) => [name, smallButton(name, label, title)]));
  const line = make("div", "transport-line");
  const groups = [["step", "ten"], ["stop", "reset", "fork"]].map((names) => {
    const group = make("div", "transport-group");
    group.append(...names.map((name) => small[name]));
    return group;
  });
  const learning = rate(lab, (query) => order(query));
  line.append(large.element, ...groups, learning.element);
  const state = stateLine(() => order({ ask: "order", order: "play" }));
  const plan = planLine(lab, { start: () => start(), contrast: (change) => contrast(change) });
  root.append(line, state.element, plan.element);

  const tried = async (doing) => {
    say("");
    try {
      return await doing();
    } catch (error) {
      say(error.message);
      lab.tell(error.message);
      return null;
    }
  };
  const order = (query) => tried(() => lab.order(query));
  const start = async () => {
    const answer = await pressed(large, () => tried(() => lab.order({ ask: "start" })));
    if (answer) lab.look(answer.run);
  };
  const contrast = async (change) => {
    const answer = await tried(() => lab.order({ ask: "contrast", change }));
    if (answer) lab.look(answer.runs[0], answer.runs.slice(1));
  };
  const play = () => {
    const { what, why } = main(lab);
    if (why) return lab.tell(why);
    if (what === "start") return start();
    return pressed(large, () => order({ ask: "order", order: what }));
  };
  const acts = {
    step: () => order({ ask: "order", order: "steps", steps: 1 }),
    ten: () => order({ ask: "order", order: "steps", steps: 10 }),
    stop: () => order({ ask: "order", order: "stop" }),
    reset: () => order({ ask: "order", order: "reset" }),
    fork: async () => {
      const answer = await tried(() => lab.order({ ask: "fork", step: lab.kept(lab.shown) }));
      if (answer) lab.look(answer.run);
    },
  };
  large.element.addEventListener("click", play);
  for (const [name, button] of Object.entries(small)) {
    button.addEventListener("click", () => button.getAttribute("aria-disabled") !== "true" && acts[name]());
  }
  const update = () => {
    large.show(main(lab));
    showSmall(small, lab);
    learning.update();
    state.show(lab);
    plan.update();
  };
  return { play, update, mark() {}, destroy: () => learning.destroy() };
}

/** While an order is carried to the server, the button cannot be pressed a second time. */
async function pressed(button, doing) {
  if (button.waiting) return null;
  button.wait(true);
  try {
    return await doing();
  } finally {
    button.wait(false);
  }
}

function largeButton() {
  const element = make("button", "transport-play");
  element.type = "button";
  const icon = svg("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" });
  const shape = icon.appendChild(svg("path", { d: ICONS.play }));
  const label = make("span", "", "Play");
  element.append(icon, label);
  const button = { element, waiting: false };
  button.wait = (waiting) => {
    button.waiting = waiting;
    element.setAttribute("aria-busy", String(waiting));
  };
  button.show = ({ label: text, why }) => {
    if (label.textContent !== text) label.textContent = text;
    shape.setAttribute("d", text === "Pause" ? ICONS.pause : ICONS.play);
    able(element, why, "Space");
  };
  return button;
}

function smallButton(name, label, title) {
  const button = make("button", `transport-small ${name}`, label);
  button.type = "button";
  button.dataset.title = title;
  return button;
}

function showSmall(small, lab) {
  const why = hindered(lab);
  const kept = lab.kept(lab.shown);
  for (const [name, button] of Object.entries(small)) {
    const forked = `a new run that goes on from step ${whole(kept)}, the snapshot at the handle or the last before it`;
    const title = name === "fork" && kept >= 0 ? forked : button.dataset.title;
    able(button, why[name] ?? why.steps, title);
  }
}

function stateLine(resume) {
  const element = make("div", "transport-state");
  const bar = make("div", "transport-bar");
  const done = bar.appendChild(make("div", "transport-done"));
  const text = make("p", "transport-told");
  text.setAttribute("role", "status");
  const button = make("button", "chip", "Resume");
  button.type = "button";
  button.addEventListener("click", resume);
  const trouble = make("p", "transport-trouble");
  element.append(text, button, trouble, bar);
  const show = (lab) => {
    const said = told(lab);
    if (text.textContent !== said) text.textContent = said;
    const { status } = lab;
    element.dataset.state = status?.state ?? "none";
    text.title = (status?.chosen ?? []).join("\n");
    button.hidden = !(lab.run && status?.resumable) || main(lab).what === "play";
    trouble.textContent = lab.trouble;
    done.style.width = `${status?.steps ? (100 * status.step) / status.steps : 0}%`;
  };
  return { element, show };
}
