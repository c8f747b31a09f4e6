// Long maps (attention/tiles.js) in a comparison: of a run, and of what a run differs in from A.
import { TileMap } from "../attention/tiles.js";
import { SignedPainter } from "./long_paint.js";
import { points } from "./pointed.js";
import { legend } from "../components/legend.js";

/** In one of several maps: without a small one of its own, and every other follows it. */
export class RunMap extends TileMap {
  constructor(root, page) {
    super(root, page);
    for (const part of [this.minimap, this.switcher]) part.element.remove();
    this.minimap = { ...this.minimap, update() {} };
    this.switcher = { ...this.switcher, show() {} };
  }

  /** Patterns, and nothing that their weights move. */
  get kind() {
    return undefined;
  }

  point(x, y) {
    super.point(x, y);
    this.page.point(this.hover && { row: this.hover.row, col: this.hover.col });
  }

  /** From the keyboard the chosen cell is moved, wherever the pointer rests. */
  key(event) {
    this.point(null);
    super.key(event);
  }

  /** Shows the cursor; over this map stands what the pointer found. */
  mark() {
    if (!this.pointer) this.hover = null;
    if (this.rest) super.mark();
  }
}

/** Colours are signed, and end where the largest difference of all maps is. */
export class DifferenceMap extends RunMap {
  constructor(root, page) {
    super(root, page);
    this.painter = new SignedPainter(this.canvas, page.element, page);
  }

  showLegend() {
    const { page } = this;
    const { letter } = page;
    const { most } = page.maps;
    const shows = [page.edition, most, page.largest, letter].join();
    if (this.legendEdition === shows) return;
    this.legendEdition = shows;
    const { element } = legend(page.element, { role: "edited", scale: "signed", width: 72 });
    element.title = "grey: more in A; in colour: more in the other; empty: exactly 0";
    const ends = most
      ? `−${points(most)} (more in A) to +${points(most)} (more in ${letter})`
      : page.largest === 0
        ? "no weight differs"
        : "the difference is on its way";
    element.querySelector(".legend-text").textContent =
      `${ends}; empty: exactly 0${page.lonely ? "; chequered: no partner" : ""}`;
    this.legend.replaceChildren(element);
  }

  say(seen) {
    super.say(seen);
    const [strong, line] = this.where.childNodes;
    const [high, wide] = [this.wanted.high, this.wanted.wide].map((width) => width / this.page.data.tile);
    this.where.replaceChildren(
      strong,
      line,
      high * wide === 1 ? "a cell is one difference" : `a cell is the largest difference of ${high} × ${wide}`,
    );
  }

  point(x, y) {
    const { page } = this;
    super.point(x, y);
    if (!this.hover) return;
    const { row, col, weight, high, wide } = this.hover;
    const value =
      weight === null
        ? ""
        : Number.isNaN(weight)
          ? "no partner"
          : `${weight < 0 ? "−" : "+"}${points(weight)}${high * wide > 1 && weight ? `  largest of ${high} × ${wide}` : ""}`;
    page.tip(`${page.trace.pieces[row]} → ${page.keys[col]}`, value);
  }
}
