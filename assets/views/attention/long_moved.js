// What the weights of a head of a long text move, |pattern v W_O|, in place of the weights: a length is a weight times one number of its
// key, and a share is that divided by the row's sum. The server says both for a head; tiles hold elements of the whole as they do of weights.
import { choices } from "../components/choices.js";
import { make } from "../core/dom.js";
import { number, percent } from "../core/format.js";

const KINDS = [["pattern", "pattern", "each weight of the head"], ["weighted", "value-weighted", "what each weight moves: the length of p · v W_O"]];

/** Of one head: `max`, the largest length, and `overview(kind)` ("length" or "share") as a block of cells.js, 255 = that length or all of a row. */
export class Moved {
  /** @param {import("../core/store.js").Answers["moved"]} answer */
  constructor({ max, arrays }) {
    this.max = max;
    /** @type {Record<string, import("../core/payload.js").NamedArray>} */
    this.arrays = arrays;
  }

  /** What a weight at (row, key) moves, as the server has it. */
  of(weight, row, key, kind) {
    const { moved, total } = this.arrays;
    const length = Math.fround(Math.fround(weight) * moved.data[key]);
    return kind === "share" ? Math.fround(length / total.data[row]) : length;
  }

  overview(kind) {
    const { data, shape } = this.arrays[`overview.${kind}`];
    return { block: { data, offset: 0, stride: shape[1], rows: shape[0], cols: shape[1] }, max: 255 };
  }
}

/** What the map of a page shows: undefined for the pattern, else "length" or "share". */
export function shownBy({ shows, shares }) {
  if (shows !== "weighted") return undefined;
  return shares ? "share" : "length";
}

export function spelled(value, kind) {
  return kind === "length" ? number(value) : percent(value);
}

/** `max` is the largest length, undefined while that is on its way. */
export function legendText(kind, max) {
  const shown = { share: "0 to 1 of the row’s lengths", length: `0 to ${max === undefined ? "…" : number(max)}, length of p · v W_O` }[kind];
  return shown ? `${shown}; empty: 0` : "0 to 1 of the row; empty: exactly 0";
}

/** {element, show()}: what the cells show, and whether as shares. */
export function switcher(page) {
  const element = make("div", "long-shows");
  const kinds = choices("what the cells show", KINDS, (name) => page.go({ shows: name === "pattern" ? undefined : name }));
  const label = make("label", "as-shares");
  const box = make("input");
  box.type = "checkbox";
  box.addEventListener("change", () => page.go({ shares: box.checked || undefined }));
  label.append(box, "shares of the row");
  element.append(kinds.element, label);
  const show = () => {
    const kind = shownBy(page.state);
    kinds.show(kind ? "weighted" : "pattern");
    label.hidden = !kind;
    box.checked = kind === "share";
  };
  return { element, show };
}
