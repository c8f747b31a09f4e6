import assert from "node:assert/strict";
import test from "node:test";
import { apart, Room } from "../../assets/views/attention/names.js";

test("a name between points on all four sides stands at a corner, clear of them", () => {
  const [radius, center] = [6, [100, 100]];
  const around = [
    [120, 100],
    [80, 100],
    [100, 80],
    [100, 120],
  ];
  const room = new Room({ width: 200, height: 200 }, [center, ...around], radius);
  const box = room.find(center, 30);
  assert.ok(box, "there is room at a corner");
  assert.ok([center, ...around].every(([x, y]) => apart([x - radius, y - radius, x + radius, y + radius], box)));
  assert.equal(room.find(center, 300), undefined, "no name leaves the frame");
});
