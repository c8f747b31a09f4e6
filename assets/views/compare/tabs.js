// The ways to look at one head, as tabs over all runs: the same view of every one of them.
import { VIEWS } from "../attention/state.js";
import { make } from "../core/dom.js";
import { byArrows } from "../components/tablist.js";

/** @typedef {import("./compare.js").Shell} Shell */

/** @type {Record<string, string>} */
const ABOUT = {
  map: "every weight of the head in every run, and what each differs in from A: queries down, keys across",
};

/** @param {string} name */
export function known(name) {
  return VIEWS.some(([view]) => view === name);
}

/**
 * Why a view has nothing to show of the attention that is looked at; "" where it has.
 * @param {Shell} shell
 * @param {string} name
 */
export function missing(shell, name) {
  const { focus } = /** @type {import("./runs.js").Attention} */ (shell.attention("A"));
  if (name === "alignment" && focus !== "cross_attn")
    return "an alignment is one of two texts: look at cross-attention";
  const worded = shell.sides.some(({ letter, trace }) => shell.attention(letter) && trace.ids.length);
  if (name === "circuits" && !worded) return "circuits are about tokens, and these rows are parts of a picture";
  return "";
}

/**
 * {element, show(), named(view)}: one tab is in the tab order, arrow keys move among them.
 * @param {Shell} shell
 */
export function tabs(shell) {
  const element = make("div", "tabs");
  element.setAttribute("role", "tablist");
  element.setAttribute("aria-label", "ways to look at the head of every run");
  const buttons = VIEWS.map(([name, title, about]) => {
    const button = make("button", "tab", title);
    Object.assign(button.dataset, { view: name, title, about: ABOUT[name] ?? about });
    button.setAttribute("role", "tab");
    button.addEventListener("click", () => button.ariaDisabled !== "true" && shell.go({ view: name }));
    return button;
  });
  element.append(...buttons);
  byArrows(element, () => buttons.filter((button) => button.ariaDisabled !== "true"));
  const show = () => {
    for (const button of buttons) {
      const { view, about } = button.dataset;
      const why = missing(shell, view);
      if (view === "text")
        button.textContent = button.dataset.title = shell.sides.every(({ trace }) => trace.grid) ? "Picture" : "Text";
      button.title = why || about;
      button.ariaDisabled = String(Boolean(why));
      button.setAttribute("aria-selected", String(view === shell.state.view));
      button.tabIndex = view === shell.state.view ? 0 : -1;
    }
  };
  return {
    element,
    show,
    named: (/** @type {string} */ name) => buttons.find(({ dataset }) => dataset.view === name).textContent,
  };
}
