// One view of the shown head for every run, side by side: the views of the page about attention, each before the face of its run.
import { Ends } from "./ends.js";
import { Face } from "./face.js";
import { alone } from "./merge.js";
import { headingOf } from "./heading.js";
import { make } from "../core/dom.js";
import { attempt } from "../core/shell.js";

/**
 * @typedef {import("./compare.js").Shell} Shell
 * @typedef {{ update: () => void, destroy: () => void, mark?: () => void }} View
 * @typedef {{ mount: (root: HTMLElement, face: Face) => View }} ViewModule
 * @typedef {{ letter: string, element: HTMLElement, heading: HTMLElement, note: HTMLElement, room: HTMLElement, face: Face, view: View | null,
 *   open?: (() => View) | null }} Column
 */

const GAP = 26; // CSS pixels between two runs
const LEAST = 360; // CSS pixels that a run needs beside another
const SCALED = ["product", "steps", "text", "circuits"]; // views with ramps and bars that no share of a row ends
/** @type {Record<string, () => Promise<unknown>>} */
const MODULES = {
  lines: () => import("../attention/lines.js"),
  product: () => import("../attention/product.js"),
  steps: () => import("../attention/steps.js"),
  text: () => import("../attention/text.js"),
  points: () => import("../attention/points.js"),
  circuits: () => import("../attention/circuits.js"),
  alignment: () => import("../attention/alignment.js"),
};

/**
 * @param {HTMLElement} root
 * @param {Shell} shell
 */
export function mount(root, shell) {
  return new Beside(root, shell);
}

class Beside {
  /** @type {number} CSS pixels of a run */
  width;

  /**
   * @param {HTMLElement} root
   * @param {Shell} shell
   */
  constructor(root, shell) {
    this.root = root;
    this.shell = shell;
    /** @type {string | null} */
    this.opened = null;
    /** @type {Column[]} */
    this.columns = [];
    root.classList.add("beside-runs");
    root.setAttribute("role", "tabpanel");
  }

  destroy() {
    this.close();
  }

  close() {
    for (const { view } of this.columns) view?.destroy();
    this.columns = [];
    this.opened = null;
    this.root.replaceChildren();
  }

  update() {
    const { root, shell } = this;
    const { view } = shell.state;
    root.hidden = view === "map";
    if (root.hidden) return this.close();
    const letters = shell.sides.map(({ letter }) => letter).join("");
    if (this.columns.map(({ letter }) => letter).join("") !== letters) this.build();
    this.lay();
    if (this.opened === view) this.show();
    else this.open(view);
  }

  build() {
    this.close();
    this.shell.ends = new Ends((letters) => this.again(letters));
    this.columns = this.shell.sides.map(({ letter }) => {
      const [element, heading, note, room] = [
        make("section", "run-of"),
        make("div", "map-head"),
        make("p", "sentence no-partner"),
        make("div"),
      ];
      element.setAttribute("aria-label", letter);
      element.append(heading, note, room);
      return { letter, element, heading, note, room, face: new Face(this.shell, letter), view: null };
    });
    this.scaled = make("p", "sentence one-scale", "Colours and bars end at the same number in every run.");
    this.root.replaceChildren(...this.columns.map(({ element }) => element), this.scaled);
  }

  /** As many runs side by side as have room, and as many in each line. */
  lay() {
    const { across, sides } = this.shell;
    const fit = Math.max(1, Math.floor((across + GAP) / (LEAST + GAP)));
    const beside = fit >= sides.length ? sides.length : Math.min(fit, Math.ceil(sides.length / 2));
    this.width = Math.floor((across - GAP * (beside - 1)) / beside);
    this.root.style.gridTemplateColumns = `repeat(${beside}, minmax(0, 1fr))`;
    this.root.style.columnGap = `${GAP}px`;
  }

  /**
   * Opens the tab that the state names; the one before stays until the module is here.
   * @param {string} name
   */
  async open(name) {
    this.opened = name;
    const { module, sorry } = await attempt(/** @type {() => Promise<ViewModule>} */ (MODULES[name]));
    if (this.opened !== name) return;
    this.shell.ends = new Ends((letters) => this.again(letters));
    for (const column of this.columns) {
      column.view?.destroy();
      const room = make("div", `view view-${name}`);
      column.room.replaceChildren(room);
      column.view = null;
      column.open = module ? () => this.shell.source.mountView(name, module, room, column.face) : null;
      if (sorry) room.append(sorry());
    }
    this.show();
  }

  show() {
    const { shell } = this;
    this.scaled.hidden = !SCALED.includes(shell.state.view);
    for (const column of this.columns) {
      const { letter, heading, face, room } = column;
      const known = Boolean(shell.attention(letter));
      heading.replaceChildren(...headingOf(shell, letter));
      room.hidden = !known;
      if (known) {
        face.look(this.width);
        column.view ??= column.open?.() ?? null;
        column.view?.update();
      } else this.shell.ends.forget(letter);
      this.explain(column, known);
    }
  }

  /** @param {string[]} letters */
  again(letters) {
    for (const { letter, view, room } of this.columns) if (letters.includes(letter) && !room.hidden) view?.update();
  }

  /**
   * Why a run shows nothing, or another row than the others.
   * @param {Column} column
   * @param {boolean} known
   */
  explain({ letter, note, face }, known) {
    const { shell } = this;
    note.hidden = known && !face.missing.query && !face.missing.key;
    if (note.hidden) return;
    if (!known) return void (note.textContent = shell.absent(letter));
    const [{ cursor }, missing] = [
      shell.state,
      /** @type {("query" | "key")[]} */ (["query", "key"]).filter((part) => face.missing[part]),
    ];
    const shown = { query: face.trace.pieces[face.state.query], key: face.keys[face.state.key] };
    /**
     * @param {"query" | "key"} part
     * @param {string | null} piece
     */
    const token = (part, piece) => make("bdi", `role-${part}`, piece);
    const other = letter === "A" ? cursor.letter : letter;
    if (shell.pair(other)?.queries.entries.every(alone)) {
      return note.replaceChildren(
        `${shell.absent(other)} Here the query is `,
        token("query", shown.query),
        " and the key ",
        token("key", shown.key),
        ".",
      );
    }
    const from = shell.names(cursor.letter, cursor);
    note.replaceChildren(
      ...missing.flatMap((part) => [
        "No partner of ",
        token(part, from[part]),
        ` in ${letter}: the ${part} here is `,
        token(part, shown[part]),
        ". ",
      ]),
    );
  }

  mark() {
    for (const { view } of this.columns) view?.mark?.();
  }
}
