import assert from "node:assert/strict";
import test from "node:test";
import { alone, between, merge, subtract } from "../../assets/views/compare/merge.js";
import { Placement } from "../../assets/views/components/placement.js";

const block = (values, cols) => ({
  data: Float32Array.from(values),
  offset: 0,
  stride: cols,
  rows: values.length / cols,
  cols,
});
const GROUPS = [
  [[0], [0], true],
  [[1], [1, 2], false],
];

test("tokens that belong together are one entry, and those of one run stand between them", () => {
  const { entries, mine, theirs } = merge(GROUPS, ["a", "bc", "d"], ["a", "b", "c"], ["A", "B"]);
  assert.deepEqual(
    entries.map(({ label }) => label),
    ["a", "bc", "d (A)"],
  );
  assert.deepEqual(mine, [0, 1, 2]);
  assert.deepEqual(theirs, [0, 1, 1]);
  assert.deepEqual(entries.map(alone), [false, false, true]);
});

test("attention between groups is summed over keys and averaged over queries", () => {
  const weights = block([1, 0, 0, 0.5, 0.25, 0.25, 0.25, 0.5, 0.25], 3);
  assert.equal(between(weights, 1, [1, 2], [1, 2]), (0.5 + 0.75) / 2);
  assert.equal(between(weights, 2, [0], [0]), 0.5);
  assert.ok(Number.isNaN(between(weights, 1, [], [0])));
});

test("a difference is the second run less the first, and no number where a token has no partner", () => {
  const { entries } = merge(GROUPS, ["a", "bc", "d"], ["a", "b", "c"], ["A", "B"]);
  const first = { block: block([1, 0, 0, 0.5, 0.5, 0, 0.25, 0.25, 0.5], 3), max: 1 };
  const second = { block: block([1, 0, 0, 0.5, 0.5, 0, 0.25, 0.25, 0.5], 3), max: 1 };
  const { data } = subtract(first, second, entries, entries);
  assert.deepEqual([...data], [0, 0, NaN, -0.125, 0.125, NaN, NaN, NaN, NaN]);
});

test("a name stands right of its point, else where it covers neither a point nor a name", () => {
  const placement = new Placement({ width: 200, height: 100 });
  assert.deepEqual(placement.find(40, 10, 50, 50, 5), { x: 55, y: 50 });
  assert.deepEqual(placement.find(40, 10, 50, 50, 5), { x: 5, y: 50 }); // the right is taken
  placement.block(150, 20, 4);
  assert.deepEqual(placement.find(40, 10, 140, 20, 5), { x: 95, y: 20 });
  assert.equal(placement.find(300, 10, 50, 50, 5), null);
});
