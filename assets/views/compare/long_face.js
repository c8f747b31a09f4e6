// One run on a long text as the views of one head see it, and as the window that stands before some of them does (attention/window.js):
// what they look at comes from the one cursor of all runs.
import { Face } from "./face.js";

export class LongFace extends Face {
  get data() {
    return this.lab.data;
  }

  get element() {
    return this.lab.element;
  }

  get head() {
    const { side, focus, layer, head } = this.state;
    return { side, focus, layer, head };
  }

  /** Of a head there are no numbers but those that are asked for. */
  pattern() {
    return { block: { data: new Uint8Array(1), offset: 0, stride: 1, rows: 1, cols: 1 }, max: 255 };
  }

  row() {
    return this.lab.asks.listed(this.letter, this.state.query);
  }

  /** Every weight of the chosen row ("out") or column ("in"), or a promise where it is not here. */
  line(way) {
    const { query, key } = this.state;
    if (way === "in") return this.column(key).then(({ arrays }) => Float64Array.from(arrays.weights.data));
    const found = this.lab.asks.row(this.letter, query);
    return found
      ? Float64Array.from(found)
      : this.request({ ask: "row", ...this.head, pos: query }).then(({ arrays }) =>
          Float64Array.from(arrays.weights.data),
        );
  }

  /** Every weight of any row of the shown head; none while they are on their way. */
  weightsOf(pos) {
    return Float64Array.from(this.lab.asks.row(this.letter, pos) ?? new Float64Array(this.keys.length));
  }

  column(key) {
    return this.request({ ask: "column", ...this.head, key });
  }
}
