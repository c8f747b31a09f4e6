// What the server is asked of the runs and pairs of a comparison of long texts, and what it has said: rows of the heads that are looked at, what
// both say at a place, how far their streams are apart. What is missing is asked for once the cursor stands still.
import { Numbers } from "../attention/numbers.js";
import { range } from "../core/dom.js";
import { request } from "../core/store.js";

const PATIENCE = 150; // ms at one place until what is said there is asked for

export class Asked {
  constructor(lab) {
    this.lab = lab;
    this.runs = new Map(); // letter -> {tiles, rows}: numbers of what the maps show, and of the rows under the cursor
  }

  begin(data) {
    this.stop();
    this.data = data;
    this.runs = new Map();
    this.collected = new Map(); // question about every block of a pair -> what `layers` gives
    this.answers = new Map(); // question about a pair -> answer, or a sentence, or null while it is on its way
  }

  stop() {
    clearTimeout(this.timer);
    for (const { tiles, rows } of this.runs.values()) for (const one of [tiles, rows]) one.stop();
  }

  numbers(letter) {
    if (!this.runs.has(letter)) {
      const { lab } = this;
      const page = new Run(lab, letter);
      const heard = { arrived: () => lab.arrived(), failed: (sentence) => lab.failed(sentence) };
      const made = { tiles: new RunNumbers(page, heard), rows: new Numbers(page, heard) };
      for (const one of Object.values(made)) one.run = page.trace.trace;
      this.runs.set(letter, made);
    }
    return this.runs.get(letter);
  }

  /** {key, weight, weights, ...} of a row of the shown head, null while it is on its way. */
  listed(letter, row) {
    const { tiles, rows } = this.numbers(letter);
    const { head } = rows.page;
    const found = tiles.row(head, row) ?? rows.row(head, row);
    if (!found) rows.want(head, [], row);
    return found;
  }

  row(letter, row) {
    return this.listed(letter, row)?.weights ?? null;
  }

  /** {names, ids, first, second, kl, variation} of a place of a pair, of one row each; null while it is on its way. */
  said(letter, place) {
    const query = this.pair(letter, { ask: "says", group: place });
    const found = this.known(query);
    if (found !== undefined) return found && { names: found.names, ...found.arrays };
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(query), PATIENCE);
    return null;
  }

  /** {relative, cosine} of a pair, layer group; null while they are on their way. */
  distances(letter) {
    const query = this.pair(letter, { ask: "streams", attention: this.lab.state.attention });
    if (this.known(query) === undefined) this.ask(query);
    return this.known(query)?.arrays ?? null;
  }

  /** Of a pair, block by block: {layers: [{change, seen}, ...] of those that are here, all, sentence where the others cannot be had}. */
  layers(letter) {
    const query = this.pair(letter, { ask: "change", attention: this.lab.state.attention });
    const name = JSON.stringify(query);
    if (!this.collected.has(name)) {
      const all = Math.max(...["A", letter].map((one) => this.lab.side(one).trace.model.layers));
      this.collected.set(name, { layers: [], all, sentence: "" });
      this.collect(query, this.collected.get(name));
    }
    return this.collected.get(name);
  }

  /** One block after the other, so that what somebody looks at meanwhile comes between. */
  async collect(query, found) {
    const { data } = this;
    try {
      for (const layer of range(0, found.all)) {
        const { arrays } = await request({ ...query, layer });
        if (data !== this.data) return;
        found.layers.push(arrays);
        this.lab.collected();
      }
    } catch (error) {
      if (data !== this.data) return;
      found.sentence = error.message;
      this.lab.collected();
    }
  }

  /** A question about A and another run. */
  pair(letter, query) {
    return { ...query, trace: this.data.pairs[letter].trace };
  }

  known(query) {
    return this.answers.get(JSON.stringify(query));
  }

  ask(query) {
    const { data } = this;
    const name = JSON.stringify(query);
    if (this.answers.has(name)) return;
    this.answers.set(name, null);
    request(query).then(
      (answer) => data === this.data && (this.answers.set(name, answer), this.lab.refresh()),
      (error) => data === this.data && this.lab.failed(error.message), // it stays unanswered, and is not asked again
    );
  }
}

/** A run as Numbers sees it. */
class Run {
  constructor(lab, letter) {
    this.lab = lab;
    this.letter = letter;
  }

  get data() {
    return this.lab.dataOf(this.letter);
  }

  get trace() {
    return this.lab.side(this.letter).trace;
  }

  get keys() {
    return this.lab.keys(this.letter);
  }

  get head() {
    const { side, focus } = this.lab.attention(this.letter);
    const [layer, head] = this.lab.headOf(this.letter);
    return { side, focus, layer, head };
  }

  /** Tiles are of as many cells as fit this text. */
  request(query) {
    return request({ trace: this.trace.trace, ...query, ...(query.ask === "tile" && { cells: this.data.tile }) });
  }
}

/** Tiles of a run, whose map has no row where the cursor has no partner. */
class RunNumbers extends Numbers {
  want(head, windows, pos, ...more) {
    super.want(head, windows, Math.max(0, pos), ...more);
  }
}
