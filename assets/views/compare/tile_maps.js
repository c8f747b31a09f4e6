// The maps of a comparison of long texts, in tiles (attention/tiles.js): one cursor and one zoom in all of them. A difference is signed,
// empty where it is exactly zero, and chequered where one text lacks the token.
import { Painter } from "../attention/tile_paint.js";
import { TileMap } from "../attention/tiles.js";
import { RunFace } from "./face.js";
import { Maps } from "./maps.js";
import { alone, mismatch } from "./merge.js";
import { points } from "./pointed.js";
import { at } from "../components/cells.js";
import { colour, ramp, step } from "../core/palette.js";
import { request } from "../core/store.js";

/**
 * @typedef {import("./compare.js").Shell} Shell
 * @typedef {import("./runs.js").Where} Where
 * @typedef {import("./merge.js").Entry} Entry
 * @typedef {import("./maps.js").Place} Place
 * @typedef {Place & { page: RunPage, map: RunMap | null, able: boolean }} TilePlace
 */

const NARROW = 620; // CSS pixels of a map below which its axes are narrow
const OFF = -99; // a row or key outside every map

/** @extends {Maps<TilePlace>} */
export class TileMaps extends Maps {
  following = false;

  destroy() {
    this.clear();
    super.destroy();
  }

  clear() {
    for (const { map } of this.places) map?.destroy();
  }

  /**
   * @param {string} letter
   * @param {boolean} differs
   */
  place(letter, differs) {
    const place = super.place(letter, differs);
    place.body.className = "long-cells";
    return Object.assign(place, {
      page: new (differs ? DifferencePage : RunPage)(place, this),
      map: null,
      able: false,
    });
  }

  /** @param {(place: TilePlace) => number} width */
  draw(width) {
    for (const place of this.places) {
      const { page, differs, body } = place;
      place.able = page.able;
      place.head(page.able);
      if (!page.able) continue;
      page.look(width(place));
      place.map ??= differs ? new DifferenceMap(body, page) : new RunMap(body, page);
      place.map.measure();
    }
    this.follow(null);
    this.show();
  }

  get maps() {
    return /** @type {(TilePlace & { map: RunMap })[]} */ (this.places.filter(({ able, map }) => able && map));
  }

  /** Draws what is here, and asks for what is not. */
  show() {
    if (this.root.hidden) return;
    for (const { page, map } of this.maps) {
      page.see();
      map.update();
    }
    this.mark();
  }

  /** Shows the one cursor. */
  mark() {
    if (this.root.hidden) return;
    for (const { page, map } of this.maps) {
      page.see();
      map.mark();
    }
  }

  /**
   * Another part of one map is looked at: the others follow, and the address says so in A's tokens.
   * @param {RunPage} page
   */
  moved(page) {
    if (this.following) return;
    const { shell } = this;
    const { map } = /** @type {TilePlace & { map: RunMap }} */ (this.places.find((place) => place.page === page));
    const { zoom, top, left, wide } = map.window;
    const first = /** @type {TilePlace & { map: RunMap }} */ (this.places[0]);
    const at = shell.nearest("A", page.cell(top, left));
    const apart = [top - Math.floor(top), left - Math.floor(left)]; // within a token
    Object.assign(
      shell.state,
      zoom === 1
        ? { zoom: undefined, from: undefined }
        : {
            zoom: Number((page === first.page ? zoom : wide / first.map.rest.wide).toFixed(3)),
            from: [at.row + apart[0], at.col + apart[1]].map((x) => Number(x.toFixed(2))),
          },
    );
    shell.remember();
    this.follow(page);
  }

  /**
   * Brings every map but that of `page` to where the state says.
   * @param {RunPage | null} page
   */
  follow(page) {
    const { zoom, from } = this.shell.state;
    const [first] = this.maps;
    if (!first) return;
    this.following = true;
    for (const { page: other, map } of this.maps) {
      if (other === page) continue;
      if (zoom === undefined) map.look(1, 0, 0);
      else {
        const place = other.nearest({ letter: "A", row: Math.floor(from[0]), col: Math.floor(from[1]) });
        map.look((zoom * first.map.rest.wide) / map.rest.wide, place.row + (from[0] % 1), place.col + (from[1] % 1));
      }
    }
    this.following = false;
  }

  /** Brings the chosen cell into view where it is out of it. */
  reveal() {
    const [first] = this.maps;
    if (!first) return;
    const { row, col } = first.page.nearest(this.shell.state.cursor);
    first.map.reveal(row, col);
  }

  /** The largest difference that is known, of all maps: where the ramp of each ends. */
  get most() {
    return Math.max(0, ...this.maps.map(({ page }) => page.largest ?? 0));
  }
}

// --- what a map (attention/tiles.js) sees in place of a page of its own ---

/** A run. `see()` brings it up to what is looked at now, `look(width)` says how much room it has. */
class RunPage extends RunFace {
  /**
   * @param {Place} place
   * @param {TileMaps} maps
   */
  constructor(place, maps) {
    super(place.shell, place.letter);
    this.place = place;
    this.maps = maps;
    this.state = { layer: 0, head: 0, query: OFF, key: OFF };
    /** @type {{ row: number, col: number } | null} */
    this.hover = null;
  }

  get able() {
    return Boolean(this.shell.attention(this.letter));
  }

  /** @param {number} width */
  look(width) {
    this.width = width;
    this.narrow = width < NARROW;
    this.see();
  }

  see() {
    const [layer, head] = this.shell.headOf(this.letter);
    const { row, col } = this.place.where(this.shell.cursor);
    Object.assign(this.state, { layer, head, query: row ?? OFF, key: col ?? OFF });
  }

  get data() {
    return this.shell.source.tilesOf(this.letter);
  }

  get numbers() {
    return this.shell.source.numbers(this.letter).tiles;
  }

  /** @returns {number | undefined} the largest difference that is known */
  get largest() {
    return undefined;
  }

  row() {
    return this.shell.source.row(this.letter, this.state.query);
  }

  /** @param {{ query?: number, key?: number, jump?: boolean }} change */
  go({ query, key, jump = false }) {
    this.place.pick({ row: query ?? null, col: key ?? null });
    if (jump) this.maps.reveal();
  }

  remember() {
    this.maps.moved(this);
  }

  tell() {
    this.shell.tell(this.shell.pointed.said());
  }

  /**
   * A cell of this map, which may be between two, as a cell of a run.
   * @param {number} row
   * @param {number} col
   */
  cell(row, col) {
    return this.place.token({ row: Math.floor(row), col: Math.floor(col) });
  }

  /**
   * A cell of a run in this map, or the nearest that this has.
   * @param {Where} cursor
   */
  nearest(cursor) {
    return this.shell.nearest(this.letter, cursor);
  }
}

/** What a run differs in from A. */
class DifferencePage extends RunPage {
  /** @type {import("./runs.js").Data} whose numbers are here */
  of;
  /** @type {import("../attention/numbers.js").Numbers} */
  own;
  /** @type {Map<string, number>} */
  known = new Map(); // of a pair of heads, the largest difference

  get data() {
    return this.shell.source.tilesOf(this.letter, true);
  }

  get entries() {
    const { queries, keys } = /** @type {import("./runs.js").Pair} */ (this.shell.pair(this.letter));
    return [queries.entries, keys.entries];
  }

  get able() {
    return Boolean(this.shell.pair(this.letter)) && this.entries.every((axis) => axis.some((entry) => !alone(entry)));
  }

  /** Whether one of the texts has a token that the other lacks. */
  get lonely() {
    return this.entries.some((axis) => axis.some(alone));
  }

  get trace() {
    return named(this.entries[0]);
  }

  get keys() {
    return named(this.entries[1]).pieces;
  }

  get specialKeys() {
    return named(this.entries[1]).special;
  }

  /** Both heads, in the entries by which numbers are kept. */
  get head() {
    const { shell, letter } = this;
    const [first, second] = ["A", letter].map((one) => shell.headOf(one));
    return { side: letter, focus: shell.state.attention, layer: first, head: second };
  }

  get numbers() {
    const { shell } = this;
    if (this.of !== shell.data) {
      this.of = shell.data;
      this.own?.stop();
      this.known.clear();
      this.own = shell.source.numbersOf(this, shell.data.trace);
    }
    return this.own;
  }

  get largest() {
    return this.known.get(String(Object.values(this.head)));
  }

  /** @param {{ ask: string, focus: string, layer: [number, number], head: [number, number], rows: [number, number], columns: [number, number] }} query */
  async request({ ask, focus, layer, head, rows, columns }) {
    if (ask === "row") return EMPTY; // a difference is read in tiles, and the cursor's in both runs
    /** @type {import("../core/store.js").Query<"difference">} */
    const query = { ask: "difference", attention: focus, heads: [layer, head], rows, columns, cells: this.data.tile };
    const answer = await request({ ...query, trace: this.shell.data.pairs[this.letter].trace });
    this.known.set(String([this.letter, focus, layer, head]), answer.max);
    return answer;
  }

  row() {
    return null;
  }

  /**
   * @param {number} row
   * @param {number} col
   */
  cell(row, col) {
    const [queries, keys] = this.entries;
    /**
     * @param {number} i
     * @param {ArrayLike<unknown>} axis
     */
    const inside = (i, { length }) => Math.max(0, Math.min(length - 1, Math.floor(i)));
    return this.place.token({ row: inside(row, queries), col: inside(col, keys) });
  }

  /** @param {Where} cursor */
  nearest(cursor) {
    const { row, col } = this.place.where(cursor);
    const near = this.place.where({ letter: "A", ...this.shell.nearest("A", cursor) });
    return { row: row ?? near.row ?? 0, col: col ?? near.col ?? 0 };
  }
}

const EMPTY = {
  rest: 0,
  others: 0,
  arrays: Object.fromEntries(["key", "weight", "weights"].map((name) => [name, { data: new Float32Array() }])),
};
const axes = new WeakMap(); // entries -> what an axis shows of them

/** @param {Entry[]} entries */
function named(entries) {
  if (!axes.has(entries))
    axes.set(entries, {
      pieces: entries.map(({ label }) => label),
      special: entries.map(mismatch),
      length: entries.length,
    });
  return axes.get(entries);
}

// --- the maps ---

/** In one of several maps: without a small one of its own, and every other follows it. */
class RunMap extends TileMap {
  /**
   * @param {HTMLElement} root
   * @param {RunPage} page
   */
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

  /**
   * @param {number | null} x
   * @param {number} [y]
   */
  point(x, y) {
    super.point(x, y);
    this.page.place.point(this.hover && { row: this.hover.row, col: this.hover.col });
  }

  /**
   * From the keyboard the chosen cell is moved, wherever the pointer rests.
   * @param {KeyboardEvent} event
   */
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
class DifferenceMap extends RunMap {
  /**
   * @param {HTMLElement} root
   * @param {RunPage} page
   */
  constructor(root, page) {
    super(root, page);
    this.painter = new SignedPainter(this.canvas, page.element, page);
  }

  /** @returns {import("../attention/tiles.js").Ramp} */
  ramp() {
    const { page } = this;
    const { most } = page.maps;
    const ends = most
      ? `−${points(most)} (more in A) to +${points(most)} (more in ${page.letter})`
      : page.largest === 0
        ? "no weight differs"
        : "the difference is on its way";
    return {
      role: "edited",
      scale: "signed",
      width: 72,
      text: `${ends}; empty: exactly 0${page.lonely ? "; chequered: no partner" : ""}`,
      title: "grey: more in A; in colour: more in the other; empty: exactly 0",
    };
  }

  besideRamp() {
    return [];
  }

  /** @param {{ top: number, left: number, across: number, down: number }} seen */
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

  /**
   * @param {number | null} x
   * @param {number} [y]
   */
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

class SignedPainter extends Painter {
  /**
   * The ramp ends where that of all maps does (`page.maps.most`).
   * @param {HTMLCanvasElement} canvas
   * @param {HTMLElement} root
   * @param {RunPage} page
   */
  constructor(canvas, root, page) {
    super(canvas, root);
    this.page = page;
  }

  /**
   * @param {import("../attention/numbers.js").Tile} one
   * @param {string} edition
   */
  tileImage(one, edition) {
    const most = this.page.maps.most || 1;
    return super.tileImage(one, `${edition} ${most}`, most);
  }

  /**
   * @param {Block} block
   * @param {number} max
   */
  image(block, max) {
    const table = ramp(this.root, "edited", "signed");
    const squares = ["panel", "hairline"].map((name) => rgba(colour(this.root, name)));
    const image = new ImageData(block.cols, block.rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let r = 0, i = 0; r < block.rows; r++) {
      for (let c = 0; c < block.cols; c++, i++) {
        const value = at(block, r, c);
        if (Number.isNaN(value)) pixels[i] = squares[(r + c) % 2];
        else if (value !== 0) pixels[i] = table[step(value, "signed", max)];
      }
    }
    const canvas = new OffscreenCanvas(block.cols, block.rows);
    canvas.getContext("2d")?.putImageData(image, 0, 0);
    return canvas;
  }
}

/** @param {string} hex */
function rgba(hex) {
  const [red, green, blue] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
