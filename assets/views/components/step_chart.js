// From an estimate to the exact count: each bar begins where the one above it ended. Pointing at one, or the arrow keys, say why.
import { make } from "../core/dom.js";
import { svg } from "./stack.js";

const ROW = 34; // CSS pixels
const BAR = 20;
const LETTER = { name: 7.3, count: 7.9 };
const SIGN = { more: "+", less: "−", estimate: "", exact: "" };

export class StepChart {
  /** data = {rows: [{name, from, to, count, kind, why}]}. */
  constructor({ data, width }) {
    this.rows = data.rows;
    const room = (text, letter) => Math.max(...this.rows.map((row) => text(row).length)) * letter + 10;
    const [left, right] = [room((row) => row.name, LETTER.name), width - room(written, LETTER.count)];
    const ends = this.rows.map((row) => row.to);
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    this.start = high > low ? Math.max(0, low - (high - low) / 3) : 0;
    const x = (value) => left + ((Math.max(value, this.start) - this.start) / (high - this.start || 1)) * (right - left);
    this.picture = svg("svg", { width, height: this.rows.length * ROW, viewBox: `0 0 ${width} ${this.rows.length * ROW}`, role: "img", tabindex: "0" });
    this.picture.setAttribute("aria-label", "from the estimate to the exact count; up and down go from step to step");
    this.groups = this.rows.map((row, i) => this.draw(row, i, x, width));
    this.said = make("figcaption", "told");
    this.said.setAttribute("aria-live", "polite");
    this.element = make("figure", "chart steps-of");
    this.element.append(this.picture, this.said);
    this.hear();
    this.tell(null);
  }

  draw(row, i, x, width) {
    const group = svg("g", { class: `step ${row.kind}`, transform: `translate(0 ${i * ROW})` });
    const [begin, end] = [Math.min(x(row.from), x(row.to)), Math.max(x(row.from), x(row.to))];
    const top = (ROW - BAR) / 2;
    group.append(svg("rect", { class: "all-of", x: 0, y: 0, width, height: ROW }));
    group.append(svg("text", { class: "step-name", x: 0, y: ROW / 2 + 5 }, row.name));
    group.append(svg("rect", { class: "bar-of", x: begin, y: top, width: Math.max(1.5, end - begin), height: BAR, rx: 2 }));
    if (i < this.rows.length - 1) group.append(svg("line", { class: "joint", x1: x(row.to), x2: x(row.to), y1: top + BAR, y2: ROW + top }));
    group.append(svg("text", { class: "step-count", x: end + 7, y: ROW / 2 + 5 }, written(row)));
    this.picture.append(group);
    return group;
  }

  hear() {
    const { picture } = this;
    this.groups.forEach((group, i) => group.addEventListener("pointerenter", () => this.tell(i)));
    picture.addEventListener("pointerleave", () => this.tell(null));
    picture.addEventListener("blur", () => this.tell(null));
    picture.addEventListener("keydown", (event) => {
      const step = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.tell(this.now === null ? 0 : Math.max(0, Math.min(this.rows.length - 1, this.now + step)));
    });
  }

  tell(i) {
    this.now = i;
    this.groups.forEach((group, j) => group.classList.toggle("pointed", i === j));
    const row = this.rows[i];
    const rest = this.start > 0 ? "The bars do not begin at 0." : "";
    const reached = row && SIGN[row.kind] ? `; reached: ${row.to.toLocaleString("en")}` : "";
    this.said.textContent = row ? `${row.name} ${written(row)}: ${row.why}${reached}` : rest;
  }
}

function written({ count, kind }) {
  return SIGN[kind] + Math.abs(count).toLocaleString("en");
}
