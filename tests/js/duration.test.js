import assert from "node:assert/strict";
import test from "node:test";
import { planTime } from "../../assets/views/train/duration.js";

/** A laboratory that looks at a run which has spent 20 s and has 45 s left, beside a plan of 10 s. */
function laboratory({ recipe = "a", seconds = 10, ...status } = {}) {
  return {
    data: { plan: { recipe: "a", seconds } },
    recipe,
    status: { seconds_left: 45, recorded: false, ...status },
    metrics: { at: () => 20 },
  };
}

test("the time of a plan is what the run of it has spent and has left", () => {
  assert.equal(planTime(laboratory()), " · about 65 s");
});

test("it is the estimate before the first steps, beside a run of another recipe and beside the recorded one", () => {
  for (const status of [{ seconds_left: null }, { recipe: "b" }, { recorded: true }])
    assert.equal(planTime(laboratory(status)), " · about 10 s");
  assert.equal(planTime({ ...laboratory(), status: null }), " · about 10 s");
});

test("it is left out where nobody knows it", () => {
  assert.equal(planTime(laboratory({ seconds_left: null, seconds: null })), "");
});
