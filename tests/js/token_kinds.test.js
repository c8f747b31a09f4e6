import assert from "node:assert/strict";
import test from "node:test";
import { joinBytes } from "../../assets/views/core/token_kinds.js";

test("bytes that make a character are that character, whichever tokens they are in", () => {
  assert.deepEqual(joinBytes(["a", "<F0>", "<9F>", "<90><B6>", "b"]), ["a", "🐶", "", "", "b"]);
  assert.deepEqual(joinBytes(["·<0xC3><0xA9>t<0xC3>", "<0xA9>"]), ["·été", ""]);
  assert.deepEqual(joinBytes(["<D8>", "<B3><D9>", "<84>"]), ["س", "ل", ""]);
});

test("bytes that make none stay, and so does everything that only looks like them", () => {
  for (const pieces of [
    ["<F0>", "<9F>"],
    ["<9F>x"],
    ["<F0>", "a"],
    ["<E0><80>", "<80>"],
    ["<C3>", "<C3>"],
    ["<b>", "<", "a < b", "<7F>"],
    [],
  ])
    assert.deepEqual(joinBytes(pieces), pieces);
  assert.deepEqual(joinBytes(["<F0>", "<C3>", "<A9>"]), ["<F0>", "é", ""]);
});
