// Mouse, wheel, fingers and keys on the long map.

const STILL = 4; // CSS pixels that a click may wander
const WHEEL = { mouse: 0.0018, pinch: 0.012, line: 18 }; // the exponent of the zoom by a pixel of the wheel, and the pixels of a line

/**
 * Calls `map.point(x, y)` (null: nothing), `pick(x, y)`, `move(dx, dy)`, `zoomBy(factor, x, y)` and `key(event)`, in CSS pixels of `box`.
 * Returns how to stop.
 */
export function gestures(box, map) {
  const down = new Map(); // pointer -> {x, y} where it was last
  let moved = 0;

  const place = (event) => {
    const edge = box.getBoundingClientRect();
    return { x: event.clientX - edge.left, y: event.clientY - edge.top };
  };
  const spread = () => {
    const [a, b] = [...down.values()];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, size: Math.hypot(a.x - b.x, a.y - b.y) || 1 };
  };
  const heard = {
    pointerdown(event) {
      if (event.button) return;
      if (!down.size) moved = 0;
      down.set(event.pointerId, place(event));
      box.setPointerCapture(event.pointerId);
    },
    pointermove(event) {
      const now = place(event);
      const last = down.get(event.pointerId);
      if (!last) return void (event.pointerType !== "touch" && map.point(now.x, now.y));
      const before = down.size === 2 ? spread() : null;
      moved += Math.hypot(now.x - last.x, now.y - last.y);
      if (moved <= STILL) return;
      down.set(event.pointerId, now);
      map.point(null);
      box.classList.add("dragging");
      if (!before) return map.move(now.x - last.x, now.y - last.y);
      const after = spread();
      map.move(after.x - before.x, after.y - before.y);
      map.zoomBy(after.size / before.size, after.x, after.y);
    },
    pointerup(event) {
      const clicked = down.delete(event.pointerId) && moved <= STILL && !down.size;
      box.classList.remove("dragging");
      if (!clicked) return;
      const { x, y } = place(event);
      box.focus({ preventScroll: true });
      map.pick(x, y);
    },
    pointercancel(event) {
      down.delete(event.pointerId);
      box.classList.remove("dragging");
    },
    pointerleave: () => map.point(null),
    wheel(event) {
      const pixels = (x) => x * (event.deltaMode ? WHEEL.line : 1);
      const [x, y] = [pixels(event.deltaX), pixels(event.deltaY)];
      const { zoom } = map.window;
      const pinch = event.ctrlKey;
      if (zoom === 1 && y >= 0 && !pinch) return; // the page scrolls on
      event.preventDefault();
      const at = place(event);
      if (event.shiftKey || Math.abs(x) > Math.abs(y)) return map.move(-(x || y), 0);
      map.zoomBy(Math.exp(-y * (pinch ? WHEEL.pinch : WHEEL.mouse)), at.x, at.y);
      map.point(at.x, at.y);
    },
    keydown: (event) => event.ctrlKey || event.metaKey || event.altKey || map.key(event),
  };
  for (const [name, act] of Object.entries(heard)) box.addEventListener(name, act, { passive: false });
  return () => {
    for (const [name, act] of Object.entries(heard)) box.removeEventListener(name, act);
  };
}
