// Two runs or more side by side: the same head of all of them under one cursor, what differs, and what is alike. This is the shell:
// it holds what is looked at; the parts read `lab` (this object) at every update.
import * as address from "../core/address.js";
import { mount as mountBeside } from "./beside.js";
import { Cursor } from "./cursor.js";
import { Face } from "./face.js";
import { frame } from "./frame.js";
import { mount as mountHeads } from "./heads.js";
import { mount as mountMaps } from "./maps.js";
import { mount as mountPointed } from "./pointed.js";
import { mount as mountPredictions } from "./predictions.js";
import { mount as mountSimilarity } from "./similarity.js";
import { remembered, restore } from "./state.js";
import { mount as mountStreams } from "./streams.js";
import { known as isView, missing } from "./tabs.js";
import { make } from "../core/dom.js";

const NARROW = 800; // CSS pixels of width below which everything stands in one column

/** data is the payload of views/compare/compare.py. Emits "silence" {letter, layer, head, side, focus}. */
export function mount(root, data, emit) {
  const lab = new Compare(root, emit);
  lab.update(data);
  return lab;
}

export class Compare extends Cursor {
  constructor(root, emit) {
    super();
    this.emit = emit;
    this.element = make("div", "attention compare");
    this.element.loupe = this; // for tests: the numbers behind the picture
    root.append(this.element);
    /** @type {Cursor["state"]} */
    this.state = restore(address.read());
    this.hover = null;
    this.edition = 0; // grows with everything that makes every picture another one: data, attention, width, theme
    this.resize = new ResizeObserver(() => this.element.clientWidth !== this.across && this.data && this.measure());
    this.resize.observe(this.element);
    this.onKey = (event) => this.key(event);
    window.addEventListener("keydown", this.onKey);
    this.unfollow = address.follow((state) => this.data && this.go(restore(state)));
  }

  destroy() {
    this.resize.disconnect();
    window.removeEventListener("keydown", this.onKey);
    this.unfollow();
    for (const view of this.views ?? []) view.destroy();
    this.element.remove();
  }

  update(data) {
    const { state } = this;
    const before = this.data?.sides.map(({ title, model }) => [title, model.name]).join();
    const changed = before !== undefined && before !== data.sides.map(({ title, model }) => [title, model.name]).join();
    if (changed) Object.assign(state, { other: null, heads: {} });
    if (this.data ? this.data.sides[0].title !== data.sides[0].title : !state.chosen)
      Object.assign(state, { layer: data.look.layer, head: data.look.head });
    if (this.data && this.words(this.data) !== this.words(data))
      Object.assign(state, { cursor: null, zoom: undefined, from: undefined });
    this.data = data;
    this.similar = new Map(); // "B:attn" -> block of similarities, or a sentence, or null while it is on its way
    this.hover = null;
    this.fit();
    if (!this.parts) this.build();
    this.measure();
  }

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
    const { maps, beside, pointed, heads, predictions, streams, similarity } = this.parts.places;
    this.maps = this.mountMaps(maps);
    this.pointed = mountPointed(pointed, this);
    this.beside = mountBeside(beside, this);
    this.views = [
      this.maps,
      this.beside,
      this.pointed,
      this.mountHeads(heads),
      mountPredictions(predictions, this),
      mountStreams(streams, this),
      mountSimilarity(similarity, this),
    ];
    this.element.dataset.ready = "true";
  }

  /** @returns {any} */
  mountMaps(root) {
    return mountMaps(root, this);
  }

  mountHeads(root) {
    return mountHeads(root, this);
  }

  mountView(name, module, root, face) {
    return module.mount(root, face);
  }

  /** One run as the views of one head see it. */
  face(letter) {
    return new Face(this, letter);
  }

  /** How much room there is, and everything drawn again in it. */
  measure() {
    this.across = this.element.clientWidth;
    if (!this.across) return;
    this.narrow = this.across < NARROW;
    this.element.classList.toggle("narrow", this.narrow);
    this.edition++;
    this.refresh();
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
      state.cursor = this.first();
  }

  /** Merges `change` into the state, remembers it in the address, and shows it everywhere. */
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

  remember() {
    address.write(remembered(this.state));
  }

  /** What is looked at, to be taken away (share/shown.js). */
  looked() {
    const { state, sides } = this;
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
    this.bring();
  }

  /** Layers that are not here yet are fetched, and shown when they are. */
  bring() {
    const { data } = this;
    for (const { letter, trace } of this.sides) {
      const layer = this.headOf(letter)[0];
      if (!this.attention(letter) || trace.holds(layer)) continue;
      const late = () => data === this.data;
      trace.fetch(layer).then(
        () => late() && this.refresh(),
        (error) => late() && this.parts.notice(error.message),
      );
    }
  }

  // --- pointer, keyboard ---------------------------------------------------------------------------------------------------

  /** The pointer is over a cell, a row ({col: null}), a column ({row: null}) or nothing. */
  point(where) {
    this.hover = where;
    for (const view of this.views) view.mark?.();
  }

  /** Moves the picked cell by one, in the tokens of the map that has the keyboard. */
  step(letter, differs, by) {
    const here = differs ? this.merged(letter, this.state.cursor) : this.carry(letter, this.state.cursor);
    const [rows, cols] = differs
      ? [this.pair(letter).queries.entries.length, this.pair(letter).keys.entries.length]
      : [this.side(letter).trace.length, this.keys(letter).length];
    const next = { row: clamp((here.row ?? 0) + by.row, rows), col: clamp((here.col ?? 0) + by.col, cols) };
    const found = differs ? this.unmerged(letter, next) : { letter, ...next };
    if (found.row !== null && found.col !== null) this.go({ cursor: found });
    this.tell(this.pointed.said());
  }

  tell(sentence) {
    this.parts.live.textContent = sentence;
  }

  key(event) {
    const target = event.composedPath()[0];
    if (
      !this.data ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      target.closest?.("input, textarea, select, [contenteditable]")
    )
      return;
    const { layers, heads } = this.side("A").trace.model;
    const [head, layer] = [{ "[": -1, "]": 1 }[event.key], { "{": -1, "}": 1 }[event.key]];
    if (head) this.go({ head: (this.state.head + head + heads) % heads });
    if (layer) this.go({ layer: (this.state.layer + layer + layers) % layers });
  }
}

function clamp(i, size) {
  return Math.max(0, Math.min(size - 1, i));
}
