// The maps of a comparison in cells, of runs of which every weight is here; and what a model of pictures reads, below them.
import { editedCells, editedSign } from "../attention/colours.js";
import { at } from "../components/cells.js";
import { map } from "./map.js";
import { Maps, Place } from "./maps.js";
import { alone, mismatch, subtract } from "./merge.js";
import { points } from "./pointed.js";
import { make } from "../core/dom.js";
import { counted, percent } from "../core/format.js";
import { legend } from "../components/legend.js";
import { mount as mountPicture } from "../components/picture.js";

/**
 * @typedef {import("./compare.js").Shell} Shell
 * @typedef {import("./runs.js").Run} Run
 * @typedef {import("./merge.js").Entry} Entry
 * @typedef {import("../components/picture.js").Grid} Grid
 * @typedef {import("./map.js").Cell} Cell
 * @typedef {import("./map.js").Mapped} Mapped
 * @typedef {Pick<Mapped, "max" | "blank"> & { differs?: boolean, edited: boolean }} Explained what a legend says
 */

const CELL = { least: 3, legible: 13, most: 30 }; // CSS pixels
const PICTURE = 150;

/** @extends {Maps<CellPlace>} */
export class CellMaps extends Maps {
  revealed = ""; // the cell that was brought into sight

  /**
   * @param {string} letter
   * @param {boolean} differs
   */
  place(letter, differs) {
    return new CellPlace(this.shell, letter, differs);
  }

  /** @param {(place: CellPlace) => number} width */
  draw(width) {
    const { shell } = this;
    const ready = this.places.map((one) => ({
      one,
      data: (one.differs ? difference : own)(shell, one.letter, width(one)),
    }));
    const most = Math.max(...ready.map(({ one, data }) => (one.differs && data ? data.max : 0)));
    const rooms = ready.flatMap(({ one, data }) => (data ? [one.map.room(data)] : []));
    const wide = Math.max(CELL.least, Math.min(CELL.most, Math.floor(10 * Math.min(...rooms)) / 10));
    const sized = ready.map(({ one, data }) => ({
      one,
      data,
      own: data && Math.max(wide, Math.min(CELL.legible, one.map.room(data))), // of a short text beside a long one
    }));
    const heights = sized.map(({ one, data, own }) => (data && !shell.narrow ? one.map.above(data, own) : 0));
    const above = Math.max(...heights); // the first rows stand at one height
    for (const { one, data, own } of sized) {
      const shown = data && { ...data, above };
      one.show(shown && one.differs ? { ...shown, max: most || 1, differs: most > 0 } : shown, own);
    }
    this.mark();
    const where = [shell.edition, ...Object.values(shell.state.cursor)].join();
    if (where !== this.revealed) this.reveal();
    this.revealed = where;
  }

  mark() {
    if (this.root.hidden) return;
    const { shell } = this;
    for (const place of this.places) {
      const { row, col } = place.where(shell.cursor);
      place.map.mark(row, col, shell.hover === null);
      place.picture?.look();
    }
  }

  reveal() {
    for (const place of this.places) {
      const { row, col } = place.where(this.shell.state.cursor);
      place.map.reveal(row, col);
    }
  }

  /**
   * What is drawn in the map of a run, or of a difference: for tests.
   * @param {string} letter
   * @param {boolean} differs
   */
  drawn(letter, differs) {
    return (differs ? difference : own)(this.shell, letter, 400).block;
  }
}

/** One map with its legend, and the picture that its run reads. */
class CellPlace extends Place {
  /**
   * @param {Shell} shell
   * @param {string} letter
   * @param {boolean} differs
   */
  constructor(shell, letter, differs) {
    super(shell, letter, differs);
    const [box, picture] = [make("div"), make("div")];
    this.colours = make("div");
    this.body.append(box, this.colours, picture);
    this.explain = shell.memoize((/** @type {Explained} */ about) =>
      this.colours.replaceChildren(differs ? differences(shell, letter, about) : weights(shell, about)),
    );
    const corner = differs
      ? [
          ["key →", "role-key"],
          ["query ↓", "role-query"],
        ]
      : null;
    this.map = map(box, (event, where) => this.heard(event, where), corner);
    this.picture = differs ? null : pictures(shell, letter, picture);
  }

  /**
   * @param {"hover" | "pick" | "step"} event
   * @param {Cell | null} where
   */
  heard(event, where) {
    if (event === "hover" || !where) this.point(where);
    else if (event === "pick") this.pick(where);
    else this.shell.step(this.letter, this.differs, { row: where.row ?? 0, col: where.col ?? 0 });
  }

  /**
   * @param {(Mapped & { differs?: boolean }) | null} data
   * @param {number} wide
   */
  show(data, wide) {
    this.head(Boolean(data));
    if (!data) return;
    this.map.update(data, wide);
    this.explain({ max: data.max, blank: data.blank, differs: data.differs, edited: Boolean(data.edited) });
    this.picture?.update();
  }
}

/**
 * @param {Shell} shell
 * @param {string} letter
 * @param {number} width
 */
function own(shell, letter, width) {
  const found = shell.source.pattern(letter);
  if (!found) return null;
  const { trace } = shell.side(letter);
  const { focus } = /** @type {import("./runs.js").Attention} */ (shell.attention(letter));
  const special = focus === "cross_attn" && trace.source ? trace.source.special : trace.special;
  const [layer, head] = shell.headOf(letter);
  return {
    rows: labels(trace.pieces, trace.special),
    cols: labels(trace.keys(focus), special),
    ...found,
    role: "attention",
    scale: "unit",
    hidden: shell.source.masked(letter),
    edited: editedCells({ trace, state: { focus } }, layer, head),
    width,
    written: { as: "share" },
    label: `${letter}, block ${layer + 1} head ${head + 1}: ${counted(trace.pieces.length, "query", "queries")} by ${counted(special.length, "key")}`,
  };
}

/**
 * @param {string[]} pieces
 * @param {boolean[]} special
 */
function labels(pieces, special) {
  return pieces.map((label, i) => ({ label, special: Boolean(special[i]) }));
}

/**
 * @param {Shell} shell
 * @param {string} letter
 * @param {number} width
 */
function difference(shell, letter, width) {
  const pair = shell.pair(letter);
  const [first, second] = [shell.source.pattern("A"), shell.source.pattern(letter)];
  if (!pair || !first || !second || !pair.queries.entries.some((entry) => !alone(entry))) return null;
  const [rows, cols] = [pair.queries.entries, pair.keys.entries];
  const block = subtract(first, second, rows, cols);
  const [closed, shut] = [shell.source.masked("A"), shell.source.masked(letter)];
  /**
   * @param {number} r
   * @param {number} c
   */
  const masked = (r, c) =>
    Boolean(closed && shut) &&
    rows[r].first.every((i) => cols[c].first.every((j) => closed(i, j))) &&
    rows[r].second.every((i) => cols[c].second.every((j) => shut(i, j)));
  /**
   * @param {number} r
   * @param {number} c
   */
  const none = (r, c) => Number.isNaN(at(block, r, c));
  let max = 0;
  for (const x of block.data) if (Math.abs(x) > max) max = Math.abs(x);
  /** @param {Entry[]} entries */
  const named = (entries) => entries.map((entry) => ({ label: entry.label, special: mismatch(entry) }));
  return {
    rows: named(rows),
    cols: named(cols),
    block,
    max,
    role: "edited",
    scale: "signed",
    /**
     * @param {number} r
     * @param {number} c
     */
    hidden: (r, c) => none(r, c) || masked(r, c),
    blank: { rows: rows.map(alone), cols: cols.map(alone) },
    width,
    written: inPoints(block, max),
    label: `${letter} less A: ${counted(rows.length, "query", "queries")} by ${counted(cols.length, "key")}`,
  };
}

/**
 * Differences of shares in points of a percentage.
 * @param {Block} block
 * @param {number} max
 */
function inPoints(block, max) {
  return { as: "number", block: { ...block, data: block.data.map((x) => 100 * x) }, max: 100 * max };
}

/**
 * @param {Shell} shell
 * @param {Explained} data
 */
function weights(shell, { edited }) {
  const { element } = legend(shell.element, { role: "attention", scale: "unit", width: 72 });
  element.querySelector(".legend-text").textContent = "weight, 0 to 1 of the row";
  if (edited) element.append(editedSign("cells"));
  return element;
}

/**
 * @param {Shell} shell
 * @param {string} letter
 * @param {Explained} data
 */
function differences(shell, letter, { max, blank, differs }) {
  const { element } = legend(shell.element, { role: "edited", scale: "signed", width: 72 });
  const striped = blank?.rows.some(Boolean) || blank?.cols.some(Boolean);
  element.title = "grey: more in A; in colour: more in the other; the middle is no difference";
  element.querySelector(".legend-text").textContent = !differs
    ? "no weight differs"
    : `−${points(max)} (more in A) to +${points(max)} (more in ${letter})${striped ? "; striped: no partner" : ""}`;
  return element;
}

/**
 * What a model of pictures reads, with the shown row's attention laid over it.
 * @param {Shell} shell
 * @param {string} letter
 * @param {HTMLElement} root
 */
function pictures(shell, letter, root) {
  /** @type {ReturnType<typeof mountPicture> | undefined} */
  let view;
  let drawn = ""; // the rows that are drawn, and of what
  const said = make("p", "picture-note");
  const data = () => {
    const { trace } = shell.side(letter);
    const query = looking(shell, letter);
    const top = Math.max(
      ...shell.sides.flatMap((side) =>
        pictured(shell, side) ? [most(rowOf(shell, side.letter), /** @type {Grid} */ (side.trace.grid))] : [],
      ),
    );
    said.textContent = `blue is 0 to ${percent(top)} of the row, in every picture`;
    return {
      picture: trace.arrays.picture,
      original: null,
      grid: /** @type {Grid} */ (trace.grid),
      weights: rowOf(shell, letter),
      top,
      query,
      width: Math.min(PICTURE, shell.across),
    };
  };
  const rows = () => shell.sides.map(({ letter: each }) => looking(shell, each)).join();
  /** @type {import("../components/picture.js").Emit} */
  const heard = (event, where) => {
    if (event === "pick" && where) {
      const cursor = /** @type {import("./runs.js").Place} */ (shell.carry(letter, shell.state.cursor));
      shell.go({ cursor: { ...cursor, letter, row: where.row } });
    } else shell.point(where && { letter, row: where.row, col: null });
  };
  return {
    update() {
      root.hidden = !pictured(shell, shell.side(letter));
      if (root.hidden) return;
      drawn = rows();
      if (view) return view.update(data());
      view = mountPicture(root.appendChild(make("div")), data(), heard);
      root.append(said);
    },
    look() {
      if (root.hidden || !view || drawn === rows()) return;
      drawn = rows();
      view.update(data());
    },
  };
}

/**
 * @param {Shell} shell
 * @param {Run} run
 */
function pictured(shell, { letter, trace }) {
  return Boolean(trace.grid && trace.arrays.picture && shell.source.pattern(letter));
}

/**
 * The row of a run that is looked at; its first, where the run has no such token.
 * @param {Shell} shell
 * @param {string} letter
 */
function looking(shell, letter) {
  return shell.attention(letter)
    ? (shell.carry(letter, shell.cursor).row ?? shell.carry(letter, shell.state.cursor).row ?? 0)
    : 0;
}

/**
 * @param {Shell} shell
 * @param {string} letter
 */
function rowOf(shell, letter) {
  const { block, max } = shell.source.pattern(letter);
  const start = block.offset + looking(shell, letter) * block.stride;
  return Float32Array.from(block.data.subarray(start, start + block.cols), (weight) => weight / max);
}

/**
 * @param {Float32Array} weights
 * @param {{ offset: number }} grid
 */
function most(weights, { offset }) {
  return Math.max(...weights.slice(offset), 1e-9);
}
