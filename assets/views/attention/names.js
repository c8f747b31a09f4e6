// What stands at a position, as a sentence names it.

/** A cell of a picture as "patch (row, column)" or "pixel (row, column)", from 1; any other piece as it is drawn. */
export function called(trace, piece) {
  if (!trace.grid || !/^\d+, \d+$/.test(piece)) return piece;
  return `${trace.ids.length ? "pixel" : "patch"} (${piece})`;
}
