// How the weights, or the activations on the probe, of each part are spread at the step that is looked at, in front of some steps before it.
import { make } from "../core/dom.js";
import { percent } from "../core/format.js";
import { ridge } from "./watch_ridge.js";
import { nearest, partsOf, roleOf, titleOf } from "./watch_parts.js";
import { whole } from "./words.js";

const BEHIND = 6; // lines of earlier steps, at most
const ABOUT = {
  weights:
    "All parameters of a part: how many have which value. The filled hill is the step that is looked at, the lines behind it are steps " +
    "before it; each is as high as its own peak. Normalisations begin at exactly 1 and biases at 0, which shows as needles.",
  activations:
    "The residual stream behind each block on the probe, all positions and dimensions. The filled hill is the step that is looked at, the " +
    "lines behind it are steps before it; each is as high as its own peak.",
};
const SHARES = [
  ["certain", "certain", "the share of the rows of attention that had a choice and give one key more than 99 %"],
  ["quiet", "quiet", "the share of the MLP’s neurons that nowhere on the probe come to 1 % of the layer’s strongest"],
];
const NONE = {
  weights: "No weights have been measured yet: the first come with the first snapshot.",
  activations: "No activations have been measured yet: they come with the first snapshot, where the probe can be read.",
};

/** `what` is "weights" or "activations". */
export function mount(root, lab, what) {
  const element = make("div", "watch histograms");
  const head = make("div", "watch-head");
  const at = make("span", "watch-at");
  head.append(make("h3", "", what === "weights" ? "Weights of each part" : "Activations behind each block"), at);
  const none = make("p", "watch-none", NONE[what]);
  const grid = make("div", "ridges");
  element.append(head, make("p", "watch-about", ABOUT[what]), ...(what === "activations" ? [definitions()] : []), none, grid);
  root.append(element);
  const panels = new Map(); // part -> panel
  let [known, shown] = ["", ""];
  let lines = [];

  const build = () => {
    lines = lab.watch.filter((line) => Object.keys(line[what]).length);
    const parts = partsOf(lines, what);
    for (const [part, panel] of panels) if (!parts.includes(part)) (panel.element.remove(), panels.delete(part));
    for (const part of parts) {
      if (!panels.has(part)) panels.set(part, panelOf(lab, part, what));
      panels.get(part).bound(lines);
    }
    const elements = parts.map((part) => panels.get(part).element);
    if (elements.some((one, i) => grid.children[i] !== one)) grid.replaceChildren(...elements);
  };
  const update = () => {
    const edition = [lab.edition, lab.editions.watch, element.clientWidth].join();
    if (edition !== known) {
      build();
      [known, shown] = [edition, ""];
    }
    none.hidden = lines.length > 0;
    at.hidden = grid.hidden = !lines.length;
    if (!lines.length) return;
    const index = nearest(lines, lab.shown);
    const key = `${index} ${lab.shown}`;
    if (key === shown) return;
    shown = key;
    const { step } = lines[index];
    at.textContent = `step ${whole(step)}${step === lab.shown ? "" : `, nearest to ${whole(lab.shown)}`}`;
    const steps = behind(index).map((i) => lines[i]);
    for (const panel of panels.values()) panel.show(lines[index], steps);
  };
  return { update, mark() {}, destroy: () => element.remove() };
}

/** Indices before `index`, evenly apart: they stay as they are while lines come, until there are too many. */
function behind(index) {
  let apart = 1;
  while (index / apart > BEHIND) apart *= 2;
  return Array.from({ length: Math.ceil(index / apart) }, (_, i) => i * apart);
}

/** One part: its title, its hill, and its numbers. */
function panelOf(lab, part, what) {
  const element = make("section", "ridge");
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", titleOf(part));
  element.style.setProperty("--hue", `var(--${what === "weights" ? roleOf(part) : "residual"})`);
  const title = make("h4", "", titleOf(part));
  const hill = ridge(lab, (line) => line[what][part]);
  const numbers = make("dl", "ridge-numbers");
  const told = ["min", "std", "max"].map((name) => {
    const value = make("dd");
    const entry = make("div");
    if (name === "std") entry.title = "standard deviation, from the counts of the bins";
    entry.append(make("dt", "", name), value);
    numbers.append(entry);
    return value;
  });
  const shares = what === "activations" ? sharesOf(part) : null;
  element.append(title, hill.element, numbers, ...(shares ? [shares.element] : []));
  const show = (line, before) => {
    const said = hill.show(line, before);
    said.forEach((text, i) => told[i].textContent !== text && (told[i].textContent = text));
    shares?.show(line);
  };
  return { element, bound: hill.bound, show };
}

function sharesOf(part) {
  const element = make("dl", "ridge-shares");
  const told = SHARES.map(([key, name, definition]) => {
    const value = make("dd");
    const entry = make("div");
    entry.title = definition;
    entry.append(make("dt", "", name), value);
    element.append(entry);
    return [key, entry, value];
  });
  const show = (line) => {
    for (const [key, entry, value] of told) {
      const share = line[key][part];
      entry.hidden = share === undefined;
      if (share !== undefined) value.textContent = percent(share);
    }
  };
  return { element, show };
}

function definitions() {
  const list = make("p", "watch-about");
  SHARES.forEach(([, name, definition], i) => list.append(make("strong", "", `${i ? " · " : ""}${name}`), ` ${definition}`));
  return list;
}

export const CSS = `
.ridges { display: grid; grid-template-columns: repeat(auto-fill, minmax(250px, 1fr)); gap: 22px 30px; }
.ridge { min-width: 0; content-visibility: auto; contain-intrinsic-size: auto 210px; }
.ridge h4 { margin: 0 0 2px; font-size: 13px; font-weight: 600; line-height: 20px; }
.ridge svg { display: block; overflow: visible; width: 100%; }
.ridge .hill { fill: color-mix(in srgb, var(--hue) 45%, var(--ground)); stroke: var(--hue); stroke-width: 1.5; stroke-linejoin: round; }
.ridge .past { fill: var(--ground); stroke: color-mix(in srgb, var(--hue) 55%, var(--ground)); stroke-width: 1; stroke-linejoin: round; }
.ridge .grid { stroke: var(--hairline); }
.ridge text.tick { font: 11px var(--mono); fill: var(--soft); }
.ridge-numbers, .ridge-shares { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 0 8px; margin: 2px 0 0; font-size: 12px; line-height: 18px; }
.ridge-shares { grid-template-columns: repeat(2, minmax(0, 1fr)); }
.ridge dl > div { display: flex; gap: 6px; align-items: baseline; white-space: nowrap; }
.ridge dt { color: var(--soft); }
.ridge dd { margin: 0; font: 12px/18px var(--mono); }
.ridge-numbers > div:nth-child(2) { justify-content: center; }
.ridge-numbers > div:nth-child(3) { justify-content: flex-end; }
.narrow .ridges { grid-template-columns: minmax(0, 1fr); }
`;
