// Every tensor of a file and what became of it: a table that is searched and filtered here, of any length.
import * as address from "../core/address.js";
import { make } from "../core/dom.js";

const ROW = 27; // CSS pixels
const SHOWN = 11; // rows
const PRINTED = 400; // rows of a picture
const AROUND = 6; // drawn beyond what is seen
const GLYPHS = { loaded: "✓", tied: "=", dropped: "–", missing: "✗", unexpected: "?" };

/** data = {rows: [[name, status, shape, ours, dtype]], ledger, meaning}, of views/checkpoint.py. */
export function mount(root, data) {
  const page = new Tensors(root);
  page.update(data);
  return page;
}

class Tensors {
  constructor(root) {
    this.element = make("div", "tensors");
    root.append(make("style", "", CSS), this.element);
    this.status = null;
    this.resize = new ResizeObserver(() => this.draw());
    this.resize.observe(this.element);
  }

  destroy() {
    this.resize.disconnect();
    this.element.remove();
  }

  update(data) {
    const { status, named } = address.read();
    const before = this.search?.value ?? String(named ?? "");
    this.status = this.data ? this.status : (status ?? null);
    this.data = data;
    if (this.status && !data.ledger[this.status]) this.status = null;
    const heading = make("div", "tensors-head");
    const title = make("h3", "", "Every tensor of the file");
    const chips = make("div", "statuses");
    for (const status of [null, ...Object.keys(data.ledger)]) {
      const count = status === null ? data.rows.length : data.ledger[status];
      const chip = make("button", `status ${status ?? "all"}`);
      chip.type = "button";
      chip.disabled = !count;
      chip.setAttribute("aria-pressed", this.status === status);
      chip.append(make("strong", "", count.toLocaleString("en")), make("span", "", status === null ? "all" : data.meaning[status]));
      chip.addEventListener("click", () => {
        this.status = status;
        address.write({ status });
        for (const other of chips.children) other.setAttribute("aria-pressed", other === chip);
        this.filter();
      });
      chips.append(chip);
    }
    this.search = make("input", "tensor-search");
    this.search.type = "search";
    this.search.value = before;
    this.search.placeholder = "find a name";
    this.search.setAttribute("aria-label", "find a tensor by its name");
    this.search.addEventListener("input", () => {
      address.write({ named: this.search.value || null });
      this.filter();
    });
    heading.append(title, chips, this.search);
    this.scroller = make("div", "scroller");
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute("role", "table");
    this.scroller.setAttribute("aria-label", "tensors");
    this.scroller.addEventListener("scroll", () => this.draw());
    this.head = row("tensor-row headings", ["", "in the file", "in the model", "shape", "stored as"]);
    this.body = make("div", "tensor-rows");
    this.scroller.append(this.head, this.body);
    this.element.replaceChildren(heading, this.scroller);
    this.filter();
  }

  filter() {
    const text = this.search.value.toLowerCase();
    const matches = ([name, status, , ours]) => (this.status === null || status === this.status) && [name, ...ours].some((one) => one.toLowerCase().includes(text));
    this.found = this.data.rows.filter(matches);
    const rows = this.whole ? Math.min(PRINTED, Math.max(1, this.found.length)) : this.found.length;
    this.body.style.height = `${rows * ROW}px`;
    this.scroller.style.height = `${(this.whole ? rows : Math.max(1, Math.min(this.data.rows.length, SHOWN))) * ROW + 30}px`;
    this.scroller.scrollTop = 0;
    this.drawn = null;
    this.draw();
  }

  /** All rows at once, for a picture of them, or again those that are seen. */
  unfold(whole) {
    this.whole = whole;
    this.filter();
  }

  looked() {
    const { search, status, found, data } = this;
    const which = [status === null ? "" : data.meaning[status], search.value ? `with “${search.value}” in its name` : ""].filter(Boolean).join(", ");
    const drawn = found.length > PRINTED ? `; the first ${PRINTED} are drawn` : "";
    return { where: "", what: "", sentence: `${found.length.toLocaleString("en")} of ${data.rows.length.toLocaleString("en")} tensors${which ? `: ${which}` : ""}${drawn}`, asks: {} };
  }

  /** Only the rows that are seen. */
  draw() {
    if (!this.found) return;
    const first = this.whole ? 0 : Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - AROUND);
    const last = Math.min(this.found.length, this.whole ? PRINTED : first + SHOWN + 2 * AROUND);
    if (this.drawn === `${first} ${last}`) return;
    this.drawn = `${first} ${last}`;
    const rows = this.found.slice(first, last).map(([name, status, shape, ours, dtype], i) => {
      const made = row(`tensor-row ${status}`, [`${GLYPHS[status]} ${status}`, name, ours.join(", ") || "—", shape.join(" × ") || "scalar", dtype || "—"]);
      made.style.top = `${(first + i) * ROW}px`;
      return made;
    });
    this.body.replaceChildren(...(rows.length ? rows : [make("p", "nothing", "no tensor of that name")]));
    this.element.dataset.ready = "true";
  }
}

function row(name, cells) {
  const element = make("div", name);
  element.setAttribute("role", "row");
  cells.forEach((text, i) => {
    const cell = make("span", `tensor-cell c${i}`, text);
    cell.setAttribute("role", "cell");
    cell.title = text;
    element.append(cell);
  });
  return element;
}

const CSS = `
.tensors { margin-top: 22px; font: 14px/1.4 var(--sans); color: var(--ink); }
.tensors-head { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 20px; margin-bottom: 8px; }
.tensors h3 { font-size: 16px; font-weight: 600; margin: 0; line-height: 24px; }
.tensors :focus-visible { outline: 2px solid var(--attention); outline-offset: 1px; }
.statuses { display: flex; flex-wrap: wrap; gap: 4px; }
.status { --hue: var(--soft); display: inline-flex; align-items: center; gap: 6px; height: 26px; padding: 0 9px; border: 1px solid var(--hairline); border-radius: 5px; background: var(--ground); color: var(--ink); font: 13px var(--sans); cursor: pointer; }
.status strong { font: 600 13px var(--mono); color: var(--hue); }
.status:disabled { cursor: default; color: var(--soft); border-color: transparent; background: none; }
.status:disabled strong { color: var(--soft); }
.status[aria-pressed="true"] { border-color: var(--ink); background: var(--panel); }
.status.all { --hue: var(--ink); }
.status.loaded, .tensor-row.loaded { --hue: var(--value); }
.status.tied, .tensor-row.tied { --hue: var(--query); }
.status.dropped, .tensor-row.dropped { --hue: var(--mlp); }
.status.missing, .tensor-row.missing, .status.unexpected, .tensor-row.unexpected { --hue: var(--edited); }
.tensor-search { margin-left: auto; width: 220px; height: 30px; box-sizing: border-box; padding: 0 10px; font: inherit; color: var(--ink); background: var(--panel); border: 1px solid var(--hairline); border-radius: 6px; }
.scroller { overflow: auto; border-top: 1px solid var(--hairline); border-bottom: 1px solid var(--hairline); position: relative; }
.tensor-rows { position: relative; min-width: 760px; }
.tensor-row { display: grid; grid-template-columns: 112px minmax(220px, 1.25fr) minmax(200px, 1fr) 118px 84px; gap: 14px; height: ${ROW}px; align-items: center; box-sizing: border-box; border-top: 1px solid var(--hairline); position: absolute; left: 0; right: 0; padding: 0 6px; font: 12.5px var(--mono); }
.tensor-row.headings { position: sticky; top: 0; z-index: 1; min-width: 760px; height: 29px; border: 0; background: var(--ground); font: 12.5px var(--sans); color: var(--soft); }
.tensor-row.missing, .tensor-row.unexpected { background: color-mix(in srgb, var(--edited) 9%, transparent); }
.tensor-cell { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.tensor-row .c0 { color: var(--hue, var(--soft)); font-family: var(--sans); }
.tensor-row .c2 { color: var(--soft); }
.tensor-row .c3, .tensor-row .c4 { text-align: right; }
.nothing { margin: 6px; color: var(--soft); }
@media (max-width: 800px) { .tensor-search { margin-left: 0; width: 100%; } }
`;
