// Start here: one sentence on what this is, then its stages in their order, each opened by the reader's own click.
import { make } from "../core/dom.js";
import { about } from "./stages.js";

/** @typedef {import("../core/trace.js").Trace} Trace */

/** What is to be clicked: the stages of which the first that the model has is meant, and what to do with it. */
const STEPS = [
  {
    ids: ["tokens"],
    /** @param {Trace} trace */
    ask: (trace) => `Click a ${trace.grid ? "cell of the picture" : "token"}: its row is followed through the model.`,
  },
  { ids: ["embed", "patches"], ask: "Click “embed”, where it becomes a vector." },
  { ids: ["q"], ask: "Click “query”, the first of three vectors that every head makes of it." },
  { ids: ["attention"], ask: "Click “scores”, where queries meet keys." },
  { ids: ["z"], ask: "Click “z”, where the values are mixed by these weights." },
  { ids: ["out"], ask: "Click “W_O”, where the heads are joined." },
  { ids: ["mlp"], ask: "Click “MLP”, which works on each token alone." },
  { ids: ["next"], ask: "Click one of the outcomes, which is where it all leads." },
];
/**
 * What leaves at the right.
 * @param {Trace} trace
 */
function outcomeOf({ grid, reads, link, count, model }) {
  if (!reads)
    return model.vector?.pooled.length ? "one vector for all of it leaves" : "a vector for each position leaves";
  if (grid?.predicts) return "the most likely next pixel leaves";
  if (link === "identity") return count > 1 ? "scores leave" : "a score leaves";
  if (link === "logistic") return "the probability of every label leaves";
  if (model.head === "token") return "the most likely class of each token leaves";
  const best = { next: "next token", here: "token at each place", class: "class", answer: "answer" }[
    /** @type {import("../core/trace.js").Reads} */ (reads)
  ];
  return `the most likely ${best} leaves`;
}

/** @param {Trace} trace */
const introduce = (trace) =>
  `This is one run of a trained model: a ${trace.grid ? "picture" : "text"} enters at the left, ${outcomeOf(trace)} at ` +
  "the right, and every number between them is drawn.";
const SEEN = "loupe.tour"; // in the browser: somebody has been here, who needs no introduction
const CLOSED = "That was the whole way. Click any cell to see how its number was computed.";

/**
 * The line above the flow. `mark()` is to be called whenever the flow was built anew.
 * @param {{ element: HTMLElement, trace: Trace, state: { layer: number } }} page
 */
export function mountTour(page) {
  const element = make("div", "tour");
  element.setAttribute("role", "status");
  const text = make("span", "tour-text");
  const button = make("button", "tour-button");
  button.type = "button";
  element.append(text, button);
  let at = -1; // the step that waits for its click; -1 before the first
  let done = ""; // what was just opened

  const steps = () =>
    STEPS.map(({ ids, ask }) => ({
      id: ids.find((id) => page.element.querySelector(`.stages .stage-${id}`)),
      ask: typeof ask === "string" ? ask : ask(page.trace),
    })).filter(({ id }) => id);
  const show = () => {
    const list = steps();
    const step = list[at];
    const number = at < 0 || !step ? null : make("strong", "", `${at + 1} of ${list.length} `);
    const idle = localStorage.getItem(SEEN) ? "" : introduce(page.trace);
    const said = at < 0 ? idle : [done, step?.ask ?? CLOSED].filter(Boolean).join(" ");
    element.classList.toggle("quiet", at < 0 && !idle);
    element.classList.toggle("running", at >= 0);
    text.replaceChildren(...(number ? [number] : []), said);
    button.textContent = at < 0 ? "Start here" : step ? "Leave" : "Close";
    for (const old of page.element.querySelectorAll(".tour-next")) old.classList.remove("tour-next");
    if (step) page.element.querySelector(`.stages .stage-${step.id}`)?.classList.add("tour-next");
  };
  button.addEventListener("click", () => {
    at = at < 0 ? 0 : -1;
    localStorage.setItem(SEEN, "yes");
    done = "";
    show();
    const first = steps()[at];
    if (first)
      page.element.querySelector(`.stages .stage-${first.id}`)?.scrollIntoView({ inline: "nearest", block: "nearest" });
  });
  /** @param {Event} event */
  const follow = (event) => {
    const step = steps()[at];
    const [target] = event.composedPath();
    if (!step || !(target instanceof Element) || !target.closest(`.stage-${step.id}`)) return;
    done = about(page.trace, step.id ?? "", "", page.state.layer).text;
    at++;
    show();
  };
  page.element.addEventListener("click", follow, true); // before the stage is drawn anew
  return { element, mark: show };
}
