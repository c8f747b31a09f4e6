import assert from "node:assert/strict";
import test from "node:test";
import { difference, number, operand, percent, subscript } from "../../assets/views/core/format.js";

test("a number has five significant digits, and a minus of its own", () => {
  assert.equal(number(0), "0");
  assert.equal(number(-0), "0");
  assert.equal(number(1.234567), "1.2346");
  assert.equal(number(-12.34567), "−12.346");
  assert.equal(number(123456.7), "123456.7");
  assert.equal(number(0.0012345), "0.0012345");
});

test("a number too small or too large for digits has an exponent", () => {
  assert.equal(number(0.000123456), "1.2346e−4");
  assert.equal(number(-1234567), "−1.2346e6");
});

test("what is no number says so", () => {
  assert.equal(number(NaN), "not a number");
  assert.equal(number(Infinity), "∞");
  assert.equal(number(-Infinity), "−∞");
  assert.equal(percent(NaN), "not a number");
  assert.equal(difference(Infinity), "∞");
});

test("an operand stands in parentheses where its sign would follow another", () => {
  assert.equal(operand(2), "2.0000");
  assert.equal(operand(-2), "(−2.0000)");
});

test("a percentage has three significant digits, and is not rounded up to all", () => {
  const cases = [
    [0, "0"],
    [1, "100.0"],
    [0.12345, "12.3"],
    [0.012345, "1.23"],
    [0.0012345, "0.123"],
    [0.00012345, "0.0123"],
  ];
  for (const [share, text] of cases) assert.equal(percent(share), `${text}\u00a0%`);
  assert.equal(percent(0.99999), "99.99900\u00a0%");
  assert.equal(percent(1e-7), "1.0e−5\u00a0%");
});

test("a difference is 0 or a power of ten", () => {
  assert.equal(difference(0), "0");
  assert.equal(difference(-3.2e-7), "3e−7");
});

test("an index is written below the line", () => {
  assert.equal(subscript(120), "₁₂₀");
});
