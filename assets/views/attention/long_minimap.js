// The whole head, small, with a frame around what the map shows; a click or a drag goes there.
import { paint } from "../components/cells.js";
import { make } from "../core/dom.js";

const TALL = 46; // CSS pixels
const WIDE = { least: 28, most: 168 };

/** {element, update(window, rest, shown)}; `shown` is the {block, max, role} to draw, with a `name`. Calls `go(row, col)` with what is to be in the middle. */
export function minimap(page, go) {
  const element = make("div", "minimap");
  const canvas = make("canvas");
  const frame = make("div", "minimap-frame");
  element.append(canvas, frame);
  canvas.setAttribute("role", "img");
  let drawn = "";
  let size = { rows: 1, cols: 1, width: TALL };
  const jump = (event) => {
    const box = canvas.getBoundingClientRect();
    go(((event.clientY - box.top) / TALL) * size.rows - 0.5, ((event.clientX - box.left) / size.width) * size.cols - 0.5);
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    jump(event);
  });
  canvas.addEventListener("pointermove", (event) => canvas.hasPointerCapture(event.pointerId) && jump(event));

  const update = ({ zoom, top, left, across, down }, { rows, cols }, { block, max, role, name }) => {
    const { state } = page;
    const width = Math.round(Math.max(WIDE.least, Math.min(WIDE.most, (TALL * cols) / rows)));
    size = { rows, cols, width };
    const key = [page.edition, state.side, state.focus, state.layer, state.head, name].join();
    if (key !== drawn) {
      const pitch = TALL / block.rows;
      paint(canvas, page.element, { block, role, scale: "unit", max, width, pitch, height: pitch, hidden: (r, c) => !block.data[block.offset + r * block.stride + c] });
      Object.assign(canvas.style, { width: `${width}px`, height: `${TALL}px` });
    }
    drawn = key;
    element.title = "the whole of this head; click to go there";
    canvas.setAttribute("aria-label", "the whole of this head, and what of it is in view");
    frame.hidden = zoom === 1;
    const share = (x, all, to) => (x / all) * to;
    Object.assign(frame.style, {
      transform: `translate(${share(left, cols, width)}px, ${share(top, rows, TALL)}px)`,
      width: `${Math.max(5, share(across, cols, width))}px`,
      height: `${Math.max(5, share(down, rows, TALL))}px`,
    });
  };
  return { element, update };
}
