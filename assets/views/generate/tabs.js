// The tabs of the page Generate: name, title, what it shows, its module.
import { make } from "../core/dom.js";
import { byArrows } from "../components/tablist.js";

export const TABS = [
  ["write", "Write", "a text, token by token: what each was chosen from, and other ways on from there", () => import("./write.js")],
  ["beam", "Beam", "a beam search as a tree: every hypothesis, what was given up, and why greedy misses the best", () => import("./beam.js")],
  ["temperature", "Temperature", "what dividing the logits does to a distribution", () => import("./temperature.js")],
  ["prompting", "Prompting", "examples in the prompt, and an instruction behind the text", () => import("./prompting.js")],
  ["cache", "Cache", "the keys and values that are kept, what is read anew for each token, and what that saves", () => import("./cache.js")],
  ["surprise", "Surprise", "how probable each token of a text was, and the loss they add up to", () => import("./surprise.js")],
];

export function known(name) {
  return TABS.some(([one]) => one === name);
}

/** Why a tab has nothing to show of this prompt (views/generate_missing.py); "" where it has. */
function missing(name, data) {
  return data.missing[name] ?? "";
}

/** The tab that is shown where `wanted` is: where that has nothing to show, what can still be known of the text. */
export function shownFor(wanted, data) {
  const [usual] = TABS[0];
  return [known(wanted) ? wanted : usual, usual, "surprise", "temperature"].find((name) => !missing(name, data));
}

/** {element, show()}: one tab is in the tab order, arrow keys move among them. */
export function tabLine(page) {
  const element = make("div", "tabs");
  element.setAttribute("role", "tablist");
  element.setAttribute("aria-label", "from a distribution to text");
  const buttons = TABS.map(([name, title, about]) => {
    const button = make("button", "tab", title);
    button.type = "button";
    button.setAttribute("role", "tab");
    Object.assign(button.dataset, { view: name, title });
    button.title = about;
    button.addEventListener("click", () => button.ariaDisabled !== "true" && page.go({ view: name }));
    return button;
  });
  element.append(...buttons);
  byArrows(element, () => buttons.filter((button) => button.ariaDisabled !== "true"));
  const bring = (button) => { // into view, where the line is wider than the page
    const [line, box] = [element.getBoundingClientRect(), button.getBoundingClientRect()];
    if (box.left < line.left || box.right > line.right) element.scrollLeft += box.left - line.left - (line.width - box.width) / 2;
  };
  const show = () => {
    buttons.forEach((button, i) => {
      const [name, , about] = TABS[i];
      const why = missing(name, page.data);
      button.title = why || about;
      button.ariaDisabled = String(Boolean(why));
      button.setAttribute("aria-selected", String(name === page.view));
      button.tabIndex = name === page.view ? 0 : -1;
      if (name === page.view) bring(button);
    });
  };
  return { element, show };
}
