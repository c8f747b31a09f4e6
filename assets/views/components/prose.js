// A text as running text, every token on a ground of its own colour: where attention goes, or where it comes from.
import { make } from "../core/dom.js";
import { heading, turnsOf } from "../core/turns.js";

/**
 * @typedef {{ name: string, pieces: string[], special: ArrayLike<unknown>, roles?: string[], size: number, chosen?: number | null,
 *   paint: (i: number) => { ground: string, ink: string } | null, quiet: (i: number) => boolean }} Prose
 * @typedef {(event: "hover" | "pick", where: { row: number } | null) => unknown} Emit
 */

/**
 * data = {name, pieces, special, roles?, size, chosen, paint(i) -> {ground, ink} | null, quiet(i)}; `size` is that of the letters, CSS
 * pixels. Emits "hover" {row} | null and "pick" {row}; the arrow keys pick too. `mark(i)` underlines a token.
 * @param {HTMLElement} root
 * @param {Prose} data
 * @param {Emit} emit
 */
export function mount(root, data, emit) {
  root.classList.add("prose");
  root.tabIndex = 0;
  root.setAttribute("role", "listbox");
  let shown = data;
  /** @type {HTMLElement[]} */
  let tokens = [];
  /** @param {Event} event */
  const rowOf = (event) => {
    const piece = /** @type {Element} */ (event.target).closest(".piece");
    return tokens.findIndex((token) => token === piece);
  };
  root.addEventListener(
    "pointermove",
    (event) => event.pointerType !== "touch" && emit("hover", rowOf(event) < 0 ? null : { row: rowOf(event) }),
  );
  root.addEventListener("pointerleave", () => emit("hover", null));
  root.addEventListener("click", (event) => rowOf(event) >= 0 && emit("pick", { row: rowOf(event) }));
  root.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    emit("pick", {
      row: Math.max(0, Math.min(tokens.length - 1, (shown.chosen ?? (by < 0 ? tokens.length : -1)) + by)),
    });
  });
  const view = {
    /** @param {Prose} next */
    update(next) {
      if (!tokens.length || next.pieces.join("\n") !== shown.pieces.join("\n")) tokens = write(root, next);
      shown = next;
      root.setAttribute("aria-label", next.name);
      root.style.fontSize = `${next.size}px`;
      tokens.forEach((token, i) => {
        const painted = next.paint(i);
        token.style.background = painted?.ground ?? "";
        token.style.color = painted?.ink ?? "";
        token.classList.toggle("quiet", !painted && next.quiet(i));
        token.classList.toggle("chosen", i === next.chosen);
        token.setAttribute("aria-selected", String(i === next.chosen));
      });
    },
    /** @param {number | null} row */
    mark(row) {
      tokens.forEach((token, i) => token.classList.toggle("pointed", i === row));
    },
    destroy: () => root.replaceChildren(),
  };
  view.update(data);
  return view;
}

/**
 * Which pieces begin a word: where spaces are drawn those after one, else all that are not marked as going on.
 * @param {string[]} pieces
 * @param {ArrayLike<unknown>} [special]
 */
export function begins(pieces, special = []) {
  const spaced = pieces.some((piece) => /^[·▁]./u.test(piece));
  return pieces.map(
    (piece, i) =>
      !i || Boolean(special[i] || special[i - 1]) || (spaced ? /^[·▁]/u.test(piece) : !piece.startsWith("##")),
  );
}

/**
 * Lines break between words only, and after a line end.
 * @param {HTMLElement} root
 * @param {Pick<Prose, "pieces" | "special" | "roles">} text
 */
function write(root, { pieces, special, roles = [] }) {
  const turns = new Map(turnsOf(roles).map(({ role, first }) => [first, role]));
  const starts = begins(pieces, special);
  const loose = !pieces.some((piece) => /^[·▁]./u.test(piece)) && pieces.some((piece) => [...piece].length > 1);
  root.classList.toggle("loose", loose);
  /** @type {HTMLElement[]} */
  const tokens = [];
  /** @type {HTMLElement[]} */
  const parts = [];
  pieces.forEach((piece, i) => {
    const token = make("span", "piece");
    token.setAttribute("role", "option");
    token.append(make("bdi", special[i] ? "special" : "", piece));
    tokens.push(token);
    const role = turns.get(i);
    if (role !== undefined) parts.push(heading(role));
    if (starts[i] || role !== undefined) parts.push(make("span", "word"));
    parts.findLast((part) => part.className === "word")?.append(token);
    if (/\\n$|↵$/.test(piece)) parts.push(make("br"));
  });
  root.replaceChildren(...parts);
  return tokens;
}

/**
 * The size of letters at which a text of so many tokens is read from afar and still seen whole.
 * @param {number} count
 * @param {boolean} narrow
 */
export function letters(count, narrow) {
  const size = count <= 16 ? 25 : count <= 40 ? 21 : count <= 90 ? 18 : 15;
  return narrow ? Math.min(size, 19) : size;
}
