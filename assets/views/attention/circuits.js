// What a head's weights do to any token, whatever the text around it: the tokens that it writes when it is attended to (OV),
// and which tokens attend to which by content alone (QK). Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".
import { endOf } from "./colours.js";
import { at, extent, mountCells } from "../components/cells.js";
import { legible } from "../core/contrast.js";
import { make, range } from "../core/dom.js";
import { counted, number } from "../core/format.js";
import { axis, legend } from "../components/legend.js";
import { colour, ramp, step } from "../core/palette.js";

/**
 * @typedef {import("./attention.js").Face} Face
 * @typedef {import("../core/store.js").Answers} Answers
 * @typedef {ReturnType<typeof table>} Part
 */

const LABEL = 104; // CSS pixels of a token at the left of a row
const PROMOTED = 118; // of a promoted token with its logit
const CELL = { least: 12, most: 46, written: 36 }; // the width of a score; from `written` on its number stands in it
const ROW = { height: 24, least: 16, long: 40 }; // CSS pixels; lower from `long` tokens on

/**
 * @param {HTMLElement} root
 * @param {Face} page
 */
export function mount(root, page) {
  return new Circuits(root, page);
}

class Circuits {
  /** @type {string | undefined} */
  wanted;

  /**
   * @param {HTMLElement} root
   * @param {Face} page
   */
  constructor(root, page) {
    this.page = page;
    this.turn = 0;
    root.classList.add("circuits");
    this.ov = table("OV", "what is written when a token is attended to");
    this.qk = table("QK", "who attends to whom, by content alone");
    root.append(this.ov.element, this.qk.element);
  }

  update() {
    const { page } = this;
    const { side, focus, layer, head } = page.state;
    const wanted = [page.trace.trace, side, focus, layer, head, page.width, this.theme(), page.drawnAgain].join();
    if (wanted === this.wanted) return;
    this.wanted = wanted;
    const turn = ++this.turn;
    this.ask({ ask: "ov", layer, head, side, focus }, this.ov, (answer) => this.promoted(answer), turn);
    this.ask({ ask: "qk", layer, head, side, focus }, this.qk, (answer) => this.scored(answer), turn);
  }

  theme() {
    return colour(this.ov.element, "ground");
  }

  /**
   * @template {"ov" | "qk"} Name
   * @param {import("../core/store.js").Query<Name>} query
   * @param {Part} part
   * @param {(answer: Answers[Name]) => void} build
   * @param {number} turn
   */
  async ask(query, part, build, turn) {
    part.body.classList.add("waiting");
    try {
      const answer = await this.page.request(query);
      if (turn !== this.turn) return;
      part.note.textContent = answer.note ?? "";
      build(answer);
    } catch (error) {
      if (turn !== this.turn) return;
      part.note.textContent = error.message;
      part.body.replaceChildren();
    }
    part.body.classList.remove("waiting");
  }

  /**
   * Row by row: a token of the text and what it promotes, the strongest first.
   * @param {import("../core/store.js").Answers["ov"]} answer
   */
  promoted({ arrays, names }) {
    const { ids, top, logits } = arrays;
    const [rows, cols] = top.shape;
    const fitting = Math.floor((this.page.width - LABEL) / PROMOTED);
    const shown = Math.max(1, Math.min(cols, this.page.narrow ? 2 * fitting : fitting)); // in two lines on a phone
    const most = endOf(this.page, "promoted", Math.max(...logits.data.map(Math.abs), 1e-9));
    let copies = 0;
    const grid = make("div", "promoted");
    grid.setAttribute("role", "table");
    grid.style.setProperty(
      "--wide",
      `${Math.floor((this.page.width - LABEL) / Math.max(1, Math.min(cols, fitting))) - 4}px`,
    );
    grid.setAttribute("aria-label", "tokens of the text and the tokens they promote");
    for (const row of range(0, rows)) {
      const itself = top.data.subarray(row * cols, (row + 1) * cols).indexOf(ids.data[row]);
      copies += itself >= 0 ? 1 : 0;
      const line = make("div", "promoted-row");
      line.setAttribute("role", "row");
      line.append(token(names[ids.data[row]], "rowheader", "read"));
      const places = range(0, shown);
      if (itself >= shown) places[shown - 1] = itself; // it is what one looks for, so it takes the last place that is shown
      const list = line.appendChild(make("span", "candidates"));
      for (const place of places) {
        const value = logits.data[row * cols + place];
        list.append(
          this.candidate(names[top.data[row * cols + place]], value, value / most, { place, itself: place === itself }),
        );
      }
      grid.append(line);
    }
    const sum = make("p", "copies");
    sum.append(
      make("strong", "", `${copies} of ${rows}`),
      ` tokens promote themselves among their first ${cols}`,
      copies ? " (framed)" : "",
    );
    this.ov.body.replaceChildren(sum, grid);
  }

  /**
   * @param {string} piece
   * @param {number} logit
   * @param {number} share
   * @param {{ place: number, itself: boolean }} which
   */
  candidate(piece, logit, share, { place, itself }) {
    const cell = make("span", `candidate${itself ? " itself" : ""}`);
    cell.setAttribute("role", "cell");
    cell.style.setProperty("--share", `${Math.round(38 * Math.max(0, share))}%`);
    cell.append(make("bdi", "", piece), make("span", "logit", short(logit)));
    cell.addEventListener("pointerenter", () =>
      this.page.tip(`${place + 1}. ${piece}${itself ? ", itself" : ""}`, number(logit)),
    );
    cell.addEventListener("pointerleave", () => this.page.tip(null));
    return cell;
  }

  /**
   * The scores as a heat map, with numbers where they have room.
   * @param {import("../core/store.js").Answers["qk"]} answer
   */
  scored({ arrays, names }) {
    const { ids, keys, scores } = arrays;
    const [rows, cols] = scores.shape;
    const block = { data: scores.data, offset: 0, stride: cols, rows, cols };
    const wide = Math.max(CELL.least, Math.min(CELL.most, (this.page.width - LABEL - 30) / cols));
    const width = Math.round(wide * cols);
    const pitch = rows > ROW.long ? ROW.least : ROW.height;
    const map = make("div", "scored");
    const labels = make("div", "scored-rows");
    for (const id of ids.data) labels.append(token(names[id], "presentation", "as-query"));
    const place = make("div");
    const below = axis(
      Array.from(/** @type {Cells} */ (keys.data), (id) => names[id]),
      width,
    );
    below.element.style.width = `${width}px`;
    const cells = make("div");
    place.append(cells, below.element);
    map.style.setProperty("--row", `${pitch}px`);
    map.append(labels, place);
    const colours = legend(this.qk.element, { role: "attention", scale: "signed", width: 120 });
    const corner = make("p", "corner");
    corner.append(
      make("span", "role-query", "query"),
      " down, ",
      make("span", "role-key", "key"),
      " across: q · k / √d_head",
    );
    this.qk.body.replaceChildren(corner, map, colours.element);
    const max = endOf(this.page, "qk", extent(block));
    colours.show(block, max);
    const label = `scores of ${counted(rows, "token")} as queries by ${cols} as keys`;
    const view = mountCells(
      cells,
      { block, role: "attention", scale: "signed", max, width, pitch, height: pitch - 2, label },
      (event, where) => {
        if (event === "pick") return;
        view.mark({ lit: where?.col ?? null, picked: where });
        [...labels.children].forEach((one, i) => one.classList.toggle("pointed", i === where?.row));
        below.labels.forEach((one, i) => one.classList.toggle("as-key", i === where?.col));
        if (where)
          this.page.tip(
            `${names[ids.data[where.row]]} → ${names[keys.data[where.col]]}`,
            number(at(block, where.row, where.col)),
          );
        else this.page.tip(null);
      },
    );
    if (wide >= CELL.written) cells.append(written(block, width / cols, this.inks(max)));
  }

  /**
   * x -> the colour in which a number is read on the cell of x.
   * @param {number} max
   */
  inks(max) {
    const [inks, colours] = [legible(this.qk.element), ramp(this.qk.element, "attention", "signed")];
    return (/** @type {number} */ x) => inks(colours[step(x, "signed", max)]);
  }

  mark() {}

  destroy() {
    this.turn++;
    this.page.tip(null);
  }
}

/**
 * @param {string} name
 * @param {string} title
 */
function table(name, title) {
  const element = make("section", "circuit");
  const heading = make("h3", "", `${name} `);
  heading.append(make("span", "note", title));
  const body = make("div", "circuit-body");
  const note = make("p", "circuit-note");
  element.append(heading, body, note);
  return { element, body, note };
}

/**
 * @param {string} piece
 * @param {string} role
 * @param {string} name
 */
function token(piece, role, name) {
  const element = make("span", `circuit-token ${name}`);
  element.setAttribute("role", role);
  const text = make("bdi", "", piece);
  text.title = piece;
  element.append(text);
  return element;
}

/**
 * The numbers in the cells.
 * @param {Block} block
 * @param {number} wide
 * @param {(x: number) => string} ink
 */
function written(block, wide, ink) {
  const element = make("div", "written");
  element.setAttribute("aria-hidden", "true"); // the map says them, one by one
  element.style.gridTemplateColumns = `repeat(${block.cols}, ${wide}px)`;
  for (const row of range(0, block.rows)) {
    for (const col of range(0, block.cols)) {
      const value = at(block, row, col);
      element.appendChild(make("span", "", short(value))).style.color = ink(value);
    }
  }
  return element;
}

/**
 * Three digits, for a number that is one of many; all of them are said where it is pointed at.
 * @param {number} x
 */
function short(x) {
  const size = Math.abs(x);
  const text = size >= 100 ? x.toFixed(0) : size >= 10 ? x.toFixed(1) : x.toFixed(2);
  return text.replace(/^-(?=.*[1-9])/, "−").replace(/^-/, "");
}
