import assert from "node:assert/strict";
import test from "node:test";
import { peakAt, span, spans } from "../../assets/views/attention/numbers.js";

test("a tile spans a power of two times its side, so that as many cells as there is room for are in view", () => {
  const tile = { tile: 64, across: 256 };
  assert.deepEqual(
    [256, 257, 1024, 1025].map((visible) => span(visible, tile)),
    [64, 128, 256, 512],
  );
});

test("the windows along an axis are as wide as each other, and the last one reaches back", () => {
  assert.deepEqual(spans(0, 100, 64, 100), [
    [0, 64],
    [36, 100],
  ]);
  assert.deepEqual(spans(70, 120, 64, 1000), [[64, 128]]);
  assert.deepEqual(spans(-5, 10, 64, 40), [[0, 40]]);
});

test("a place says the largest weight of its block, and where that stands, by the finest tile", () => {
  const coarse = {
    rows: [0, 8],
    columns: [0, 8],
    high: 4,
    wide: 4,
    across: 2,
    weight: [0.1, 0.2, 0.3, 0.9],
    at: [0, 0, 0, 6],
  };
  const fine = { rows: [0, 2], columns: [0, 2], high: 1, wide: 1, across: 2, weight: [0.5, 0.6, 0.7, 0.8] };
  assert.deepEqual(peakAt([coarse, fine], 7, 5), { row: 5, col: 6, weight: 0.9, high: 4, wide: 4 });
  assert.deepEqual(peakAt([coarse, fine], 1, 0), { row: 1, col: 0, weight: 0.7, high: 1, wide: 1 });
  assert.equal(peakAt([fine], 5, 5), null);
});
