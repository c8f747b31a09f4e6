// All patterns at once: layers down, heads across. One click or one arrow key reaches any of them.
import { paint } from "./cells.js";

/**
 * data = {layers, heads, side, pattern: (layer, head) => {block, max}, layer, head}; emits "head" {layer, head}.
 * `mark({layer, head})` moves the frame without drawing anything again.
 */
export function mount(root, data, emit) {
  let shown = data;
  let buttons = [];
  root.classList.add("headgrid");
  root.setAttribute("role", "grid");
  root.setAttribute("aria-label", "attention patterns, layer down, head across");
  root.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) emit("head", { layer: Number(button.dataset.layer), head: Number(button.dataset.head) });
  });
  root.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    const layer = Math.max(0, Math.min(shown.layers - 1, shown.layer + move[0]));
    const head = Math.max(0, Math.min(shown.heads - 1, shown.head + move[1]));
    emit("head", { layer, head });
    buttons[layer * shown.heads + head]?.focus();
  });

  const view = {
    update(next) {
      shown = next;
      buttons = [];
      const rows = [];
      for (let layer = 0; layer < next.layers; layer++) {
        const row = document.createElement("div");
        row.setAttribute("role", "row");
        const label = document.createElement("span");
        label.className = "layer";
        label.setAttribute("role", "rowheader");
        label.textContent = layer + 1;
        row.append(label);
        for (let head = 0; head < next.heads; head++) row.append(thumbnail(root, next, layer, head, buttons));
        rows.push(row);
      }
      root.replaceChildren(...rows);
      view.mark(next);
    },
    mark({ layer, head }) {
      shown = { ...shown, layer, head };
      buttons.forEach((button, i) => {
        const chosen = i === layer * shown.heads + head;
        button.setAttribute("aria-selected", String(chosen));
        button.tabIndex = chosen ? 0 : -1;
      });
    },
    destroy: () => root.replaceChildren(),
  };
  view.update(data);
  return view;
}

function thumbnail(root, { side, pattern }, layer, head, buttons) {
  const button = document.createElement("button");
  button.setAttribute("role", "gridcell");
  button.setAttribute("aria-label", `block ${layer + 1}, head ${head + 1}`);
  button.dataset.layer = layer;
  button.dataset.head = head;
  const canvas = document.createElement("canvas");
  const { block, max } = pattern(layer, head);
  const pitch = side / block.rows;
  paint(canvas, root, { block, role: "attention", scale: "unit", max, width: side, pitch, height: pitch });
  button.append(canvas);
  buttons.push(button);
  return button;
}
