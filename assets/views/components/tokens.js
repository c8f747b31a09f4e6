// Tokens drawn as tokens, with their ids: the label of every row.
import { make, range } from "../core/dom.js";
import { band } from "../core/turns.js";

/**
 * @typedef {[first: number, end: number, letter: string]} Letter
 * @typedef {{ pieces: string[], ids?: ArrayLike<number | string> | null, pitch: number, special?: ArrayLike<unknown>, letters?: Letter[], roles?: string[],
 *   drawn?: ((i: number) => HTMLElement | null) | null, painted?: ((i: number) => number) | null }} Tokens
 * @typedef {(event: "hover" | "pick", where: { row: number } | null) => unknown} Emit
 */

/**
 * data = {pieces, ids?, pitch, special?, letters?, roles?, drawn?, painted?}; `roles` are drawn as a band at the left; `letters` are [first, last + 1, letter] of those of which
 * several tokens are the parts, each of which stands beside them in a bracket; `drawn(i)` is a picture of row i, or null, and `painted(i)` how strongly
 * its token is marked as what the head says, in 0..1. Emits "hover" {row} | null and "pick" {row}.
 * `mark({query, key})` lights the token whose row is read and the one it reads from.
 * @param {HTMLElement} root
 * @param {Tokens} data
 * @param {Emit} emit
 */
export function mount(root, data, emit) {
  /** @type {HTMLElement[]} */
  let rows = [];
  root.classList.add("tokens");
  /** @param {Event} event */
  const rowOf = (event) => {
    const token = /** @type {Element} */ (event.target).closest(".token");
    return rows.findIndex((row) => row === token);
  };
  root.addEventListener(
    "pointermove",
    (event) => event.pointerType !== "touch" && rowOf(event) >= 0 && emit("hover", { row: rowOf(event) }),
  );
  root.addEventListener("pointerleave", () => emit("hover", null));
  root.addEventListener("click", (event) => rowOf(event) >= 0 && emit("pick", { row: rowOf(event) }));

  const view = {
    /** @param {Tokens} next */
    update({ pieces, ids, pitch, special = [], letters = [], roles = [], drawn, painted }) {
      /** @type {Map<number, Letter>} */
      const whole = new Map(letters.flatMap((one) => range(one[0], one[1]).map((i) => [i, one])));
      rows = pieces.map((piece, i) => {
        const row = document.createElement("div");
        row.className = "token";
        row.style.height = `${pitch}px`;
        const name = document.createElement("bdi");
        name.textContent = piece;
        name.title = piece;
        name.classList.toggle("special", Boolean(special[i]));
        if (painted?.(i)) {
          name.classList.add("said");
          name.style.setProperty("--said", `${Math.round(60 * painted(i))}%`);
        }
        const seen = drawn?.(i);
        if (seen) row.append(seen);
        row.append(name);
        const letter = whole.get(i);
        if (letter) row.append(bracket(name, i, letter));
        if (ids) {
          const id = document.createElement("span");
          id.className = "id";
          id.textContent = String(ids[i]);
          row.append(id);
        }
        return row;
      });
      root.classList.toggle("in-turns", roles.length > 0);
      root.replaceChildren(...rows, ...band(roles, pitch, "top"));
    },
    /** @param {{ query?: number | null, key?: number | null }} marks */
    mark({ query = null, key = null }) {
      rows.forEach((row, i) => {
        row.classList.toggle("as-query", i === query);
        row.classList.toggle("as-key", i === key && key !== query);
      });
    },
    destroy: () => root.replaceChildren(),
  };
  view.update(data);
  return view;
}

/**
 * The piece of a bracket beside row `i`, one of a letter's parts; in the middle of them stands the letter.
 * @param {HTMLElement} name
 * @param {number} i
 * @param {Letter} letter
 */
function bracket(name, i, [first, end, letter]) {
  const part = make("span", "bracket", i === Math.floor((first + end - 1) / 2) ? letter : "");
  part.classList.toggle("first", i === first);
  part.classList.toggle("last", i === end - 1);
  name.title = part.title = `${name.textContent}: part ${i - first + 1} of ${end - first} of “${letter}”`;
  return part;
}
