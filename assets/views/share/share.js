// Share & export: the link, the picture, the file that works alone, the Python and the numbers of what a view shows, below it.
import * as address from "../core/address.js";
import { make } from "../core/dom.js";
import { asked, inquire } from "../core/store.js";
import { link, missed, state, unlinked, unread } from "./link.js";
import { shown } from "./shown.js";
import { shade } from "../core/theme.js";
import { drawn } from "./vector.js";
import { DPI, pngFile, svgFile } from "./vector_file.js";

/**
 * @typedef {import("./shown.js").Asks} Asks
 * @typedef {import("./shown.js").Asked} Asked
 * @typedef {"link" | "class" | "session" | "picture" | "file" | "python" | "data"} Row
 * @typedef {Record<string, string> & { row: Row }} Words of a row
 * @typedef {{ open: string, rows: Words[], controls: [key: string, name: string][], predicts: boolean, matrices?: string[], tables?: Record<string, Asked>,
 *   trace: string, link?: Record<string, string>, hidden: string[], data?: string, read: string, title: string, model: string, edits: string,
 *   names: string[] }} Take what there is to take
 * @typedef {Pick<import("../core/host.js").Place, "root" | "data" | "emit"> & { view: import("./shown.js").View }} Place
 */

const WIDTH = { usual: 17, least: 4, most: 60 }; // centimetres; 17 is the text of an A4 page
/** @type {[format: "csv" | "parquet" | "npz", name: string, type: string][]} */
const FORMATS = [
  ["csv", "CSV", "text/csv"],
  ["parquet", "Parquet", "application/vnd.apache.parquet"],
  ["npz", "npz", "application/zip"],
];

const LOOKED_AT = "what is looked at"; // in place of a table's name
const CLIPPED = 400; // characters of a text in a caption

/**
 * `place` is a mounted view as host.js has it: {root, data, view}; data.take says what there is to take, and its rows with their words.
 * @param {Place} place
 */
export function mount(place) {
  return new TakeAway(place);
}

class TakeAway {
  /** @type {string | undefined} the controls that a link for a class may hide, in words */
  offered;
  /** @type {string} the rows that there are, in words */
  words;

  /** @param {Place} place */
  constructor(place) {
    this.place = place;
    this.element = make("div", "loupe-view loupe-take");
    this.button = make("button", "open");
    this.button.type = "button";
    this.button.setAttribute("aria-expanded", "false");
    this.button.addEventListener("click", () => this.toggle());
    this.panel = make("div", "panel");
    this.panel.hidden = true;
    this.element.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      event.stopPropagation(); // the view's own keys mean something else
      if (event.key === "Escape" && !this.panel.hidden) this.toggle();
    });
    this.said = make("output", "said");
    for (const event of ["pointerenter", "focusin"]) this.panel.addEventListener(event, () => this.follow());
    this.which = make("select", "which");
    this.element.append(this.button, this.panel);
    place.root.after(this.element);
    const { view, data } = place;
    const state = address.read();
    const lost = [...unread(), ...(view.missed ? view.missed(state) : missed(state, data))];
    this.update();
    if (lost.length) this.tell(`Not all of this link could be restored: ${lost.join("; ")}.`);
  }

  /** @returns {Take} */
  get take() {
    return this.place.data.take;
  }

  update() {
    shade(this.element);
    this.build();
    this.tell(unlinked(this.take));
    for (const made of this.element.querySelectorAll(".made")) made.hidden = true; // it was of what was shown then
    if (this.paper) this.paper.hidden = this.place.root.dataset.theme !== "dark";
    const { controls, predicts, matrices = [] } = this.take;
    this.predict.hidden = !predicts;
    this.warning.textContent = "";
    this.choose(matrices);
    const keys = controls.map(([key]) => key).join();
    if (keys === this.offered) return;
    this.offered = keys;
    this.choices.hidden = !controls.length;
    this.choices.replaceChildren(this.hide, ...controls.map(([key, name]) => this.box(name, key)));
  }

  /** The rows that there are, once for the same ones. */
  build() {
    const { open, rows } = this.take;
    const words = JSON.stringify([open, rows]);
    if (words === this.words) return;
    this.words = words;
    this.offered = this.paper = undefined;
    this.label();
    this.panel.replaceChildren(...rows.flatMap((row) => this[row.row](row)), this.said);
  }

  label() {
    this.button.textContent = `${this.take.open} ${this.panel.hidden ? "▾" : "▴"}`;
  }

  /**
   * Which of several matrices is taken; hidden where there is one.
   * @param {string[]} names
   */
  choose(names) {
    if (names.join() === this.named) return;
    this.named = names.join();
    const before = this.which.value;
    this.which.replaceChildren(...names.map((name) => new Option(name || LOOKED_AT, name)));
    this.which.hidden = names.length < 2;
    if (names.includes(before)) this.which.value = before;
  }

  /** Of tables with the names of tabs before them, those of the open tab first. */
  follow() {
    const tab = this.place.data.view;
    if (tab === this.tab) return;
    this.tab = tab;
    const own = [...this.which.options].find(({ value }) => value.toLowerCase().startsWith(`${tab}:`));
    if (own) this.which.value = own.value;
  }

  toggle() {
    const opens = this.panel.hidden;
    this.follow();
    this.panel.hidden = !opens;
    this.button.setAttribute("aria-expanded", String(opens));
    this.label();
    if (opens) this.panel.scrollIntoView({ block: "nearest" });
    else this.button.focus();
  }

  /**
   * A sentence above the view about its address, in place of the one before; none for "".
   * @param {string} sentence
   */
  tell(sentence) {
    if (sentence && this.told?.isConnected && this.told.textContent === sentence) return shade(this.told);
    this.told?.remove();
    if (!sentence) return;
    this.told = make("p", "loupe-view loupe-lost", sentence);
    this.told.setAttribute("role", "status");
    shade(this.told);
    this.place.root.before(this.told);
  }

  // --- rows --------------------------------------------------------------------------------------------------------------

  /**
   * @param {string} name
   * @param {...(HTMLElement | string)} parts
   */
  row(name, ...parts) {
    const row = make("div", "row");
    row.setAttribute("role", "group");
    row.setAttribute("aria-label", name);
    row.append(...parts);
    return [make("h4", "", name), row];
  }

  /**
   * @param {string} name
   * @param {() => unknown} work
   */
  act(name, work, hint = "") {
    const button = make("button", "", name);
    button.type = "button";
    button.title = hint;
    button.addEventListener("click", async () => {
      if (button.ariaDisabled === "true") return; // at work already; a disabled button would lose the focus
      button.ariaDisabled = "true";
      this.say("");
      try {
        await work();
      } catch (error) {
        this.say(error.message);
      }
      button.ariaDisabled = "false";
    });
    return button;
  }

  /**
   * @param {string} name
   * @param {string} [value]
   */
  box(name, value) {
    const label = make("label");
    const box = make("input");
    box.type = "checkbox";
    if (value) box.value = value;
    label.append(box, name);
    return label;
  }

  /** @param {Words} words */
  link({ title, copy, hint, copied, theme }) {
    const made = this.made();
    this.theme = this.box(theme);
    const button = this.act(copy, () => this.copy(this.address(), made, copied), hint);
    return this.row(title, button, this.theme, made);
  }

  /** The link to what is shown; `more` is what it does for a class, see `link`. */
  async address(more = {}) {
    const shade = this.theme.firstChild.checked ? this.place.root.dataset.theme : "";
    const { trace, link: said } = this.take;
    const query = said ?? (await inquire({ trace, ask: "export_link" })).link;
    return link(query, await state(this.place.view), { ...more, shade });
  }

  /** The same, with what the row for a class says. */
  forClass() {
    const chosen = [...this.choices.querySelectorAll("input:checked")].map(({ value }) => value);
    return this.address({
      hidden: [...this.take.hidden, ...chosen],
      instruction: this.instruction.value.trim(),
      predict: this.predict.firstChild.checked,
    });
  }

  /**
   * What a link for a class hides and asks.
   * @param {Words} words
   */
  class({ title, hide, keeps, instruction, above, predict, before, copy, hint, copied, code: name }) {
    const made = this.made();
    this.hide = make("span", "", hide);
    this.choices = make("div", "class");
    this.choices.title = keeps;
    this.predict = this.box(predict);
    this.predict.title = before;
    this.warning = make("p");
    this.warning.setAttribute("role", "status");
    const code = make("div", "code made");
    code.hidden = true;
    code.setAttribute("role", "img");
    code.setAttribute("aria-label", name);
    this.instruction = make("textarea", "instruction");
    Object.assign(this.instruction, {
      rows: 2,
      maxLength: 500,
      placeholder: instruction,
      title: above,
      ariaLabel: instruction,
    });
    const classLink = async () => {
      const [{ trace }, local] = [this.take, await this.forClass()];
      const { address, code: svg, warning } = await inquire({ trace, ask: "export_class_link", address: local });
      code.hidden = !svg;
      const parsed = new DOMParser().parseFromString(svg, "text/html").querySelector("svg");
      code.replaceChildren(...(parsed ? [parsed] : []));
      this.warning.textContent = warning;
      return address;
    };
    const button = this.act(copy, () => this.copy(classLink(), made, copied), hint);
    return this.row(title, this.choices, this.instruction, this.predict, button, this.warning, made, code);
  }

  /**
   * The server leads to the class session.
   * @param {Words} words
   */
  session({ title, open }) {
    const lead = async () => {
      const made = await this.forClass();
      address.expectTurn();
      this.place.emit("session", made);
    };
    return this.row(title, this.act(open, lead));
  }

  /** @param {Words} words */
  picture({ title, part, width: wide, measure, light, note: shows }) {
    const label = make("label");
    const width = make("input", "width");
    Object.assign(width, { type: "number", min: WIDTH.least, max: WIDTH.most, value: WIDTH.usual });
    width.setAttribute("aria-label", measure);
    label.append(width, wide);
    const parts = this.parts(part);
    const centimetres = () => Math.max(WIDTH.least, Math.min(WIDTH.most, width.valueAsNumber || WIDTH.usual));
    const svg = this.act("SVG", async () => {
      const { text, note } = await this.svg(centimetres(), parts.value);
      this.save(new Blob([text], { type: "image/svg+xml" }), "svg", "", note);
    });
    const png = this.act("PNG", async () => {
      const { text, note } = await this.svg(centimetres(), parts.value);
      this.save(await pngFile(text), "png", "", note);
    });
    png.title = `${DPI} dpi`;
    this.paper = this.box(light);
    return this.row(title, parts, svg, png, label, this.paper, make("p", "", shows));
  }

  /**
   * Which part of a view, where it says that it has several.
   * @param {string} name
   */
  parts(name) {
    const { view } = this.place;
    const select = make("select", "which");
    select.setAttribute("aria-label", name);
    const offer = () => {
      const before = select.value;
      select.replaceChildren(...(view.pictures?.() ?? []).map(([value, title]) => new Option(title, value)));
      if (before) select.value = before;
    };
    select.hidden = !view.pictures;
    if (view.pictures) offer();
    select.addEventListener("pointerenter", offer); // a part may have another name by now
    select.addEventListener("focus", offer);
    return select;
  }

  /** @param {Words} words */
  file({ title, note }) {
    const save = this.act("HTML", async () => {
      const { arrays } = await this.ask(
        "html",
        { state: await state(this.place.view), asked: asked() },
        shown(this.place.view).asks,
      );
      this.save(new Blob([arrays.file.data], { type: "text/html" }), "html");
    });
    return this.row(title, save, make("p", "", note));
  }

  /** @param {Words} words */
  python({ title, copy, copied, note }) {
    const made = make("pre", "made");
    made.tabIndex = 0;
    made.hidden = true;
    const show = this.act(copy, () => {
      made.hidden = true; // what stands there may be of another tab
      const { asks } = shown(this.place.view);
      const lines = this.ask("python", {}, asks).then((answer) => answer.lines);
      return this.copy(lines, made, copied);
    });
    return this.row(title, show, make("p", "", note), made);
  }

  /** @param {Words} words */
  data({ title, which }) {
    const about = make("p", "", this.take.data ?? "the matrix that is looked at, its axes named");
    this.which.setAttribute("aria-label", which);
    const buttons = FORMATS.map(([format, name, type]) =>
      this.act(name, async () => {
        const { asks, file } = shown(this.place.view);
        if (!asks && !this.take.tables?.[this.which.value])
          throw new Error("Nothing is looked at here that is a matrix; choose a cell first.");
        const matrix = this.which.value;
        const { arrays } = await this.ask("data", { format }, asks);
        this.save(
          new Blob([arrays.file.data], { type }),
          format,
          [file, matrix.replace("−", "less")].filter(Boolean).join("-"),
        );
      }),
    );
    return this.row(title, this.which, ...buttons, about);
  }

  // --- work --------------------------------------------------------------------------------------------------------------

  /**
   * Asks for "python", "data" or "html" of the question in view: as the view asks it, or one of the tables of the page; `of` completes it.
   * @param {"html" | "python" | "data"} kind
   * @param {Record<string, unknown>} query
   * @param {Asks | undefined} asks
   * @returns {Promise<{ [entry: string]: any }>}
   */
  ask(kind, query, asks) {
    const { trace } = this.take;
    const { tab, tables, file, of, hook, head, moved, row, col } = asks ?? {};
    const matrix = this.which.value;
    const own = this.take.tables?.[matrix];
    const picked = kind !== "html" && this.take.matrices?.includes("") ? own : undefined; // in place of what is looked at
    const chosen = (kind === "data" && tables?.[matrix]) || picked || tab || own;
    const question = { ...(chosen ?? { ask: "matrix", hook, head: head ?? null, ...(moved && { moved }) }), ...of };
    const looked = file ?? ((of || (hook && !tables)) && { of: question, row: row ?? null }); // a long text has more of it in its file
    if (kind === "html")
      return inquire(
        /** @type {import("../core/store.js").Query<"export_html">} */ ({
          trace,
          ask: "export_html",
          ...looked,
          ...query,
        }),
      );
    return inquire(
      /** @type {import("../core/store.js").Query<"export_python" | "export_data">} */ (
        /** @type {unknown} */ ({
          trace,
          ask: `export_${kind}`,
          of: question,
          ...(kind === "python" && { row, col }),
          ...query,
        })
      ),
    );
  }

  /**
   * @param {number} centimetres
   * @param {string} part
   */
  async svg(centimetres, part) {
    const { root, view, data } = this.place;
    const { theme } = root.dataset;
    if (this.paper.firstChild.checked) root.dataset.theme = "light";
    view.unfold?.(true, part); // what scrolls by itself is drawn as long as it is
    try {
      const picture = await drawn(root, () => view.update(data));
      return svgFile(picture, this.caption(), root, centimetres);
    } finally {
      view.unfold?.(false);
      if (root.dataset.theme !== theme) {
        root.dataset.theme = theme;
        view.update(data);
      }
    }
  }

  caption() {
    const { where, what, sentence, read = this.take.read } = shown(this.place.view);
    const { title, model, edits } = this.take;
    const text =
      read.length > CLIPPED ? `${read.slice(0, CLIPPED)}… (${read.length.toLocaleString("en")} characters)` : read;
    const lines = [[model, where].filter(Boolean).join(", "), text, edits, sentence ?? ""].filter(Boolean);
    return { title: what ? `${title}: ${what}` : title, lines, mark: "Loupe" };
  }

  /**
   * @param {Blob} blob
   * @param {string} ending
   */
  save(blob, ending, more = "", note = "") {
    const parts = ["loupe", ...this.take.names, more].filter(Boolean).map((part) =>
      part
        .toLowerCase()
        .replace(/[^\p{L}\p{M}\p{N}_.~-]+/gu, "-")
        .replace(/^-|-$/g, ""),
    );
    const anchor = make("a");
    anchor.download = `${parts.join("-")}.${ending}`;
    anchor.href = URL.createObjectURL(blob);
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(anchor.href), 60000);
    this.say([anchor.download, size(blob.size), note].filter(Boolean).join(", "));
  }

  made() {
    const made = make("input", "made");
    made.readOnly = true;
    made.hidden = true;
    made.setAttribute("aria-label", "what was made");
    made.addEventListener("focus", () => made.select());
    return made;
  }

  /**
   * Copies what is on its way, and shows it in `made`. Called within the click: WebKit refuses what comes after an answer.
   * @param {Promise<string>} coming
   * @param {HTMLInputElement | HTMLPreElement} made
   * @param {string} sentence
   */
  async copy(coming, made, sentence) {
    const [text, copied] = await Promise.allSettled([coming, toClipboard(coming)]);
    if (text.status === "rejected") throw text.reason;
    if (made instanceof HTMLInputElement) made.value = text.value;
    else made.textContent = text.value;
    made.hidden = false;
    if (copied.status === "fulfilled") return this.say(sentence);
    if (!(copied.reason instanceof DOMException || copied.reason instanceof TypeError)) throw copied.reason;
    this.say("This browser gives no way to the clipboard: copy from the field.");
  }

  /** @param {string} sentence */
  say(sentence) {
    this.said.textContent = sentence;
  }
}

/** @param {number} bytes */
function size(bytes) {
  return bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1000))} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/**
 * Firefox before 127 has no ClipboardItem, and takes a text after an answer.
 * @param {Promise<string>} coming
 */
async function toClipboard(coming) {
  if (typeof ClipboardItem === "undefined") return navigator.clipboard.writeText(await coming);
  const blob = coming.then((text) => new Blob([text], { type: "text/plain" }));
  blob.catch(() => {}); // a refused clipboard does not wait for it, and `copy` says why there is no text
  // eslint-disable-next-line compat/compat -- where it is
  return navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
}
