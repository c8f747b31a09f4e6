import assert from "node:assert/strict";
import test from "node:test";
import { range } from "../../assets/views/core/dom.js";
import { canonical } from "../../assets/views/core/store.js";
import { kindsOf } from "../../assets/views/core/token_kinds.js";

test("a query is the same text for the same entries in any order", () => {
  assert.equal(canonical({ b: [1, { d: null, c: "x" }], a: true }), '{"a":true,"b":[1,{"c":"x","d":null}]}');
  assert.equal(canonical({ b: 1, a: 2 }), canonical({ a: 2, b: 1 }));
  assert.notEqual(canonical([1, 2]), canonical([2, 1]));
});

test("a range leaves its end out, and is empty where it would run backwards", () => {
  assert.deepEqual(range(2, 5), [2, 3, 4]);
  assert.deepEqual(range(5, 2), []);
});

test("a token's kind is what its piece is made of", () => {
  const pieces = ["<s>", "·Anna", "na", "·12", ".", "<0A>"];
  assert.deepEqual(kindsOf(pieces, [0]), ["special", "word", "inside", "number", "mark", "byte"]);
});

test("in pieces that mark what goes on, all others begin a word", () => {
  assert.deepEqual(kindsOf(["play", "##ing", "##7"], []), ["word", "inside", "number"]);
});
