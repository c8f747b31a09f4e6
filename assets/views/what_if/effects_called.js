// What the things that a model reads are called: tokens by their text, the parts of a picture by where they are.

/** Row `i` of a lane of the payload: “word”, or "the patch at row 2, column 3". */
export function called({ pieces, grid }, i) {
  if (!grid || i < grid.offset) return `“${pieces[i]}”`;
  const cell = i - grid.offset;
  return `the ${grid.predicts || !grid.first ? "pixel" : "patch"} at row ${Math.floor(cell / grid.side) + 1}, column ${(cell % grid.side) + 1}`;
}

/** "block 2 head 1", in which attention of which stack where there are several. */
export function headNamed({ side, focus, layer, head }) {
  const which = focus === "cross_attn" ? "cross-attention, " : side ? `${side}, ` : "";
  return `${which}block ${layer + 1} head ${head + 1}`;
}
