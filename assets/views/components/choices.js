// A question with a few answers: buttons in a row, the present answer pressed.
import { make } from "../core/dom.js";

/**
 * `options` are [value, label, title]; `show(value, without)` presses one and hides those that make no sense now; `name(value, label)` renames one.
 * @param {string} title
 * @param {string[][]} options
 * @param {(value: string) => unknown} pick
 */
export function choices(title, options, pick) {
  const element = make("div", "choices");
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", title);
  /** @type {Map<string, HTMLButtonElement>} */
  const buttons = new Map();
  for (const [value, label, title] of options) {
    const button = make("button", "option", label);
    button.type = "button";
    if (title) button.title = title;
    button.addEventListener("click", () => pick(value));
    buttons.set(value, button);
    element.append(button);
  }
  /**
   * @param {string} value
   * @param {string[]} [without]
   */
  const show = (value, without = []) => {
    for (const [one, button] of buttons) {
      button.setAttribute("aria-pressed", String(one === value));
      button.hidden = without.includes(one);
    }
  };
  /**
   * @param {string} value
   * @param {string} label
   */
  const name = (value, label) => buttons.get(value)?.replaceChildren(label);
  return { element, show, name };
}
