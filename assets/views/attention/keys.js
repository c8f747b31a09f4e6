// One query against all its keys: a row of products for every key, under the components they belong to, and their sums.
import { mountCells } from "../components/cells.js";
import { short } from "./components.js";
import { make } from "../core/dom.js";
import { percent } from "../core/format.js";

/**
 * Shows the rows in `root`; emits "hover" {row, col} | null and "pick" {row}.
 * update(data): {block, max, pieces, special, sums, most, weights, allowed, label, width, tail, pitch, narrow}: `block` is key component (cells.js),
 * whose ramp ends at `max`, `sums` q·k a key, whose bars are full at `most`, `weights` the stored pattern, `allowed` the mask. `mark({key, hovered, place})` frames the chosen key and lights the pointed one and a component.
 */
export function mount(root, emit) {
  const names = make("div", "keys-names");
  const canvas = make("div");
  const sums = make("div", "keys-sums");
  const body = make("div", "keys-body");
  const band = make("div", "keys-band");
  body.append(names, canvas, sums, band);
  root.append(body);
  let shown = null;
  let cells = null;
  let rows = [];
  const marked = { chosen: null, hovered: null }; // rows that have the class
  const seen = { top: 0, tall: 0 }; // of the box that scrolls: asking it would lay everything out
  root.addEventListener("scroll", () => (seen.top = root.scrollTop), { passive: true });
  let awaited = null; // a key to be revealed once there is a height
  new ResizeObserver(() => {
    Object.assign(seen, { tall: root.clientHeight, top: root.scrollTop });
    if (awaited !== null && seen.tall) reveal(awaited);
  }).observe(root);
  const reveal = (key) => {
    awaited = seen.tall ? null : key;
    if (!seen.tall) return;
    const [from, to] = [key * shown.pitch, (key + 1) * shown.pitch];
    if (from < seen.top) root.scrollTop = seen.top = from;
    else if (to > seen.top + seen.tall) root.scrollTop = seen.top = to - seen.tall;
  };
  const rowOf = (event) => rows.findIndex(({ name, sum }) => name.contains(event.target) || sum.contains(event.target));
  for (const side of [names, sums]) {
    side.addEventListener("click", (event) => rowOf(event) >= 0 && emit("pick", { row: rowOf(event) }));
    side.addEventListener("pointermove", (event) => rowOf(event) >= 0 && emit("hover", { row: rowOf(event), col: null }));
    side.addEventListener("pointerleave", () => emit("hover", null));
  }
  names.addEventListener("keydown", (event) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const row = Math.max(0, Math.min(rows.length - 1, rows.findIndex(({ name }) => name === event.target) + by));
    emit("pick", { row });
    rows[row].name.focus();
  });
  return {
    update(data) {
      shown = data;
      body.style.setProperty("--pitch", `${data.pitch}px`);
      body.style.setProperty("--letters", `${Math.min(13.5, data.pitch - 2)}px`);
      body.style.gridTemplateColumns = `${data.label}px ${data.width}px ${data.tail}px`;
      if (rows.length !== data.pieces.length) {
        rows = made(data.pieces.length, names, sums);
        Object.assign(marked, { chosen: null, hovered: null });
      }
      fill(rows, data);
      const { block, width, pitch, pieces } = data;
      const label = `q × k of ${pieces.length} keys, component by component`;
      const drawn = { block, role: "attention", scale: "signed", max: data.max, width, pitch, height: pitch - 3, label };
      if (cells) cells.update(drawn);
      else cells = mountCells(canvas, drawn, emit);
    },
    mark({ key, hovered, place }) {
      move(rows, marked, "chosen", key);
      move(rows, marked, "hovered", hovered);
      rows.forEach(({ name }, i) => name.tabIndex === (i === key ? 0 : -1) || (name.tabIndex = i === key ? 0 : -1));
      band.hidden = !shown;
      if (shown) Object.assign(band.style, { transform: `translateY(${key * shown.pitch}px)`, height: `${shown.pitch}px` });
      cells?.mark({ picked: place === null ? null : { row: hovered ?? key, col: place }, lit: place });
    },
    /** Scrolls the row of `key` into what is seen. */
    reveal,
  };
}

function made(count, names, sums) {
  const rows = Array.from({ length: count }, () => {
    const name = make("button", "keys-name");
    const piece = make("bdi");
    name.append(piece);
    const sum = make("div", "keys-sum");
    const [track, bar, value, weight] = [make("span", "keys-track"), make("span", "keys-bar"), make("span", "keys-value", " "), make("span", "keys-weight", " ")];
    track.append(bar);
    sum.append(track, value, weight);
    return { name, piece, sum, bar, value, weight };
  });
  names.replaceChildren(...rows.map(({ name }) => name));
  sums.replaceChildren(...rows.map(({ sum }) => sum));
  return rows;
}

/** Puts the class `kind` on the name and the sum of row `at`, and takes it from the row that had it. */
function move(rows, marked, kind, at) {
  if (marked[kind] === at) return;
  for (const [row, on] of [[rows[marked[kind]], false], [rows[at], true]]) {
    if (row) for (const element of [row.name, row.sum]) element.classList.toggle(kind, on);
  }
  marked[kind] = at;
}

/** Writes the rows; what already stands there stays. */
function fill(rows, { pieces, special, sums, most, weights, allowed }) {
  rows.forEach((row, i) => {
    const { name, piece, sum, bar, value, weight } = row;
    if (row.piece.textContent !== pieces[i]) piece.textContent = name.title = pieces[i];
    const shown = [allowed[i], special[i], sums[i] < 0].map(Boolean).join();
    if (row.shown !== shown) {
      for (const element of [name, sum]) element.classList.toggle("masked", !allowed[i]);
      piece.classList.toggle("special", Boolean(special[i]));
      bar.classList.toggle("below", sums[i] < 0);
    }
    row.shown = shown;
    bar.style.transform = `scaleX(${Math.abs(sums[i]) / (most || 1)})`;
    value.firstChild.data = short(sums[i]);
    weight.firstChild.data = allowed[i] ? percent(weights[i]) : "masked";
  });
}
