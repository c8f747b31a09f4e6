import assert from "node:assert/strict";
import test from "node:test";
import { valueRange } from "../../assets/views/train/charts.js";

test("a line along an edge of a panel is not cut to half its width", () => {
  const [thick, pixels] = [2.4, 96];
  const [low, high] = valueRange(1, pixels, thick);
  assert.ok(low < 0 && high > 1);
  const shown = (value) => ((value - low) / (high - low)) * pixels;
  assert.ok(shown(0) >= thick / 2 - 0.05 && shown(1) <= pixels - thick / 2 + 0.05);
});
