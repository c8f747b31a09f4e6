// Every head of A with every head of another run: how alike their attention is, and for each the best match by name. Ours because
// it marks the two heads that the other pictures show, and chooses them, without a message to the server.
import { at } from "../components/cells.js";
import { map } from "./map.js";
import { strongest } from "./runs.js";
import { make, range } from "../core/dom.js";
import { counted, percent } from "../core/format.js";

/**
 * @typedef {import("./compare.js").Shell} Shell
 * @typedef {import("./map.js").Cell} Cell
 * @typedef {{ row: number, col: number, value: number, mutual: boolean }} Match
 */

const CELL = { least: 3, most: 24 }; // CSS pixels
const SHARE = { wide: 0.46, narrow: 1 }; // of the room

/**
 * @param {HTMLElement} root
 * @param {Shell} shell
 */
export function mount(root, shell) {
  const title = make("h3");
  const about = make("p", "about");
  const alike = make("div", "alike");
  const [left, matches] = [make("div"), make("div", "matches")];
  const box = make("div");
  const colours = make("div", "legend");
  left.append(box, colours);
  alike.append(left, matches);
  const over = make("div", "chips");
  const chips = /** @type {["texts" | null, string][]} */ ([
    [null, "on what they read"],
    ["texts", "on 24 other texts"],
  ]).map(([value, text]) => {
    const chip = make("button", "chip", text);
    chip.addEventListener("click", () => shell.go({ over: value }));
    over.append(chip);
    return { value, chip };
  });
  root.append(title, about, over, alike);
  /** @type {ReturnType<typeof import("./runs.js").matrixOf> | null} */
  let block = null;
  /** @type {{ block?: Block, edition?: number }} */
  let drawn = {}; // the block and the edition that are drawn
  /** @type {{ row: number, col: number, button: HTMLButtonElement }[]} */
  let lines = []; // {row, col, button} of the best matches
  /**
   * @param {number} i
   * @param {string} letter
   */
  const named = (i, letter) => {
    const { heads } = shell.side(letter).trace.model;
    return /** @type {[layer: number, head: number]} */ ([Math.floor(i / heads), i % heads]);
  };
  /** @type {import("./map.js").Heard} */
  const heard = (event, where) => {
    if (event === "step") return step(where);
    if (event === "pick" && where.row !== null && where.col !== null) return choose(where.row, where.col);
    if (event !== "hover" || !block) return;
    const both = where && where.row !== null && where.col !== null ? { row: where.row, col: where.col } : null;
    shell.tip(
      both
        ? `A ${name(named(both.row, "A"))}  ${shell.state.beside} ${name(named(both.col, shell.state.beside))}`
        : null,
      both ? percent(at(block, both.row, both.col)) : "",
    );
  };
  const one = map(box, heard, [
    ["other →", ""],
    ["A ↓", ""],
  ]);
  /**
   * @param {number} row
   * @param {number} col
   */
  const choose = (row, col) => {
    const [layer, head] = named(row, "A");
    shell.go({ layer, head, other: named(col, shell.state.beside) });
  };
  /** @param {Cell} by */
  const step = ({ row, col }) => {
    if (!block) return;
    const [r, c] = here();
    choose(
      Math.max(0, Math.min(block.rows - 1, r + (row ?? 0))),
      Math.max(0, Math.min(block.cols - 1, c + (col ?? 0))),
    );
  };
  const here = () =>
    /** @type {[letter: string, place: [layer: number, head: number]][]} */ ([
      ["A", shell.headOf("A")],
      [shell.state.beside, shell.headOf(shell.state.beside)],
    ]).map(([letter, [layer, head]]) => layer * shell.side(letter).trace.model.heads + head);

  return {
    update() {
      const { beside } = shell.state;
      block = shell.similarity(beside);
      const answer = shell.similar.get(shell.similarName(beside));
      title.textContent = `Which heads of A and ${beside} are alike`;
      const found = block;
      const known = found && range(0, found.rows).some((row) => strongest(found, row) !== null);
      alike.hidden = !known;
      about.textContent = known
        ? `1 − the total variation distance between two heads’ rows, the mean over the rows but the first: 100 % is the same attention. Attention to a token that the other text lacks counts as attention elsewhere.`
        : block
          ? "No row counts: the texts share no token after their first."
          : !shell.described(beside)
            ? shell.absent(beside)
            : (answer?.sentence ?? "Every head is being compared with every other …");
      if (answer?.rows)
        about.append(
          (answer.of ?? 0) > answer.rows
            ? ` ${answer.rows.toLocaleString("en")} of ${counted(answer.of ?? 0, "row")}, evenly apart.`
            : ` ${counted(answer.rows, "row")}.`,
        );
      over.hidden = !shell.described(beside);
      chips[1].chip.textContent = `on 24 other ${shell.side("A").trace.grid ? "pictures" : "texts"}`;
      for (const { value, chip } of chips) chip.setAttribute("aria-pressed", String(value === shell.state.over));
      if (!block || !known) return;
      if (block !== drawn.block || shell.edition !== drawn.edition) {
        draw(block);
        lines = best(block).map((found) => line(found));
        matches.replaceChildren(...lines.map(({ button }) => button));
        drawn = { block, edition: shell.edition };
      }
      const [r, c] = here();
      one.mark(r, c, true);
      for (const { row, col, button } of lines) button.setAttribute("aria-pressed", String(r === row && c === col));
    },
    destroy: () => root.replaceChildren(),
  };

  /** @param {ReturnType<typeof import("./runs.js").matrixOf>} block */
  function draw(block) {
    const { beside } = shell.state;
    const values = block.data.filter((/** @type {number} */ x) => !Number.isNaN(x));
    const low = values.reduce((/** @type {number} */ least, /** @type {number} */ x) => Math.min(least, x), 1);
    const span = 1 - low || 1;
    const shades = { ...block, data: block.data.map((/** @type {number} */ x) => ((x - low) / span) ** 2) }; // the ramp takes the square root
    /**
     * @param {string} letter
     * @param {number} count
     */
    const labels = (letter, count) => range(0, count).map((i) => ({ label: name(named(i, letter)), special: false }));
    const share = shell.narrow ? SHARE.narrow : SHARE.wide;
    /** @type {import("./map.js").Mapped} */
    const data = {
      rows: labels("A", block.rows),
      cols: labels(beside, block.cols),
      block: shades,
      role: "attention",
      scale: "unit",
      max: 1,
      hidden: undefined,
      blank: null,
      width: Math.round(root.clientWidth * share),
      written: null,
      label: `similarity of ${counted(block.rows, "head")} of A and ${block.cols} of ${beside}`,
    };
    one.update(data, Math.max(CELL.least, Math.min(CELL.most, Math.floor(10 * one.room(data)) / 10)));
    colours.replaceChildren(
      make("span", "alike-bar"),
      make("span", "legend-text", `${percent(low)} to 100\u00a0% alike`),
    );
  }

  /** @param {Match} match */
  function line({ row, col, value, mutual }) {
    const { beside } = shell.state;
    const [mine, theirs] = [named(row, "A"), named(col, beside)];
    const button = make("button", "match");
    const arrow = make("span", "arrow", mutual ? "⇄" : "→");
    const bar = make("span", "bar");
    bar.style.width = `${100 * value}%`;
    button.append(
      make("span", "", name(mine)),
      arrow,
      make("span", "", name(theirs)),
      bar,
      make("span", "share", percent(value)),
    );
    button.title = `A’s block ${mine[0] + 1}, head ${mine[1] + 1} is most like ${beside}’s block ${theirs[0] + 1}, head ${theirs[1] + 1}${mutual ? ", and the other way round" : ""}`;
    button.addEventListener("click", () => choose(row, col));
    return { row, col, button };
  }
}

/**
 * For each head of A the head of the other that is most like it; `mutual`: and the other way round.
 * @param {Block} block
 */
function best(block) {
  /** @param {number} col */
  const turned = (col) =>
    range(0, block.rows).reduce((found, row) => (at(block, row, col) > at(block, found, col) ? row : found), 0);
  return range(0, block.rows).flatMap((row) => {
    const col = strongest(block, row);
    return col === null ? [] : [{ row, col, value: at(block, row, col), mutual: turned(col) === row }];
  });
}

/** @param {number[]} where */
function name([layer, head]) {
  return `${layer + 1}·${head + 1}`;
}
