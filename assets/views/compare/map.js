// One map of the page about comparisons: a head of a run, or the difference of two, with its axes and the one cursor.
import { axes } from "../attention/axes.js";
import { inCells } from "../attention/values.js";
import { make, pencil } from "../core/dom.js";
import { observe, settle } from "../core/observe.js";
import * as matrix from "../components/matrix.js";
import { colour } from "../core/palette.js";

/**
 * @typedef {{ row: number | null, col: number | null }} Cell of a map, or a name on one of its axes
 * @typedef {(...said: [event: "hover", where: Cell | null] | [event: "pick" | "step", where: Cell]) => unknown} Heard
 * @typedef {{ label: string, special: boolean | string }} Name
 * @typedef {{ wide: number, width: number, pitch: number, height: number }} Size
 * @typedef {{ rows: Name[], cols: Name[], block: Block, role: string, scale: Scale, max: number, hidden?: import("../components/cells.js").Hidden,
 *   edited?: Block, blank?: { rows: boolean[], cols: boolean[] } | null, width: number, above?: number, label: string,
 *   written?: { as: string, block?: Block, max?: number } | null }} Mapped
 */

const VALUED = 25; // CSS pixels from which on a cell holds its number
const ROOMY = 420; // CSS pixels of width that leave room for long pieces
const TALLEST = 116; // CSS pixels of the names on top, which may be those of two tokens
/** @type {Record<string, number[]>} rows and columns that a key moves by */
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const STRIPE = 5; // CSS pixels between the stripes of what has no partner

/**
 * A map in `root`: {room(data), above(data, wide), update(data, wide, pitch), mark(row, col, picked), reveal(row, col)}. `heard` gets "hover" and "pick" with {row, col} (either may be
 * null for an axis). data = {rows, cols: [{label, special}], block, role, scale, max, hidden, edited, blank: {rows, cols}, width, above, label, written}:
 * `written` {as, block?, max?} says what stands in cells that have room for it.
 * @param {HTMLElement} root
 * @param {Heard} heard
 * @param {string[][] | null} [corner] what the axes are: [text, class], of the keys and of the queries
 */
export function map(root, heard, corner = null) {
  const scroll = make("div", "map-scroll");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "group");
  root.append(scroll);
  const page = observe({
    trace: {
      pieces: /** @type {string[]} */ ([]),
      special: /** @type {(boolean | string)[]} */ ([]),
      roles: /** @type {string[]} */ ([]),
    }, // two texts have no turns in common
    keys: /** @type {string[]} */ ([]),
    specialKeys: /** @type {(boolean | string)[]} */ ([]),
    narrow: true,
    above: /** @type {number | undefined} */ (undefined),
    tallest: TALLEST,
    /** @param {{ query?: number | null, key?: number | null }} change */
    go: ({ query, key }) => heard("pick", { row: query ?? null, col: key ?? null }),
    /** @param {Cell | null} where */
    point: (where) => heard("hover", where),
  });
  const around = axes(page, scroll);
  if (corner)
    scroll.querySelector(".map-corner").replaceChildren(...corner.map(([text, role]) => make("span", role, text)));
  /** @type {ReturnType<typeof matrix.mount> | undefined} */
  let cells;
  /** @type {{ wide: number, width: number, pitch: number, height: number } | undefined} */
  let size;
  scroll.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const step = MOVES[event.key];
    if (!step) return;
    event.preventDefault();
    heard("step", { row: step[0], col: step[1] });
  });

  /** @param {Mapped} data */
  const see = ({ rows, cols, width }) => {
    const keys = { keys: cols.map(({ label }) => label), specialKeys: cols.map(({ special }) => special) };
    const trace = { pieces: rows.map(({ label }) => label), special: rows.map(({ special }) => special), roles: [] };
    settle(page, { ...keys, trace, narrow: width < ROOMY });
  };
  return {
    scroll,
    /**
     * How wide a cell may be in this room.
     * @param {Mapped} data
     */
    room(data) {
      see(data);
      return (data.width - around.around(page) - 2) / data.cols.length;
    },
    /**
     * The height of the keys above cells of this width.
     * @param {Mapped} data
     * @param {number} wide
     */
    above(data, wide) {
      see(data);
      return around.above(page, wide);
    },
    /**
     * @param {Mapped} data
     * @param {number} wide
     */
    update(data, wide, pitch = wide) {
      see(data);
      settle(page, { above: data.above });
      size = { wide, width: wide * data.cols.length, pitch, height: wide < 7 ? pitch : pitch - (pitch >= 12 ? 2 : 1) };
      const { block, role, scale, max, hidden, edited, label, written } = data;
      const drawn = { block, role, scale, max, hidden, edited, label, ...size };
      if (cells) cells.update(drawn);
      else cells = matrix.mount(around.place, drawn, heard);
      const canvas = around.place.querySelector("canvas");
      scroll.setAttribute("aria-label", `${label}; arrow keys move the chosen cell`);
      if (written && wide >= VALUED) inCells(canvas, root, { ...drawn, ...written }, written.as);
      if (data.blank) stripes(canvas, root, size, data.blank);
      around.show(size);
    },
    /**
     * @param {number | null} row
     * @param {number | null} col
     * @param {boolean} picked
     */
    mark(row, col, picked) {
      if (!cells || !size) return;
      cells.mark({ picked: row !== null && col !== null && picked ? { row, col } : null, lit: col, row });
      around.mark(row, col);
    },
    /**
     * @param {number | null} row
     * @param {number | null} col
     */
    reveal(row, col) {
      if (size && row !== null && col !== null) around.reveal(row, col, size);
    },
  };
}

/**
 * Rows and columns that one of the two runs lacks.
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLElement} root
 * @param {Size} size
 * @param {NonNullable<Mapped["blank"]>} blank
 */
function stripes(canvas, root, { wide, pitch, width }, { rows, cols }) {
  const context = pencil(canvas);
  const dpr = window.devicePixelRatio || 1;
  const tall = canvas.height / dpr;
  context.setTransform(dpr, 0, 0, dpr, 0, 0);
  context.save();
  context.beginPath();
  rows.forEach((blank, r) => blank && context.rect(0, r * pitch, width, pitch));
  cols.forEach((blank, c) => blank && context.rect(c * wide, 0, wide, tall));
  context.clip();
  context.fillStyle = colour(root, "panel");
  context.fillRect(0, 0, width, tall);
  context.strokeStyle = colour(root, "soft");
  context.globalAlpha = 0.45;
  context.lineWidth = 1;
  context.beginPath();
  for (let x = -tall; x < width; x += STRIPE) {
    context.moveTo(x, tall);
    context.lineTo(x + tall, 0);
  }
  context.stroke();
  context.restore();
}
