import assert from "node:assert/strict";
import test from "node:test";
import { extent, largest } from "../../assets/views/core/cells_extent.js";
import { curve, STEPS, step } from "../../assets/views/core/palette.js";
import { unpack, widen } from "../../assets/views/core/payload.js";
import { axisOfSteps, scaleOf } from "../../assets/views/train/charts.js";

const block = (values, cols) => ({
  data: Float32Array.from(values),
  offset: 0,
  stride: cols,
  rows: values.length / cols,
  cols,
});

test("a value's step of a ramp is found from its scale and where the ramp ends", () => {
  assert.deepEqual(
    [0, 1, 0.5, 2, -1].map((x) => step(x, "unit", 1)),
    [0, STEPS - 1, 128, STEPS - 1, 0],
  );
  assert.deepEqual(
    [-3, 0, 3, 9].map((x) => step(x, "signed", 3)),
    [0, 128, STEPS - 1, STEPS - 1],
  );
  assert.equal(step(NaN, "unit", 1), 0);
  assert.equal(curve(0.25), 0.5);
});

test("a ramp ends where all but one of a hundred elements stay below", () => {
  const values = Array.from({ length: 200 }, (_, i) => (i % 2 ? -i : i));
  assert.equal(extent(block(values, 20)), 198);
  assert.equal(extent(block([0, 0, NaN, Infinity], 2)), 1);
});

test("the extent of many elements, which are counted, is that of the sorted ones", () => {
  const values = Array.from({ length: 10_000 }, (_, i) => Math.fround(Math.sin(i) * 10 ** ((i % 9) - 4)));
  const sizes = values.map(Math.abs).sort((a, b) => a - b);
  assert.equal(extent(block(values, 100)), sizes[9900]);
});

test("the largest element is 1 where none is above 0", () => {
  assert.equal(largest(block([-5, 2, 1, 0], 2)), 2);
  assert.equal(largest(block([-5, 0], 2)), 1);
});

test("a half is the number that its bits say", () => {
  const halves = [
    [0x0000, 0],
    [0x3c00, 1],
    [0xc000, -2],
    [0x7bff, 65504],
    [0x0001, 2 ** -24],
    [0x7c00, Infinity],
    [0xfc00, -Infinity],
  ];
  for (const [bits, value] of halves) assert.equal(widen(bits), value);
  assert.ok(Number.isNaN(widen(0x7e00)));
  assert.ok(Object.is(widen(0x8000), -0));
});

test("a payload is its header and its arrays, and one that is cut off says so", () => {
  const header = JSON.stringify({ name: "run", arrays: { x: { dtype: "f32", shape: [2], dims: ["pos"], offset: 0 } } });
  const start = Math.ceil((4 + header.length) / 8) * 8;
  const bytes = new Uint8Array(start + 8);
  new DataView(bytes.buffer).setUint32(0, header.length, true);
  bytes.set(new TextEncoder().encode(header), 4);
  new Float32Array(bytes.buffer, start, 2).set([1.5, -2]);
  const { name, arrays } = unpack(bytes);
  assert.equal(name, "run");
  assert.deepEqual([...arrays.x.data], [1.5, -2]);
  assert.deepEqual(arrays.x.shape, [2]);
  assert.throws(() => unpack(bytes.subarray(0, start + 4)), /cut off/);
  assert.throws(() => unpack(bytes.subarray(0, 8)), /cut off/);
});

test("a scale of steps and its inverse agree, linear and logarithmic", () => {
  for (const log of [false, true]) {
    const { to, from } = scaleOf(log ? [0, 3] : [0, 1000], [40, 440], log);
    for (const at of [1, 10, 400, 1000]) assert.ok(Math.abs(from(to(at)) - at) < 1e-9 * at);
    assert.equal(Math.round(to(1000)), 440);
  }
  assert.deepEqual(axisOfSteps(1000, false).range, [0, 1000]);
  assert.deepEqual(axisOfSteps(1000, true).range, [0, 3]);
});
