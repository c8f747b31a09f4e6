// The cell that is looked at: whether it is there, which element it is, and the question that its arithmetic answers.
import { isLocal } from "./derive.js";
import { number, percent } from "../core/format.js";
import { asked, column } from "./outcome.js";

/** The pattern that is in focus, as a hook of the block that is looked at. */
export function patternOf(state) {
  return `blocks.{l}.${state.focus}.pattern`;
}

/** The key that a row of the present head attends to most. */
export function strongest(trace, state, row) {
  const weights = trace.row(patternOf(state).replace("{l}", state.layer), row, state.head);
  return { hook: patternOf(state), row, col: weights.indexOf(Math.max(...weights)), flat: false };
}

/** Whether there is such a cell in the trace. */
export function valid(trace, state, cell) {
  if (!cell) return false;
  if (cell.candidate !== undefined) return Boolean(trace.reads) && cell.candidate < trace.arrays["next.id"].shape[1] && (cell.list ?? 0) < trace.lists;
  const name = cell.hook.replace("{l}", state.layer);
  if (!trace.has(name)) return false;
  const { rows, cols } = trace.block(name, cell.flat ? null : state.head);
  return cell.row < rows && cell.col < cols;
}

/** Whether a cell's arithmetic needs nothing from the server. */
export function isHere(cell) {
  return cell.candidate === undefined && isLocal(cell.hook.replace("{l}", "0"));
}

/** The element of derive.js that a cell is. */
export function elementOf(trace, state, cell) {
  const hook = cell.hook.replace("{l}", state.layer);
  const headed = trace.array(hook).shape.length === 3 && !cell.flat;
  return unflattened(trace, { hook, pos: cell.row, unit: cell.col, head: headed ? state.head : null });
}

/** An element of all heads joined is an element of one of them. */
function unflattened(trace, element) {
  if (element.head !== null || trace.array(element.hook).shape.length === 2) return element;
  const width = trace.model.d_head;
  return { ...element, head: Math.floor(element.unit / width), unit: element.unit % width };
}

/** The question above a cell’s arithmetic. */
export function title(trace, state, cell) {
  if (cell.candidate !== undefined) {
    const id = trace.arrays["next.id"].data[trace.outcomeRow(state.query, cell.list) * trace.arrays["next.id"].shape[1] + cell.candidate];
    return asked(trace, trace.names[id], trace.pieces[state.query], cell.list);
  }
  const { hook, pos, unit, head } = elementOf(trace, state, cell);
  const value = trace.element(hook, pos, unit, head);
  const block = cell.hook.startsWith("blocks.") ? `${trace.side ? `${trace.side} ` : ""}block ${state.layer + 1}` : trace.side;
  const place = [block, head === null ? "" : `head ${head + 1}`].filter(Boolean).join(", ");
  const [reader, keys] = [trace.readers(hook)[pos], trace.keys(hook)];
  const behind = place ? ` · ${place}` : "";
  if (/attn\.pattern$/.test(hook)) return `How “${reader}” came to give “${keys[unit]}” ${percent(value)} of its attention${behind}`;
  const part = cell.hook.replace(/^blocks\.\{l\}\./, "");
  const index = trace.isSquare(hook) ? `“${reader}”, “${keys[unit]}”` : `“${reader}”, ${column(trace, hook, unit)}`;
  return `${part}[${index}] = ${/attn\.mask$/.test(part) ? (value ? "allowed" : "not allowed") : number(value)}${behind}`;
}
