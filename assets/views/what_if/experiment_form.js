// One edit as a form: labelled fields that write into it, drawn again whenever one of them decides what the others are.
import { make } from "../core/dom.js";
import { painter } from "./experiment_mask.js";
import { weights } from "./experiment_weights.js";

const MANY_TOKENS = 60; // beyond, their box scrolls

/**
 * `kind` of experiment_kinds.js, `edit` is written to. {element, tell(data, {title, done, busy})}: what is known comes later again,
 * and leaves alone what a person is at.
 */
export function form(kind, edit, data, { apply, cancel }) {
  const element = make("form", "form");
  const heading = make("h4");
  const fields = make("div", "fields");
  const refused = make("p", "refused");
  refused.setAttribute("role", "alert");
  const buttons = make("div", "buttons");
  const go = make("button", "go");
  go.type = "submit";
  const back = make("button", "plain", "Cancel");
  back.type = "button";
  back.addEventListener("click", cancel);
  buttons.append(go, back);
  const known = { ...data };
  let given = [];
  const draw = () => {
    const name = element.getRootNode().activeElement?.dataset?.name;
    given = kind.fields(edit, known).filter(Boolean);
    fields.replaceChildren(...given.map((field) => BUILT[field.type](field, draw, known)));
    if (name) fields.querySelector(`[data-name="${name}"]`)?.focus({ preventScroll: true });
  };
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    apply();
  });
  element.addEventListener("keydown", (event) => {
    event.stopPropagation(); // letters and arrows are the form's
    if (event.key === "Escape") cancel();
  });
  element.append(heading, fields, refused, buttons);
  draw();
  const tell = (next, { title, done, busy }) => {
    const [another, repaint] = [reads(next) !== reads(known), next.trace !== known.trace && given.some(({ type }) => DRAWN.includes(type))];
    Object.assign(known, next);
    element.setAttribute("aria-label", title);
    heading.textContent = title;
    go.textContent = done;
    go.disabled = busy; // what it asked for is being computed
    refused.textContent = next.refused;
    refused.hidden = !next.refused;
    if (another) draw();
    else if (repaint) idle(fields, draw);
  };
  return { element, tell };
}

const DRAWN = ["paint", "weights"]; // fields that are drawn of the run
const reads = ({ stacks, shown }) => JSON.stringify([stacks.map(({ pieces }) => pieces), shown]);

/** Does `act` once nothing in `element` is being dragged. */
function idle(element, act) {
  if (!element.querySelector("canvas:active")) return act();
  return addEventListener("pointerup", () => setTimeout(act), { once: true });
}

/** What the kinds ask for, each {type, label, value, set, ...} -> an element. */
const BUILT = {
  select: ({ label, options, value, set }, draw) => {
    const box = make("select");
    box.dataset.name = label;
    for (const [key, text] of options) {
      const option = make("option", "", text);
      option.value = JSON.stringify(key);
      option.selected = key === value;
      box.append(option);
    }
    box.addEventListener("change", () => {
      set(JSON.parse(box.value));
      draw();
    });
    return labelled(label, box);
  },
  number: ({ label, value, set, min, max, step, hint, name = label }) => {
    const box = make("input");
    Object.assign(box, { type: "number", min: min ?? "", max: max ?? "", step: step ?? "any", value: value ?? "", required: !hint });
    box.placeholder = hint ?? "";
    box.dataset.name = name;
    box.addEventListener("input", () => set(box.value === "" ? null : Number(box.value)));
    return labelled(label, box);
  },
  text: ({ label, value, set, hint }) => {
    const box = make("input", "wide");
    Object.assign(box, { type: "text", value: value ?? "", required: true, placeholder: hint ?? "" });
    box.dataset.name = label;
    box.addEventListener("input", () => set(box.value));
    return labelled(label, box, "wide");
  },
  toggles: (field, draw) => labelled(field.label, toggles(field, draw), "", "div"),
  tokens: (field, draw) => {
    const box = toggles(field, draw);
    box.classList.add("tokens");
    box.classList.toggle("many", field.options.length > MANY_TOKENS);
    return labelled(field.label, box, "whole", "div");
  },
  paint: (field, draw, data) => labelled(field.label, painter(field, data), "whole", "div"),
  weights: (field, draw, data) => labelled(field.label, weights(field, data), "whole", "div"),
  /** A text that `set` reads; it says what is wrong with it, or nothing. */
  checked: ({ label, value, set, hint, wide }) => {
    const box = make("input", wide ? "wide" : "");
    Object.assign(box, { type: "text", value, placeholder: hint, autocomplete: "off" });
    box.dataset.name = label;
    box.addEventListener("input", () => box.setCustomValidity(set(box.value)));
    return labelled(label, box, wide ? "wide" : "");
  },
  note: ({ text }) => make("p", "note whole", text),
};

/** Buttons of which several are pressed, or with `single` one; none pressed stands for all where `none` says so. */
function toggles({ label, options, value, set, single = false, none = "" }, draw) {
  const box = make("div", "toggles");
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", label);
  const chosen = new Set(value);
  if (none) box.append(toggle(none, chosen.size === 0, `${label} ${none}`, () => (set([]), draw())));
  options.forEach((text, i) => {
    const press = () => {
      if (single) set([i]);
      else {
        if (!chosen.delete(i)) chosen.add(i);
        set([...chosen].sort((a, b) => a - b));
      }
      draw();
    };
    box.append(toggle(text, chosen.has(i), `${label} ${i}`, press));
  });
  return box;
}

function toggle(text, pressed, name, press) {
  const element = make("button", "toggle");
  element.type = "button";
  element.append(make("bdi", "", text));
  element.dataset.name = name;
  element.setAttribute("aria-pressed", String(pressed));
  element.addEventListener("click", press);
  return element;
}

function labelled(label, control, more = "", tag = "label") {
  const element = make(tag, `field ${more}`);
  element.append(make("span", "label", label), control);
  return element;
}
