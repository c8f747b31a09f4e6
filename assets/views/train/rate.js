// The learning rate: what the schedule says, or what a person holds it at while the run goes on.
import { make } from "../core/dom.js";
import { hindered } from "./words.js";

const [LOW, HIGH] = [-6, 0]; // powers of ten that the slider spans
const STEP = 0.02; // of a power
const CALM = 120; // ms between two orders while the slider moves

/** `order(query)` tells the run. */
export function rate(lab, order) {
  const element = make("div", "rate");
  const label = make("label", "rate-label", "learning rate");
  const slider = field({ type: "range", min: LOW, max: HIGH, step: STEP, "aria-label": "learning rate, on a logarithmic scale" });
  const number = field({ type: "text", inputmode: "decimal", "aria-label": "learning rate", size: 8, autocomplete: "off" });
  const free = make("button", "chip", "by schedule");
  free.type = "button";
  label.append(slider);
  element.append(label, number, free);
  let [timer, wanted] = [0, undefined]; // what was asked for and is not in the status yet
  const send = (lr) => {
    wanted = lr;
    clearTimeout(timer);
    timer = setTimeout(async () => {
      await order({ ask: "order", order: "rate", lr });
      if (wanted === lr) wanted = undefined;
    }, CALM);
    update();
  };
  const update = () => {
    const held = wanted === undefined ? (lab.status?.lr ?? null) : wanted;
    const now = held ?? [lab.metrics.at("lr", Infinity), lab.lr].find(Number.isFinite);
    const cannot = hindered(lab).rate;
    for (const one of [slider, number, free]) {
      one.disabled = Boolean(cannot);
      one.title = cannot;
    }
    free.title = cannot || "follow the schedule of the recipe";
    free.setAttribute("aria-pressed", String(!cannot && held === null));
    const active = number.getRootNode().activeElement;
    if (active !== slider && Number.isFinite(now)) slider.value = now > 0 ? Math.log10(now) : LOW;
    if (active !== number) number.value = Number.isFinite(now) ? written(now) : "";
    slider.setAttribute("aria-valuetext", Number.isFinite(now) ? written(now) : "");
  };
  slider.addEventListener("input", () => send(Number((10 ** Number(slider.value)).toPrecision(2))));
  number.addEventListener("change", () => {
    const lr = Number(number.value.replace("−", "-"));
    if (number.value.trim() && Number.isFinite(lr) && lr >= 0) send(lr);
    else update();
  });
  number.addEventListener("keydown", (event) => event.key === "Enter" && number.blur());
  free.addEventListener("click", () => send(null));
  return { element, update, destroy: () => clearTimeout(timer) };
}

function field(attributes) {
  const made = make("input");
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

/** 0.003 and 3e-5. */
export function written(lr) {
  if (lr === 0) return "0";
  return lr >= 0.0009995 ? String(Number(lr.toPrecision(3))) : lr.toExponential(2).replace(/\.?0+e/, "e");
}
