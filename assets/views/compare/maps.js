// The shown head of every run side by side, and what each differs in from the first, with one cursor in all of them: where they
// stand and what is above them. They are drawn in cells (cell_maps.js), or of long texts in tiles (tile_maps.js).
import { headingOf, headingOfDifference } from "./heading.js";
import { make, range } from "../core/dom.js";

/**
 * @typedef {import("./compare.js").Shell} Shell
 * @typedef {import("./runs.js").Where} Where
 * @typedef {import("./map.js").Cell} Cell
 */

const GAP = 22;
const LARGER = 1.2; // a difference has the tokens of both runs

/** The place of one map: of the run `letter`, or of what it differs in from A. */
export class Place {
  /**
   * @param {Shell} shell
   * @param {string} letter
   * @param {boolean} differs
   */
  constructor(shell, letter, differs) {
    this.shell = shell;
    this.letter = letter;
    this.differs = differs;
    this.element = make("div", "map-of");
    this.heading = make("div", "map-head");
    this.note = make("p", "sentence");
    this.body = make("div");
    this.element.append(this.heading, this.note, this.body);
  }

  /**
   * Says whose map it is, and where there is none why.
   * @param {boolean} able
   */
  head(able) {
    const { shell, letter } = this;
    this.heading.replaceChildren(...(this.differs ? headingOfDifference(letter) : headingOf(shell, letter)));
    this.note.hidden = able;
    this.body.hidden = !able;
    if (!able) this.note.textContent = shell.absent(letter);
  }

  /**
   * A cell of this map, {row, col}, in the tokens of a run.
   * @param {Cell} where
   */
  token(where) {
    return this.differs ? this.shell.unmerged(this.letter, where) : { letter: this.letter, ...where };
  }

  /**
   * A cell of a run in this map; null where that has no such token.
   * @param {Where} cursor
   */
  where(cursor) {
    return this.differs ? this.shell.merged(this.letter, cursor) : this.shell.carry(this.letter, cursor);
  }

  /**
   * The pointer is over a cell, over a name on an axis ({row: null} or {col: null}), or over nothing.
   * @param {Cell | null} where
   */
  point(where) {
    this.shell.point(where && this.token(where));
  }

  /**
   * Chooses a cell; of an axis only that axis changes.
   * @param {Cell} where
   */
  pick(where) {
    const { shell } = this;
    const { letter, row, col } = this.token(where);
    const [here, near] = [shell.carry(letter, shell.state.cursor), shell.nearest(letter, shell.state.cursor)];
    shell.go({ cursor: { letter, row: row ?? here.row ?? near.row, col: col ?? here.col ?? near.col } });
  }
}

/**
 * @template {Place} P
 */
export class Maps {
  /**
   * @param {HTMLElement} root
   * @param {Shell} shell
   */
  constructor(root, shell) {
    this.root = root;
    this.shell = shell;
    /** @type {P[]} */
    this.places = [];
    this.shown = ""; // the letters that stand there
    this.grid = make("div", "maps");
    root.append(this.grid);
  }

  destroy() {
    this.root.replaceChildren();
  }

  update() {
    const { root, shell } = this;
    root.hidden = shell.state.view !== "map";
    if (root.hidden) return;
    this.build();
    const columns = shell.narrow ? 1 : shell.sides.length === 2 ? 3 : shell.sides.length;
    const shares = columns === 3 && shell.sides.length === 2 ? [1, 1, LARGER] : range(0, columns).map(() => 1);
    this.grid.style.gridTemplateColumns = shares.map((share) => `minmax(0, ${share}fr)`).join(" ");
    this.grid.querySelector(".none")?.toggleAttribute("hidden", shell.narrow);
    const unit = (shell.across - GAP * (columns - 1)) / shares.reduce((sum, share) => sum + share, 0);
    this.draw((place) => Math.floor(unit * (place.differs ? (shares.at(-1) ?? 1) : 1)));
  }

  build() {
    const letters = this.shell.sides.map(({ letter }) => letter);
    if (this.shown === letters.join("")) return;
    this.shown = letters.join("");
    this.clear();
    this.places = [
      ...letters.map((letter) => this.place(letter, false)),
      ...letters.slice(1).map((letter) => this.place(letter, true)),
    ];
    const elements = this.places.map(({ element }) => element);
    if (letters.length > 2) elements.splice(letters.length, 0, make("div", "map-of none"));
    this.grid.replaceChildren(...elements);
  }

  clear() {}

  /**
   * @param {string} letter
   * @param {boolean} differs
   * @returns {P} a place with what draws in it
   */
  place(letter, differs) {
    return /** @type {P} */ (new Place(this.shell, letter, differs));
  }

  /**
   * Draws every map; `width` gives the CSS pixels that a place has.
   * @param {(place: P) => number} width
   */
  draw(width) {} // eslint-disable-line no-unused-vars
}
