// The table of runs: what was trained here and how it came out. From here a run is looked at, laid over another, named, resumed, opened
// on other pages, taken away and deleted.
import * as address from "../core/address.js";
import { make } from "../core/dom.js";
import { ACTIVE, COLUMNS, matches, sorted } from "./runs_columns.js";
import { headings, sorter } from "./runs_head.js";
import { Menu } from "./runs_menu.js";
import { Row } from "./runs_row.js";
import { CSS } from "./runs_style.js";
import { deliver } from "./runs_take.js";
import { Wishes } from "./runs_wish.js";
import { inquire } from "../core/store.js";

const PACE = 2500; // ms between two looks while something trains
const LATER = 900; // ms after something was done elsewhere on the page, until it shows in the files
export const ORDERED = "loupe-ordered"; // the event of the window that tells other views of a run that was told to go on
const NARROW = 800; // CSS pixels of width below which runs are cards
const FIRST = "created"; // the newest run on top
const NONE = "No run has been made yet: press Play above, and it will stand here.";

/** data = {run, overlays} of pages/train/lab.py. Emits "look" (a run's name) and "overlay" (names). */
export function mount(root, data, emit) {
  const table = new Runs(root, emit);
  table.update(data);
  return table;
}

class Runs {
  constructor(root, emit) {
    Object.assign(this, { wishes: new Wishes(emit, { look: "run", overlay: "overlays" }), runs: null, deleted: [], rows: new Map(), undo: null, timer: 0, asking: false, again: false, closed: false });
    this.style = make("style", "", CSS);
    this.element = make("section", "runs");
    this.element.loupe = this; // for tests
    this.element.setAttribute("aria-label", "runs");
    this.order = COLUMNS.some(({ key }) => key === String(address.read().runs).replace("-", "")) ? address.read().runs : FIRST;
    root.append(this.style, this.element);
    this.build();
    this.resize = new ResizeObserver(() => this.element.classList.toggle("narrow", this.element.clientWidth < NARROW));
    this.resize.observe(this.element);
    this.onSight = () => document.visibilityState === "visible" && this.ask();
    this.onDone = (event) => this.noticed(event);
    document.addEventListener("visibilitychange", this.onSight);
    for (const name of ["click", "keyup"]) window.addEventListener(name, this.onDone);
  }

  destroy() {
    this.closed = true;
    clearTimeout(this.timer);
    this.resize.disconnect();
    this.menu.close();
    document.removeEventListener("visibilitychange", this.onSight);
    for (const name of ["click", "keyup"]) window.removeEventListener(name, this.onDone);
    this.element.remove();
    this.style.remove();
  }

  build() {
    const head = make("div", "runs-top");
    this.count = make("span", "runs-count");
    const title = make("h3", "", "Runs ");
    title.append(this.count);
    this.search = make("input", "runs-search");
    Object.assign(this.search, { type: "search", placeholder: "find by name, task or state" });
    this.search.setAttribute("aria-label", "find runs by words");
    this.search.addEventListener("input", () => this.show());
    this.sorter = sorter((order) => this.sort(order));
    head.append(title, this.sorter.element, this.search);
    this.line = make("p", "runs-undo");
    this.said = make("output", "runs-said");
    this.field = make("textarea", "runs-copied");
    Object.assign(this.field, { readOnly: true, rows: 2, hidden: true });
    this.field.setAttribute("aria-label", "text to copy");
    this.none = make("p", "runs-none");
    this.table = make("div", "runs-table");
    this.table.setAttribute("role", "table");
    this.table.setAttribute("aria-label", "all runs");
    this.heads = headings((order) => this.sort(order));
    this.body = make("div", "runs-body");
    this.body.setAttribute("role", "rowgroup");
    this.table.append(this.heads.element, this.body);
    this.menu = new Menu(this.element);
    this.element.append(head, this.line, this.said, this.field, this.none, this.table);
    this.line.hidden = this.table.hidden = this.none.hidden = true;
  }

  update(data) {
    this.wishes.told(data);
    if (this.runs) this.show();
    this.ask();
  }

  /** {run, overlays}: what the page looks at, or is about to. */
  get data() {
    return this.wishes.wanted;
  }

  // --- what is known ---------------------------------------------------------------------------------------------------------

  /** Asks for the table; if that is on its way, once more after its answer. */
  async ask() {
    clearTimeout(this.timer);
    if (this.asking) return void (this.again = true);
    this.asking = true;
    this.again = false;
    try {
      const { runs, deleted } = await inquire({ ask: "runs" });
      if (this.closed) return;
      Object.assign(this, { runs, deleted });
      if (this.trouble) this.say((this.trouble = ""));
      this.show();
    } catch (error) {
      if (!this.closed) this.say((this.trouble = error.message));
    }
    this.asking = false;
    if (this.again) this.ask();
    else if (this.runs?.some(({ state }) => ACTIVE.includes(state))) this.later(PACE);
  }

  later(wait) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => document.visibilityState === "visible" && !this.closed && this.ask(), wait);
  }

  /** Something was done with the run that is looked at: its row is another one soon. */
  noticed(event) {
    if (event.type === "keyup" && event.key !== " " && event.key !== "Enter") return;
    const path = event.composedPath();
    const within = path.some((one) => one.classList?.contains("lab-transport"));
    if (within || (event.type === "keyup" && event.key === " " && path[0] === document.body)) this.later(LATER);
  }

  // --- what is shown ---------------------------------------------------------------------------------------------------------

  show() {
    const { runs, data, order } = this;
    const others = data.overlays.filter((name) => name !== data.run);
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = sorted(runs.filter((run) => matches(run, words)), order);
    for (const [name, row] of this.rows) if (!runs.some((run) => run.name === name)) (row.element.remove(), this.rows.delete(name));
    for (const run of runs) {
      if (!this.rows.has(run.name)) this.rows.set(run.name, new Row(this));
      this.rows.get(run.name).set(run, { looked: run.name === data.run, over: others.indexOf(run.name) });
    }
    this.place(found.map(({ name }) => this.rows.get(name).element));
    this.count.textContent = found.length === runs.length ? `${runs.length || ""}` : `${found.length} of ${runs.length}`;
    this.table.hidden = !found.length;
    this.none.hidden = found.length > 0;
    this.none.textContent = runs.length ? "No run has all of these words." : NONE;
    this.search.hidden = !runs.length;
    this.heads.show(order);
    this.sorter.show(order);
    this.tellDeleted();
    this.element.dataset.ready = "true";
  }

  /** The rows in their order; only those that stand elsewhere are moved, and what had the focus keeps it. */
  place(elements) {
    const { body } = this;
    const focused = this.element.getRootNode().activeElement;
    const wanted = new Set(elements);
    for (const child of [...body.children]) if (!wanted.has(child)) child.remove();
    let next = body.firstChild;
    for (const element of elements) {
      if (element === next) next = next.nextSibling;
      else body.insertBefore(element, next);
    }
    if (focused && body.contains(focused) && this.element.getRootNode().activeElement !== focused) focused.focus();
  }

  sort(order) {
    this.order = order;
    address.write({ runs: order === FIRST ? null : order });
    this.show();
  }

  /** What was deleted just now can be had back at one click; what was deleted before, too, but quietly. */
  tellDeleted() {
    const last = this.undo ?? this.deleted[0];
    const key = last ? `${last.token} ${Boolean(this.undo)}` : "";
    this.line.hidden = !last;
    if (this.line.dataset.key === key) return;
    this.line.dataset.key = key;
    if (!last) return this.line.replaceChildren();
    const button = make("button", "runs-back", "Undo");
    button.type = "button";
    button.addEventListener("click", () => this.restore(last));
    this.line.replaceChildren(make("span", "", this.undo ? "Deleted: " : "Deleted last: "), make("bdi", "", last.name), button);
    this.line.classList.toggle("now", Boolean(this.undo));
  }

  say(sentence) {
    this.said.textContent = sentence;
    this.field.hidden = true;
  }

  /** Text for the clipboard, or for a field where a browser gives no way to it. */
  async copy(text, what) {
    try {
      await navigator.clipboard.writeText(text);
      this.say(`${what} is in the clipboard.`);
    } catch (error) {
      if (!(error instanceof DOMException || error instanceof TypeError)) throw error;
      this.say("This browser gives no way to the clipboard: copy from the field.");
      Object.assign(this.field, { value: text, hidden: false });
      this.field.focus();
      this.field.select();
    }
  }

  // --- what is done ----------------------------------------------------------------------------------------------------------

  look(name) {
    this.wishes.want("look", name);
    this.show();
  }

  overlay(name, on) {
    const others = this.data.overlays.filter((one) => one !== name);
    this.wishes.want("overlay", on ? [...others, name] : others);
  }

  /** Asks for something to be done and says why it cannot; null then. */
  async request(query, working = "") {
    this.say(working);
    try {
      const answer = await inquire(query);
      if (working) this.say("");
      return answer;
    } catch (error) {
      this.say(error.message);
      return null;
    } finally {
      this.ask();
    }
  }

  async resume({ name }) {
    if (!(await this.request({ ask: "order", run: name, order: "play" }))) return;
    window.dispatchEvent(new CustomEvent(ORDERED, { detail: name }));
    this.look(name);
  }

  /** Whether it has the name now. */
  async rename({ name }, wanted) {
    const answer = await this.request({ ask: "rename", run: name, name: wanted });
    if (answer) this.called(name, answer.run);
    return answer !== null;
  }

  async remove({ name }) {
    const answer = await this.request({ ask: "delete", run: name });
    if (!answer) return;
    this.undo = { token: answer.token, name };
    this.called(name, null);
    this.tellDeleted();
    this.line.querySelector("button")?.focus();
  }

  async restore({ token }) {
    const answer = await this.request({ ask: "undo", token });
    this.undo = null;
    if (answer) this.say(`${answer.run} is back.`);
  }

  async take(run, what) {
    const working = what === "folder" ? `The newest weights of ${run.name} are being packed …` : "";
    const answer = await this.request({ ask: "export", run: run.name, step: null, what }, working);
    if (answer) this.say(`${deliver(answer)} has been handed to the browser.`);
    else if (run.fault) this.say(run.fault);
  }

  /** The page goes on with the new name of a run, or without it. */
  called(before, after) {
    const { run, overlays } = this.data;
    const row = this.rows.get(before);
    if (row && after && !this.rows.has(after)) {
      this.rows.delete(before);
      this.rows.set(after, row); // its element stays, and so does the focus
      this.runs = this.runs.map((one) => (one.name === before ? { ...one, name: after } : one));
    } else if (!after) this.runs = this.runs.filter(({ name }) => name !== before);
    if (overlays.includes(before)) this.wishes.want("overlay", overlays.map((name) => (name === before ? after : name)).filter(Boolean));
    if (run === before) this.wishes.want("look", after ?? "");
    this.show();
  }
}
