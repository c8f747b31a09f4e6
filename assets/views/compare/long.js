// Two runs or more on texts too long to be sent whole: the page about comparisons (compare.js), of which every number is asked for once it is
// looked at. Maps show tiles at the zoom in view; what stands under the cursor is a row that was asked for, exactly.
import { mount as mountWindow, WINDOWED } from "../attention/window.js";
import { Compare } from "./compare.js";
import { LongFace } from "./long_face.js";
import { mount as mountHeads } from "./long_heads.js";
import { mount as mountMaps } from "./long_maps.js";
import { Asked } from "./long_asked.js";
import { range } from "../core/dom.js";

const SETTLED = 200; // ms until what lies below the maps is asked for, which is when these have asked

/** data is the payload of views/compare/long.py. Emits what compare.js emits. */
export function mount(root, data, emit) {
  const lab = new LongCompare(root, emit);
  lab.update(data);
  return lab;
}

class LongCompare extends Compare {
  long = true;

  constructor(root, emit) {
    super(root, emit);
    this.asks = new Asked(this);
    this.seen = new Set(); // panels that were in sight once
    this.watch = new IntersectionObserver((entries) => this.saw(entries));
  }

  destroy() {
    this.watch.disconnect();
    this.asks.stop();
    super.destroy();
  }

  update(data) {
    for (const { attentions, says } of Object.values(data.pairs)) {
      for (const one of attentions) one.keys ??= one.queries;
      if (says.groups === null) says.groups = attentions.at(-1).queries;
    }
    this.asks.begin(data);
    super.update(data);
  }

  build() {
    super.build();
    for (const name of ["heads", "streams", "similarity"]) this.watch.observe(this.parts.places[name]);
  }

  saw(entries) {
    const { places } = this.parts;
    const names = Object.keys(places).filter((name) =>
      entries.some(({ target, isIntersecting }) => isIntersecting && target === places[name]),
    );
    for (const name of names) this.watch.unobserve(places[name]);
    setTimeout(() => {
      for (const name of names) this.seen.add(name);
      if (this.across && this.data) this.refresh();
    }, SETTLED);
  }

  /** @returns {any} maps of tiles */
  mountMaps(root) {
    return mountMaps(root, this);
  }

  mountHeads(root) {
    return mountHeads(root, this);
  }

  /** What a view of one head is shown by: a window of the numbers where it wants every one of a pattern. */
  mountView(name, module, root, face) {
    return WINDOWED.includes(name) ? mountWindow(root, face, module) : module.mount(root, face);
  }

  face(letter) {
    return new LongFace(this, letter);
  }

  /** Layers are not sent. */
  bring() {}

  fit() {
    super.fit();
    this.settle();
  }

  /** A cursor that nobody chose goes to the strongest key of its row, once that is here. */
  settle() {
    const { cursor } = this.state;
    if (!cursor?.loose) return;
    const weights = this.asks.row("A", cursor.row);
    if (!weights) return;
    const col = weights.reduce((best, weight, key) => (weight > weights[best] ? key : best), 0);
    this.state.cursor = { letter: "A", row: cursor.row, col };
  }

  /** The first cell to look at: of the last row that is shared, or of the example's. */
  first() {
    const rows = range(0, this.side("A").trace.length).filter((row) => this.shares(row));
    const row = rows.includes(this.data.look.query)
      ? this.data.look.query
      : (rows.at(-1) ?? this.side("A").trace.length - 1);
    return { letter: "A", row, col: Math.min(row, this.keys("A").length - 1), loose: true };
  }

  /** Numbers of a run, or of a difference, have come. */
  arrived() {
    this.settle();
    if (this.state.view === "map") this.maps.show();
    else this.beside.again(this.sides.map(({ letter }) => letter));
    this.pointed.mark();
  }

  /** Something cannot be had, and why. */
  failed(sentence) {
    this.parts.notice(sentence);
  }

  detailed(letter) {
    return this.side(letter).trace;
  }

  /** Heads in one place, unless that says nothing: the most alike are known late. */
  matching(letter) {
    return this.sameShape(letter) ? (this.state.match ?? "same") : "alike";
  }

  // --- numbers (asked for once they are wanted) --------------------------------------------------------------------------------

  weight(letter, row, col) {
    return this.asks.row(letter, row)?.[col];
  }

  shared(letter, queries, keys) {
    const rows = queries.map((row) => this.asks.row(letter, row));
    if (rows.some((row) => !row)) return undefined;
    return rows.reduce((sum, row) => sum + keys.reduce((part, key) => part + row[key], 0), 0) / queries.length;
  }

  said(letter, place) {
    return this.asks.said(letter, place);
  }

  distances(letter) {
    return this.seen.has("streams") ? this.asks.distances(letter) : null;
  }

  similarity(letter) {
    const wanted = this.seen.has("similarity") || this.matching(letter) === "alike";
    if (!wanted || !this.described(letter)) return null;
    if (this.state.over) return super.similarity(letter);
    const { layers, all, sentence } = this.asks.layers(letter);
    if (sentence) this.similar.set(this.similarName(letter), { sentence });
    return layers.length === all ? super.similarity(letter) : null;
  }

  /** More blocks of a pair are here. */
  collected() {
    this.refresh();
  }

  /** How the tiles of a run are cut, or of what it differs in from A. */
  dataOf(letter, differs = false) {
    const { data } = this;
    const tile = this.described(letter === "A" ? data.sides[1].letter : letter).tiles[
      differs ? 2 : letter === "A" ? 0 : 1
    ];
    return { ...data, tile, across: (tile * data.across) / data.tile };
  }
}
