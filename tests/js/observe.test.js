import assert from "node:assert/strict";
import test from "node:test";
import { memoize, observe, settle } from "../../assets/views/core/observe.js";

test("what reads a field runs again where that field is another, and only there", () => {
  const page = observe({ step: 1, marks: [{ step: 3 }], unread: 0 });
  let runs = 0;
  const draw = memoize(() => (runs++, page.marks.filter(({ step }) => step > page.step).length));
  const count = () => [draw(), runs];
  assert.deepEqual(count(), [1, 1]);
  page.unread = 1;
  settle(page, { step: 1, marks: [{ step: 3 }] });
  assert.deepEqual(count(), [1, 1]);
  settle(page, { step: 4, unread: 2 });
  assert.deepEqual(count(), [0, 2]);
  assert.deepEqual({ ...page }, { step: 4, marks: [{ step: 3 }], unread: 2 });
});

test("what is given runs it again where it is another, in whatever runs within another", () => {
  const page = observe({ width: 3 });
  const drawn = [];
  const inner = memoize((size) => void drawn.push(size.wide));
  const outer = memoize(() => (inner({ wide: 2 * page.width }), inner({ wide: page.width }), drawn.length));
  assert.deepEqual([outer(), outer()], [2, 2]);
  inner({ wide: 3 });
  inner({ wide: 9 });
  assert.deepEqual([drawn, outer()], [[6, 3, 9], 2]);
  page.width = 4;
  assert.deepEqual([outer(), drawn], [5, [6, 3, 9, 8, 4]]);
});
