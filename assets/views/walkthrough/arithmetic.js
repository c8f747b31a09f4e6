// The arithmetic panel: how one element came about, as the engine explains it, ending in recomputed = stored. Ours, because it
// draws operands of any length as bars beside the sums that they go into.
import { make, pencil } from "../core/dom.js";
import { counted, difference, equation, number, percent } from "../core/format.js";
import { colour } from "../core/palette.js";
import { fraction } from "../core/place.js";
import { request } from "../core/store.js";
import { whyLink } from "../core/why.js";
import { printed } from "./equations.js";
import { column, questionOf } from "./outcome.js";

/**
 * One cell: `hook` with {l} for the block in view, `row` and `col` in what is drawn; `flat` joins all heads.
 * @typedef {{hook: string, row: number, col: number, flat?: boolean, candidate?: undefined, list?: undefined}} Shown
 * A candidate of the head, by its place in `list`.
 * @typedef {{candidate: number, list?: number, hook?: undefined, row?: undefined, col?: undefined}} Candidate
 * @typedef {Shown | Candidate} Cell
 * @typedef {import("../core/trace.js").Trace} Trace
 * @typedef {{layer: number, head: number, query: number, focus: string}} Place
 * @typedef {import("./equations.js").Piece} Piece
 * @typedef {{ label: string, role: string, place: string, start: number, length: number, named: boolean, chosen: number | null }} Strip
 * @typedef {[name: string, left: number | string, right: number | string, product: number | string]} Term
 * @typedef {{ heads: { text: string, role: string, place: string }[], rows: Term[], others: number, rest: number | string,
 *   bias: number | string | null }} Terms
 * @typedef {{ operation: string, edited: boolean, strips: Strip[], terms: Terms | null, lines: Piece[][], recomputed: number | string,
 *   stored: number | string, names: string[], values: Float32Array }} Explanation
 */

// --- which element, and the question for it -------------------------------------------------------------------------------

/**
 * The pattern that is in focus, as a hook of the block in view.
 * @param {Place} state
 */
export function patternOf(state) {
  return `blocks.{l}.${state.focus}.pattern`;
}

/**
 * @param {Trace} trace
 * @param {Place} state
 * @param {number} row
 * @returns {Shown} the key that a row of the present head attends to most.
 */
export function strongest(trace, state, row) {
  const weights = trace.row(patternOf(state).replace("{l}", String(state.layer)), row, state.head);
  return { hook: patternOf(state), row, col: weights.indexOf(Math.max(...weights)), flat: false };
}

/**
 * Whether there is such a cell in the trace.
 * @param {Trace} trace
 * @param {Place} state
 * @param {Cell | null} cell
 */
export function exists(trace, state, cell) {
  if (!cell) return false;
  if (cell.candidate !== undefined) {
    const count = trace.arrays["next.id"]?.shape[1] ?? 0;
    return Boolean(trace.reads) && cell.candidate < count && (cell.list ?? 0) < trace.lists;
  }
  const name = cell.hook.replace("{l}", String(state.layer));
  if (!trace.has(name)) return false;
  const { rows, cols } = trace.block(name, cell.flat ? null : state.head);
  return cell.row < rows && cell.col < cols;
}

/**
 * Hook, position, component and head of a cell; a component of all heads joined is one of its own head.
 * @param {Trace} trace
 * @param {Place} state
 * @param {Shown} cell
 * @returns {{ hook: string, pos: number, unit: number, head: number | null }}
 */
function elementOf(trace, state, cell) {
  const hook = cell.hook.replace("{l}", String(state.layer));
  const element = { hook, pos: cell.row, unit: cell.col, head: null };
  const [, , width] = trace.array(hook).shape;
  if (width === undefined || trace.hasSlots(hook)) return element;
  if (!cell.flat) return { ...element, head: state.head };
  return { ...element, head: Math.floor(cell.col / width), unit: cell.col % width };
}

/**
 * @param {Trace} trace
 * @param {Place} state
 * @param {Candidate} cell
 */
function idOf(trace, state, { candidate, list = 0 }) {
  return trace.arrays["next.id"].data[
    trace.outcomeRow(state.query, list) * trace.arrays["next.id"].shape[1] + candidate
  ];
}

/**
 * The question above a cell’s arithmetic.
 * @param {Trace} trace
 * @param {Place} state
 * @param {Cell} cell
 */
export function titleOf(trace, state, cell) {
  if (cell.candidate !== undefined) {
    return questionOf(trace, trace.names[idOf(trace, state, cell)], trace.pieces[state.query], cell.list);
  }
  const { hook, pos, unit, head } = elementOf(trace, state, cell);
  const value = trace.element(hook, pos, unit, head);
  const block = cell.hook.startsWith("blocks.")
    ? `${trace.side ? `${trace.side} ` : ""}block ${state.layer + 1}`
    : trace.side;
  const place = [block, head === null ? "" : `head ${head + 1}`].filter(Boolean).join(", ");
  const [reader, keys] = [trace.readers(hook)[pos], trace.keys(hook)];
  const after = place ? ` · ${place}` : "";
  if (/attn\.pattern$/.test(hook)) {
    return `How “${reader}” came to give “${keys[unit]}” ${percent(value)} of its attention${after}`;
  }
  const part = cell.hook.replace(/^blocks\.\{l\}\./, "");
  const index = trace.isSquare(hook) ? `“${reader}”, “${keys[unit]}”` : `“${reader}”, ${column(trace, hook, unit)}`;
  const shown = /attn\.mask$/.test(part) ? asAdded(value) : number(value);
  return `${part}[${index}] = ${shown}${after}`;
}

/**
 * A link to what wrote a candidate's logit, or the score behind a weight; null for any other cell.
 * @param {Trace} trace
 * @param {Place} state
 * @param {Cell} cell
 */
export function whyOf(trace, state, cell) {
  if (cell.candidate !== undefined) {
    const place = { row: trace.outcomeRow(state.query, cell.list), candidate: idOf(trace, state, cell) };
    return whyLink("why_token", "Which parts of the model wrote this logit?", place);
  }
  const { hook, pos, unit, head } = elementOf(trace, state, cell);
  const attention = /(cross_)?attn(?=\.(scores|c2p|p2c|masked_scores|pattern)$)/.exec(hook);
  if (!attention) return null;
  const sides = trace.sides.length > 1 ? { side: trace.side, focus: attention[0] } : {};
  const place = { ...sides, layer: state.layer, head: head ?? state.head, pos, key: unit };
  return whyLink("why_head", "Why does this head look there?", place);
}

/**
 * The engine's explanation of a cell. Where they are few, one answer holds the same cell of every head and block, so that turning
 * to another one asks nothing.
 * @param {Trace} trace
 * @param {Place} state
 * @param {Cell} cell
 */
export async function explanationOf(trace, state, cell) {
  if (cell.candidate !== undefined) {
    const row = trace.outcomeRow(state.query, cell.list);
    const id = idOf(trace, state, cell);
    return entryOf(await request({ trace: trace.trace, ask: "candidate", row, id }), ",");
  }
  const { hook, pos, unit, head } = elementOf(trace, state, cell);
  const count = trace.model.layers * (head === null ? 1 : trace.model.heads);
  const name = trace.named(count <= trace.together ? cell.hook : hook);
  const layer = cell.hook.startsWith("blocks.") ? state.layer : "";
  const answer = await request({ trace: trace.trace, ask: "cell", hook: name, row: pos, col: unit });
  return entryOf(answer, `${layer},${head ?? ""}`);
}

/**
 * @param {import("../core/store.js").Answers["cell" | "candidate"]} answer
 * @param {string} key
 * @returns {Explanation}
 */
function entryOf({ entries, names, arrays }, key) {
  return { ...entries[key], names, values: arrays.values.data };
}

// --- the panel -------------------------------------------------------------------------------------------------------------

/**
 * `update` shows {title, explanation | sentence, dtype}; `wait` keeps what is shown, paled, while another answer is on its way.
 * @param {HTMLElement} root
 */
export function mount(root) {
  root.classList.add("arithmetic");
  root.setAttribute("aria-live", "polite");
  return {
    wait: () => root.setAttribute("aria-busy", "true"),
    /** @param {{ title: string, explanation?: Explanation, sentence?: string, dtype?: string, why: HTMLElement | null }} answer */
    update({ title, explanation, sentence, dtype, why }) {
      root.removeAttribute("aria-busy");
      const parts = [make("h3", "", title)];
      if (sentence) parts.push(make("p", "sentence", sentence));
      if (explanation) parts.push(...explained(root, explanation, dtype));
      if (why) parts.push(why);
      root.replaceChildren(...parts);
    },
    destroy: () => root.replaceChildren(),
  };
}

/**
 * @param {HTMLElement} root
 * @param {Explanation} explanation
 * @param {string | undefined} dtype
 */
function explained(root, { operation, edited, strips, terms, lines, recomputed, stored, names, values }, dtype) {
  const parts = strips.map((strip) => strand(root, strip, values, names));
  if (terms) parts.push(table(terms));
  parts.push(...lines.map(sentenceOf));
  if (edited) parts.push(make("p", "line edited", "An edit changes this value: stored is what the run went on with."));
  const result = verdict(Number(recomputed), Number(stored), dtype, operation === "mask" ? asAdded : number);
  result.dataset.operation = operation;
  return [...parts, result];
}

/**
 * One operand vector as bars up and down from zero.
 * @param {HTMLElement} root
 * @param {Strip} strip
 * @param {Float32Array} all
 * @param {Record<number, string>} names
 */
function strand(root, { label, role, place, start, length, named, chosen }, all, names) {
  const values = all.subarray(start, start + length);
  const row = make("div", "strand");
  const head = make("span", `role-${role}`, label);
  head.title = place;
  const canvas = make("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${label}: ${counted(length, "value")}`);
  row.append(head, canvas);
  canvas.addEventListener("pointermove", (/** @type {MouseEvent} */ event) => {
    const i = Math.floor(fraction(event, canvas).x * length);
    if (i in values) canvas.title = `${named ? `${names[i]} ` : ""}[${i}] ${number(values[i])}`;
  });
  const draw = () =>
    drawBars(canvas, values, colour(root, role), colour(root, "hairline"), chosen, colour(root, "ink"));
  requestAnimationFrame(draw); // its width is known once it is in the page
  return row;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Cells} values
 * @param {string} hue
 * @param {string} line
 * @param {number | null} chosen
 * @param {string} ink
 */
function drawBars(canvas, values, hue, line, chosen, ink) {
  const dpr = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (!width) return;
  canvas.width = width * dpr;
  canvas.height = height * dpr;
  const context = pencil(canvas);
  context.scale(dpr, dpr);
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const scale = (height - 2) / (high - low || 1);
  const zero = 1 + high * scale;
  context.fillStyle = line;
  context.fillRect(0, zero - 0.5, width, 1);
  const pitch = width / values.length;
  const wide = Math.max(pitch - (pitch > 4 ? 2 : 0.4), 0.5);
  values.forEach((value, i) => {
    context.fillStyle = i === chosen ? ink : hue;
    context.globalAlpha = value < 0 ? 0.5 : 1;
    const tall = Math.abs(value) * scale;
    context.fillRect(i * pitch, value > 0 ? zero - tall : zero, wide, Math.max(tall, 0.5));
  });
}

/**
 * The largest products of a weighted sum, one a row, and the sum of the others.
 * @param {Terms} terms
 */
function table({ heads, rows, others, rest, bias }) {
  const most = Math.abs(Number(rows[0]?.[3])) || 1;
  const body = make("table", "terms");
  const headings = make("tr");
  const titles = heads.map((head) => {
    const cell = wrapped("th", piece(head));
    cell.title = head.place;
    return cell;
  });
  headings.append(make("th"), ...titles, make("th", "", "product"), make("th"));
  body.append(headings);
  for (const [name, left, right, product] of rows) {
    const { texts } = equation([left, right].map(Number), (a, b) => a * b, Number(product));
    body.append(rowOf(name, texts[0], texts[1], Number(product), most));
  }
  if (others) body.append(rowOf(`${others} more`, "", "", Number(rest), most));
  if (bias !== null) body.append(rowOf("bias", "", "", Number(bias), most));
  return body;
}

/**
 * @param {string | Node} name
 * @param {string} left
 * @param {string} right
 * @param {number} product
 * @param {number} most
 */
function rowOf(name, left, right, product, most) {
  const row = make("tr");
  const bar = make("span", product < 0 ? "term-bar below" : "term-bar");
  bar.style.width = `${Math.min(100, (100 * Math.abs(product)) / most)}%`;
  const track = make("td", "term-track");
  track.append(bar);
  row.append(wrapped("th", name), make("td", "", left), make("td", "", right), make("td", "", number(product)), track);
  return row;
}

/**
 * @param {string} tag
 * @param {string | Node} content
 */
function wrapped(tag, content) {
  const cell = make(tag);
  const name = make("bdi");
  name.append(content);
  cell.append(name);
  return cell;
}

/** @param {Piece[]} pieces */
function sentenceOf(pieces) {
  const line = make("p", "line");
  const texts = printed(pieces);
  line.append(...pieces.map((part, i) => piece(part, texts[i])));
  return line;
}

/**
 * A text as it is, a name in the colour of its role, a number as it is `printed`.
 * @param {Piece} part
 * @param {string | null} [text]
 */
function piece(part, text = null) {
  if (typeof part === "string") return document.createTextNode(text ?? part);
  return make(part.strong ? "strong" : "span", part.role ? `role-${part.role}` : "", text ?? part.text);
}

/**
 * A cell of a mask, which holds whether a score stays, as what is added to that score.
 * @param {number} allowed
 */
const asAdded = (allowed) => (allowed ? "0 (allowed)" : "−∞ (blocked)");

/**
 * @param {number} recomputed
 * @param {number} stored
 * @param {string | undefined} dtype
 * @param {(value: number) => string} written
 */
function verdict(recomputed, stored, dtype, written) {
  const gap = recomputed === stored ? 0 : recomputed - stored;
  const kept = dtype === "float32" ? "" : ` (the model computes in ${dtype})`;
  const between = written === asAdded ? "" : ` · difference ${difference(gap)}${kept}`;
  const text = `recomputed ${written(recomputed)} · stored ${written(stored)}${between}`;
  const line = make("p", "verdict", text);
  line.dataset.recomputed = recomputed;
  line.dataset.stored = stored;
  return line;
}
