// The arithmetic panel: how one element came about, with its operands, ending in recomputed = stored.
import { make } from "../core/dom.js";
import { difference, number } from "../core/format.js";
import { colour } from "../core/palette.js";

const TERMS = 7; // products listed one by one; the rest is summed

/**
 * data = {title, derivation | sentence, dtype}: `derivation` as derive.js gives it, or one sentence in its place; `dtype` is what
 * the model's numbers are kept as.
 */
export function mount(root, data) {
  root.classList.add("arithmetic");
  root.setAttribute("aria-live", "polite");
  const view = {
    update({ title, derivation, sentence, dtype }) {
      const parts = [make("h3", "", title)];
      if (sentence) parts.push(make("p", "sentence", sentence));
      if (derivation) {
        const { strips, terms, lines, recomputed, stored } = derivation;
        for (const strip of strips) parts.push(strands(root, strip));
        if (terms) parts.push(table(root, terms));
        for (const line of lines) parts.push(written(line));
        parts.push(verdict(recomputed, stored, dtype));
      }
      root.replaceChildren(...parts);
    },
    destroy: () => root.replaceChildren(),
  };
  view.update(data);
  return view;
}

/** One operand vector as bars up and down from zero. */
function strands(root, { label, role, values, names, chosen }) {
  const row = make("div", "strand", "");
  const head = make("span", `role-${role}`, label);
  const canvas = make("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${label}: ${values.length} values`);
  row.append(head, canvas);
  const draw = () => bars(canvas, values, colour(root, role), colour(root, "hairline"), chosen, colour(root, "ink"));
  canvas.addEventListener("pointermove", (event) => {
    const i = Math.floor((event.offsetX / canvas.clientWidth) * values.length);
    if (i in values) canvas.title = `${names ? `${names[i]} ` : ""}[${i}] ${number(values[i])}`;
  });
  requestAnimationFrame(draw); // its width is known once it is in the page
  return row;
}

function bars(canvas, values, hue, line, chosen, ink) {
  const dpr = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (!width) return;
  canvas.width = width * dpr;
  canvas.height = height * dpr;
  const context = canvas.getContext("2d");
  context.scale(dpr, dpr);
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const scale = (height - 2) / (high - low || 1);
  const zero = 1 + high * scale;
  context.fillStyle = line;
  context.fillRect(0, zero - 0.5, width, 1);
  const wide = width / values.length;
  values.forEach((value, i) => {
    context.fillStyle = i === chosen ? ink : hue;
    context.globalAlpha = value < 0 ? 0.5 : 1;
    const tall = Math.abs(value) * scale;
    context.fillRect(i * wide, value > 0 ? zero - tall : zero, Math.max(wide - (wide > 4 ? 2 : 0.4), 0.5), Math.max(tall, 0.5));
  });
}

/** The largest products of a weighted sum, one a row, and the sum of the others. */
function table(root, { a, b, products, names, heads, bias }) {
  const order = [...products.keys()].filter((i) => products[i] !== 0).sort((i, j) => Math.abs(products[j]) - Math.abs(products[i]));
  const most = Math.abs(products[order[0]]) || 1;
  const body = make("table", "terms", "");
  const headings = make("tr");
  headings.append(make("th", "", ""), ...heads.map((head) => wrap("th", head)), make("th", "", "product"), make("th", "", ""));
  body.append(headings);
  for (const i of order.slice(0, TERMS)) {
    body.append(line(names ? names[i] : `[${i}]`, number(a[i]), number(b[i]), products[i], most));
  }
  const rest = order.slice(TERMS);
  if (rest.length) body.append(line(`${rest.length} more`, "", "", rest.reduce((total, i) => total + products[i], 0), most));
  if (bias !== null) body.append(line("bias", "", "", bias, most));
  return body;
}

function line(name, a, b, product, most) {
  const row = make("tr");
  const bar = make("span", product < 0 ? "term-bar below" : "term-bar", "");
  bar.style.width = `${Math.min(100, (100 * Math.abs(product)) / most)}%`;
  const cell = make("td", "term-track", "");
  cell.append(bar);
  row.append(wrap("th", name), make("td", "", a), make("td", "", b), make("td", "", number(product)), cell);
  return row;
}

function written(parts) {
  const line = make("p", "line", "");
  line.append(...parts.map(part));
  return line;
}

function part(piece) {
  if (typeof piece === "string") return document.createTextNode(piece);
  const span = make(piece.strong ? "strong" : "span", piece.role ? `role-${piece.role}` : "", piece.text);
  return span;
}

function verdict(recomputed, stored, dtype) {
  const line = make("p", "verdict", "");
  const gap = recomputed === stored ? 0 : recomputed - stored;
  const kept = dtype === "float32" ? "" : ` (the model computes in ${dtype})`;
  line.append(`recomputed ${number(recomputed)} · stored ${number(stored)} · difference ${difference(gap)}${kept}`);
  line.dataset.recomputed = recomputed;
  line.dataset.stored = stored;
  return line;
}

function wrap(tag, piece) {
  const cell = make(tag);
  const name = make("bdi");
  name.append(part(piece));
  cell.append(name);
  return cell;
}
