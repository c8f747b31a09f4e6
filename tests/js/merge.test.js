import assert from "node:assert/strict";
import test from "node:test";
import { Room } from "../../assets/views/attention/names.js";
import { alone, between, merge, mismatch, subtract } from "../../assets/views/compare/merge.js";

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
  assert.deepEqual(entries.map(mismatch), [false, "different tokens in the two runs", false]);
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
  const room = new Room({ width: 200, height: 100 }, [[150, 20]], 4);
  assert.deepEqual(room.find([50, 50], 40), [58, 42, 98, 58]);
  assert.deepEqual(room.find([50, 50], 38), [4, 42, 42, 58]); // the right is taken
  assert.deepEqual(room.find([140, 20], 40), [92, 12, 132, 28]); // on the right is a point
  assert.deepEqual(room.find([140, 80], 40, { leftward: true }), [92, 72, 132, 88]);
  assert.equal(room.find([50, 50], 300), undefined);
});

test("a name that may cover points takes their place, and one that must stand covers names too", () => {
  const around = [
    [50, 30],
    [70, 50],
    [30, 50],
    [50, 70],
    [65, 35],
    [65, 65],
  ];
  const room = new Room({ width: 200, height: 100 }, around, 9);
  assert.equal(room.find([50, 50], 40), undefined);
  assert.deepEqual(room.find([50, 50], 40, { may: true }), [63, 42, 103, 58]);
  const small = new Room({ width: 60, height: 24 }, [], 4);
  const first = small.find([4, 12], 40);
  assert.equal(small.find([4, 12], 40, { may: true }), undefined);
  assert.deepEqual(small.find([4, 12], 40, { may: true, must: true }), first);
});
