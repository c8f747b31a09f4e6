// Turns of a conversation: runs of tokens of one role, each role with a colour of its own.
import { make } from "./dom.js";

const COLOURS = /** @type {Record<string, string>} */ ({
  system: "soft",
  developer: "soft",
  user: "query",
  assistant: "probability",
  tool: "key",
});

/** @typedef {{ role: string, first: number, end: number }} Turn tokens first to end - 1 */

/**
 * The runs of tokens of one role, in their order; none of a text.
 * @param {string[]} roles by token
 * @returns {Turn[]}
 */
export function turnsOf(roles) {
  /** @type {Turn[]} */
  const turns = [];
  roles.forEach((role, i) => {
    const last = turns.at(-1);
    if (last?.role === role) last.end = i + 1;
    else turns.push({ role, first: i, end: i + 1 });
  });
  return turns;
}

/**
 * A role's name; tokens before the first turn have none.
 * @param {string} role
 */
export const nameOf = (role) => role || "no turn";

/**
 * CSS colour of a role.
 * @param {string} role
 */
export const colourOf = (role) => `var(--${COLOURS[role] ?? "hairline"})`;

/**
 * One bar a turn, `pitch` CSS pixels a token along an axis, to lie beside the tokens.
 * @param {string[]} roles
 * @param {number} pitch
 * @param {"left" | "top"} axis where the first token is
 */
export function band(roles, pitch, axis) {
  const size = axis === "left" ? "width" : "height";
  return turnsOf(roles).map(({ role, first, end }) => {
    const bar = make("span", "turn-bar");
    bar.style.background = colourOf(role);
    bar.style[axis] = `${first * pitch + 1}px`;
    bar.style[size] = `${(end - first) * pitch - 2}px`;
    bar.title = `${nameOf(role)}: tokens ${first} to ${end - 1}`;
    return bar;
  });
}

/**
 * The name of a role before its turn in a running text.
 * @param {string} role
 */
export function heading(role) {
  const element = make("span", "turn-name", nameOf(role));
  element.style.setProperty("--of-role", colourOf(role));
  return element;
}
