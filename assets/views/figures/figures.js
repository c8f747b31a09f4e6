// Pictures of arrays that any Python mounts (pages/controls/figures.py): a matrix, vector strips, tokens, patterns of heads, bars.
// Ours and no library's because they are the drawings of the other pages, in the same colours and under the same cursor.
import { at, extent, mountCells } from "../components/cells.js";
import { mount as mountBars } from "../components/bars.js";
import { mount as mountHeads } from "../components/headgrid.js";
import { make } from "../core/dom.js";
import { number } from "../core/format.js";

const CELL = { least: 3, most: 34, written: 58, low: 20 }; // CSS pixels
const TALL = 330; // of a matrix, from which on its cells are lower, so that what stands below it is seen too
const LETTER = 7.5; // CSS pixels that a digit takes at most
const NAMED_FROM = 13; // CSS pixels of a column whose name is written
/** @type {Record<string, number[]>} rows and columns that a key moves by */
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
/** @type {Record<Payload["kind"], Drawer>} */
const KINDS = { matrix: cells, strip: cells, tokens, heads, bars };

/**
 * @typedef {import("../core/payload.js").NamedArray} NamedArray
 * @typedef {{kind: "matrix" | "strip" | "tokens" | "heads" | "bars", label: string, rows: string[], columns: string[], scale: "unit" | "signed", digits: number | null, lines: number | null,
 *   max?: number, role: string, terms: string[], picked: number[] | null, arrays: Record<string, NamedArray>}} Payload
 * @typedef {(event: "pick", place: number[]) => unknown} Emit
 * @typedef {(element: HTMLElement, emit: Emit) => (data: Payload) => void} Drawer how payloads are drawn in an element
 * @typedef {import("../components/cells.js").Where} Where
 */

/**
 * Emits "pick" with the place that was clicked, [row, column], [index] or [layer, head].
 * @param {HTMLElement} root
 * @param {Payload} data
 * @param {Emit} emit
 */
export function mount(root, data, emit) {
  const element = root.appendChild(make("figure", `figure ${data.kind}`));
  let draw = KINDS[data.kind](element, emit);
  const resize = new ResizeObserver(() => draw(data));
  const view = {
    /** @param {Payload} next */
    update(next) {
      if (next.kind !== data.kind) {
        element.replaceChildren();
        element.className = `figure ${next.kind}`;
        draw = KINDS[next.kind](element, emit);
      }
      data = next;
      element.setAttribute("aria-label", data.label);
      draw(data);
    },
    destroy() {
      resize.disconnect();
      element.remove();
    },
  };
  view.update(data);
  resize.observe(element);
  return view;
}

/**
 * A matrix, or strips: cells between the names of rows and columns; what the pointer or the arrow keys are on is read out below.
 * @type {Drawer}
 */
function cells(element, emit) {
  const names = make("div", "row-names");
  const place = make("div", "place");
  const columns = make("div", "column-names");
  const numbers = make("div", "numbers");
  numbers.setAttribute("aria-hidden", "true"); // the cell is read out when it is reached
  const lines = make("div", "lines"); // over the cells, every so many rows and columns
  lines.setAttribute("aria-hidden", "true");
  const readout = make("p", "readout");
  readout.setAttribute("role", "status");
  place.tabIndex = 0;
  place.setAttribute("role", "application");
  const grid = make("div", "grid");
  grid.append(names, place, columns);
  element.append(grid, readout);
  /** @type {ReturnType<typeof mountCells> | undefined} */
  let canvas;
  /** @type {{ data: Payload, block: Block }} */
  let shown;

  /** @param {Where | null} where */
  const read = (where) => {
    const picked = shown.data.picked;
    const [row, col] = where ? [where.row, where.col] : (picked ?? []);
    canvas?.mark({ picked: picked && { row: picked[0], col: picked[1] }, lit: where?.col ?? null });
    readout.textContent = row === undefined ? "" : sentence(shown.data, row, col);
  };
  /** @type {import("../components/cells.js").Emit} */
  const said = (event, where) => {
    if (event === "hover") return read(where);
    const picked = [where.row, where.col];
    shown.data = { ...shown.data, picked };
    read(null);
    emit("pick", picked);
  };
  place.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const move = ARROWS[event.key];
    if (!move) return;
    event.preventDefault();
    const { block, data } = shown;
    const [row, col] = data.picked ?? [0, 0];
    const next = [clamp(row + move[0], block.rows), clamp(col + move[1], block.cols)];
    said("pick", { row: next[0], col: next[1] });
  });

  return (data) => {
    const across = element.clientWidth;
    if (!across) return;
    const values = data.arrays.values;
    const [rows, cols] = values.shape;
    const block = { data: values.data, offset: 0, stride: cols, rows, cols };
    names.hidden = !data.rows.length;
    names.replaceChildren(...data.rows.map((name) => label(name)));
    grid.style.gridTemplateColumns = "";
    place.hidden = columns.hidden = true; // the names have the width that they need, a fraction rounded up
    const named = names.hidden ? 0 : names.offsetWidth + 1;
    place.hidden = false;
    grid.style.gridTemplateColumns = named ? `${named}px 1fr` : "";
    const room = across - (named ? named + 8 : 0);
    const written = data.digits !== null;
    const covered = Array.from(values.data).some(Number.isNaN);
    const texts = written || covered ? Array.from(values.data, (value) => cellNumber(value, data.digits)) : [];
    const least = written ? 6 + LETTER * Math.max(...texts.map((text) => text.length)) : CELL.least;
    const high = data.kind === "strip" ? 24 : Math.min(CELL.most, Math.max(CELL.low, Math.floor(TALL / rows)));
    const square = data.kind === "matrix" && !written;
    const wide = Math.max(least, Math.min(written ? CELL.written : square ? high : CELL.most, Math.floor(room / cols)));
    const pitch = square ? Math.max(wide, rows <= 40 ? 16 : CELL.least) : high;
    const width = Math.min(wide * cols, Math.max(room, least * cols)); // more than there is room for is scrolled
    element.style.setProperty("--pitch", `${pitch}px`);
    columns.hidden = !data.columns.length || width / cols < NAMED_FROM;
    columns.style.setProperty("--wide", `${width / cols}px`);
    columns.classList.toggle(
      "across",
      data.columns.every((name) => name.length * LETTER < width / cols),
    );
    columns.replaceChildren(...(columns.hidden ? [] : data.columns.map((name) => label(name))));
    const max = data.scale === "signed" ? extent(block) : Math.max(1e-12, data.max ?? 1);
    const drawn = {
      block, role: data.role, scale: data.scale, max, width, pitch, height: data.kind === "strip" ? 18 : pitch, label: data.label,
    }; // prettier-ignore
    shown = { data, block };
    place.setAttribute("aria-label", data.label);
    if (canvas) canvas.update(drawn);
    else canvas = mountCells(place, drawn, said);
    numbers.hidden = !texts.length;
    numbers.style.setProperty("--columns", String(cols));
    numbers.style.width = `${width}px`;
    numbers.replaceChildren(...texts.map((text, at) => make("span", inkOf(values.data[at], max), text)));
    lines.hidden = !data.lines;
    lines.style.width = `${width}px`;
    lines.style.height = `${pitch * rows}px`;
    lines.style.backgroundSize = `${((data.lines ?? cols) * width) / cols}px ${(data.lines ?? rows) * pitch}px`;
    place.append(numbers, lines);
    read(null);
  };
}

/**
 * A number in its cell, if it is written there; "?" where it is covered, which is no number.
 * @param {number} value
 * @param {number | null} digits
 */
function cellNumber(value, digits) {
  if (Number.isNaN(value)) return "?";
  if (digits === null) return "";
  return Number.isFinite(value) ? String(+value.toFixed(digits)) : value < 0 ? "−∞" : "∞";
}

/**
 * The colour that is read on a cell, as a class.
 * @param {number} value
 * @param {number} max
 */
function inkOf(value, max) {
  if (Number.isNaN(value)) return "covered";
  return Math.abs(value) > 0.55 * max ? "strong" : "";
}

/**
 * What stands at a cell: where it is, its value, and what that was made of.
 * @param {Payload} of
 * @param {number} row
 * @param {number} col
 */
function sentence({ rows, columns, terms, arrays }, row, col) {
  /** @param {NamedArray} array */
  const value = ({ data, shape: [rows, cols] }) => at({ data, offset: 0, stride: cols, rows, cols }, row, col);
  const where = [rows[row] ?? `row ${row + 1}`, columns[col] ?? `column ${col + 1}`].join(" → ");
  const made = terms.map((/** @type {string} */ name) => `${name} ${number(value(arrays[`term ${name}`]))}`);
  const found = value(arrays.values);
  return [`${where}: ${Number.isNaN(found) ? "covered" : number(found)}`, ...made].join("  ·  ");
}

/**
 * Tokens in a line, each as strongly marked as its value says.
 * @type {Drawer}
 */
function tokens(element, emit) {
  return ({ rows, picked, arrays, role }) => {
    const values = arrays.values?.data;
    const chips = rows.map((piece, i) => {
      const chip = make("button", "chip", piece);
      chip.type = "button";
      chip.setAttribute("aria-pressed", String(picked?.[0] === i));
      if (values) {
        chip.style.setProperty("--share", `${Math.round(70 * clampShare(values[i]))}%`);
        chip.style.setProperty("--role", `var(--${role})`);
        chip.title = number(values[i]);
      }
      chip.addEventListener("click", () => emit("pick", [i]));
      return chip;
    });
    element.replaceChildren(...chips);
  };
}

/**
 * Patterns of attention as thumbnails, layers down, heads across.
 * @type {Drawer}
 */
function heads(element, emit) {
  /** @type {ReturnType<typeof mountHeads> | undefined} */
  let grid;
  return ({ arrays, picked }) => {
    const { data: values, shape } = arrays.values;
    const [layers, count, rows, cols] = shape;
    /**
     * @param {number} layer
     * @param {number} head
     */
    const pattern = (layer, head) => {
      const block = { data: values, offset: (layer * count + head) * rows * cols, stride: cols, rows, cols };
      return { block, max: Math.max(extent(block), 1e-12) };
    };
    const across = Math.floor((element.clientWidth - 24) / count) - 8;
    const side = Math.max(20, Math.min(72, across));
    const next = { layers, heads: count, side, pattern, layer: picked?.[0] ?? -1, head: picked?.[1] ?? -1 };
    if (grid) return grid.update(next);
    grid = mountHeads(element.appendChild(make("div")), next, (event, { layer, head }) => {
      grid?.mark({ layer, head });
      emit("pick", [layer, head]);
    });
  };
}

/**
 * Probabilities, the first on top.
 * @type {Drawer}
 */
function bars(element, emit) {
  /** @type {ReturnType<typeof mountBars> | undefined} */
  let list;
  return ({ rows, arrays, picked }) => {
    const entries = /** @type {import("../components/bars.js").Row[]} */ (
      rows.map((piece, id) => ({
        piece,
        id,
        probability: arrays.values.data[id],
        inTopP: true,
        inTopK: true,
      }))
    ); // closed, none of its stages is read
    /** @type {import("../components/bars.js").Bars} */
    const next = { rows: entries, open: false, link: "logistic", chosen: picked?.[0] ?? null, idName: "row" };
    if (list) return list.update(next);
    list = mountBars(element.appendChild(make("div")), next, (_, { index }) => emit("pick", [index]));
  };
}

/** @param {string} name */
function label(name) {
  const element = make("span", "name");
  const text = make("bdi", "", name);
  text.title = name;
  element.append(text);
  return element;
}

/**
 * @param {number} i
 * @param {number} size
 */
function clamp(i, size) {
  return Math.max(0, Math.min(size - 1, i));
}

/** @param {number} x */
function clampShare(x) {
  return Number.isFinite(x) ? Math.max(0, Math.min(1, x)) : 0;
}
