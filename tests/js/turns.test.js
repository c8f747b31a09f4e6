import assert from "node:assert/strict";
import test from "node:test";
import { attendedShares } from "../../assets/views/attention/details.js";
import { turnsOf } from "../../assets/views/core/turns.js";
import { thoughtsOf } from "../../assets/views/generate/text.js";

test("a turn is a run of tokens of one role", () => {
  assert.deepEqual(turnsOf(["", "user", "user", "assistant"]), [
    { role: "", first: 0, end: 1 },
    { role: "user", first: 1, end: 3 },
    { role: "assistant", first: 3, end: 4 },
  ]);
  assert.deepEqual(turnsOf([]), []);
});

test("shares from role to role are means of the rows, summed over the keys", () => {
  const block = {
    data: Float32Array.of(1, 0, 0, 0.5, 0.5, 0, 0.25, 0.25, 0.5),
    offset: 0,
    stride: 3,
    rows: 3,
    cols: 3,
  };
  const roles = ["user", "assistant", "assistant"];
  assert.deepEqual(attendedShares(block, roles, "user", ["user", "assistant"]), [1, 0]);
  assert.deepEqual(attendedShares(block, roles, "assistant", ["user", "assistant"]), [0.375, 0.625]);
});

test("what is thought goes from mark to mark, also where a mark is several tokens, or to the end", () => {
  const marks = /** @type {[string, string][]} */ ([["<think>", "</think>"]]);
  const pieces = ["Hi", "<th", "ink>", "·so", "</think>", "·7", "<think>", "·um"];
  assert.deepEqual(thoughtsOf(pieces, marks), [
    { first: 1, end: 5, closed: true },
    { first: 6, end: 8, closed: false },
  ]);
  assert.deepEqual(thoughtsOf(["no", "thing"], marks), []);
});
