// The cell under the one cursor in words: which tokens, its weight in every run, and the differences.
import { alone } from "./merge.js";
import { make } from "../core/dom.js";
import { percent } from "../core/format.js";
import { whyLink } from "../core/why.js";

/** {update(), mark(), said(), destroy()}: `said` is what stands there, for a caption. */
export function mount(root, lab) {
  root.classList.add("pointed");
  root.setAttribute("role", "status");
  const mark = () => root.replaceChildren(...spoken(lab));
  return {
    update: mark,
    mark,
    said: () => Array.from(root.querySelectorAll(":scope > span"), ({ textContent }) => textContent).join(", "),
    destroy: () => root.replaceChildren(),
  };
}

/** A difference of two shares in points of a percentage. */
export function points(x) {
  return percent(Math.abs(x)).replace("\u00a0%", "\u00a0points");
}

function spoken(lab) {
  const cells = lab.sides.map(({ letter }) => ({
    letter,
    ...lab.carry(letter, lab.cursor),
    ...lab.names(letter, lab.cursor),
  }));
  const here = cells.find(({ letter }) => letter === lab.cursor.letter);
  const where = make("span", "from");
  const names = (part) => [...new Set(cells.map((cell) => cell[part]).filter((name) => name !== null))].join(" | ");
  where.append(make("bdi", "role-query", names("query")), " → ", make("bdi", "role-key", names("key")));
  if (here.row === null || here.col === null) return [where];
  const values = cells.map(({ letter, row, col }) => ({
    letter,
    value: lab.attention(letter) && row !== null && col !== null ? lab.source.weight(letter, row, col) : null,
  }));
  const said = values.map(({ letter, value }) =>
    item(letter, value === null ? "–" : value === undefined ? "…" : percent(value)),
  );
  for (const { letter } of lab.sides.slice(1)) {
    const pair = lab.pair(letter);
    const { row, col } = lab.merged(letter, lab.cursor);
    const [r, c] = [pair?.queries.entries[row], pair?.keys.entries[col]];
    const both = r && c && !alone(r) && !alone(c) && lab.attention("A") && lab.attention(letter);
    const sums = both
      ? [
          ["A", "first"],
          [letter, "second"],
        ].map(([one, part]) => lab.source.shared(one, r[part], c[part]))
      : null;
    if (sums?.includes(undefined)) {
      said.push(item(`${letter} − A`, "…", "more"));
      continue;
    }
    const gap = sums ? sums[1] - sums[0] : 0;
    const several = sums && [r, c].some(({ first, second }) => first.length > 1 || second.length > 1);
    const summed = several ? `, tokens together (${sums.map(percent).join(" and ")}),` : "";
    said.push(item(`${letter} − A${summed}`, sums ? `${gap < 0 ? "−" : "+"}${points(gap)}` : "no partner", "more"));
  }
  return [where, ...said, ...why(lab, here)];
}

/** A link to what wrote the score of the cell, in the run whose cell it is. */
function why(lab, { letter, row, col }) {
  const [address, attention] = [lab.data.addresses?.[letter], lab.attention(letter)];
  if (!address || !attention) return [];
  const [layer, head] = lab.headOf(letter);
  const sides = lab.side(letter).trace.sides.length > 1 ? attention : {};
  const place = { side: sides.side, focus: sides.focus, layer, head, pos: row, key: col };
  return [whyLink("why_head", `Why does this head look there in ${letter}?`, place, address)];
}

function item(name, value, role = "") {
  const element = make("span", role);
  element.append(`${name} `, make("b", "", value));
  return element;
}
