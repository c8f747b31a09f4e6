// The probe at one step: what the model that has learned so far makes of one example, its heads, its answers and what they cost.
import { make } from "../core/dom.js";
import { choice } from "./probe_choice.js";
import { form } from "./probe_form.js";
import { heads } from "./probe_heads.js";
import { headMap, headOf, widest } from "./probe_map.js";
import { next } from "./probe_next.js";
import { picture } from "./probe_picture.js";
import { scoresOf } from "./probe_scores.js";
import { words } from "./probe_words.js";
import { writing } from "./probe_written.js";
import { holds, isPicture, kindOf, most, positionOf, rowOf } from "./seen.js";

export { CSS } from "./probe_style.js";

const GAP = 20; // CSS pixels between all heads and the one
const [FRAME, THUMBNAIL] = [26, 53]; // CSS pixels around all heads and of each where they stand beside the one
const TALLER = 160; // CSS pixels by which the example may reach below the curves before its answers stand under them
const FIGURE = 100; // CSS pixels that a picture needs beside the heads

/** The example and its heads stand in `root`, what the model answers below it in `answer`. */
export function mount(root, lab, answer) {
  return new Probe(root, lab, answer);
}

class Probe {
  constructor(root, lab, answer) {
    Object.assign(this, { root, lab, answer, row: null, shown: "" });
    const pick = (row) => this.pick(row);
    const title = make("div", "probe-title");
    this.step = make("span");
    title.append(make("h2", "", "One example"), this.step);
    this.parts = { form: form(lab), choice: choice(lab), heads: heads(lab), map: headMap(lab, pick), picture: picture(lab, pick), words: words(lab), written: writing(lab), next: next(lab) };
    const { form: fields, choice: chosen, heads: all, map, picture: pixels, words: read, written, next: likely } = this.parts;
    this.seen = make("div", "probe-seen");
    const pictures = make("div", "probe-pictures");
    pictures.append(all.element, pixels.element, map.element);
    this.scores = make("div", "probe-scores");
    this.said = make("div", "answer-said");
    this.said.append(read.element, written.element);
    answer.append(this.said, likely.element);
    this.seen.append(chosen.element, pictures, this.scores);
    this.nothing = make("p", "probe-cost");
    root.append(title, fields.element, this.nothing, this.seen);
  }

  destroy() {
    this.root.replaceChildren();
    this.answer.replaceChildren();
  }

  mark() {}

  update() {
    const { lab } = this;
    this.parts.form.update();
    const attention = lab.attentions.find(({ key }) => key === lab.state.attention) ?? lab.attentions.at(-1);
    const there = Boolean(lab.frame && attention && holds(lab.frame, attention.key));
    this.seen.hidden = this.answer.hidden = !there;
    this.nothing.hidden = there;
    if (!there) this.missing();
    else this.draw(lab.frame, attention);
  }

  missing() {
    const { probe, frame } = this.lab;
    this.step.textContent = "";
    this.nothing.textContent = probe?.error ? "" : frame ? "This model has no attention to look at." : "Nothing has been seen of it yet: the first look comes when training begins.";
  }

  draw(frame, attention) {
    const { lab, parts } = this;
    const { layer, head, position } = lab.state;
    if (this.width === undefined || this.measured !== lab.edition) {
      this.width = this.root.clientWidth;
      this.measured = lab.edition;
    }
    const now = [lab.edition, lab.editions.frames, lab.editions.probe, this.width, frame.step, attention.key, layer, head, position, this.row].join();
    if (now === this.shown) return;
    this.shown = now;
    const kind = kindOf(lab, frame);
    const at = positionOf(lab, frame, kind);
    const shown = headOf(lab, frame, attention);
    const row = rowOf(lab, frame, attention, at) ?? (this.row !== null && this.row < shown.rows.length ? this.row : isPicture(lab) ? 0 : null);
    const losses = most(lab);
    this.step.textContent = `at step ${frame.step.toLocaleString("en")}`;
    parts.choice.update(attention);
    const [grid, room] = this.rooms(attention, shown);
    parts.heads.update(frame, attention, grid);
    parts.map.update(shown, room, row);
    this.name(frame, attention);
    parts.picture.update(frame, kind, shown, row ?? 0, losses, this.beside(attention));
    parts.words.update(frame, kind, at, attention, losses);
    this.said.hidden = kind === "class" || kind === "pixels";
    this.stand([lab.edition, this.width, attention.key, shown.rows.length, kind].join());
    parts.written.update(frame, kind, at, losses, this.said.clientWidth);
    parts.next.update(frame, kind, at, attention);
  }

  /** The answers stand in a line below both columns, or under the curves where the example is much taller than these. Measured only
   * where something of another size is shown, so that nothing jumps while a model learns. */
  stand(sizes) {
    if (sizes === this.stood) return;
    this.stood = sizes;
    const taller = this.root.offsetHeight > this.root.previousElementSibling.offsetHeight + TALLER;
    this.answer.classList.toggle("under", taller && !this.lab.narrow);
  }

  /** The widths of all heads and of the map: beside each other where the map loses nothing by it. */
  rooms({ heads: count }, shown) {
    const { width } = this;
    const wanted = FRAME + count * THUMBNAIL;
    const left = width - wanted - GAP;
    return left >= widest(shown) ? [wanted, left] : [width, width];
  }

  /** The room for a picture: that beside all heads, or a line of its own. */
  beside({ heads: count }) {
    const left = this.width - FRAME - count * (THUMBNAIL + 14) - GAP;
    return left >= 2 * FIGURE + GAP ? left : this.width;
  }

  name(frame, attention) {
    const { layer, head } = this.lab.state;
    const found = scoresOf(frame, attention, layer, head);
    if (this.scores.children.length !== found.length) this.scores.replaceChildren(...found.map(() => make("span")));
    found.forEach(({ name, text, title }, i) => {
      const one = this.scores.children[i];
      if (one.dataset.name !== name) {
        Object.assign(one, { title });
        one.dataset.name = name;
        one.replaceChildren(`${name} `, make("b"));
      }
      one.lastChild.textContent = text;
    });
  }

  /** A row of the map is chosen: a position of the answer, or where it has none, just a row. */
  pick(row) {
    const { lab } = this;
    const attention = lab.attentions.find(({ key }) => key === lab.state.attention);
    if (rowOf(lab, lab.frame, attention, row) !== null) return lab.go({ position: row });
    this.row = row;
    this.update();
  }
}
