// What edits put into a long map, within a dashed line as on the map of a short text: of a block of weights, where they put any.
import { outline } from "../components/cells_edited.js";

/**
 * Draws on the painted map where `view.tiles` (attention_long_numbers.js, the coarsest first) hold edited cells; `view` is what
 * attention_long_paint.js is given, `view.cell` {high, wide} the weights that a cell stands for. A finer tile counts before a coarser one.
 */
export function drawEdited(context, root, view) {
  if (!view.tiles.some(({ edited }) => edited)) return;
  const { top, left, across, down, wide, tall, rows, cols, cell } = view;
  const dpr = window.devicePixelRatio || 1;
  const [firstRow, countRows] = around(top, down, cell.high, rows);
  const [firstCol, countCols] = around(left, across, cell.wide, cols);
  const edited = { data: new Uint8Array(countRows * countCols), offset: 0, stride: countCols, rows: countRows, cols: countCols };
  const known = new Uint8Array(edited.data.length);
  for (const tile of [...view.tiles].reverse()) fill(edited, known, tile, { firstRow, firstCol, cell });
  const [breadth, height] = [cell.wide * wide, cell.high * tall];
  const canvas = new OffscreenCanvas(Math.ceil(countCols * breadth * dpr), Math.ceil(countRows * height * dpr));
  outline(canvas.getContext("2d"), root, { block: edited, edited, width: countCols * breadth, pitch: height }, dpr);
  context.drawImage(canvas, Math.round((firstCol * cell.wide - left) * wide * dpr), Math.round((firstRow * cell.high - top) * tall * dpr));
}

/** First cell and number of cells of an axis: those in view and one beyond, so that a border is where the edited cells end and not the view. */
function around(from, count, size, all) {
  const first = Math.max(0, Math.floor(from / size) - 1);
  return [first, Math.min(Math.ceil(all / size), Math.ceil((from + count) / size) + 1) - first];
}

function fill(grid, known, tile, { firstRow, firstCol, cell }) {
  const [startRow, endRow] = cellsOf(tile.rows, cell.high, firstRow, grid.rows);
  const [startCol, endCol] = cellsOf(tile.columns, cell.wide, firstCol, grid.cols);
  for (let r = startRow; r < endRow; r++) {
    for (let c = startCol; c < endCol; c++) {
      const at = r * grid.cols + c;
      if (known[at]) continue;
      known[at] = 1;
      if (tile.edited) grid.data[at] = holds(tile, (r + firstRow) * cell.high, (c + firstCol) * cell.wide, cell) ? 1 : 0;
    }
  }
}

function cellsOf([from, to], size, first, count) {
  return [Math.max(0, Math.floor(from / size) - first), Math.min(count, Math.ceil(to / size) - first)];
}

/** Whether any block of a tile that meets the cell at (row, col), in weights, is edited. */
function holds({ rows, columns, high, wide, across, edited }, row, col, cell) {
  const block = (at, [from, to], size) => Math.floor((Math.max(from, Math.min(to - 1, at)) - from) / size);
  for (let i = block(row, rows, high); i <= block(row + cell.high - 1, rows, high); i++) {
    for (let j = block(col, columns, wide); j <= block(col + cell.wide - 1, columns, wide); j++) if (edited[i * across + j]) return true;
  }
  return false;
}
