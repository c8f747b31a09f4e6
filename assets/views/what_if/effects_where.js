// Where a run changed: in the stream and in what the head says at every position, and in every head's pattern.
// Ours because its cells choose the position of the distribution and the head of the maps below, without a message to the server.
import { at, mountCells } from "../components/cells.js";
import { make, range } from "../core/dom.js";
import { axis, legend } from "../components/legend.js";
import { counted, number, percent } from "../core/format.js";
import { headLane, nameOf } from "./effects_distribution.js";

/**
 * @typedef {import("./effects.js").Page} Page
 * @typedef {import("./effects_distribution.js").Data} Data
 * @typedef {import("./effects_distribution.js").Lane} Lane
 * @typedef {import("../core/payload.js").NamedArray} NamedArray
 * @typedef {import("../components/cells.js").Picture} Picture
 * @typedef {import("../components/cells.js").Where} Where
 * @typedef {(event: "hover" | "pick", where: Where | null) => void} Hear
 */

const NAMED = 13; // CSS pixels of a column that bears its token
const ROW = { pitch: 20, height: 18 };
const LABELS = 46;
const WIDEST = 34; // of a column
/** @type {Record<string, number[]>} rows and columns that a key moves by */
const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const NARROWEST = 1.4; // of a column: more positions than have room share one

/**
 * The distance of the stream by block and position, under it the change of what is said at each position.
 * @param {Page} page
 */
export function positions(page) {
  const element = make("section", "positions");
  element.append(make("h4", "", "Where it changed: the residual stream, block by block"));
  const room = page.width < 700 ? page.width : Math.min(460, page.width * 0.36);
  const said = told("");
  for (const lane of page.data.lanes) element.append(stream(page, lane, room - LABELS, said));
  said.textContent = atRest(page);
  element.append(said);
  return element;
}

/** @param {string} text */
function told(text) {
  const element = make("p", "told", text);
  element.setAttribute("aria-live", "polite");
  return element;
}

/** @param {{ data: Data }} page */
function atRest({ data }) {
  return data.head && (data.head.reads === "next" || data.head.reads === "here")
    ? "click a column: what the model says there"
    : "\u00a0";
}

/**
 * @param {Page} page
 * @param {Lane} lane
 * @param {number} room
 * @param {HTMLElement} said
 */
function stream(page, lane, room, said) {
  const { data } = page;
  const prefix = lane.side ? `${lane.side}.` : "";
  const { block, places } = binned(data.arrays[`stream.${prefix}relative`], room);
  const { data: values, rows, cols } = block;
  const box = make("div", "heat");
  if (lane.side) box.append(make("p", "side", lane.side));
  const width = Math.max(cols, Math.min(room, cols * WIDEST));
  const speaks =
    lane === headLane(data.lanes) && page.shifts && (data.head?.reads === "next" || data.head?.reads === "here");
  const names = range(0, rows).map((r) => (r ? `block ${r}` : "input"));
  const most = largest(values);
  /** @param {Where} where */
  const describe = ({ row, col }) =>
    `${names[row]}, ${nameOf(lane, places(row, col))}: ${distance(at(block, row, col))}`;
  /**
   * @param {"hover" | "pick"} event
   * @param {Where | null} where
   */
  const hear = (event, where) => {
    if (event === "hover") said.textContent = where ? describe(where) : atRest(page);
    else if (speaks && where) page.choose(places(where.row, where.col));
  };
  const shape = { width, ...ROW };
  box.append(
    labelled(
      page,
      names.map((name) => name.replace("block ", "")),
      {
        block,
        role: "residual",
        scale: "unit",
        max: most,
        label: `relative distance of the residual stream${lane.side ? ` of the ${lane.side}` : ""}, ${counted(rows, "place")} by ${counted(cols, "position")}`,
        ...shape,
      },
      hear,
    ),
  );
  if (speaks && cols === lane.pieces.length && page.shifts?.complete(cols))
    box.append(spoken(page, cols, shape, said, lane));
  if (width / cols >= NAMED) {
    const below = axis(lane.pieces, width);
    below.element.style.cssText = `width: ${width}px; margin-left: ${LABELS}px`;
    if (speaks) below.labels[page.shown]?.classList.add("chosen");
    box.append(below.element);
  }
  box.append(
    scale(
      page,
      "residual",
      width,
      values.some((x) => x > 0) ? `relative change 0 to ${number(most)}` : "nothing moved",
    ),
  );
  return box;
}

/**
 * {rows x columns} of numbers as columns that have room: of several positions the one that moved most, which `places` names.
 * @param {NamedArray} array
 * @param {number} room
 * @returns {{ block: Block & { data: Float32Array }, places: (row: number, col: number) => number }}
 */
function binned({ data, shape: [rows, cols] }, room) {
  const each = Math.max(1, Math.ceil((cols * NARROWEST) / room));
  if (each === 1)
    return {
      block: { data, offset: 0, stride: cols, rows, cols },
      places: (_, col) => col,
    };
  const count = Math.ceil(cols / each);
  /**
   * @param {number} row
   * @param {number} col
   */
  const best = (row, col) =>
    range(col * each, Math.min(cols, (col + 1) * each)).reduce(
      (most, i) => (data[row * cols + i] > data[row * cols + most] ? i : most),
      col * each,
    );
  const values = Float32Array.from(
    { length: rows * count },
    (_, i) => data[Math.floor(i / count) * cols + best(Math.floor(i / count), i % count)],
  );
  return { block: { data: values, offset: 0, stride: count, rows, cols: count }, places: best };
}

/**
 * The change of the distribution at every position, in bits, where it is here.
 * @param {Page} page
 * @param {number} cols
 * @param {{ width: number, pitch: number, height: number }} shape
 * @param {HTMLElement} said
 * @param {Lane} lane
 */
function spoken(page, cols, shape, said, lane) {
  const kl = Float32Array.from({ length: cols }, (_, i) => page.shifts?.rows.get(i)?.kl ?? 0);
  const block = { data: kl, offset: 0, stride: cols, rows: 1, cols };
  /**
   * @param {"hover" | "pick"} event
   * @param {Where | null} where
   */
  const hear = (event, where) => {
    if (event === "pick" && where) page.choose(where.col);
    else
      said.textContent = where
        ? `what is said at ${nameOf(lane, where.col)}: KL ${number(kl[where.col])} bits`
        : atRest(page);
  };
  const most = largest(kl);
  const label = `change of what is said at ${counted(cols, "position")}, up to ${number(most)} bits`;
  const row = labelled(
    page,
    ["says"],
    { block, role: "probability", scale: "unit", max: most, label, ...shape },
    hear,
    { row: 0, col: page.shown },
  );
  row.classList.add("says");
  return row;
}

/**
 * Cells with a name before each row. They are painted once they stand in the page, where the colours are known.
 * @param {{ row: number, col: number }} [picked]
 * @param {Page} page
 * @param {string[]} names
 * @param {Picture} data
 * @param {Hear} hear
 */
function labelled(page, names, data, hear, picked) {
  const row = make("div", "rows");
  const labels = make("div", "row-names");
  labels.append(...names.map((name) => make("span", "", name)));
  const cells = make("div");
  row.append(labels, cells);
  page.later(() => {
    const view = mountCells(cells, data, hear);
    view.mark({ picked });
    byKeyboard(cells.querySelector("canvas"), data, view, hear, { row: 0, col: page.row ?? 0, ...picked });
  });
  return row;
}

/**
 * Arrows move over the cells and say what each holds, Enter picks one.
 * @param {HTMLCanvasElement} canvas
 * @param {Picture} data
 * @param {ReturnType<typeof mountCells>} view
 * @param {Hear} hear
 * @param {Where} start
 */
function byKeyboard(canvas, { block, label }, view, hear, start) {
  let cursor = { row: start.row, col: Math.min(start.col, block.cols - 1) };
  canvas.tabIndex = 0;
  canvas.dataset.name = label.split(",")[0];
  canvas.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move && event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    if (!move) return hear("pick", cursor);
    /**
     * @param {number} i
     * @param {number} size
     */
    const within = (i, size) => Math.max(0, Math.min(size - 1, i));
    cursor = { row: within(cursor.row + move[0], block.rows), col: within(cursor.col + move[1], block.cols) };
    view.mark({ picked: cursor });
    hear("hover", cursor);
  });
}

/**
 * Where a ramp ends: the greatest finite value, as nothing may look changed less than it is.
 * @param {Float32Array} values
 */
function largest(values) {
  return values.reduce((most, x) => (x < Infinity && x > most ? x : most), 0) || 1;
}

/** @param {number} x */
function distance(x) {
  return x === 0 ? "as before" : `moved by ${number(x)} times its norm`;
}

/**
 * How much of the weight of every head's rows went elsewhere: one grid an attention.
 * @param {Page} page
 */
export function heads(page) {
  const element = make("section", "heads");
  const grids = Object.keys(page.data.arrays).filter((name) => name.startsWith("pattern."));
  element.append(make("h4", "", "Every head: weight that moved"));
  const said = told(page.missing ?? "\u00a0");
  for (const name of grids) element.append(grid(page, name, grids.length > 1, said));
  element.append(said);
  return element;
}

/**
 * @param {Page} page
 * @param {string} name
 * @param {boolean} several
 * @param {HTMLElement} said
 */
function grid(page, name, several, said) {
  const {
    data: values,
    shape: [layers, count],
  } = page.data.arrays[name];
  const [, side = "", focus] = name.match(/^pattern\.(?:(\w+)\.)?(attn|cross_attn)$/) ?? [];
  const block = { data: values, offset: 0, stride: count, rows: layers, cols: count };
  const box = make("div", "heat");
  const stackName = focus === "cross_attn" ? "cross-attention" : side;
  if (several) box.append(make("p", "side", stackName));
  const most = largest(values);
  const width = Math.min(count * 34, 272);
  /**
   * @param {"hover" | "pick"} event
   * @param {Where | null} where
   */
  const hear = (event, where) => {
    if (event === "pick" && where) return look(side, focus, where);
    const moved = where && at(block, where.row, where.col);
    said.textContent = where
      ? `${several ? `${stackName} ` : ""}block ${where.row + 1} head ${where.col + 1}: ${moved ? `${percent(moved)} of a row moved` : "as before"}`
      : "\u00a0";
  };
  const label = `share of the weight that moved, ${counted(layers, "block")} by ${counted(count, "head")}${several ? `, ${stackName}` : ""}`;
  box.append(
    labelled(
      page,
      range(1, layers + 1).map(String),
      { block, role: "edited", scale: "unit", max: most, label, width, pitch: 26, height: 24 },
      hear,
    ),
  );
  const numbers = make("div", "head-names");
  numbers.append(
    ...range(1, count + 1).map((head) => make("span", "", width / count >= 16 || head % 4 === 0 ? head : "")),
  );
  numbers.style.cssText = `width: ${width}px; margin-left: ${LABELS}px`;
  box.append(
    numbers,
    scale(
      page,
      "edited",
      width,
      values.some((/** @type {number} */ x) => x > 0) ? `0 to ${percent(most)}` : "no pattern changed",
    ),
  );
  return box;
}

/**
 * Shows a head in the picture below: it follows the address.
 * @param {string} side
 * @param {string} focus
 * @param {Where} where
 */
function look(side, focus, { row, col }) {
  const entries = new URLSearchParams(location.hash.slice(1));
  const change = { layer: row, head: col, ...(side ? { side } : {}), ...(focus === "cross_attn" ? { focus } : {}) };
  if (focus === "attn") entries.delete("focus");
  for (const [name, value] of Object.entries(change)) entries.set(name, String(value));
  history.replaceState(history.state, "", `${location.pathname}${location.search}#${entries}`);
}

/**
 * @param {Page} page
 * @param {string} role
 * @param {number} width
 * @param {string} text
 */
function scale(page, role, width, text) {
  const { element } = legend(page.root, { role, scale: "unit", width: Math.max(width, 40) });
  element.querySelector(".legend-text").textContent = text;
  element.style.marginLeft = `${LABELS}px`;
  return element;
}
