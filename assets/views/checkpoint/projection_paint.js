// The points of a table in the plane: dots, or a line through positions, names where there is room, and what is chosen.
import { KINDS } from "../core/token_kinds.js";
import { colour, css, ramp, STEPS } from "../core/palette.js";
import { caption, room } from "../components/plane.js";

const LABELLED = 6000; // points that are tried for a label

/** All points, names where they have room, and the chosen one with its nearest; `shown` is the Projected of projection.js. */
export function paint(shown) {
  const context = shown.plane.clear();
  const { width, height } = shown.plane.size;
  const n = shown.ids.length;
  const dot = side(n);
  if (shown.pieces) {
    for (const [kind, , role] of KINDS) {
      if (shown.hidden.has(kind)) continue;
      context.fillStyle = colour(shown.root, role);
      context.globalAlpha = n > 20000 ? 0.55 : 0.75;
      const { scale, x: left, y: top } = shown.plane.view;
      for (const i of shown.groups.get(kind)) {
        const [x, y] = [left + scale * shown.points[2 * i], top - scale * shown.points[2 * i + 1]];
        if (x > -4 && y > -4 && x < width + 4 && y < height + 4) context.fillRect(x - dot / 2, y - dot / 2, dot, dot);
      }
    }
  } else thread(shown, context, dot);
  context.globalAlpha = 1;
  labels(shown, context);
  marks(shown, context);
  shown.canvas.setAttribute("aria-label", `${n} points, ${shown.table.title}; chosen: ${shown.name(shown.chosen)}`);
}

/** Without names: paler to fuller by id, and through positions, which follow one another, a line. */
function thread(shown, context, dot) {
  const table = ramp(shown.root, "residual", "unit");
  const n = shown.ids.length;
  const hue = (i) => css(table[Math.round((0.25 + (0.75 * i) / Math.max(1, n - 1)) * (STEPS - 1))]);
  for (let i = 0; i < n; i++) {
    const [x, y] = shown.at(i);
    context.strokeStyle = context.fillStyle = hue(i);
    if (i && shown.table.ordered) {
      line(context, shown.at(i - 1), [x, y], 0.45);
    }
    context.fillRect(x - dot / 2, y - dot / 2, dot, dot);
  }
}

/** Names wherever one has room, the first ids first. */
function labels(shown, context) {
  const fits = room(shown.plane.size);
  const dot = side(shown.ids.length);
  context.font = `12px ${getComputedStyle(shown.root).getPropertyValue("--sans")}`;
  context.fillStyle = colour(shown.root, "ink");
  context.globalAlpha = 0.8;
  const every = Math.max(1, Math.ceil(shown.ids.length / LABELLED));
  for (let i = 0; i < shown.ids.length; i += every) {
    if (shown.hides(i)) continue;
    const [x, y] = shown.at(i);
    const text = shown.pieces ? shown.name(shown.ids[i]) : String(shown.ids[i]);
    if (!fits(text, x, y)) continue;
    context.fillText(text, x + dot + 2, y + 4);
  }
  context.globalAlpha = 1;
}

/** The chosen one, with lines to its nearest. */
function marks(shown, context) {
  const i = shown.place?.get(shown.chosen);
  if (i === undefined) return;
  const [x, y] = shown.at(i);
  const ink = colour(shown.root, "ink");
  const ground = colour(shown.root, "ground");
  for (const id of shown.near?.ids ?? []) {
    const j = shown.place.get(id);
    if (j === undefined) continue;
    const [x1, y1] = shown.at(j);
    context.strokeStyle = ink;
    line(context, [x, y], [x1, y1], 0.5);
    ring(context, x1, y1, 4, ink, ground, 1.5);
    caption(context, shown.name(id), x1, y1, ink, ground, "");
  }
  ring(context, x, y, 6, ink, ground, 2.5);
  caption(context, shown.name(shown.chosen), x, y, ink, ground, "600 ");
}

function side(n) {
  return n > 20000 ? 2 : n > 3000 ? 3 : 4;
}

function line(context, from, to, alpha) {
  context.globalAlpha = alpha;
  context.beginPath();
  context.moveTo(...from);
  context.lineTo(...to);
  context.stroke();
  context.globalAlpha = 1;
}

function ring(context, x, y, radius, ink, ground, width) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = ground;
  context.fill();
  context.strokeStyle = ink;
  context.lineWidth = width;
  context.stroke();
  context.lineWidth = 1;
}
