// One run of the table: its numbers, and what can be done with it.
import { make } from "../core/dom.js";
import { ACTIVE, COLUMNS } from "./runs_columns.js";
import { opened } from "./runs_open.js";
import { taken } from "./runs_take.js";

const NUMBERS = COLUMNS.filter(({ key, number }) => number && key !== "step");
const COLOURS = 11; // of lines that are laid over that which is looked at, as lab_curves.js has them

export class Row {
  /** `table` is what runs.js has: look, overlay, rename, remove, resume, take, copy, menu. */
  constructor(table) {
    this.table = table;
    this.element = make("div", "runs-row");
    this.element.setAttribute("role", "row");
    this.tick = this.element.appendChild(cell("runs-tick")).appendChild(this.box());
    this.element.append(this.named(), this.going());
    this.values = new Map(NUMBERS.map(({ key, title }) => [key, this.value(title)]));
    this.element.append(this.actions());
    this.fault = make("p", "runs-fault");
    this.fault.setAttribute("role", "cell");
    this.element.append(this.fault);
    this.element.addEventListener("click", (event) => {
      if (!event.target.closest("button, input, a") && !getSelection().toString()) this.table.look(this.run.name);
    });
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "F2" && !this.input) this.rename();
      else if (event.key === "Delete" && !this.input) this.table.remove(this.run);
      else return;
      event.preventDefault();
    });
  }

  box() {
    const box = make("input");
    box.type = "checkbox";
    box.addEventListener("change", () => this.table.overlay(this.run.name, box.checked));
    return box;
  }

  named() {
    const place = cell("runs-named");
    this.name = make("button", "runs-name");
    this.name.type = "button";
    this.name.addEventListener("click", () => this.table.look(this.run.name));
    this.name.addEventListener("dblclick", () => this.rename());
    this.task = make("small", "runs-task");
    place.append(this.name, this.task);
    return place;
  }

  going() {
    const place = cell("runs-going");
    this.state = make("span", "runs-state");
    this.steps = make("small", "runs-steps");
    this.done = make("i", "runs-done");
    place.append(this.state, this.steps, this.done);
    return place;
  }

  value(title) {
    const place = this.element.appendChild(cell("number"));
    place.dataset.title = title;
    return place;
  }

  actions() {
    const place = cell("runs-actions");
    this.resume = button("Resume", () => this.table.resume(this.run));
    this.resume.classList.add("runs-resume");
    this.open = button("Open", () => this.table.menu.show(this.open, opened(this.table, this.run)));
    this.take = button("Take", () => this.table.menu.show(this.take, { entries: () => taken(this.table, this.run) }));
    this.more = button("⋯", () => this.table.menu.show(this.more, { entries: () => this.rest() }));
    for (const one of [this.open, this.take, this.more]) {
      one.setAttribute("aria-haspopup", "menu");
      one.setAttribute("aria-expanded", "false");
    }
    place.append(this.resume, this.open, this.take, this.more);
    return place;
  }

  rest() {
    const why = ACTIVE.includes(this.run.state) ? "It must be at rest for that; stop it first." : "";
    return [
      { label: "Rename", hint: "F2", why, act: () => this.rename() },
      { label: "Delete", hint: "can be undone", why, act: () => this.table.remove(this.run) },
    ];
  }

  /** What is told of the run, and whether it is looked at or `over`laid, as which line; only what is another is drawn. */
  set(run, { looked, over }) {
    this.run = run;
    text(this.name, run.name);
    if (this.element.dataset.run !== run.name) this.label(run.name);
    this.element.dataset.run = run.name;
    this.element.dataset.state = run.state;
    this.element.classList.toggle("looked", looked);
    this.name.setAttribute("aria-current", String(looked));
    this.overlaid(looked, over);
    text(this.task, [run.task, run.fork_of && `from ${run.fork_of[0]}, step ${run.fork_of[1].toLocaleString("en")}`].filter(Boolean).join(" · "));
    hint(this.task, run.about);
    this.progress(run);
    for (const { key, text: written, more } of NUMBERS) {
      text(this.values.get(key), written(run));
      if (more) hint(this.values.get(key), more(run));
    }
    const bare = run.parameters === null;
    this.resume.hidden = !run.can_resume || run.state === "damaged";
    this.open.disabled = bare;
    hint(this.open, bare ? "It has kept no weights yet." : "open its weights, those of any kept step, on another page");
    hint(this.take, "files to take away, and texts to copy");
    hint(this.more, "rename or delete");
    text(this.fault, [run.fault, run.fault ? "" : run.error].filter(Boolean).join(" "));
    this.fault.hidden = !this.fault.textContent;
    this.fault.classList.toggle("damaged", Boolean(run.fault));
  }

  label(name) {
    this.name.title = `look at ${name}; a double click or F2 renames it`;
    this.tick.setAttribute("aria-label", `lay the curves of ${name} over those of the run that is looked at`);
    for (const [one, what] of [[this.resume, "resume"], [this.open, "open"], [this.take, "take away"], [this.more, "more for"]]) {
      one.setAttribute("aria-label", `${what} ${name}`);
    }
  }

  overlaid(looked, over) {
    this.tick.checked = looked || over >= 0;
    this.tick.disabled = looked;
    this.tick.title = looked ? "the run that is looked at" : "lay its curves over those of the run that is looked at";
    const role = looked ? "attention" : `head-${(over % COLOURS) + 2}`;
    this.tick.style.accentColor = looked || over >= 0 ? `var(--${role})` : "";
  }

  progress(run) {
    const column = (key) => COLUMNS.find((one) => one.key === key).text(run);
    text(this.state, column("state"));
    text(this.steps, run.steps || run.step ? column("step") : "");
    const on = ACTIVE.includes(run.state);
    this.done.hidden = !on;
    if (on && run.steps) this.done.style.setProperty("--share", (run.step / run.steps).toFixed(4));
  }

  /** A field in the place of the name: Enter gives the run that name, Escape leaves it as it is. */
  rename() {
    if (this.input) return;
    const { run } = this;
    const input = make("input", "runs-rename");
    this.input = input;
    input.value = run.name;
    input.maxLength = 60;
    input.setAttribute("aria-label", `new name of ${run.name}`);
    this.name.replaceWith(input);
    input.focus();
    input.select();
    const end = (focus) => {
      if (this.input !== input) return;
      this.input = null;
      input.replaceWith(this.name);
      if (focus) this.name.focus();
    };
    const give = async (focus) => {
      if (this.input !== input) return; // taken out of the page, it loses the focus too
      const wanted = input.value.trim();
      if (!wanted || wanted === this.run.name) return end(focus);
      input.readOnly = true;
      const given = await this.table.rename(this.run, wanted);
      input.readOnly = false;
      if (given || !focus) end(focus);
      else input.select();
    };
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") give(true);
      else if (event.key === "Escape") end(true);
      event.stopPropagation();
    });
    input.addEventListener("blur", () => !input.readOnly && give(false));
  }
}

function cell(className) {
  const element = make("div", `runs-cell ${className}`);
  element.setAttribute("role", "cell");
  return element;
}

function button(words, act) {
  const made = make("button", "runs-button", words);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

function text(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

function hint(element, words) {
  if (element.title !== (words ?? "")) element.title = words ?? "";
}
