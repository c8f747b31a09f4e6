import assert from "node:assert/strict";
import test from "node:test";
import { observe, settle } from "../../assets/views/core/observe.js";
import { computed } from "../../assets/views/vendor/signals-core.js";

test("what reads a field runs again where that field is another, and only there", () => {
  const page = observe({ step: 1, marks: [{ step: 3 }], unread: 0 });
  let runs = 0;
  const drawn = computed(() => (runs++, page.marks.filter(({ step }) => step > page.step).length));
  const count = () => [drawn.value, runs];
  assert.deepEqual(count(), [1, 1]);
  page.unread = 1;
  settle(page, { step: 1, marks: [{ step: 3 }] });
  assert.deepEqual(count(), [1, 1]);
  settle(page, { step: 4, unread: 2 });
  assert.deepEqual(count(), [0, 2]);
  assert.deepEqual({ ...page }, { step: 4, marks: [{ step: 3 }], unread: 2 });
});

test("what is settled while something runs is not what that follows", () => {
  const place = observe({ at: null });
  let runs = 0;
  const drawn = computed(() => (settle(place, { at: { width: 3 } }), ++runs));
  assert.equal(drawn.value, 1);
  place.at = null;
  assert.equal(drawn.value, 1);
});
