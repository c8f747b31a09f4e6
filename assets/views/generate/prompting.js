// Prompting: examples in the prompt, and an instruction behind the text.
import { CHART_CSS } from "../components/chart.js";
import { choices } from "../components/choices.js";
import { make } from "../core/dom.js";
import { mount as mountInstructed } from "./instructed.js";
import { mount as mountShots } from "./shots.js";
import { CSS as STYLE } from "./prompting_style.js";

export const CSS = `${CHART_CSS}${STYLE}`;
const PARTS = [
  ["shots", "Examples in the prompt", "zero, one or a few rows of a table, and a query to go on with"],
  ["instructed", "An instruction behind the text", "one text, and a token that says what is wanted of it"],
];
const MOUNT = { shots: mountShots, instructed: mountInstructed };

export function mount(room, page) {
  return new Prompting(room, page);
}

class Prompting {
  constructor(room, page) {
    Object.assign(this, { room, page });
    this.which = choices("what of prompting", PARTS, (value) => page.go({ prompting: value === "shots" ? null : value }));
    this.sentence = make("p", "sentence");
    this.sentence.setAttribute("role", "status");
    this.place = make("div", "p-part");
    const bar = make("div", "p-bar");
    bar.append(this.which.element);
    room.append(bar, this.sentence, this.place);
  }

  destroy() {
    this.part?.destroy();
    this.room.replaceChildren();
  }

  get name() {
    const { prompting } = this.page.state;
    return Object.hasOwn(MOUNT, prompting) ? prompting : "shots";
  }

  async update() {
    const { page, name } = this;
    this.which.show(name);
    const { trace } = page.data;
    try {
      const offered = await page.request({ ask: "prompting" });
      if (trace !== page.data.trace || name !== this.name) return;
      this.offered = offered;
      this.sentence.textContent = "";
    } catch (error) {
      this.sentence.textContent = error.message;
      return;
    }
    if (this.opened !== name) {
      this.part?.destroy();
      this.place.replaceChildren();
      this.opened = name;
      this.part = MOUNT[name](this.place, this);
    }
    this.part.update();
  }

  looked() {
    return this.part?.looked() ?? {};
  }
}
