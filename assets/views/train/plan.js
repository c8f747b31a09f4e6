// What the recipe above would train, and two runs of it that differ in one choice.
import { make } from "../core/dom.js";
import { able, main } from "./words.js";

/** `start()` trains the recipe as a new run, `contrast(change)` it and a second one on the same seed. */
export function planLine(lab, { start, contrast }) {
  const element = make("div", "plan");
  const text = make("p", "plan-line");
  const button = make("button", "chip plan-start", "Train as a new run");
  button.type = "button";
  button.addEventListener("click", () => button.getAttribute("aria-disabled") !== "true" && start());
  const compared = comparison(contrast);
  const what = make("div", "plan-what");
  what.append(text, button);
  element.append(what, compared.element);
  const update = () => {
    const { plan } = lab.data;
    const changed = lab.run && lab.status && lab.recipe !== plan.recipe;
    const said = plan.problem || `${changed ? "the recipe now: " : ""}${plan.line}`;
    if (text.textContent !== said) text.textContent = said;
    text.classList.toggle("problem", Boolean(plan.problem));
    button.hidden = !changed || main(lab).what === "start";
    able(button, plan.problem, "the run that you look at goes on beside it");
    compared.update(plan);
  };
  return { element, update };
}

function comparison(contrast) {
  const element = make("div", "plan-compare");
  const label = make("label", "", "compare on the same seed ");
  const choice = make("select");
  label.append(choice);
  const button = make("button", "chip", "Run both");
  button.type = "button";
  button.title = "trains the recipe as it is, and once more with this one choice changed; their curves are laid over each other";
  button.addEventListener("click", () => contrast(choice.value));
  element.append(label, button);
  let known = "";
  const update = ({ changes, problem }) => {
    element.hidden = !changes.length || Boolean(problem);
    if (changes.join("\n") === known) return;
    known = changes.join("\n");
    const before = choice.value;
    choice.replaceChildren(...changes.map((title) => new Option(title, title)));
    if (changes.includes(before)) choice.value = before;
  };
  return { element, update };
}
