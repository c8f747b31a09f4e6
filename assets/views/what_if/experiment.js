// The panel "What if": the edits of the run in words, each with a switch, the way back, and the form that adds one. Ours,
// because its form holds the painters, and every field of it changes what is painted on without a message.
import { make } from "../core/dom.js";
import { kindOf, KINDS } from "./experiment_fields.js";
import { painter, weights } from "./experiment_paint.js";

/** data: a decoded payload of views/experiment.py. Emits "change" {do, ...}, which pages/controls/experiment.py reads. */
export function mount(root, data, emit) {
  const element = make("section", "experiment");
  element.setAttribute("aria-label", "What if: changes to the run");
  root.append(element);
  const panel = new Panel(element, emit);
  panel.update(data);
  return { update: (next) => panel.update(next), destroy: () => root.replaceChildren() };
}

let asks = 0; // of this page

class Panel {
  constructor(root, emit) {
    this.root = root;
    this.emit = emit;
    this.above = make("div");
    this.below = make("div"); // the form, which stays as it is while what stands above it is drawn again
    for (const part of [this.above, this.below]) part.style.display = "contents";
    root.append(this.above, this.below);
    this.adding = false; // whether the kinds are offered
    this.draft = null; // {kind, edit, number, ...}: the edit in the form; of number null a new one
    this.left = null; // how often Compare has been opened from here
  }

  update(data) {
    const otherModel = this.data && shape(this.data) !== shape(data);
    this.data = data;
    if (otherModel) this.draft = null;
    if (this.draft) this.follow();
    this.draw();
    const leaves = this.left !== null && data.left !== this.left; // not when the panel is mounted
    this.left = data.left;
    if (leaves) leave();
  }

  /** What became of the draft: it is made, or refused; or the edit that it is of has another number now, or none. */
  follow() {
    const { draft, data } = this;
    const answered = draft.asked === data.answered;
    if (answered && !data.refused) return (this.draft = null);
    if (answered) draft.refused = data.refused;
    if (draft.number === null) return null;
    const same = (entry) => JSON.stringify(entry?.edit) === draft.opened;
    const found = same(data.entries[draft.number]) ? draft.number : data.entries.findIndex(same);
    draft.number = found < 0 ? null : found;
    return null;
  }

  /** Asks for a change; the answer comes back with the name it is given here. */
  ask(change) {
    const name = `${Date.now()} ${++asks}`;
    this.emit("change", { ...change, name });
    return name;
  }

  draw() {
    const { data } = this;
    const focused = this.root.getRootNode().activeElement;
    const name = this.above.contains(focused) ? focused.dataset.name : null;
    const scrolled = this.root.querySelector(".edits")?.scrollTop ?? 0;
    const started = data.entries.length > 0 || data.undo || data.redo || data.guessing;
    this.root.classList.toggle("resting", !started && !this.adding && !this.draft);
    const elsewhere = data.refused && this.draft?.asked !== data.answered ? [data.refused] : [];
    this.above.replaceChildren(
      this.top(started),
      ...[...data.broken, ...elsewhere].map((sentence) => told(sentence)),
      ...(data.entries.length ? [this.list()] : []),
      ...(this.adding ? [this.offers()] : []),
    );
    this.edited();
    if (data.entries.length) this.root.querySelector(".edits").scrollTop = scrolled;
    if (name) this.root.querySelector(`[data-name="${name}"]`)?.focus({ preventScroll: true });
  }

  /** The form of the draft: made once, and told what is new. */
  edited() {
    const { draft, below } = this;
    if (!draft) return below.replaceChildren();
    const about = { ...this.data, number: draft.number, refused: draft.refused };
    const heading = draft.number === null ? draft.kind.title : `${draft.kind.title}: edit ${draft.number + 1}`;
    const busy = draft.asked !== null && draft.asked !== this.data.answered;
    const words = { title: heading, done: draft.number === null ? "Add" : "Change", busy };
    if (below.firstChild !== draft.form?.element || !draft.form) {
      draft.form = form(draft.kind, draft.edit, about, { apply: () => this.apply(draft), cancel: () => this.cancel() });
      below.replaceChildren(draft.form.element);
    }
    return draft.form.tell(about, words);
  }

  apply(draft) {
    const edit = draft.kind.sent(draft.edit);
    draft.refused = "";
    draft.asked = this.ask(draft.number === null ? { do: "add", edit } : { do: "change", number: draft.number, edit });
    this.edited();
  }

  cancel() {
    this.draft = null;
    this.draw();
  }

  top(started) {
    const { data } = this;
    const row = make("div", "top");
    const add = button("What if …", "start", () => this.offer());
    add.classList.add("start");
    add.setAttribute("aria-expanded", String(this.adding));
    add.title = "change something inside the model, and see what follows";
    row.append(add);
    if (!started) return row;
    const undo = button("↶", "undo", () => this.ask({ do: "undo" }), "undo");
    const redo = button("↷", "redo", () => this.ask({ do: "redo" }), "redo");
    undo.disabled = !data.undo;
    redo.disabled = !data.redo;
    row.append(undo, redo);
    if (data.entries.length > 1) {
      const on = data.entries.some((entry) => entry.on);
      row.append(button(on ? "all off" : "all on", "all", () => this.ask({ do: "all", on: !on })));
    }
    if (data.entries.length) row.append(button("remove all", "clear", () => this.ask({ do: "clear" })));
    if (data.entries.some((entry) => entry.on && !entry.sentence)) {
      const side = button("compare", "compare", () => this.ask({ do: "compare" }));
      side.title = "open the page Compare: A without these edits, B with them";
      row.append(side);
    }
    row.append(this.guessing());
    return row;
  }

  guessing() {
    const label = make("label", "guessing");
    const box = make("input");
    box.type = "checkbox";
    box.checked = this.data.guessing;
    box.dataset.name = "guess";
    box.addEventListener("change", () => this.ask({ do: "guess", on: box.checked }));
    label.append(box, make("span", "", "predict, then reveal"));
    label.title = "asks for a guess before it shows what an edit did";
    return label;
  }

  list() {
    const list = make("ul", "edits");
    list.append(...this.data.entries.map((entry, number) => this.entry(entry, number)));
    return list;
  }

  entry({ words, on, sentence, edit }, number) {
    const row = make("li", "edit");
    const works = on && !sentence;
    row.classList.toggle("off", !works);
    const toggle = make("button", "switch");
    toggle.type = "button";
    toggle.setAttribute("role", "switch");
    toggle.setAttribute("aria-checked", String(works));
    toggle.setAttribute("aria-label", `${words}: on or off`);
    toggle.dataset.name = `switch ${number}`;
    toggle.addEventListener("click", () => this.ask({ do: "switch", number, on: !on }));
    const kind = kindOf(edit, this.data);
    const name = kind
      ? button(words, `edit ${number}`, () => this.open(kind, (kind.read ?? structuredClone)(edit), number))
      : make("span", "", words);
    name.classList.add("words");
    if (kind) name.title = "change it";
    const away = button("×", `remove ${number}`, () => this.ask({ do: "remove", number }), `remove: ${words}`);
    away.classList.add("away");
    row.append(toggle, name, away);
    if (sentence) row.append(make("span", "misfit", sentence));
    return row;
  }

  offer() {
    this.adding = !this.adding;
    if (this.adding) this.draft = null;
    this.draw();
  }

  /** What can be changed, one button each; and why, of what this model does not have. */
  offers() {
    const box = make("div", "offers");
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", "what to change");
    const [fitting, others] = [true, false].map((does) => KINDS.filter((kind) => kind.fits(this.data) === does));
    for (const kind of fitting) {
      const one = button("", `offer ${kind.id}`, () => this.open(kind, kind.blank(this.data), null));
      one.append(make("strong", "", kind.title), make("span", "", kind.about));
      box.append(one);
    }
    box.append(...others.map((kind) => make("p", "note", `${kind.title}: ${kind.without}`)));
    return box;
  }

  open(kind, edit, number) {
    this.adding = false;
    const opened = number === null ? null : JSON.stringify(this.data.entries[number].edit);
    this.draft = { kind, edit, number, opened, asked: null, refused: "" };
    this.draw();
    this.root.querySelector(".form select, .form input, .form button")?.focus({ preventScroll: true });
  }
}

/** What of the model decides which edits there are. */
function shape({ stacks, attentions }) {
  const parts = stacks.map(({ stack, layers, inner, outer }) => [
    stack,
    layers,
    [...inner, ...outer].map(({ part }) => part),
  ]);
  return JSON.stringify([parts, attentions.map(({ label, layers, heads }) => [label, layers, heads])]);
}

/** To Compare by the menu's link, which keeps the session. */
function leave() {
  /** @type {HTMLElement | null} */ (document.querySelector('a[href$="/compare"]'))?.click();
}

function told(sentence) {
  const line = make("p", "told", sentence);
  line.setAttribute("role", "status");
  return line;
}

export function button(text, name, act, label = "") {
  const element = make("button", "plain", text);
  element.type = "button";
  element.dataset.name = name;
  if (label) {
    element.setAttribute("aria-label", label);
    element.title = label;
  }
  element.addEventListener("click", act);
  return element;
}

// --- One edit as a form: labelled fields that write into it, drawn again whenever one of them decides wha ---

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
    const [another, repaint] = [
      reads(next) !== reads(known),
      next.trace !== known.trace && given.some(({ type }) => FIELDS_OF_RUN.includes(type)),
    ];
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

const FIELDS_OF_RUN = ["paint", "weights"]; // fields that are drawn of the run
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
    Object.assign(box, {
      type: "number",
      min: min ?? "",
      max: max ?? "",
      step: step ?? "any",
      value: value ?? "",
      required: !hint,
    });
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
