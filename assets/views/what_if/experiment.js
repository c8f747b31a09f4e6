// The panel "What if": the edits of the run in words, each with a switch, the way back, and what can be changed. Ours, because
// the kinds and the switches answer at once, while a run is still computed.
import * as address from "../core/address.js";
import { make } from "../core/dom.js";
import { whyLink } from "../core/why.js";

/**
 * @typedef {{ words: string, on: boolean, sentence: string, strength?: [value: number, low: number, high: number] }} Entry
 * @typedef {{ name: string, title: string, about: string, lacking?: string }} Kind
 * @typedef {{ entries: Entry[], undo: boolean, redo: boolean, guessing?: boolean, asked?: boolean, left?: number, broken: string[],
 *   refused?: string, opens: boolean[], kinds: Kind[], everywhere?: Record<string, string>[] }} Data
 * @typedef {{ do: string, [of: string]: unknown }} Change
 * @typedef {(event: "change", change: Change) => void} Emit
 */

/**
 * data: a decoded payload of views/what_if/experiment.py. Emits "change" {do, ...}, which pages/controls/what_if/experiment.py reads.
 * @param {HTMLElement} root
 * @param {Data} data
 * @param {Emit} emit
 */
export function mount(root, data, emit) {
  const element = make("section", "experiment");
  element.setAttribute("aria-label", "What if: changes to the run");
  root.append(element);
  const panel = new Panel(element, emit);
  panel.update(data);
  return {
    /** @param {Data} next */ update: (next) => panel.update(next),
    destroy: () => root.replaceChildren(),
  };
}

class Panel {
  /** @type {Data} */
  data;

  /**
   * @param {HTMLElement} root
   * @param {Emit} emit
   */
  constructor(root, emit) {
    this.root = root;
    this.emit = emit;
    this.adding = false; // whether the kinds are offered
    /** @type {number | undefined | null} */
    this.left = null; // how often Compare has been opened from here
  }

  /** @param {Data} data */
  update(data) {
    this.data = data;
    this.draw();
    const leaves = this.left !== null && data.left !== this.left; // not when the panel is mounted
    this.left = data.left;
    if (leaves) leave();
  }

  /** @param {Change} change */
  ask(change) {
    this.emit("change", change);
  }

  draw() {
    const { data, root } = this;
    const focused = /** @type {ShadowRoot | Document} */ (root.getRootNode()).activeElement;
    const name = focused instanceof HTMLElement && root.contains(focused) ? focused.dataset.name : null;
    const scrolled = root.querySelector(".edits")?.scrollTop ?? 0;
    const started = data.entries.length > 0 || data.undo || data.redo || data.guessing;
    root.classList.toggle("resting", !started);
    root.replaceChildren(
      this.top(Boolean(started)),
      ...[...data.broken, ...(data.refused ? [data.refused] : [])].map((sentence) => told(sentence)),
      ...(data.entries.length ? [this.list()] : []),
    );
    const list = root.querySelector(".edits");
    if (list) list.scrollTop = scrolled;
    if (name)
      /** @type {HTMLElement | null} */ (root.querySelector(`[data-name="${name}"]`))?.focus({ preventScroll: true });
  }

  /** @param {boolean} started */
  top(started) {
    const { data } = this;
    const row = make("div", "top");
    const add = button("What if …", "start", () => this.offer());
    add.classList.add("start");
    add.setAttribute("aria-expanded", String(this.adding));
    add.title = "change something inside the model, and see what follows";
    row.append(add);
    if (this.adding) row.append(...this.offers());
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
    if ("left" in data && data.entries.some((entry) => entry.on && !entry.sentence)) {
      const side = button("compare", "compare", () => this.ask({ do: "compare" }));
      side.title = "open the page Compare: A without these edits, B with them";
      row.append(side);
    }
    if ("guessing" in data) row.append(this.guessing());
    return row;
  }

  guessing() {
    const label = make("label", "guessing");
    const box = make("input");
    box.type = "checkbox";
    box.checked = this.data.guessing;
    box.disabled = this.data.asked; // by the link
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

  /**
   * @param {Entry} entry
   * @param {number} number
   */
  entry({ words, on, sentence, strength }, number) {
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
    const opens = this.data.opens[number];
    const name = opens
      ? button(words, `edit ${number}`, () => this.open({ do: "edit", number }))
      : make("span", "", words);
    name.classList.add("words");
    if (opens) name.title = "change it";
    const away = button("×", `remove ${number}`, () => this.ask({ do: "remove", number }), `remove: ${words}`);
    away.classList.add("away");
    row.append(toggle, name);
    if (strength !== undefined) row.append(this.strength(strength, words, number));
    const sweep = this.data.everywhere?.[number];
    if (sweep && Object.keys(sweep).length) row.append(this.everywhere(sweep, words));
    row.append(away);
    if (sentence) row.append(make("span", "misfit", sentence));
    return row;
  }

  /**
   * The way to what the same does at every place.
   * @param {Record<string, string>} controls of the page Interventions
   * @param {string} words
   */
  everywhere(controls, words) {
    const link = whyLink("interventions", "everywhere", controls);
    link.classList.add("plain");
    link.title = "the same at every place by itself, on the page Interventions";
    link.setAttribute("aria-label", `${words}: everywhere`);
    return link;
  }

  /**
   * How much an adapter or a vector adds, which acts when the slider is let go.
   * @param {[number, number, number]} strength value and the ends of its slider, which reaches a value beyond them too
   * @param {string} words
   * @param {number} number
   */
  strength([value, low, high], words, number) {
    const slider = make("input", "strength");
    const [min, max] = [Math.min(low, value), Math.max(high, value)];
    Object.assign(slider, { type: "range", min, max, step: "0.05", value, title: "strength" });
    slider.setAttribute("aria-label", `${words}: strength`);
    slider.dataset.name = `strength ${number}`;
    slider.addEventListener("input", () => (slider.title = `strength ${slider.value}`));
    slider.addEventListener("change", () => this.ask({ do: "strength", number, value: Number(slider.value) }));
    return slider;
  }

  offer() {
    this.adding = !this.adding;
    this.draw();
  }

  /** What can be changed, one button each; and why, of what this model does not have. */
  offers() {
    const box = make("div", "offers");
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", "what to change");
    const { kinds } = this.data;
    for (const { name, title, about } of kinds.filter(({ lacking }) => !lacking)) {
      const one = button("", `offer ${name}`, () => this.open({ do: "open", kind: name }));
      one.append(make("strong", "", title), make("span", "", about));
      one.title = about;
      box.append(one);
    }
    const others = kinds.filter(({ lacking }) => lacking);
    return [box, ...others.map(({ title, lacking }) => make("p", "note", `${title}: ${lacking}`))];
  }

  /**
   * Asks for a form, which begins at what the page looks at.
   * @param {Change} asked
   */
  open(asked) {
    this.adding = false;
    this.draw();
    this.ask({ ...asked, address: { ...address.looked(), ...address.read() } });
  }
}

/** To Compare by the page's unseen link, which keeps the session. */
function leave() {
  /** @type {HTMLElement | null} */ (document.querySelector(".st-key-way-to-compare a"))?.click();
}

/** @param {string} sentence */
function told(sentence) {
  const line = make("p", "told", sentence);
  line.setAttribute("role", "status");
  return line;
}

/**
 * @param {string} text
 * @param {string} name
 * @param {() => void} act
 */
function button(text, name, act, label = "") {
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
