// What each word of the example costs: a text word by word on a ground that is the fuller the more it costs.
import { make, range } from "../core/dom.js";
import { number, percent } from "../core/format.js";
import { brightness, inks } from "./probe_inks.js";
import { axis, cost, count, isSpecial, named, right } from "./seen.js";
import { css, ramp, STEPS } from "../core/palette.js";
import * as prose from "../components/prose.js";

const LEAST = 1; // nats: where the ramp of a model that knows everything ends

/** {element, update(frame, kind, position, attention, most)}: `most` is the loss at which the ground is fullest. */
export function words(lab) {
  const element = make("section", "probe-words");
  const title = make("h3");
  const place = make("div");
  const sums = make("p", "probe-cost");
  const colours = scale(lab);
  element.append(title, place, colours.element, sums);
  let [text, said] = [null, []];
  const heard = (event, where) => {
    if (event === "pick") return said[where.row].row !== null && lab.go({ position: said[where.row].row });
    text.mark(where?.row ?? null);
    if (!where) return lab.tip(null);
    const { piece, answer } = said[where.row];
    lab.tip(piece, answer ? `${number(answer.loss)} nats, p = ${percent(answer.p)}` : "");
  };
  const update = (frame, kind, position, attention, most) => {
    element.hidden = kind !== "text" && kind !== "here";
    if (element.hidden) return;
    said = cells(lab, frame, kind, attention);
    const ends = Math.max(most, LEAST);
    const painter = paints(lab, ends);
    const data = {
      name: "loss at each token; arrow keys choose one", pieces: said.map(({ piece }) => piece), special: said.map(({ piece }) => isSpecial(piece)),
      size: said.length <= 40 ? 17 : 14, chosen: said.findIndex(({ row }) => row === position),
      paint: (i) => (said[i].answer ? painter(said[i].answer.loss) : null), quiet: () => false,
    };
    if (text) text.update(data);
    else text = prose.mount(place, data, heard);
    const of = kind === "text" ? "token, given those before it" : lab.task.objective === "masked" ? "hidden token" : "token";
    title.textContent = `Loss at each ${of}`;
    sums.textContent = total(frame);
    colours.update(ends);
  };
  return { element, update };
}

/** The loss of the example in words. */
export function total(frame) {
  const { sum, mean, asked } = cost(frame);
  if (!asked) return "Nothing is asked here whose right answer is known.";
  return asked === 1 ? `Loss ${number(sum)} nats` : `Loss: sum ${number(sum)} nats over ${asked} positions, mean ${number(mean)} nats`;
}

/** [{piece, row, answer}]: a word and the row of the answer that is about it. */
function cells(lab, frame, kind, attention) {
  const own = lab.attentions.find(({ key }) => key === "attn") ?? attention;
  const { pieces } = axis(lab, frame, own, "rows");
  if (kind === "here") return pieces.map((piece, row) => ({ piece, row, answer: right(frame, row) }));
  const later = range(0, count(frame)).map((row) => {
    const answer = right(frame, row);
    return { piece: pieces[row + 1] ?? (answer ? named(lab, answer.id, kind) : "…"), row, answer };
  });
  return [{ piece: pieces[0], row: null, answer: null }, ...later];
}

/** loss -> {ground, ink}, from the ground up to `ends` nats. */
export function paints(lab, ends) {
  const table = ramp(lab.element, "probability", "unit");
  const choose = inks(lab.element);
  return (loss) => {
    const ground = css(table[evenly(loss / ends)]);
    return { ground, ink: choose(brightness(ground)).name };
  };
}

/** The step of a ramp at which its colour is the share `t` of the way: losses are not looked at through a square root, as weights are. */
export function evenly(t) {
  return Math.round(Math.min(1, Math.max(0, t)) ** 2 * (STEPS - 1));
}

/** The ramp with its two ends in nats. */
export function scale(lab) {
  const element = make("div", "legend probe-scale");
  const [bar, text] = [make("span", "legend-bar"), make("span", "legend-text")];
  bar.style.width = "72px";
  element.append(bar, text);
  let [edition, shown] = [null, ""];
  const update = (ends) => {
    const said = `0 to ${ends.toFixed(1)} nats`;
    if (said !== shown) text.textContent = shown = said;
    if (edition === lab.edition) return;
    edition = lab.edition;
    const table = ramp(lab.element, "probability", "unit");
    bar.style.background = `linear-gradient(to right, ${range(0, 9).map((i) => css(table[evenly(i / 8)])).join(", ")})`;
  };
  return { element, update };
}
