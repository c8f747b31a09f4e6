// One run in five columns: the tokens, what one head looks at from the chosen one, what it carries from there, the chosen one's way through the
// block, and the token that follows. A click or the arrow keys choose another token; each column's heading opens the rest of it.
import { make } from "../core/dom.js";
import { percent } from "../core/format.js";

const CELLS = 16; // of a vector
/**
 * `columns` are [key, heading, what is seen]; `pattern` and `values` are of one head, `stops` the named stages of a block
 * @typedef {{columns: [key: string, title: string, note: string][], pieces: string[], row: number, stops: string[], next: [piece: string, share: number][][],
 *   said: string, label: string, arrays: Record<string, {data: Float32Array, shape: number[]}>}} Home
 * @param {HTMLElement} root
 * @param {Home} data
 * @param {(event: "open", column: string) => void} emit
 */
export function mount(root, data, emit) {
  const element = root.appendChild(make("div", "home-columns"));
  const said = root.appendChild(make("p", "home-said"));
  said.setAttribute("aria-live", "polite");
  let row = data.row;

  /** @param {number} to */
  const choose = (to) => {
    row = Math.max(0, Math.min(data.pieces.length - 1, to));
    const held = element.contains(/** @type {ShadowRoot | Document} */ (element.getRootNode()).activeElement);
    draw();
    if (held) /** @type {HTMLElement | null} */ (element.querySelector(".chosen"))?.focus();
  };
  element.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!way) return;
    event.preventDefault();
    choose(row + way);
  });

  function draw() {
    const { pieces, arrays } = data;
    const count = pieces.length;
    const weights = Array.from(arrays.pattern.data.slice(row * count, (row + 1) * count));
    const most = weights.indexOf(Math.max(...weights));
    const drawn = {
      tokens: pieces.map((piece, i) => {
        const button = make("button", i === row ? "piece chosen" : "piece", piece);
        button.setAttribute("aria-pressed", String(i === row));
        button.onclick = () => choose(i);
        return line([button]);
      }),
      looks: weights.map((weight, i) => line(i > row ? [] : [bar(weight, "attention"), number(weight)], i === most)),
      carries: weights.map((weight, i) =>
        line(i > row ? [] : [strip(vector(arrays.values, i), "value", 0.15 + 0.85 * weight)], i === most),
      ),
      block: data.stops.map((name, i) => {
        const cells = strip(
          vector(arrays.stops, row * data.stops.length + i),
          i === 1 ? "attention" : i === 2 ? "mlp" : "residual",
          1,
        );
        return line([make("span", "stop", name), cells]);
      }),
      next: data.next[row].map(([piece, share]) =>
        line([make("span", "stop", piece), bar(share, "probability"), number(share)]),
      ),
    };
    element.replaceChildren(
      ...data.columns.map(([key, title, note]) => {
        const column = make("section", key);
        const open = make("button", "open", title);
        open.onclick = () => emit("open", key);
        const heading = make("h3");
        heading.append(open, make("span", "note", note));
        column.append(heading, ...drawn[/** @type {keyof typeof drawn} */ (key)]);
        return column;
      }),
    );
    const fill = { last: pieces[row], most: pieces[most], share: percent(weights[most]), next: data.next[row][0][0] };
    said.textContent = data.said.replace(/\{(\w+)\}/g, (_all, name) => fill[/** @type {keyof typeof fill} */ (name)]);
    element.setAttribute("aria-label", data.label);
  }

  draw();
  return {
    /** @param {Home} next */
    update(next) {
      if (next.row !== data.row || next.pieces.join("\n") !== data.pieces.join("\n")) row = next.row;
      data = next;
      draw();
    },
    destroy() {
      element.remove();
      said.remove();
    },
  };
}

/**
 * @param {HTMLElement[]} parts
 * @param {boolean} [marked]
 */
function line(parts, marked = false) {
  const made = make("div", marked ? "line marked" : "line");
  made.append(...parts);
  return made;
}

/**
 * @param {number} share
 * @param {string} role
 */
function bar(share, role) {
  const made = make("span", `bar ${role}`);
  made.appendChild(make("span")).style.width = `${100 * share}%`;
  return made;
}

/** @param {number} share */
function number(share) {
  return make("span", "number", percent(share));
}

/**
 * @param {{data: Float32Array, shape: number[]}} array
 * @param {number} at
 */
function vector({ data, shape }, at) {
  const size = shape[shape.length - 1];
  return Array.from(data.slice(at * size, at * size + Math.min(size, CELLS)));
}

/**
 * @param {number[]} values
 * @param {string} role
 * @param {number} strength
 */
function strip(values, role, strength) {
  const made = make("span", `strip ${role}`);
  const largest = Math.max(1e-9, ...values.map(Math.abs));
  for (const value of values) {
    const cell = made.appendChild(make("i", value < 0 ? "below" : ""));
    cell.style.opacity = String(strength * (0.1 + 0.9 * Math.min(1, Math.abs(value) / largest)));
  }
  return made;
}
