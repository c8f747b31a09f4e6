// Share & export: the link, the picture, the file that works alone, the Python and the numbers of what a view shows, below it.
import * as address from "../core/address.js";
import { make } from "../core/dom.js";
import { asked, request } from "../core/store.js";
import { link, missed, state, unlinked, unread } from "./link.js";
import { shown } from "./shown.js";
import { shade } from "../core/theme.js";
import { drawn } from "./vector.js";
import { DPI, pngFile, svgFile } from "./vector_file.js";

const WIDTH = { usual: 17, least: 4, most: 60 }; // centimetres; 17 is the text of an A4 page
const FORMATS = [
  ["csv", "CSV", "text/csv"],
  ["parquet", "Parquet", "application/vnd.apache.parquet"],
  ["npz", "npz", "application/zip"],
];

const LOOKED_AT = "what is looked at"; // in place of a table's name
const CLIPPED = 400; // characters of a text in a caption
const ROWS = ["link", "class", "picture", "file", "python", "data"];

/** `place` is a mounted view as host.js has it: {root, data, view}; data.take says what there is to take. */
export function mount(place) {
  return new TakeAway(place);
}

class TakeAway {
  constructor(place) {
    this.place = place;
    this.element = make("div", "loupe-view loupe-take");
    this.button = make("button", "open", "Share & export ▾");
    this.button.type = "button";
    this.button.setAttribute("aria-expanded", "false");
    this.button.addEventListener("click", () => this.toggle());
    this.panel = make("div", "panel");
    this.panel.hidden = true;
    this.element.addEventListener("keydown", (event) => {
      event.stopPropagation(); // the view's own keys mean something else
      if (event.key === "Escape" && !this.panel.hidden) this.toggle();
    });
    this.said = make("output", "said");
    for (const event of ["pointerenter", "focusin"]) this.panel.addEventListener(event, () => this.follow());
    this.panel.append(...ROWS.flatMap((name) => this[name]()), this.said);
    this.element.append(this.button, this.panel);
    place.root.after(this.element);
    const { view, data } = place;
    const state = address.read();
    const lost = [...unread(), ...(view.missed ? view.missed(state) : missed(state, data))];
    this.update();
    if (lost.length) this.tell(`Not all of this link could be restored: ${lost.join("; ")}.`);
  }

  get take() {
    return this.place.data.take;
  }

  update() {
    shade(this.element);
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
    this.choices.replaceChildren(make("span", "", "hide"), ...controls.map(([key, name]) => this.box(name, key)));
  }

  /** Which of several matrices is taken; hidden where there is one. */
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
    this.button.textContent = `Share & export ${opens ? "▴" : "▾"}`;
    if (opens) this.panel.scrollIntoView({ block: "nearest" });
    else this.button.focus();
  }

  /** A sentence above the view about its address, in place of the one before; none for "". */
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

  row(name, ...parts) {
    const row = make("div", "row");
    row.setAttribute("role", "group");
    row.setAttribute("aria-label", name);
    row.append(...parts);
    return [make("h4", "", name), row];
  }

  act(name, title, work) {
    const button = make("button", "", name);
    button.type = "button";
    button.title = title;
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

  box(name, value) {
    const label = make("label");
    const box = make("input");
    box.type = "checkbox";
    if (value) box.value = value;
    label.append(box, name);
    return label;
  }

  link() {
    const made = this.made();
    this.theme = this.box("keep light or dark");
    const copied = this.act("Copy link", "the address of what is shown, for others who have this Loupe", () =>
      this.copy(this.address(), made, "the link"),
    );
    return this.row("Link", copied, this.theme, made);
  }

  /** The link to what is shown; `more` is what it does for a class, see `link`. */
  async address(more = {}) {
    const shade = this.theme.firstChild.checked ? this.place.root.dataset.theme : "";
    return link(this.take, await state(this.place.view), { ...more, shade });
  }

  /** What a link for a class hides and asks. */
  class() {
    const made = this.made();
    this.choices = make("div", "class");
    this.choices.title = "a control that is hidden keeps what it is, and so does what would change it";
    this.predict = this.box("ask for a guess first");
    this.predict.title = "the picture is shown once a guess is written";
    this.warning = make("p");
    this.warning.setAttribute("role", "status");
    const code = make("div", "code made");
    code.hidden = true;
    code.setAttribute("role", "img");
    code.setAttribute("aria-label", "QR code of the link");
    const instruction = make("textarea", "instruction");
    Object.assign(instruction, {
      rows: 2,
      maxLength: 500,
      placeholder: "a question or an instruction, shown above the page",
    });
    instruction.setAttribute("aria-label", "question or instruction for the class");
    const copied = this.act("Copy class link", "the address of what is shown, as the class is to find it", () =>
      this.copy(classLink(), made, "the link for the class"),
    );
    const classLink = async () => {
      const hidden = [...this.choices.querySelectorAll("input:checked")].map(({ value }) => value);
      const local = await this.address({
        hidden,
        instruction: instruction.value.trim(),
        predict: this.predict.firstChild.checked,
      });
      const { trace } = this.take;
      const { address, code: svg, warning } = await request({ trace, ask: "export_class_link", address: local });
      code.hidden = !svg;
      const parsed = new DOMParser().parseFromString(svg, "text/html").querySelector("svg");
      code.replaceChildren(...(parsed ? [parsed] : []));
      this.warning.textContent = warning;
      return address;
    };
    return this.row("For a class", this.choices, instruction, this.predict, copied, this.warning, made, code);
  }

  picture() {
    const label = make("label");
    const width = make("input", "width");
    Object.assign(width, { type: "number", min: WIDTH.least, max: WIDTH.most, value: WIDTH.usual });
    width.setAttribute("aria-label", "width in centimetres");
    label.append(width, "cm wide");
    const parts = this.parts();
    const centimetres = () => Math.max(WIDTH.least, Math.min(WIDTH.most, width.valueAsNumber || WIDTH.usual));
    const svg = this.act("SVG", "shapes and text, for print and for drawing programs", async () => {
      const { text, note } = await this.svg(centimetres(), parts.value);
      this.save(new Blob([text], { type: "image/svg+xml" }), "svg", "", note);
    });
    const png = this.act("PNG", `${DPI} dots an inch`, async () => {
      const { text, note } = await this.svg(centimetres(), parts.value);
      this.save(await pngFile(text), "png", "", note);
    });
    this.paper = this.box("light, for paper");
    return this.row(
      "Picture",
      parts,
      svg,
      png,
      label,
      this.paper,
      make("p", "", "as shown here, with its legend and a caption"),
    );
  }

  /** Which part of a view, where it says that it has several. */
  parts() {
    const { view } = this.place;
    const select = make("select", "which");
    select.setAttribute("aria-label", "which part");
    const offer = () => {
      const before = select.value;
      select.replaceChildren(...view.pictures().map(([value, title]) => new Option(title, value)));
      if (before) select.value = before;
    };
    select.hidden = !view.pictures;
    if (view.pictures) offer();
    select.addEventListener("pointerenter", offer); // a part may have another name by now
    select.addEventListener("focus", offer);
    return select;
  }

  file() {
    const save = this.act("HTML", "opens in any browser, without a network and without Loupe", async () => {
      const { arrays } = await this.ask(
        "html",
        { state: await state(this.place.view), asked: asked() },
        shown(this.place.view).asks,
      );
      this.save(new Blob([arrays.file.data], { type: "text/html" }), "html");
    });
    return this.row("Interactive page", save, make("p", "", "this view in one file; works offline"));
  }

  python() {
    const made = make("pre", "made");
    made.tabIndex = 0;
    made.hidden = true;
    const show = this.act("Copy lines", "they load the model and print the number that is looked at", () => {
      made.hidden = true; // what stands there may be of another tab
      const { asks } = shown(this.place.view);
      const lines = this.ask("python", {}, asks).then((answer) => answer.lines);
      return this.copy(lines, made, "the lines");
    });
    return this.row("Python", show, make("p", "", "to run anywhere, once the engine is installed (see README)"), made);
  }

  data() {
    const about = make("p", "", this.take.data ?? "the matrix that is looked at, its axes named");
    this.which = make("select", "which");
    this.which.setAttribute("aria-label", "which matrix");
    const buttons = FORMATS.map(([format, name, type]) =>
      this.act(name, `the shown matrix as ${name}`, async () => {
        const { asks, file } = shown(this.place.view);
        if (!asks && !this.which.value)
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
    return this.row("Data", this.which, ...buttons, about);
  }

  // --- work --------------------------------------------------------------------------------------------------------------

  /**
   * Asks for "python", "data" or "html" of the question in view: as the view asks it, or one of the tables of the page; `of` completes it.
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
    if (kind === "html") return request({ trace, ask: "export_html", ...looked, ...query });
    return request({ trace, ask: `export_${kind}`, of: question, ...(kind === "python" && { row, col }), ...query });
  }

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
    const lines = [[model, where].filter(Boolean).join(", "), text, edits, sentence].filter(Boolean);
    return { title: what ? `${title}: ${what}` : title, lines, mark: "Loupe" };
  }

  save(blob, ending, more = "", note = "") {
    const parts = ["loupe", this.take.title, this.take.model, more]
      .filter(Boolean)
      .map((part) => part.toLowerCase().replace(/[^\w.~-]+/g, "-"));
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
   */
  async copy(coming, made, name) {
    const [text, copied] = await Promise.allSettled([coming, toClipboard(coming)]);
    if (text.status === "rejected") throw text.reason;
    if (made.tagName === "INPUT") made.value = text.value;
    else made.textContent = text.value;
    made.hidden = false;
    if (copied.status === "fulfilled") return this.say(`Copied ${name} to the clipboard.`);
    if (!(copied.reason instanceof DOMException || copied.reason instanceof TypeError)) throw copied.reason;
    this.say("This browser gives no way to the clipboard: copy from the field.");
  }

  say(sentence) {
    this.said.textContent = sentence;
  }
}

function size(bytes) {
  return bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1000))} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** Firefox before 127 has no ClipboardItem, and takes a text after an answer. */
async function toClipboard(coming) {
  if (typeof ClipboardItem === "undefined") return navigator.clipboard.writeText(await coming);
  const blob = coming.then((text) => new Blob([text], { type: "text/plain" }));
  blob.catch(() => {}); // a refused clipboard does not wait for it, and `copy` says why there is no text
  // eslint-disable-next-line compat/compat -- where it is
  return navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
}
