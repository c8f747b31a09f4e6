// Charts of what a model costs, beside each other: how an estimate becomes the exact count, and what grows with the length.
import { CHART_CSS } from "../components/chart.js";
import { make } from "../core/dom.js";
import { CSS } from "./sizes_style.js";
import { StackedChart } from "../components/stacked_chart.js";
import { StepChart } from "../components/step_chart.js";

const GAP = 32;
const LEAST = 340; // CSS pixels of a chart that has others beside it
const KINDS = { curves: StackedChart, steps: StepChart };

/** data = {charts}, of views/sizes.py. */
export function mount(root, data) {
  const page = new Sizes(root);
  page.update(data);
  return page;
}

class Sizes {
  constructor(root) {
    this.element = make("div", "sizes");
    root.append(make("style", "", CHART_CSS + CSS), this.element);
    this.resize = new ResizeObserver(() => this.element.clientWidth !== this.width && this.build());
    this.resize.observe(this.element);
  }

  destroy() {
    this.resize.disconnect();
    this.element.remove();
  }

  update(data) {
    this.data = data;
    this.build();
  }

  build() {
    this.width = this.element.clientWidth;
    if (!this.width) return;
    const { charts } = this.data;
    const beside = Math.max(1, Math.min(charts.length, Math.floor((this.width + GAP) / (LEAST + GAP))));
    const width = Math.floor((this.width - (beside - 1) * GAP) / beside);
    this.element.style.setProperty("--gap", `${GAP}px`);
    this.element.replaceChildren(
      ...charts.map((data) => {
        const part = make("section");
        part.style.width = `${width}px`;
        if (data.title) part.append(make("h3", "", data.title));
        part.append(new KINDS[data.kind]({ data, width }).element);
        return part;
      }),
    );
    this.element.dataset.ready = "true";
  }

  /** For what is taken away (take_shown.js). */
  looked() {
    return { where: "", what: "", sentence: this.data.sentence, asks: {} };
  }
}
