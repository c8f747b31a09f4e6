// A question with a few answers: buttons in a row, the present answer pressed.
import { make } from "../core/dom.js";

/** `options` are [value, label, title]; `show(value, without)` presses one and hides those that make no sense now; `name(value, label)` renames one. */
export function choices(title, options, pick) {
  const element = make("div", "choices");
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", title);
  const buttons = new Map();
  for (const [value, label, title] of options) {
    const button = make("button", "option", label);
    button.type = "button";
    if (title) button.title = title;
    button.addEventListener("click", () => pick(value));
    buttons.set(value, button);
    element.append(button);
  }
  const show = (value, without = []) => {
    for (const [one, button] of buttons) {
      button.setAttribute("aria-pressed", String(one === value));
      button.hidden = without.includes(one);
    }
  };
  return { element, show, name: (value, label) => (buttons.get(value).textContent = label) };
}

export const CHOICES = `
.attention .choices { display: inline-flex; flex-wrap: wrap; border: 1px solid var(--hairline); border-radius: 7px; overflow: hidden; background: var(--hairline); gap: 1px; }
.attention .choices .option { flex: auto; padding: 3px 11px; font-size: 13px; line-height: 20px; text-align: center; white-space: nowrap; color: var(--ink); background: var(--ground); }
.attention .choices .option:hover { background: var(--panel); }
.attention .choices .option[aria-pressed="true"] { background: var(--attention); color: var(--ground); font-weight: 600; }
.attention .choices .option:focus-visible { outline-offset: -3px; outline-color: var(--ink); }
.attention .choices .option[hidden] { display: none; }
.attention.narrow .choices .option { padding: 6px 7px; font-size: 12.5px; }
`;
