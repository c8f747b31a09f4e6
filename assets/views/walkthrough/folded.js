// The stack that is not looked at: its tokens and its residual stream from block to block, each strip a way in.
import { extent, paint } from "../components/cells.js";
import { make, range } from "../core/dom.js";
import { sources } from "./stages.js";
import { mount as mountTokens } from "../components/tokens.js";
import { Trace } from "../core/trace.js";

const PITCH = 19; // CSS pixels of a row
const HEIGHT = 12; // of a cell
const STRIP = [48, 230]; // widths
const KEYS = 96; // width of the keys, and of the values
const TOKENS = 104;
const ROLES = { encoder: "reads the source; at the right the keys and values that the decoder makes of it", decoder: "writes the target" };
const AGAIN = "reads the same text again, one token behind"; // a decoder that judges and writes nothing

/** Builds the folded stack `side`; `parts.source(row)` then marks one of an encoder's tokens. */
export function folded(page, parts, side) {
  const trace = new Trace(page.data, side);
  const element = make("section", `folded folded-${side}`);
  const title = make("button", "folded-title");
  title.append(make("strong", "", side), ` ${side === "decoder" && trace.model.rereads ? AGAIN : ROLES[side]}`);
  title.title = `look inside the ${side}`;
  title.addEventListener("click", () => page.go({ side, layer: 0 }));
  const line = make("div", "folded-line");
  const tokens = make("div", "folded-tokens");
  tokens.append(make("span", "folded-name", trace.called));
  const labels = mountTokens(tokens.appendChild(make("div")), { pieces: trace.pieces, ids: null, pitch: PITCH, special: trace.special }, () => {});
  if (side === "encoder") parts.source = (row) => labels.mark({ key: row });
  const steps = [["embedding", trace.entry(), 0], ...range(0, trace.model.layers).map((l) => [`block ${l + 1}`, trace.after(l), l])];
  if (trace.has("final_norm.out")) steps.push(["norm", "final_norm.out", trace.model.layers - 1]);
  const room = page.width - TOKENS - (side === "encoder" ? 2 * KEYS + 96 : 20) - 22 * steps.length;
  const width = Math.round(Math.max(STRIP[0], Math.min(STRIP[1], room / steps.length)));
  line.append(tokens, ...steps.map(([name, hook, layer]) => strip(page, trace, side, { name, hook, layer, width })));
  if (side === "encoder") line.append(make("span", "folded-arrow", "→"), ...sources(KEYS, { pitch: PITCH, height: HEIGHT }).map((panel) => source(page, parts, panel)));
  element.append(title, line);
  return element;
}

/** The keys or values that the block and head in view make of the memory; its cells open like any others. */
function source(page, parts, panel) {
  const column = make("div", "folded-strip");
  column.append(make("span", `folded-name role-${panel.role}`, panel.title));
  const place = column.appendChild(make("div"));
  parts.panels.push({ place, panel, legend: () => {} });
  return column;
}

function strip(page, trace, side, { name, hook, layer, width }) {
  const button = make("button", "folded-strip");
  button.style.width = `${width}px`;
  button.title = `look inside ${side} block ${layer + 1}`;
  button.append(make("span", "folded-name", name));
  const block = blockOf(trace, hook);
  if (block) {
    const canvas = make("canvas");
    paint(canvas, page.element, { block, role: "residual", scale: "signed", max: extent(block), width, pitch: PITCH, height: HEIGHT });
    button.append(canvas);
  } else button.appendChild(make("span", "mini-unseen")).style.height = `${trace.length * PITCH}px`;
  button.addEventListener("click", () => page.go({ side, layer }));
  return button;
}

/** The residual stream after a step, or null where it was not sent. */
function blockOf(trace, hook) {
  if (trace.has(hook)) return trace.block(hook);
  if (hook !== "embed.sum") return null;
  const rows = range(0, trace.length).map((row) => trace.embedded(row));
  const cols = rows[0].length;
  const data = new Float32Array(rows.length * cols);
  rows.forEach((row, i) => data.set(row, i * cols));
  return { data, offset: 0, stride: cols, rows: rows.length, cols };
}
