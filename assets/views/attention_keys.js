// One query against all its keys: a row of products for every key, under the components they belong to, and their sums.
import { extent, mountCells } from "./cells.js";
import { short } from "./attention_components.js";
import { make } from "./dom.js";
import { percent } from "./format.js";

/**
 * Shows the rows in `root`; emits "hover" {row, col} | null and "pick" {row}.
 * update(data): {block, pieces, special, sums, weights, allowed, label, width, tail, pitch, narrow}: `block` is key component (cells.js),
 * `sums` q·k a key, `weights` the stored pattern, `allowed` the mask. `mark({key, hovered, place})` frames the chosen key and lights the pointed one and a component.
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
      if (rows.length !== data.pieces.length) rows = made(data.pieces.length, names, sums);
      fill(rows, data);
      const { block, width, pitch, pieces } = data;
      const label = `q × k of ${pieces.length} keys, component by component`;
      const drawn = { block, role: "attention", scale: "signed", max: extent(block), width, pitch, height: pitch - 3, label };
      if (cells) cells.update(drawn);
      else cells = mountCells(canvas, drawn, emit);
    },
    mark({ key, hovered, place }) {
      rows.forEach(({ name, sum }, i) => {
        name.classList.toggle("chosen", i === key);
        sum.classList.toggle("chosen", i === key);
        for (const element of [name, sum]) element.classList.toggle("hovered", i === hovered);
        name.tabIndex = i === key ? 0 : -1;
      });
      band.hidden = !shown;
      if (shown) Object.assign(band.style, { transform: `translateY(${key * shown.pitch}px)`, height: `${shown.pitch}px` });
      cells?.mark({ picked: place === null ? null : { row: hovered ?? key, col: place }, lit: place });
    },
    /** Scrolls the row of `key` into what is seen. */
    reveal(key) {
      const { offsetTop, offsetHeight } = rows[key].name;
      if (offsetTop < root.scrollTop) root.scrollTop = offsetTop;
      if (offsetTop + offsetHeight > root.scrollTop + root.clientHeight) root.scrollTop = offsetTop + offsetHeight - root.clientHeight;
    },
  };
}

function made(count, names, sums) {
  const rows = Array.from({ length: count }, () => {
    const name = make("button", "keys-name");
    const piece = make("bdi");
    name.append(piece);
    const sum = make("div", "keys-sum");
    const [track, bar, value, weight] = [make("span", "keys-track"), make("span", "keys-bar"), make("span", "keys-value"), make("span", "keys-weight")];
    track.append(bar);
    sum.append(track, value, weight);
    return { name, piece, sum, bar, value, weight };
  });
  names.replaceChildren(...rows.map(({ name }) => name));
  sums.replaceChildren(...rows.map(({ sum }) => sum));
  return rows;
}

function fill(rows, { pieces, special, sums, weights, allowed }) {
  const most = sums.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;
  rows.forEach(({ name, piece, sum, bar, value, weight }, i) => {
    for (const element of [name, sum]) element.classList.toggle("masked", !allowed[i]);
    piece.textContent = name.title = pieces[i];
    piece.classList.toggle("special", Boolean(special[i]));
    bar.classList.toggle("below", sums[i] < 0);
    bar.style.width = `${(50 * Math.abs(sums[i])) / most}%`;
    value.textContent = short(sums[i]);
    weight.textContent = allowed[i] ? percent(weights[i]) : "masked";
  });
}
