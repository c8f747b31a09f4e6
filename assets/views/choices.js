// A question with a few answers: buttons in a row, the present answer pressed.
import { make } from "./dom.js";

/** `options` are [value, label, title]; `show(value, without)` presses one and hides those that make no sense now. */
export function choices(name, options, pick) {
  const element = make("div", "choices");
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", name);
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
  return { element, show };
}

export const CHOICES = `
.attention .choices { display: inline-flex; flex-wrap: wrap; gap: 2px; padding: 2px; border-radius: 8px; background: var(--panel); }
.attention .choices .option { padding: 0 9px; height: 26px; border-radius: 6px; font-size: 13px; line-height: 26px; white-space: nowrap; color: var(--ink); }
.attention .choices .option:hover { background: var(--hairline); }
.attention .choices .option[aria-pressed="true"] { background: var(--ground); font-weight: 600; box-shadow: 0 0 0 1px var(--hairline); }
.attention .choices .option[hidden] { display: none; }
`;
