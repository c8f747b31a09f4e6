// Temperature: softmax of numbers, and of the model's own logits, divided by T. One slider holds for both.
import { make } from "../core/dom.js";
import { number } from "../core/format.js";
import { CHART_CSS } from "../components/chart.js";
import { Tempered } from "./tempered.js";

const [STEP, LAST] = [0.05, 5];
const FIRST = [2, 4, 5];
const NUMBERS = { least: 2, most: 8 };
const LARGEST = 100;

export const CSS = `
${CHART_CSS}
.t-bar { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 18px; margin-bottom: 20px; }
.t-bar label { display: flex; align-items: center; gap: 14px; flex: 1 1 320px; max-width: 720px; font-size: 14px; }
.t-bar input[type=range] { flex: 1; height: 26px; }
.t-bar output { font: 600 20px/28px var(--mono); min-width: 62px; }
.attention .t-set { padding: 3px 11px; border-radius: 12px; background: var(--panel); font-size: 13px; }
.attention .t-set:hover { background: var(--hairline); }
.t-panels { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 30px 48px; align-items: start; }
.t-panel h2 { font-size: 15px; font-weight: 600; min-height: 28px; display: flex; align-items: center; flex-wrap: wrap; gap: 4px 10px; }
.t-panel h2 .turn { font-size: 15px; }
.t-about { min-height: 40px; font-size: 13px; line-height: 20px; color: var(--soft); overflow-wrap: anywhere; }
.t-about .tok { color: var(--ink); }
.t-numbers { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; min-height: 40px; }
.attention .t-numbers input { width: 66px; font: 14px var(--mono); color: inherit; background: var(--ground); border: 1px solid var(--hairline); border-radius: 6px; padding: 4px 6px; }
.attention .t-numbers button { width: 28px; height: 28px; border-radius: 6px; background: var(--panel); text-align: center; }
.attention .t-numbers button:hover { background: var(--hairline); }
.attention .t-numbers button:disabled { opacity: .4; cursor: default; }
.t-sum { font: 13px/22px var(--mono); min-height: 44px; overflow-wrap: anywhere; margin: 6px 0 8px !important; }
.t-rows { display: grid; gap: 1px; }
.t-row { display: grid; grid-template-columns: 14px 92px 66px minmax(40px, 1fr) 74px; gap: 0 8px; align-items: center; min-height: 24px; }
.t-row .swatch { width: 12px !important; height: 12px !important; margin: 0 !important; border-radius: 3px; outline: none !important; }
.t-row bdi { overflow: hidden; text-overflow: ellipsis; }
.t-row .number { font: 12px var(--mono); text-align: right; white-space: nowrap; }
.t-row .track { height: 14px; }
.t-row .bar { display: block; height: 100%; border-radius: 2px; min-width: 1px; }
.t-row.heading { color: var(--soft); font-size: 12px; }
.t-row.heading .number { font: 12px var(--sans); }
.t-row.rest { color: var(--soft); }
.t-said { display: flex; flex-wrap: wrap; gap: 2px 30px; margin: 12px 0 !important; font-size: 13px; color: var(--soft); }
.t-said b { font: 600 15px var(--mono); color: var(--ink); margin-left: 6px; }
.t-charts h3 { margin: 12px 0 2px !important; }
.t-charts svg { cursor: ew-resize; touch-action: pan-y; }
.t-charts .curve { fill: none; stroke-width: 2; }
.t-charts .at { stroke: var(--ink); stroke-width: 1.5; }
.t-charts .dot { stroke: var(--ground); stroke-width: 1.5; }
.narrow .t-panels { grid-template-columns: minmax(0, 1fr); }
`;

export function mount(room, page) {
  return new Temperature(room, page);
}

class Temperature {
  constructor(room, page) {
    Object.assign(this, { room, page });
    this.slider = Object.assign(make("input"), { type: "range", min: 0, max: LAST, step: STEP });
    this.slider.setAttribute("aria-label", "temperature");
    this.slider.addEventListener("input", () => page.go({ t: Number(this.slider.value) }));
    this.shown = make("output");
    const label = make("label");
    label.append(make("span", "", "temperature T"), this.slider, this.shown);
    this.bar = make("div", "t-bar");
    this.bar.append(label, ...[0, 0.5, 1, 2, 5].map((t) => this.setter(t)));
    this.numbers = this.panel("softmax of numbers");
    this.logits = this.panel("the model's logits");
    this.field = make("div", "t-numbers");
    this.numbers.above.append(this.field);
    this.about = make("p", "t-about");
    this.logits.above.append(this.about);
    const panels = make("div", "t-panels");
    panels.append(this.numbers.element, this.logits.element);
    room.append(this.bar, panels);
  }

  setter(t) {
    const button = make("button", "t-set", `T = ${t}`);
    button.type = "button";
    button.addEventListener("click", () => this.page.go({ t }));
    return button;
  }

  panel(title) {
    const element = make("section", "t-panel");
    const [head, above, below] = [make("h2", "", title), make("div"), make("div")];
    element.append(head, above, below);
    return { element, head, above, tempered: new Tempered(below, this.page, (t) => this.page.go({ t })), asked: "" };
  }

  destroy() {
    this.room.replaceChildren();
  }

  /** Where the slider stands: what the address says, else the temperature that is written with. */
  get t() {
    const { t } = this.page.state;
    const found = Number.isFinite(t) ? t : this.page.data.settings.temperature;
    return Math.round(Math.max(0, Math.min(LAST, found)) / STEP) * STEP;
  }

  get values() {
    const { numbers } = this.page.state;
    const fits = Array.isArray(numbers) && numbers.length >= NUMBERS.least && numbers.length <= NUMBERS.most && numbers.every((one) => Number.isFinite(one) && Math.abs(one) <= LARGEST);
    return fits ? numbers : FIRST;
  }

  update() {
    const { t } = this;
    this.slider.value = t;
    this.shown.textContent = t.toFixed(2);
    this.fields();
    const { values } = this;
    this.ask(this.numbers, { ask: "tempered", values }, () => values.map((one, i) => [`z${SUBSCRIPT[i]}`, String(one).replace("-", "−")]));
    const place = this.place();
    this.title(place);
    this.ask(this.logits, { ask: "tempered", begun: place.begun }, ({ pieces, arrays }) => pieces.map((piece, i) => [piece, number(arrays.logit.data[i])]));
  }

  /** Shows what is there of the panel's question, and asks it where it is another one. */
  ask(panel, query, named) {
    const { page, t } = this;
    const key = JSON.stringify([page.data.trace, query]);
    if (panel.asked === key) return panel.tempered.show(t, page.width, page.narrow);
    panel.asked = key;
    const late = () => panel.asked !== key || !this.room.firstChild;
    page.request(query).then((answer) => {
      if (!late()) panel.tempered.take(answer, named(answer), this.t, page.width, page.narrow);
    }, (error) => !late() && panel.tempered.fail(error.message));
  }

  // --- numbers of one's own ------------------------------------------------------------------------------------------------

  fields() {
    const { values } = this;
    if (this.field.children.length !== values.length + 2) {
      const inputs = values.map((_, i) => {
        const input = Object.assign(make("input"), { type: "number", step: 0.5, min: -LARGEST, max: LARGEST });
        input.setAttribute("aria-label", `number ${i + 1}`);
        input.addEventListener("input", () => this.typed());
        return input;
      });
      const button = (text, label, work) => {
        const made = make("button", "", text);
        made.type = "button";
        made.title = label;
        made.setAttribute("aria-label", label);
        made.addEventListener("click", work);
        return made;
      };
      const more = button("+", "one number more", () => this.page.go({ numbers: [...this.values, 0] }));
      const less = button("−", "one number less", () => this.page.go({ numbers: this.values.slice(0, -1) }));
      this.field.replaceChildren(...inputs, more, less);
    }
    const [more, less] = [...this.field.querySelectorAll("button")];
    more.disabled = values.length >= NUMBERS.most;
    less.disabled = values.length <= NUMBERS.least;
    const active = this.field.getRootNode().activeElement;
    [...this.field.querySelectorAll("input")].forEach((input, i) => {
      if (input !== active || input.valueAsNumber !== values[i]) input.value = values[i];
    });
  }

  typed() {
    const numbers = [...this.field.querySelectorAll("input")].map((input) => input.valueAsNumber);
    if (numbers.every((one) => Number.isFinite(one) && Math.abs(one) <= LARGEST)) this.page.go({ numbers });
  }

  // --- the model's own -----------------------------------------------------------------------------------------------------

  /** The place that the tab Write looks at: {at, count, begun}; of a text that has ended, its last token. */
  place() {
    const { tree } = this.page;
    const path = tree.path();
    const over = ["end", "context", "picture"].includes(path.at(-1)?.stop?.kind);
    const last = over ? path.length - 1 : path.length;
    const at = Math.min(tree.at ?? last, last);
    return { at, last, begun: path.slice(0, at).map(({ id }) => id), path };
  }

  title({ at, last, path }) {
    const { page } = this;
    const turn = (label, text, to) => {
      const button = make("button", "turn", text);
      button.type = "button";
      button.setAttribute("aria-label", label);
      button.disabled = to < 0 || to > last;
      button.addEventListener("click", () => {
        page.tree.at = to;
        page.refresh();
      });
      return button;
    };
    const focused = this.logits.head.getRootNode().activeElement?.getAttribute?.("aria-label");
    this.logits.head.replaceChildren(turn("a token earlier", "‹", at - 1), make("span", "", "the model's logits"), turn("a token later", "›", at + 1));
    for (const button of this.logits.head.querySelectorAll(".turn")) if (button.getAttribute("aria-label") === focused) button.focus();
    const { prompt, spaced } = page.data;
    if (!page.data.follows) return this.about.replaceChildren();
    const before = [...prompt.pieces, ...path.slice(0, at).map(({ piece }) => piece)].slice(-12);
    const all = page.data.fits ? "what follows " : `what follows the last ${page.data.context.toLocaleString("en")} of the text's ${page.data.tokens.toLocaleString("en")} tokens, as many as the model reads: `;
    this.about.replaceChildren(all, make("bdi", "tok", `… ${before.join(spaced ? " " : "").replaceAll("·", " ").trim()}`));
  }

  looked() {
    const { t } = this;
    const { begun } = this.place();
    return { where: `T = ${t.toFixed(2)}`, sentence: this.logits.tempered.said(), asks: { place: begun, t, values: this.values }, file: "temperature" };
  }
}

const SUBSCRIPT = ["₁", "₂", "₃", "₄", "₅", "₆", "₇", "₈"];
