// What is looked at in the walkthrough, as the address has it.

/** State from the address, whatever somebody typed there. */
export function restore({ side, focus, layer, head, row, cell, open }) {
  const whole = (value) => (Number.isInteger(value) && value >= 0 ? value : undefined);
  const picked = cellFrom(cell, whole);
  return {
    chosen: [layer, head].some((i) => whole(i) !== undefined) || Boolean(side || focus || picked), // else the example says where to look
    side: typeof side === "string" ? side : undefined,
    focus: focus === "attn" ? focus : undefined,
    layer: whole(layer) ?? 0,
    head: whole(head) ?? 0,
    query: picked?.row ?? whole(row), // a cell brings its row
    cell: picked,
    open: new Set(Array.isArray(open) ? open.filter((id) => typeof id === "string") : []),
  };
}

/** The inverse of what `stored` writes: [hook, row, column, flat], or ["next", index, list]. */
function cellFrom(cell, whole) {
  if (!Array.isArray(cell) || typeof cell[0] !== "string" || whole(cell[1]) === undefined) return null;
  if (cell[0] === "next") return { candidate: cell[1], list: whole(cell[2]) };
  if (whole(cell[2]) === undefined) return null;
  const hook = /^(embed|final_norm|head|pooler)\.|^(next_sentence|logits)$/.test(cell[0]) ? cell[0] : `blocks.{l}.${cell[0]}`;
  return { hook, row: cell[1], col: cell[2], flat: cell[3] === 1 };
}

/** The inverse of `restore`, without what is looked at first in any case. */
export function stored(trace, { layer, head, query, cell, open, side, focus }) {
  const last = query === (trace.row0 ?? trace.length - 1);
  return {
    side: side === trace.sides.at(-1) ? undefined : side,
    focus: trace.model.crosses && focus === "attn" ? focus : undefined,
    layer,
    head,
    row: last ? undefined : query,
    cell: cell.hook ? [cell.hook.replace("blocks.{l}.", ""), cell.row, cell.col, cell.flat ? 1 : 0] : ["next", cell.candidate, ...(cell.list ? [cell.list] : [])],
    open: open.size ? [...open] : undefined,
  };
}
