// Many patterns at once: layers down, heads across, or in any other order. One click or one arrow key reaches any of them.
import { at, paint } from "./cells.js";
import { make, range } from "../core/dom.js";

/**
 * @typedef {{ layer: number, head: number }} Place
 * @typedef {[layer: number, head: number]} Pair
 * @typedef {{ layer: number, head: number, chosen?: [layer: number, head: number, role: string][], edited?: (layer: number, head: number) => boolean }} Marks
 * @typedef {Marks & { layers: number, heads: number, side: number, columns?: number, order?: Pair[] | null,
 *   pattern: (layer: number, head: number) => { block: Block, max: number },
 *   caption?: ((layer: number, head: number) => { text: string, share: number, dim: boolean }) | null }} Grid
 * @typedef {(event: "head" | "add" | "extend", where: Place) => unknown} Emit
 * @typedef {Place & { button: HTMLButtonElement, canvas: HTMLCanvasElement, element: HTMLElement, caption: HTMLElement | null }} Cell
 */

/**
 * data = {layers, heads, side, pattern: (layer, head) => {block, max}, layer, head, chosen?, order?, columns?, caption?, edited?}.
 * `chosen` are heads that are marked, each in the colour of a role: [[layer, head, role], ...]. With `order`, [[layer, head], ...], the thumbnails
 * stand in that order, `columns` a row, each under its name. `caption(layer, head)` is what stands under one: {text, share, dim}.
 * Emits "head" {layer, head} and, where the parent listens, "add" for one clicked with shift or ctrl, and "extend" for a step
 * with shift. `edited(layer, head)` says which of them an edit changed. `update(data)` draws all of them again, and where the same heads stand
 * in the same places into the canvases that are there. `mark({layer, head, chosen})` moves the frames and `caption(of)` what stands under them;
 * nothing is drawn again.
 * @param {HTMLElement} root
 * @param {Grid} data
 * @param {Emit} emit
 */
export function mount(root, data, emit) {
  let shown = data;
  /** @type {Cell[]} in the order they stand */
  let cells = [];
  let built = ""; // which heads stand where
  root.classList.add("headgrid");
  root.setAttribute("role", "grid");
  root.addEventListener("click", (event) => {
    const found = cells.find(({ button }) => button.contains(/** @type {Node} */ (event.target)));
    if (found)
      emit(event.shiftKey || event.ctrlKey || event.metaKey ? "add" : "head", { layer: found.layer, head: found.head });
  });
  root.addEventListener("keydown", (event) => {
    const columns = (shown.order ? shown.columns : null) ?? shown.heads;
    const move = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    const from = cells.findIndex(({ layer, head }) => layer === shown.layer && head === shown.head);
    const across = Math.abs(move) === 1 && !shown.order;
    const to = from + move;
    const leaves = to < 0 || to >= cells.length || (across && Math.floor(to / columns) !== Math.floor(from / columns));
    const { layer, head, button } = cells[leaves ? from : to];
    emit(event.shiftKey ? "extend" : "head", { layer, head });
    button.focus();
  });

  const view = {
    /** @param {Grid} next */
    update(next) {
      shown = next;
      const { layers, heads, order, columns } = next;
      root.setAttribute(
        "aria-label",
        order ? "attention patterns in order" : "attention patterns, layer down, head across",
      );
      const places = order ?? range(0, layers * heads).map((i) => [Math.floor(i / heads), i % heads]);
      const structure = [Boolean(order), order ? columns : heads, Boolean(next.caption), places.join(" ")].join();
      if (structure !== built) {
        cells = places.map(([layer, head]) => thumbnail(next, layer, head));
        root.replaceChildren(...rows(cells, (order ? columns : null) ?? heads, !order));
        built = structure;
      }
      for (const cell of cells) draw(cell, root, next);
      view.caption(next.caption);
      view.mark(next);
    },
    /** @param {Marks} marks */
    mark({ layer, head, chosen = [], edited = shown.edited }) {
      shown = { ...shown, layer, head, edited };
      for (const cell of cells) {
        const picked = cell.layer === layer && cell.head === head;
        cell.button.setAttribute("aria-selected", String(picked));
        const role = chosen.find(([l, h]) => l === cell.layer && h === cell.head)?.[2];
        cell.button.classList.toggle("among", role !== undefined);
        cell.button.style.setProperty("--chosen", role ? `var(--${role})` : "");
        cell.button.tabIndex = picked ? 0 : -1;
        if (edited) name(cell, edited(cell.layer, cell.head));
      }
    },
    /** @param {Grid["caption"]} of */
    caption(of) {
      if (!of) return;
      for (const { layer, head, button, element, caption } of cells) {
        const { text, share, dim } = of(layer, head);
        if (!caption) continue;
        caption.textContent = text;
        caption.style.setProperty("--share", String(share));
        element.classList.toggle("dim", dim);
        button.setAttribute(
          "aria-label",
          `block ${layer + 1}, head ${head + 1}${text ? `: ${text}` : ""}${button.classList.contains("edited") ? ", edited" : ""}`,
        );
      }
    },
    destroy: () => root.replaceChildren(),
  };
  view.update(data);
  return view;
}

/**
 * Marks a thumbnail as edited, or no longer.
 * @param {Cell} cell
 * @param {boolean} edited
 */
function name({ button }, edited) {
  if (button.classList.contains("edited") === edited) return;
  button.classList.toggle("edited", edited);
  button.title = edited ? "edited" : "";
  button.setAttribute(
    "aria-label",
    `${(button.getAttribute("aria-label") ?? "").replace(/, edited$/, "")}${edited ? ", edited" : ""}`,
  );
}

/**
 * @param {Cell[]} cells
 * @param {number} columns
 * @param {boolean} numbered
 */
function rows(cells, columns, numbered) {
  return range(0, Math.ceil(cells.length / columns)).map((i) => {
    const row = make("div");
    row.setAttribute("role", "row");
    if (numbered) row.append(rowHeader(i));
    row.append(...cells.slice(i * columns, (i + 1) * columns).map(({ element }) => element));
    return row;
  });
}

/** @param {number} layer */
function rowHeader(layer) {
  const label = make("span", "layer", layer + 1);
  label.setAttribute("role", "rowheader");
  return label;
}

/**
 * @param {Grid} grid
 * @param {number} layer
 * @param {number} head
 * @returns {Cell}
 */
function thumbnail({ caption, order }, layer, head) {
  const button = make("button");
  button.setAttribute("role", "gridcell");
  button.setAttribute("aria-label", `block ${layer + 1}, head ${head + 1}`);
  button.dataset.layer = String(layer);
  button.dataset.head = String(head);
  const canvas = button.appendChild(make("canvas"));
  if (!caption && !order) return { layer, head, button, canvas, element: button, caption: null };
  const element = make("div", "captioned");
  element.setAttribute("role", "presentation");
  const below = make("span", "caption");
  if (order) element.append(make("span", "which", `${layer + 1}·${head + 1}`));
  element.append(button, below);
  return { layer, head, button, canvas, element, caption: below };
}

/**
 * @param {Cell} cell
 * @param {Element} root
 * @param {Grid} grid
 */
function draw({ layer, head, canvas }, root, { side, pattern }) {
  const { block: whole, max } = pattern(layer, head);
  const block = peaks(whole, Math.floor(side * (window.devicePixelRatio || 1)));
  const pitch = side / block.rows;
  paint(canvas, root, { block, role: "attention", scale: "unit", max, width: side, pitch, height: pitch });
}

/**
 * A block with at most `most` rows and columns, each cell the largest of its rectangle, so that no peak is lost.
 * @param {Block} block
 * @param {number} most
 * @returns {Block}
 */
function peaks(block, most) {
  const [rows, cols] = [Math.min(block.rows, most), Math.min(block.cols, most)];
  if (rows === block.rows && cols === block.cols) return block;
  const data = new Float32Array(rows * cols);
  for (let r = 0; r < block.rows; r++) {
    const start = Math.floor((r * rows) / block.rows) * cols;
    for (let c = 0; c < block.cols; c++) {
      const i = start + Math.floor((c * cols) / block.cols);
      const value = at(block, r, c);
      if (value > data[i]) data[i] = value;
    }
  }
  return { data, offset: 0, stride: cols, rows, cols };
}
