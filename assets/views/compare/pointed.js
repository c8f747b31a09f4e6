// The cell under the one cursor in words: which tokens, its weight in every run, and the differences.
import { alone } from "./merge.js";
import { make } from "../core/dom.js";
import { percent } from "../core/format.js";
import { whyLink } from "../core/why.js";

/**
 * @typedef {import("./compare.js").Shell} Shell
 * @typedef {import("./runs.js").Where} Where
 */

/**
 * {update(), mark(), said(), destroy()}: `said` is what stands there, for a caption.
 * @param {HTMLElement} root
 * @param {Shell} shell
 */
export function mount(root, shell) {
  root.classList.add("pointed");
  root.setAttribute("role", "status");
  const mark = () => root.replaceChildren(...spoken(shell));
  return {
    update: mark,
    mark,
    said: () => Array.from(root.querySelectorAll(":scope > span"), ({ textContent }) => textContent).join(", "),
    destroy: () => root.replaceChildren(),
  };
}

/**
 * A difference of two shares in points of a percentage.
 * @param {number} x
 */
export function points(x) {
  return percent(Math.abs(x)).replace("\u00a0%", "\u00a0points");
}

/** @param {Shell} shell */
function spoken(shell) {
  const cells = shell.sides.map(({ letter }) => ({
    ...shell.carry(letter, shell.cursor),
    ...shell.names(letter, shell.cursor),
  }));
  const here = /** @type {(typeof cells)[number]} */ (cells.find(({ letter }) => letter === shell.cursor.letter));
  const where = make("span", "from");
  /** @param {"query" | "key"} part */
  const names = (part) => [...new Set(cells.map((cell) => cell[part]).filter((name) => name !== null))].join(" | ");
  where.append(make("bdi", "role-query", names("query")), " → ", make("bdi", "role-key", names("key")));
  if (here.row === null || here.col === null) return [where];
  const values = cells.map(({ letter, row, col }) => ({
    letter,
    value: shell.attention(letter) && row !== null && col !== null ? shell.source.weight(letter, row, col) : null,
  }));
  const said = values.map(({ letter, value }) =>
    item(letter, value === null ? "–" : value === undefined ? "…" : percent(value)),
  );
  for (const { letter } of shell.sides.slice(1)) {
    const pair = shell.pair(letter);
    const { row, col } = shell.merged(letter, shell.cursor);
    const [r, c] = [pair?.queries.entries[row ?? -1], pair?.keys.entries[col ?? -1]];
    const both = r && c && !alone(r) && !alone(c) && shell.attention("A") && shell.attention(letter);
    const sums = both
      ? /** @type {[string, "first" | "second"][]} */ ([
          ["A", "first"],
          [letter, "second"],
        ]).map(([one, part]) => shell.source.shared(one, r[part], c[part]))
      : null;
    if (sums?.includes(undefined)) {
      said.push(item(`${letter} − A`, "…", "more"));
      continue;
    }
    const gap = sums ? sums[1] - sums[0] : 0;
    const several = sums && [r, c].some((entry) => entry && (entry.first.length > 1 || entry.second.length > 1));
    const summed = several ? `, tokens together (${sums.map(percent).join(" and ")}),` : "";
    said.push(item(`${letter} − A${summed}`, sums ? `${gap < 0 ? "−" : "+"}${points(gap)}` : "no partner", "more"));
  }
  return [where, ...said, ...why(shell, here)];
}

/**
 * A link to what wrote the score of the cell, in the run whose cell it is.
 * @param {Shell} shell
 * @param {Where} here
 */
function why(shell, { letter, row, col }) {
  const [address, attention] = [shell.data.addresses?.[letter], shell.attention(letter)];
  if (!address || !attention) return [];
  const [layer, head] = shell.headOf(letter);
  /** @type {Partial<import("./runs.js").Attention>} */
  const sides = shell.side(letter).trace.sides.length > 1 ? attention : {};
  const place = { side: sides.side, focus: sides.focus, layer, head, pos: row ?? undefined, key: col ?? undefined };
  return [whyLink("why_head", `Why does this head look there in ${letter}?`, place, address)];
}

/**
 * @param {string} name
 * @param {string} value
 */
function item(name, value, role = "") {
  const element = make("span", role);
  element.append(`${name} `, make("b", "", value));
  return element;
}
