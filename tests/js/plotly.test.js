import assert from "node:assert/strict";
import test from "node:test";
import { Chart } from "../../assets/views/core/plotly.js";

const SIZE = { width: 640, height: 400 };

function chart(
  heard = {},
  address = "data:text/javascript,globalThis.Plotly = { react: (e) => { e._fullLayout = {}; } }",
) {
  globalThis.document ??= /** @type {any} */ ({ getElementById: () => null });
  globalThis.location ??= /** @type {any} */ ({ href: "http://loupe.test/" });
  const element = /** @type {any} */ ({ style: {}, isConnected: true, on: () => {}, getRootNode: () => null });
  globalThis.ShadowRoot ??= /** @type {any} */ (class {});
  return { element, chart: new Chart(element, address, heard) };
}

test("a chart has its place while the library is on its way, so that nothing below it jumps", async () => {
  let failure;
  const failed = new Promise((done) => (failure = done));
  const missing = chart({ failed: failure }, "data:text/javascript,throw new Error('gone')");
  missing.chart.draw([], SIZE, {});
  assert.deepEqual(missing.element.style, { minWidth: "640px", minHeight: "400px" });
  assert.match(await failed, /could not be loaded/);
  assert.deepEqual(missing.element.style, { minWidth: "", minHeight: "" }, "no empty place beside the sentence");

  const drawn = await new Promise((done) => {
    const { element, chart: begun } = chart({ drawn: () => done(element) });
    begun.draw([], SIZE, {});
    assert.equal(element.style.minHeight, "400px");
  });
  assert.deepEqual(drawn.style, { minWidth: "", minHeight: "" }, "the chart itself has the size from then on");
});
