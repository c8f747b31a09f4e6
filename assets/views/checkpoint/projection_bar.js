// What is set above the plane: which table, by which way, how much of it is in the frame, and which kinds.
import * as address from "../core/address.js";
import { make } from "../core/dom.js";
import { KINDS } from "../core/token_kinds.js";

/** `shown` is the Projected of projection.js. */
export function bar(shown) {
  const chips = make("div", "chips-of");
  const chip = (label, pressed, act, title = "") => {
    const button = make("button", "chip-of", label);
    button.type = "button";
    button.title = title;
    button.setAttribute("aria-pressed", pressed);
    button.addEventListener("click", act);
    chips.append(button);
    return button;
  };
  const turn = (table, how) => {
    if (table !== shown.table) Object.assign(shown, { chosen: null, near: null });
    Object.assign(shown, { table, how });
    shown.remember();
    bar(shown);
    shown.ask();
  };
  if (shown.data.tables.length > 1) for (const table of shown.data.tables) chip(`${table.title}s`, table === shown.table, () => turn(table, "pca"));
  const gap = chips.appendChild(make("span", "gap-of"));
  gap.hidden = shown.data.tables.length < 2;
  chip("PCA", shown.how === "pca", () => turn(shown.table, "pca"), "the two directions in which the vectors vary most, exactly");
  if (shown.table.rows >= 4) chip("t-SNE", shown.how === "tsne", () => turn(shown.table, "tsne"), "who is near whom in all dimensions; up to 2,000 of them");
  const framed = (whole) => () => {
    shown.whole = whole;
    address.write({ frame: whole ? "all" : null });
    bar(shown);
    shown.fit();
    shown.draw();
  };
  chips.append(make("span", "gap-of"));
  chip("bulk", !shown.whole, framed(false), "without what lies far from the rest; drag moves, double-click and + and - zoom");
  chip("all", shown.whole, framed(true), "every point in the frame; drag moves, double-click and + and - zoom");
  const legend = make("div", "legend-of-points");
  if (shown.kinds) {
    for (const [kind, words, role] of KINDS) {
      const count = shown.kinds.reduce((sum, each) => sum + (each === kind), 0);
      if (!count) continue;
      const button = make("button", "kind-of");
      button.type = "button";
      button.setAttribute("aria-pressed", !shown.hidden.has(kind));
      button.style.setProperty("--hue", `var(--${role})`);
      button.append(make("span", "dot-of"), make("span", "", words), make("small", "", count.toLocaleString("en")));
      button.addEventListener("click", () => {
        shown.hidden.has(kind) ? shown.hidden.delete(kind) : shown.hidden.add(kind);
        address.write({ without: shown.hidden.size ? [...shown.hidden] : null });
        bar(shown);
        shown.fit();
        shown.draw();
      });
      legend.append(button);
    }
  } else legend.append(make("small", "", "from pale to full: by id"));
  const heading = make("h3", "", "Embedding");
  heading.append(make("span", "note", ` ${shown.table.rows.toLocaleString("en")} × ${shown.data.width.toLocaleString("en")}`));
  shown.head.replaceChildren(heading, chips, legend);
}
