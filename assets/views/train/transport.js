// The row of buttons above everything: play, pause, steps, stop, reset; the learning rate; what the recipe would train; and how the
// run is going, in words.
import { counted } from "../core/format.js";
import { svg } from "../components/stack.js";
import { make } from "../core/dom.js";
import { formatDuration, planTime } from "./duration.js";
import { formatRate } from "./run.js";

/**
 * @import { Metrics, Status } from "./run.js"
 * @import { Order, Page } from "./train.js"
 */

/**
 * @typedef {{ label: string, what: "start" | "play" | "pause", why: string }} Action
 * @typedef {Record<string, HTMLButtonElement>} SmallButtons
 */

const ICONS = { play: "M4 2.2 13.6 8 4 13.8Z", pause: "M3.5 2.5h3.2v11H3.5zM9.3 2.5h3.2v11H9.3z" };
const SMALL = [
  ["step", "1 step", "one step more, then pause"],
  ["ten", "10 steps", "ten steps more, then pause"],
  ["stop", "Stop", "end the training here; it can be resumed"],
  [
    "reset",
    "Reset",
    "begin again from step 0 with the same seed; what was learned can be had back from the runs below",
  ],
  ["fork", "Fork from here", ""],
];

/**
 * `say(sentence)` shows what went wrong.
 * @param {HTMLElement} root
 * @param {Page} page
 * @param {(sentence: string) => void} say
 */
export function mount(root, page, say) {
  const large = largeButton();
  /** @type {SmallButtons} */
  const small = Object.fromEntries(SMALL.map(([name, label, title]) => [name, smallButton(name, label, title)]));
  const line = make("div", "transport-line");
  const groups = [
    ["step", "ten"],
    ["stop", "reset", "fork"],
  ].map((names) => {
    const group = make("div", "transport-group");
    group.append(...names.map((name) => small[name]));
    return group;
  });
  const learning = rate(page, (query) => order(query));
  line.append(large.element, ...groups, learning.element);
  const state = stateLine(() => order({ ask: "order", order: "play" }));
  const plan = planLine(page, () => start());
  root.append(line, state.element, plan.element);

  /**
   * @template Answer
   * @param {() => Promise<Answer>} doing
   */
  const tried = async (doing) => {
    say("");
    try {
      return await doing();
    } catch (error) {
      say(error.message);
      page.tell(error.message);
      return null;
    }
  };
  /** @param {Order} query */
  const order = (query) => tried(() => page.order(query));
  const start = async () => {
    const answer = await pressed(large, () => tried(() => page.start()));
    if (answer) page.look(answer.run);
  };
  const play = () => {
    const { what, why } = mainAction(page);
    if (why) return page.tell(why);
    if (what === "start") return start();
    return pressed(large, () => order({ ask: "order", order: what }));
  };
  /** @type {Record<string, () => Promise<unknown>>} */
  const acts = {
    step: () => order({ ask: "order", order: "steps", steps: 1 }),
    ten: () => order({ ask: "order", order: "steps", steps: 10 }),
    stop: () => order({ ask: "order", order: "stop" }),
    reset: () => order({ ask: "order", order: "reset" }),
    fork: async () => {
      const answer = await tried(() => page.order({ ask: "fork", step: page.kept(page.shown) }));
      if (answer) page.look(answer.run);
    },
  };
  large.element.addEventListener("click", play);
  for (const [name, button] of Object.entries(small)) {
    button.addEventListener("click", () => button.getAttribute("aria-disabled") !== "true" && acts[name]());
  }
  const update = () => {
    large.show(mainAction(page));
    showSmall(small, page);
    learning.update();
    state.show(page);
    plan.update();
  };
  return { play, update, mark() {}, destroy: () => learning.destroy() };
}

/**
 * While an order is carried to the server, the button cannot be pressed a second time.
 * @template Answer
 * @param {ReturnType<typeof largeButton>} button
 * @param {() => Promise<Answer>} doing
 */
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
  /** @type {HTMLButtonElement} */
  const element = make("button", "transport-play");
  element.type = "button";
  const icon = svg("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" });
  const shape = icon.appendChild(svg("path", { d: ICONS.play }));
  const label = make("span", "", "Play");
  element.append(icon, label);
  return {
    element,
    waiting: false,
    /** @param {boolean} waiting */
    wait(waiting) {
      this.waiting = waiting;
      element.setAttribute("aria-busy", String(waiting));
    },
    /** @param {Action} action */
    show({ label: text, why }) {
      if (label.textContent !== text) label.textContent = text;
      shape.setAttribute("d", text === "Pause" ? ICONS.pause : ICONS.play);
      enable(element, why, "Space");
    },
  };
}

/**
 * @param {string} name
 * @param {string} label
 * @param {string} title
 * @returns {HTMLButtonElement}
 */
function smallButton(name, label, title) {
  const button = make("button", `transport-small ${name}`, label);
  button.type = "button";
  button.dataset.title = title;
  return button;
}

/**
 * @param {SmallButtons} small
 * @param {Page} page
 */
function showSmall(small, page) {
  const why = obstacles(page);
  const kept = page.kept(page.shown);
  for (const [name, button] of Object.entries(small)) {
    const forked = `a new run that goes on from step ${whole(kept)}, the snapshot at the handle or the last before it`;
    const title = name === "fork" && kept >= 0 ? forked : (button.dataset.title ?? "");
    enable(button, why[name] ?? why.steps, title);
  }
}

/** @param {() => unknown} resume */
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
  /** @param {Page} page */
  const show = (page) => {
    const said = describeStatus(page);
    if (text.textContent !== said) text.textContent = said;
    const { status } = page;
    element.dataset.state = status?.state ?? "none";
    text.title = (status?.chosen ?? []).join("\n");
    button.hidden = !(page.run && status?.resumable) || Boolean(status?.locked) || mainAction(page).what === "play";
    trouble.textContent = page.trouble;
    done.style.width = `${status?.steps ? (100 * status.step) / status.steps : 0}%`;
  };
  return { element, show };
}

// --- the learning rate: what the schedule says, or what a person holds it at while the run goes on -------------------------------

const [LOW, HIGH] = [-6, 0]; // powers of ten that the slider spans
const STEP = 0.02; // of a power
const CALM = 120; // ms between two orders while the slider moves

/**
 * `order(query)` tells the run.
 * @param {Page} page
 * @param {(query: Order) => Promise<unknown>} order
 */
export function rate(page, order) {
  const element = make("div", "rate");
  const label = make("label", "rate-label", "learning rate");
  const slider = field({
    type: "range",
    min: LOW,
    max: HIGH,
    step: STEP,
    "aria-label": "learning rate, on a logarithmic scale",
  });
  const number = field({
    type: "text",
    inputmode: "decimal",
    "aria-label": "learning rate",
    size: 8,
    autocomplete: "off",
  });
  const free = make("button", "chip", "by schedule");
  free.type = "button";
  label.append(slider);
  element.append(label, number, free);
  let timer = 0;
  /** @type {number | null | undefined} what was asked for and is not in the status yet */
  let wanted;
  /** @param {number | null} lr */
  const send = (lr) => {
    wanted = lr;
    clearTimeout(timer);
    timer = setTimeout(async () => {
      await order({ ask: "order", order: "rate", lr });
      if (wanted === lr) wanted = undefined;
    }, CALM);
    update();
  };
  const update = () => {
    const held = wanted === undefined ? (page.status?.lr ?? null) : wanted;
    const now = held ?? [page.metrics.at("lr", Infinity), page.lr].find(Number.isFinite);
    const cannot = obstacles(page).rate;
    for (const one of [slider, number, free]) {
      one.disabled = Boolean(cannot);
      one.title = cannot;
    }
    free.title = cannot || "follow the schedule of the recipe";
    free.setAttribute("aria-pressed", String(!cannot && held === null));
    const root = number.getRootNode();
    const active = root instanceof Document || root instanceof ShadowRoot ? root.activeElement : null;
    const said = now === undefined ? "" : formatRate(now);
    if (active !== slider && now !== undefined) slider.value = String(now > 0 ? Math.log10(now) : LOW);
    if (active !== number) number.value = said;
    slider.setAttribute("aria-valuetext", said);
  };
  slider.addEventListener("input", () => send(Number((10 ** Number(slider.value)).toPrecision(2))));
  number.addEventListener("change", () => {
    const lr = Number(number.value.replace("−", "-"));
    if (number.value.trim() && Number.isFinite(lr) && lr >= 0) send(lr);
    else update();
  });
  number.addEventListener("keydown", (event) => event.key === "Enter" && number.blur());
  free.addEventListener("click", () => send(null));
  return { element, update, destroy: () => clearTimeout(timer) };
}

/**
 * @param {Record<string, string | number>} attributes
 * @returns {HTMLInputElement}
 */
function field(attributes) {
  const made = make("input");
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// --- what the recipe above would train -------------------------------------------------------------------------------------------

/**
 * `start()` trains the recipe as a new run.
 * @param {Page} page
 * @param {() => unknown} start
 */
function planLine(page, start) {
  const element = make("div", "plan");
  const text = make("p", "plan-line");
  const button = make("button", "chip plan-start", "Train as a new run");
  button.type = "button";
  button.addEventListener("click", () => button.getAttribute("aria-disabled") !== "true" && start());
  const what = make("div", "plan-what");
  what.append(text, button);
  element.append(what);
  const update = () => {
    const { plan } = page.data;
    const changed = page.run && page.status && page.recipe !== plan.recipe;
    const said = plan.problem || `${changed ? "the recipe now: " : ""}${plan.line}${planTime(page)}`;
    if (text.textContent !== said) text.textContent = said;
    text.classList.toggle("problem", Boolean(plan.problem) && !plan.asks);
    button.hidden = !changed || mainAction(page).what === "start";
    enable(button, plan.problem, "the run that you look at goes on beside it");
  };
  return { element, update };
}

// --- how a run is doing, in words, and what can be done with it just now ---------------------------------------------------------

/** @type {Record<string, string>} */
const ENDED = { stopped: "stopped", killed: "ended", failed: "failed" };
/** @type {Record<number, string>} */
const ENDS = { 1: "st", 2: "nd", 3: "rd" };

/**
 * One sentence about the run that is looked at.
 * @param {Page} page
 */
export function describeStatus(page) {
  const { status, data } = page;
  if (!status && page.trouble) return "no run is shown";
  if (!status) return page.run || data.recorded ? "looking for the run …" : "nothing has been trained yet";
  const at = `step ${whole(status.step)} of ${whole(status.steps)}`;
  const { state } = status;
  if (state === "queued")
    return status.position
      ? `waiting: ${ordinal(status.position)} in the queue`
      : status.where || "waiting for its turn";
  const there = status.where ? ` ${status.where}` : "";
  if (state === "preparing") return `preparing${there}: the data is read and the model is built`;
  if (state === "running")
    return [`training${there}`, at, formatPace(page), timeLeft(status)].filter(Boolean).join(" · ");
  if (state === "paused") return `paused at ${at}${there && `,${there}`}`;
  const finished = status.recorded ? `Demo: recorded run of “${page.task?.name ?? ""}”` : "finished";
  if (state === "finished")
    return [finished, counted(status.step, "step"), trainingTime(page.metrics, status)].filter(Boolean).join(" · ");
  if (state === "new") return `at its beginning: ${at}`;
  if (status.error) return `${ENDED[state]} at ${at}: ${status.error}`;
  return `${ENDED[state] ?? state} at ${at}`;
}

/** @param {Page} page */
function formatPace({ metrics }) {
  const speed = metrics.at("tokens_per_second", Infinity);
  return Number.isFinite(speed) ? `${whole(Number(speed.toPrecision(3)))} tokens/s` : "";
}

/** @param {Status} status */
function timeLeft({ seconds_left: seconds }) {
  return seconds === null ? "" : `${formatDuration(seconds)} left`;
}

/**
 * Of a recorded run nothing, which another machine trained: below it stands how long that takes here.
 * @param {Metrics} metrics
 * @param {Status} status
 */
function trainingTime(metrics, status) {
  if (status.recorded) return "";
  const seconds = metrics.at("seconds", Infinity);
  return Number.isFinite(seconds) ? `${formatDuration(seconds)} of training` : "";
}

/**
 * A number of steps or tokens.
 * @param {number} x
 */
export function whole(x) {
  return Math.round(x).toLocaleString("en");
}

/** @param {number} n */
function ordinal(n) {
  const end = n % 100 > 10 && n % 100 < 14 ? "th" : (ENDS[n % 10] ?? "th");
  return `${n}${end}`;
}

/**
 * What the large button does now: {label, what, why}; `why` is a sentence where it cannot, `what` an order or "start".
 * @param {Page} page
 * @returns {Action}
 */
export function mainAction(page) {
  const { plan } = page.data;
  const state = page.run ? page.status?.state : "none";
  const unchanged = page.recipe === plan.recipe;
  if (page.run && page.status?.locked) return { label: "Train", what: "start", why: plan.problem || "" };
  if (state === "running" || state === "preparing") return { label: "Pause", what: "pause", why: "" };
  if (state === "queued")
    return { label: "Pause", what: "pause", why: "It waits for its turn; Stop takes it out of the queue." };
  if (state === "paused") return { label: "Play", what: "play", why: "" };
  if (page.run && state === undefined && !page.trouble)
    return { label: "Play", what: "play", why: "The run is being looked for." };
  if (state === "new" && unchanged) return { label: "Play", what: "play", why: "" };
  if (page.status?.resumable && page.run && unchanged) return { label: "Resume", what: "play", why: "" };
  const why = plan.problem || "";
  if (state === "finished" && unchanged) return { label: "Train again", what: "start", why };
  return { label: state === "none" ? "Play" : "Train", what: "start", why };
}

/**
 * For each of the smaller buttons why it cannot act, "" where it can.
 * @param {Page} page
 * @returns {Record<string, string>}
 */
export function obstacles(page) {
  const { status } = page;
  const none = page.data.recorded
    ? "This run came with Loupe and is finished; press Play to train one of your own."
    : "There is no run yet; press Play.";
  if (!page.run || !status)
    return Object.fromEntries(["steps", "stop", "reset", "fork", "rate"].map((name) => [name, none]));
  const { locked = "" } = status;
  const finished =
    status.state === "finished" ? "The run is finished; reset it, or fork it from a step before its end." : "";
  const kept = page.kept(page.shown);
  const nowhere = "There is no snapshot at this step or before; the next ones come as it trains.";
  const end = kept >= status.steps ? "This is the last step; go back to an earlier one to go on from there." : "";
  return {
    steps: locked || finished || (status.state === "queued" ? "It waits for its turn." : ""),
    stop: locked || (page.active ? "" : "It is not training."),
    reset: locked || (status.state === "new" ? "It is at its first step." : ""),
    fork: kept < 0 ? nowhere : end,
    rate: locked || finished,
  };
}

/**
 * A button that cannot act stays in reach, so that its title can say why.
 * @param {HTMLButtonElement} button
 * @param {string} why
 * @param {string} title
 */
export function enable(button, why, title) {
  button.setAttribute("aria-disabled", String(Boolean(why)));
  if (button.title !== (why || title)) button.title = why || title;
}
