// What the parts of the walkthrough draw, each its own; `page` is the Walkthrough of walkthrough.js.
import { at } from "../components/cells.js";
import { listed, thumbnail } from "../core/layout.js";
import { painted } from "./outcome.js";
import { swatch } from "../components/picture.js";
import { patternOf } from "./cell.js";

export function panelData(page, panel) {
  const { trace, state } = page;
  const block = page.block(panel);
  const mask = trace.isSquare(panel.hook) && trace.block(page.name(panel).replace(/attn\..*/, "attn.mask"), state.head);
  const hides = /pattern|masked_scores|mask$/.test(panel.hook);
  const where = panel.hook.startsWith("blocks.") ? `block ${state.layer + 1}${page.headed(panel) ? ` head ${state.head + 1}` : ""}, ` : "";
  return {
    block,
    role: panel.role,
    scale: panel.scale,
    width: panel.width ?? page.sizes.panel.get(panel),
    ...(panel.rows ?? page.rows),
    label: `${where}${panel.title ?? panel.hook}: ${block.rows} rows by ${block.cols} columns`,
    hidden: hides ? (r, c) => !at(mask, r, c) : undefined,
  };
}

export function tokenData(page, withIds) {
  const { trace } = page;
  const two = trace.positions.length > 0;
  const ids = two ? trace.pieces.map((_, i) => trace.positions.map((one) => one[i]).join(" · ")) : trace.ids;
  const drawn = trace.grid && page.data.arrays.picture ? (i) => swatch(page.data.arrays.picture, trace.grid, i) : null;
  return { pieces: trace.pieces, ids: withIds && ids.length ? ids : null, pitch: page.rows.pitch, special: trace.special, drawn, painted: withIds ? painted(trace) : null };
}

export function pictureData(page) {
  const { trace, state, hover } = page;
  const query = hover?.row ?? state.query;
  const weights = trace.row(`blocks.${state.layer}.attn.pattern`, query, state.head);
  const { picture, original } = page.data.arrays;
  return { picture, original, grid: trace.grid, weights, query, width: Math.min(page.narrow ? 260 : 216, page.width - 20) };
}

export function lineData(page) {
  const { trace, state, hover } = page;
  const query = hover?.row ?? state.query;
  return { weights: trace.row(`blocks.${state.layer}.attn.pattern`, query, state.head), query, width: page.sizes.lines, ...page.rows };
}

export function barData(page, which) {
  const { trace, state } = page;
  const count = trace.arrays["next.id"].shape[1];
  const shown = Math.min(count, listed(trace.length, page.narrow, trace.lists));
  const row = trace.outcomeRow(state.query, which);
  const of = (name, i) => trace.arrays[`next.${name}`].data[row * count + i];
  const list = Array.from({ length: shown }, (_, i) => ({
    id: of("id", i),
    piece: trace.names[of("id", i)],
    logit: of("logit", i),
    scaled: of("scaled", i),
    share: of("share", i),
    inTopK: of("in_top_k", i),
    inTopP: of("in_top_p", i),
    probability: of("probability", i),
  }));
  const chosen = (state.cell?.list ?? 0) === which ? state.cell?.candidate : undefined;
  return { rows: list, open: state.open.has("next"), link: trace.link, chosen, idName: trace.reads === "answer" ? "position" : "id" };
}

export function gridData(page) {
  const { trace, state } = page;
  const { layers, heads } = trace.model;
  const room = page.narrow ? page.width - 40 : trace.grid ? 190 : 250;
  const side = thumbnail(trace.length, layers, Math.floor(room / heads) - 6, page.narrow);
  const pattern = (layer, head) => {
    if (trace.holds(layer)) return { block: trace.block(patternOf(state).replace("{l}", layer), head), max: 1 };
    const { data, shape } = trace.arrays[`thumbnails.${trace.prefix}${state.focus}`];
    const [, , rows, cols] = shape;
    return { block: { data, offset: (layer * heads + head) * rows * cols, stride: cols, rows, cols }, max: 255 };
  };
  return { layers, heads, side, pattern, layer: state.layer, head: state.head };
}
