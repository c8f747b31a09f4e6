// What stands above a run, whatever of its head is shown below: which run it is, which head, and whether that head is heard.
import { counted } from "../core/format.js";
import { isEdited } from "../attention/colours.js";
import { make } from "../core/dom.js";

/** @typedef {import("./compare.js").Shell} Shell */

/**
 * Letter, model, head and edits of a run, and in a run that is no A the button that silences the head.
 * @param {Shell} shell
 * @param {string} letter
 */
export function headingOf(shell, letter) {
  const { title, edits, trace } = shell.side(letter);
  const [layer, head] = shell.headOf(letter);
  const said = make("span", "head-of", `${layer + 1}·${head + 1}${edits ? ` · ${counted(edits, "edit")}` : ""}`);
  said.title = `block ${layer + 1}, head ${head + 1}`;
  const parts = [make("span", `letter ${letter === "A" ? "" : "second"}`, letter), make("span", "name", title), said];
  const attention = shell.attention(letter);
  if (attention && isEdited({ trace, state: attention }, layer, head)) parts.push(make("span", "edited-tag", "edited"));
  if (letter !== "A" && attention) parts.push(silencing(shell, letter, layer, head));
  return parts;
}

/**
 * Takes the shown head out of a run, or puts it back.
 * @param {Shell} shell
 * @param {string} letter
 * @param {number} layer
 * @param {number} head
 */
function silencing(shell, letter, layer, head) {
  const button = make("button", "quiet");
  const { side, focus } = /** @type {import("./runs.js").Attention} */ (shell.attention(letter));
  const silent = shell
    .side(letter)
    .silenced.some(
      (one) =>
        one.layer === layer &&
        one.heads.includes(head) &&
        one.cross === (focus === "cross_attn") &&
        (one.stack ?? "") === (side ?? ""),
    );
  button.classList.toggle("silenced", silent);
  button.textContent = silent ? "hear this head again" : "silence this head";
  button.title = `${button.textContent}: block ${layer + 1}, head ${head + 1} in ${letter}: its z is 0`;
  button.setAttribute("aria-label", button.title);
  button.addEventListener("click", () => shell.emit("silence", { letter, layer, head, side, focus }));
  return button;
}

/** @param {string} letter */
export function headingOfDifference(letter) {
  const minus = make("span", "head-of", "−");
  return [
    make("span", "letter second", letter),
    minus,
    make("span", "letter", "A"),
    make("span", "name", "difference"),
  ];
}
