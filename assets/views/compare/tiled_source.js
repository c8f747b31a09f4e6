// Runs on texts too long to be sent whole, as a source (source.js) of a comparison: tiles and rows of the heads that are looked at, what both
// say at a place, how far their streams are apart. What is missing is asked for once the cursor stands still.
import { Numbers } from "../attention/numbers.js";
import { mount as mountWindow, WINDOWED } from "../attention/window.js";
import { RunFace } from "./face.js";
import { TileMaps } from "./tile_maps.js";
import { range } from "../core/dom.js";
import { request } from "../core/store.js";

/**
 * @typedef {import("./compare.js").Shell} Shell
 * @typedef {import("./runs.js").Data} Data
 * @typedef {import("./face.js").Face} Face
 * @typedef {import("./beside.js").ViewModule} ViewModule
 * @typedef {import("../core/payload.js").NamedArray} NamedArray
 * @typedef {{ ask: "says", group: number } | { ask: "streams" | "change", attention: string }} Asked
 * @typedef {{ layers: { change: NamedArray, seen: NamedArray }[], all: number, sentence: string }} Collected
 */

const PATIENCE = 150; // ms at one place until what is said there is asked for
const SETTLED = 200; // ms until what lies below the maps is asked for, which is when these have asked
const PANELS = ["heads", "streams", "similarity"]; // which ask once they are in sight
const NOTHING = { block: { data: new Uint8Array(1), offset: 0, stride: 1, rows: 1, cols: 1 }, max: 255 };

export class TiledSource {
  tiled = true;
  /** @type {Map<string, Collected>} question about every block of a pair -> what `layers` gives */
  collected;
  /** @type {Map<string, any>} question about a pair -> answer, or a sentence, or null while it is on its way */
  answers;
  /** @type {Record<string, HTMLElement>} where panels stand, by name */
  panels;

  /** @param {Shell} shell */
  constructor(shell) {
    this.shell = shell;
    this.runs = new Map(); // letter -> {tiles, rows}: numbers of what the maps show, and of the rows under the cursor
    this.seen = new Set(); // panels that were in sight once
    this.sight = new IntersectionObserver((entries) => this.saw(entries));
  }

  /** @param {Data} data */
  begin(data) {
    this.clear();
    /** @type {Data | null} */
    this.data = data;
    this.runs = new Map();
    this.collected = new Map();
    this.answers = new Map();
  }

  stop() {
    this.clear();
    this.data = null;
    this.sight.disconnect();
  }

  clear() {
    clearTimeout(this.timer);
    for (const { tiles, rows } of this.runs.values()) for (const one of [tiles, rows]) one.stop();
  }

  /**
   * Panels ask nothing before they are in sight.
   * @param {Record<string, HTMLElement>} places
   */
  watch(places) {
    this.panels = places;
    for (const name of PANELS) this.sight.observe(places[name]);
  }

  /** @param {IntersectionObserverEntry[]} entries */
  saw(entries) {
    const names = PANELS.filter((name) =>
      entries.some(({ target, isIntersecting }) => isIntersecting && target === this.panels[name]),
    );
    for (const name of names) this.sight.unobserve(this.panels[name]);
    setTimeout(() => {
      for (const name of names) this.seen.add(name);
      if (this.shell.across && this.data) this.shell.refresh();
    }, SETTLED);
  }

  /** @param {HTMLElement} root */
  mountMaps(root) {
    return new TileMaps(root, this.shell);
  }

  /**
   * A view that wants every number of a pattern gets a window of them.
   * @param {string} name
   * @param {ViewModule} module
   * @param {HTMLElement} root
   * @param {Face} face
   */
  mountView(name, module, root, face) {
    return WINDOWED.includes(name) ? mountWindow(root, face, module) : module.mount(root, face);
  }

  /** The first cell to look at: of the last row that is shared, or of the example's. */
  first() {
    const { shell } = this;
    const { length } = shell.side("A").trace;
    const rows = range(0, length).filter((row) => shell.shares(row));
    const row = rows.find((row) => row === shell.data.look.query) ?? rows.at(-1) ?? length - 1;
    return { letter: "A", row, col: Math.min(row, shell.keys("A").length - 1), loose: true };
  }

  /** A cursor that nobody chose goes to the strongest key of its row, once that is here. */
  settle() {
    const { state } = this.shell;
    if (!state.cursor?.loose) return;
    const { row } = state.cursor;
    const weights = this.weights("A", row);
    if (!weights) return;
    const col = weights.reduce(
      (/** @type {number} */ best, /** @type {number} */ weight, /** @type {number} */ key) =>
        weight > weights[best] ? key : best,
      0,
    );
    state.cursor = { letter: "A", row, col };
  }

  /** Numbers of a run, or of a difference, have come. */
  arrived() {
    const { shell } = this;
    this.settle();
    if (shell.state.view === "map") shell.maps.show?.();
    else shell.beside.again(shell.sides.map(({ letter }) => letter));
    shell.pointed.mark();
  }

  /** Layers are not sent. */
  bring() {}

  /** @param {string} letter */
  detailed(letter) {
    return this.shell.side(letter).trace;
  }

  /** Of a head there are no numbers but those that are asked for. */
  patternAt() {
    return NOTHING;
  }

  // --- rows and tiles ------------------------------------------------------------------------------------------------------

  /** @param {string} letter */
  numbers(letter) {
    if (!this.runs.has(letter)) {
      const run = new TiledRun(this.shell, letter);
      const [tiles, rows] = [RunNumbers, Numbers].map((Kind) => this.numbersOf(run, run.trace.trace, Kind));
      this.runs.set(letter, { tiles, rows });
    }
    return this.runs.get(letter);
  }

  /**
   * Numbers that `page` asks for, of the run or the runs with that name.
   * @param {RunFace} page
   * @param {string} name
   */
  numbersOf(page, name, Kind = Numbers) {
    const numbers = new Kind(page, {
      arrived: () => this.arrived(),
      /** @param {string} sentence */
      failed: (sentence) => this.shell.parts.notice(sentence),
    });
    numbers.run = name;
    return numbers;
  }

  /**
   * How the tiles of a run are cut, or of what it differs in from A.
   * @param {string} letter
   */
  tilesOf(letter, differs = false) {
    const { shell } = this;
    const { data } = shell;
    const { tiles } = /** @type {import("./runs.js").Described} */ (
      shell.described(letter === "A" ? data.sides[1].letter : letter)
    );
    const tile = tiles[differs ? 2 : letter === "A" ? 0 : 1];
    return { ...data, tile, across: (tile * data.across) / data.tile };
  }

  /**
   * {key, weight, weights, ...} of a row of the shown head, null while it is on its way.
   * @param {string} letter
   * @param {number} row
   */
  row(letter, row) {
    const { tiles, rows } = this.numbers(letter);
    const { head } = rows.page;
    const found = tiles.row(head, row) ?? rows.row(head, row);
    if (!found) rows.want(head, [], row);
    return found;
  }

  /**
   * @param {string} letter
   * @param {number} row
   */
  weights(letter, row) {
    return this.row(letter, row)?.weights ?? null;
  }

  /**
   * @param {string} letter
   * @param {number} row
   * @param {number} col
   */
  weight(letter, row, col) {
    return this.weights(letter, row)?.[col];
  }

  /**
   * @param {string} letter
   * @param {number[]} queries
   * @param {number[]} keys
   */
  shared(letter, queries, keys) {
    const rows = queries.map((row) => this.weights(letter, row));
    if (rows.some((row) => !row)) return undefined;
    return rows.reduce((sum, row) => sum + keys.reduce((part, key) => part + row[key], 0), 0) / queries.length;
  }

  /**
   * (way) => every weight of the chosen row ("out") or column ("in") of a run's face, or a promise where it is not here.
   * @param {Face} face
   */
  line(face) {
    /** @param {{ ask: "column", key: number } | { ask: "row", pos: number }} query */
    const asked = (query) =>
      face.request({ ...query, ...face.head }).then(({ arrays }) => Float64Array.from(arrays.weights.data));
    /** @param {"out" | "in"} way */
    return (way) => {
      const { query, key } = face.state;
      if (way === "in") return asked({ ask: "column", key });
      const found = this.weights(face.letter, query);
      return found ? Float64Array.from(found) : asked({ ask: "row", pos: query });
    };
  }

  /**
   * (pos) => every weight of any row of the shown head; none while they are on their way.
   * @param {Face} face
   */
  weightsOf(face) {
    /** @param {number} pos */
    return (pos) => Float64Array.from(this.weights(face.letter, pos) ?? new Float64Array(face.keys.length));
  }

  // --- A and another run ---------------------------------------------------------------------------------------------------

  /**
   * @param {string} letter
   * @param {number} place
   */
  said(letter, place) {
    const query = this.pair(letter, { ask: "says", group: place });
    const found = this.known(query);
    if (found !== undefined) return found && { names: found.names, ...found.arrays };
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(query), PATIENCE);
    return null;
  }

  /** @param {string} letter */
  distances(letter) {
    if (!this.seen.has("streams")) return null;
    const query = this.pair(letter, { ask: "streams", attention: this.shell.state.attention });
    if (this.known(query) === undefined) this.ask(query);
    return this.known(query)?.arrays ?? null;
  }

  /** @param {string} letter */
  changes(letter) {
    const known = this.seen.has("heads") ? this.layers(letter) : { layers: [], all: 0, sentence: "" };
    const { layers, all, sentence } = known;
    /**
     * @param {number} layer
     * @param {number} head
     */
    const seen = (layer, head) => {
      const { data, shape } = layers[layer].seen;
      const [, rows, cols] = shape;
      return { data: data.subarray(head * rows * cols, (head + 1) * rows * cols), offset: 0, stride: cols, rows, cols };
    };
    const shares = layers.flatMap(({ change }) => Array.from(change.data));
    return { shares, seen, done: layers.length, all, sentence, edition: `${this.shell.data.trace} ${layers.length}` };
  }

  /**
   * Heads are compared by rows that are kept as their blocks are: every block comes first.
   * @param {string} letter
   */
  comparable(letter) {
    const { shell } = this;
    if (!shell.described(letter) || !(this.seen.has("similarity") || shell.matching(letter) === "alike")) return false;
    if (shell.state.over) return true;
    const { layers, all, sentence } = this.layers(letter);
    if (sentence) shell.similar.set(shell.similarName(letter), { sentence });
    return layers.length === all;
  }

  /**
   * Of a pair, block by block: {layers: [{change, seen}, ...] of those that are here, all, sentence where the others cannot be had}.
   * @param {string} letter
   */
  layers(letter) {
    const query = this.pair(letter, { ask: "change", attention: this.shell.state.attention });
    const name = JSON.stringify(query);
    if (!this.collected.has(name)) {
      const all = Math.max(...["A", letter].map((one) => this.shell.side(one).trace.model.layers));
      this.collected.set(name, { layers: [], all, sentence: "" });
      this.collect(query, /** @type {Collected} */ (this.collected.get(name)));
    }
    return /** @type {Collected} */ (this.collected.get(name));
  }

  /**
   * One block after the other, so that what somebody looks at meanwhile comes between.
   * @param {Asked} query
   * @param {Collected} found
   */
  async collect(query, found) {
    const { data } = this;
    try {
      for (const layer of range(0, found.all)) {
        const { arrays } = await request({ .../** @type {{ ask: "change", attention: string }} */ (query), layer });
        if (data !== this.data) return;
        found.layers.push(arrays);
        this.shell.refresh();
      }
    } catch (error) {
      if (data !== this.data) return;
      found.sentence = error.message;
      this.shell.refresh();
    }
  }

  /**
   * A question about A and another run.
   * @param {string} letter
   * @param {Asked} query
   */
  pair(letter, query) {
    return { ...query, trace: this.shell.data.pairs[letter].trace };
  }

  /** @param {Asked} query */
  known(query) {
    return this.answers.get(JSON.stringify(query));
  }

  /** @param {Asked} query */
  ask(query) {
    const { data } = this;
    const name = JSON.stringify(query);
    if (this.answers.has(name)) return;
    this.answers.set(name, null);
    request(query).then(
      (answer) => data === this.data && (this.answers.set(name, answer), this.shell.refresh()),
      (error) => data === this.data && this.shell.parts.notice(error.message), // it stays unanswered, and is not asked again
    );
  }
}

/** A run as Numbers sees it: tiles are of as many cells as fit its text. */
class TiledRun extends RunFace {
  get data() {
    return this.shell.source.tilesOf(this.letter);
  }

  /** @param {Record<string, unknown> & { ask: string }} query */
  request(query) {
    return super.request(query.ask === "tile" ? { ...query, cells: this.data.tile } : query);
  }
}

/** Tiles of a run, whose map has no row where the cursor has no partner. */
class RunNumbers extends Numbers {
  /**
   * @param {import("../attention/state.js").HeadOfRun} head
   * @param {import("../attention/numbers.js").Window[]} windows
   * @param {number} pos
   * @param {import("../attention/numbers.js").Kind} [shows]
   */
  want(head, windows, pos, shows) {
    super.want(head, windows, Math.max(0, pos), shows);
  }
}
