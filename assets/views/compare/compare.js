// Two runs or more side by side: the same head of all of them under one cursor, what differs, and what is alike. This is the shell:
// it holds what is looked at; the parts read `shell` (this object) at every update. How much of the runs is here is its source's affair
// (source.js; tiled_source.js for texts too long to be sent whole).
import * as address from "../core/address.js";
import { mount as mountBeside } from "./beside.js";
import { Cursor } from "./cursor.js";
import { frame } from "./frame.js";
import { mount as mountHeads } from "./heads.js";
import { mount as mountPointed } from "./pointed.js";
import { mount as mountPredictions } from "./predictions.js";
import { mount as mountSimilarity } from "./similarity.js";
import { WholeSource } from "./source.js";
import { remembered, restore } from "./state.js";
import { mount as mountStreams } from "./streams.js";
import { known as isView, missing } from "./tabs.js";
import { observe } from "../core/observe.js";

/**
 * @typedef {Compare} Shell
 * @typedef {import("../core/host.js").Emit} Emit
 * @typedef {import("./runs.js").Data} Data
 * @typedef {import("./runs.js").State} State
 * @typedef {import("./runs.js").Where} Where
 * @typedef {new (page: object) => object} SourceClass
 * @typedef {import("./source.js").WholeSource | import("./tiled_source.js").TiledSource} Source
 * @typedef {{ update: () => void, destroy: () => void, mark?: () => void }} Panel
 */

/**
 * data is the payload of views/compare/compare.py, of long texts with `tile`. Emits "silence" {letter, layer, head, side, focus}.
 * @param {HTMLElement} root
 * @param {Data} data
 * @param {Emit} emit
 */
export function mount(root, data, emit) {
  const shell = new Compare(root, emit);
  shell.update(data);
  return shell;
}

class Compare extends Cursor {
  /** @type {ReturnType<typeof mountPointed>} */
  pointed;
  /** @type {ReturnType<typeof mountBeside>} */
  beside;
  /** @type {Panel[]} what stands below, of two runs */
  panels;
  /** @type {import("./maps.js").Maps<import("./maps.js").Place> & { mark?: () => void, show?: () => void }} */
  maps;
  /** @type {import("./ends.js").Ends} of the views that are open */
  ends;

  /**
   * @param {HTMLElement} root
   * @param {Emit} emit
   */
  constructor(root, emit) {
    const loadTiled = () => import("./tiled_source.js");
    super(root, "compare", { restore, remembered, emit, Whole: WholeSource, loadTiled });
    observe(this);
  }

  destroy() {
    if (this.parts) for (const view of this.views) view.destroy();
    super.destroy();
  }

  /**
   * @param {Data} data
   * @param {SourceClass} Source
   */
  take(data, Source) {
    const { state, data: old } = this;
    for (const { attentions, says } of Object.values(data.pairs)) {
      for (const one of attentions) one.keys ??= one.queries;
      if (says.groups === null) says.groups = attentions[attentions.length - 1].queries;
    }
    const before = old?.sides.map(({ title, model }) => [title, model.name]).join();
    const changed = before !== undefined && before !== data.sides.map(({ title, model }) => [title, model.name]).join();
    if (changed) Object.assign(state, { other: null, heads: {} });
    if (old ? old.sides[0].title !== data.sides[0].title : !state.chosen)
      Object.assign(state, { layer: data.look.layer, head: data.look.head });
    if (old && this.words(old) !== this.words(data))
      Object.assign(state, { cursor: null, zoom: undefined, from: undefined });
    this.data = data;
    this.similar = new Map(); // "B:attn" -> block of similarities, or a sentence, or null while it is on its way
    this.hover = null;
    const turned = this.adopt(Source);
    this.source.begin(data);
    this.fit();
    address.show(state);
    if (!this.parts) this.build();
    if (turned) this.lay();
    this.measure();
  }

  /** @param {Data} data */
  words({ sides }) {
    return sides
      .map(({ lanes }) =>
        Object.values(lanes)
          .map(({ pieces }) => pieces.join("\n"))
          .join(),
      )
      .join("|");
  }

  build() {
    this.parts = frame(this);
    const { beside, pointed, heads, predictions, streams, similarity } = this.parts.places;
    this.pointed = mountPointed(pointed, this);
    this.beside = mountBeside(beside, this);
    this.panels = [
      mountHeads(heads, this),
      mountPredictions(predictions, this),
      mountStreams(streams, this),
      mountSimilarity(similarity, this),
    ];
  }

  /** Puts up what one source draws otherwise than another. */
  lay() {
    const { places } = this.parts;
    this.maps?.destroy();
    this.maps = this.source.mountMaps(places.maps);
    this.beside.close();
    this.source.watch(places);
  }

  get views() {
    return [this.maps, this.beside, this.pointed, ...this.panels];
  }

  /** Puts the state inside what the runs have. */
  fit() {
    const { state, data } = this;
    const known = data.pairs[data.sides[1].letter].attentions.map(({ key }) => key);
    state.moved = known.length > 1 && state.attention !== known.at(-1);
    if (!known.includes(state.attention)) Object.assign(state, { attention: known.at(-1), moved: false });
    if (!(state.beside in data.pairs)) state.beside = data.sides[1].letter;
    this.sides = data.sides.map((side) => ({ ...side, trace: this.traced(side) }));
    this.pairs = new Map(data.sides.slice(1).map(({ letter }) => [letter, this.paired(letter)]));
    if (!isView(state.view) || missing(this, state.view)) state.view = "map";
    const { layers, heads } = this.side("A").trace.model;
    Object.assign(state, { layer: Math.min(state.layer, layers - 1), head: Math.min(state.head, heads - 1) });
    const { cursor } = state;
    if (cursor) Object.assign(cursor, { row: cursor.row ?? 0, col: cursor.col ?? 0 }); // one axis has no such token there
    const side = cursor && this.sides.find(({ letter }) => letter === cursor.letter);
    if (
      !side ||
      !this.attention(cursor.letter) ||
      cursor.row >= side.trace.length ||
      cursor.col >= this.keys(cursor.letter).length
    )
      state.cursor = this.source.first();
    this.source.settle();
  }

  /**
   * Merges `change` into the state, remembers it in the address, and shows it everywhere.
   * @param {Partial<State>} change
   */
  go(change) {
    const { state } = this;
    const turned = change.attention !== undefined && change.attention !== state.attention;
    const moved = (change.layer ?? state.layer) !== state.layer || (change.head ?? state.head) !== state.head;
    if (turned)
      Object.assign(state, {
        cursor: null,
        other: null,
        layer: 0,
        head: 0,
        heads: {},
        zoom: undefined,
        from: undefined,
      });
    if (moved && change.other === undefined) state.other = null;
    Object.assign(state, change);
    this.hover = null;
    this.fit();
    if (turned) this.edition++;
    this.remember();
    this.refresh();
    if (moved || turned) this.tell(`block ${state.layer + 1}, head ${state.head + 1}`);
  }

  get model() {
    return this.side("A").trace.model;
  }

  /** What is looked at, to be taken away (share/shown.js). */
  looked() {
    const { state, sides } = this;
    /** @type {[letter: string, place: [layer: number, head: number]][]} */
    const places = sides
      .filter(({ letter }) => this.attention(letter))
      .map(({ letter }) => [letter, this.headOf(letter)]);
    const said = places.map(([letter, [layer, head]]) => `${letter} block ${layer + 1}, head ${head + 1}`);
    const { letter, row, col } = state.cursor;
    const how = state.own.how === "tsne" ? "tsne" : "pca";
    const of = {
      attention: state.attention,
      heads: Object.fromEntries(places),
      beside: state.beside,
      at: [letter, row, col],
      view: state.view,
      how,
    };
    const what = state.view === "map" ? "" : this.parts.named(state.view);
    return { where: said.join("; "), what, sentence: this.pointed.said(), asks: { of }, file: "" };
  }

  /** Shows the state everywhere. */
  refresh() {
    this.parts.show();
    for (const view of this.views) view.update();
    this.source.bring();
    this.element.dataset.ready = this.data.trace;
  }

  // --- pointer, keyboard ---------------------------------------------------------------------------------------------------

  /**
   * The pointer is over a cell, a row ({col: null}), a column ({row: null}) or nothing.
   * @param {Where | null} where
   */
  point(where) {
    this.hover = where;
    for (const view of this.views) view.mark?.();
  }

  /**
   * Moves the picked cell by one, in the tokens of the map that has the keyboard.
   * @param {string} letter
   * @param {boolean} differs
   * @param {{ row: number, col: number }} by
   */
  step(letter, differs, by) {
    const here = differs ? this.merged(letter, this.state.cursor) : this.carry(letter, this.state.cursor);
    const [rows, cols] = differs
      ? [this.pair(letter)?.queries.entries.length ?? 0, this.pair(letter)?.keys.entries.length ?? 0]
      : [this.side(letter).trace.length, this.keys(letter).length];
    const next = { row: clamp((here.row ?? 0) + by.row, rows), col: clamp((here.col ?? 0) + by.col, cols) };
    const found = differs ? this.unmerged(letter, next) : { letter, ...next };
    const { row, col } = found;
    if (row !== null && col !== null) this.go({ cursor: { ...found, row, col } });
    this.tell(this.pointed.said());
  }
}

/**
 * @param {number} i
 * @param {number} size
 */
function clamp(i, size) {
  return Math.max(0, Math.min(size - 1, i));
}
