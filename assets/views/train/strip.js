// The lowest of the curves: one of what else is measured.
import { Panel } from "./panel.js";
import { written } from "./rate.js";
import { whole } from "./words.js";

const OWN = {
  lr: { title: "learning rate", kinds: [["lr", "thin", ""]], written },
  grad_norm: { title: "gradient norm", kinds: [["grad_norm", "thin", ""]], written: (x) => x.toPrecision(3) },
  tokens_per_second: { title: "tokens/s", kinds: [["tokens_per_second", "thin", ""]], written: whole },
};
const KNOWN = ["step", "loss", "accuracy", "held_out_loss", "held_out_accuracy", "tokens", "seconds", ...Object.keys(OWN)];
const TITLES = { exact: "whole answers right", held_out_exact: "whole answers right" };

/** What can be chosen, [name, {title, kinds, written}]: always the same three, and what this run's objective counts. */
export function measured(metrics) {
  const names = Object.keys(metrics.columns).filter((name) => !KNOWN.includes(name)).map((name) => name.replace(/^held_out_/, ""));
  const more = [...new Set(names)].map((name) => {
    const kinds = [[name, "thin", "train"], [`held_out_${name}`, "bold", "held out"]];
    return [name, { title: TITLES[name] ?? name.replaceAll("_", " "), kinds, written: (x) => x.toPrecision(4) }];
  });
  return [...Object.entries(OWN), ...more];
}

export class Strip extends Panel {
  constructor(picture, lab, most) {
    super(picture, { ...OWN.lr, most, ticks: 1 });
    this.lab = lab;
    this.shown = "lr";
  }

  draw(runs, x, room) {
    this.choose(this.lab.state.curve);
    super.draw(runs, x, room);
  }

  choose(name) {
    const kinds = measured(this.lab.metrics);
    const [found, about] = kinds.find(([one]) => one === name) ?? kinds[0];
    if (found === this.shown) return;
    this.shown = found;
    Object.assign(this, { kinds: about.kinds, written: about.written });
    this.name.textContent = about.title;
    this.title.replaceChildren(this.name);
    this.told = about.kinds.map(([, className, called]) => this.legend(className, called));
  }
}
