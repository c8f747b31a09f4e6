// A text of tokens: what was given, and what was written behind it, each token tinted by its probability. Of a picture, its pixels.
import { make } from "../core/dom.js";
import { percent } from "../core/format.js";
import { mount as mountPixels } from "./pixels.js";

const DEEPEST = 54; // percent of the hue, at a probability of 1

/** `look(at)`: a token is clicked, by its place among those that were written; `glance(at)`: the pointer is on it, null for none. */
export function mount(root, page, look, glance) {
  return new Text(root, page, look, glance);
}

export function tint(p) {
  return `${Math.round(DEEPEST * Math.sqrt(p))}%`;
}

class Text {
  constructor(root, page, look, glance) {
    Object.assign(this, { root, page, look, glance });
    this.spans = []; // of what was written
    this.drawn = null; // what stands there now
    this.root.append(this.legend(), (this.place = make("div", "text-of")));
    this.place.tabIndex = 0;
    this.place.setAttribute("role", "group");
    this.place.addEventListener("click", (event) => this.pick(event));
    this.place.addEventListener("pointerover", (event) => this.hover(event));
    this.place.addEventListener("pointerleave", () => {
      page.tip(null);
      glance(null);
    });
    this.place.addEventListener("keydown", (event) => this.key(event));
  }

  legend() {
    const legend = make("p", "text-legend");
    const bar = make("span", "legend-bar");
    const given = make("span", "given-of", "given");
    const chosen = make("span", "chosen-of", "chosen by you");
    legend.append(given, make("span", "", "written, probability 0"), bar, make("span", "", "1"), chosen);
    return legend;
  }

  update() {
    const { page } = this;
    const { data, tree } = page;
    if (data.grid) return this.updatePixels();
    const path = tree.path();
    const name = JSON.stringify([data.trace, page.narrow]);
    const same = this.drawn?.name === name;
    if (!same) this.build(name);
    const keys = path.map(({ key }) => key);
    let alike = 0;
    while (alike < keys.length && this.drawn.keys[alike] === keys[alike]) alike++;
    for (const { span, lead } of this.spans.splice(alike)) for (const part of [lead, span]) part.remove();
    path.slice(alike).forEach((node, i) => this.put(node, alike + i));
    this.drawn.keys = keys;
    this.mark(path);
  }

  updatePixels() {
    if (!this.pixels) {
      this.place.replaceChildren();
      this.pixels = mountPixels(this.place, this.page, this.look);
    }
    this.pixels.update();
  }

  /** The prompt, with a place for what is written. */
  build(name) {
    const { data } = this.page;
    this.pixels = null;
    this.drawn = { name, keys: [] };
    this.spans = [];
    this.end = make("span", "caret");
    this.end.title = "what follows";
    this.end.dataset.at = "end";
    this.gaps = [];
    if (data.source) this.place.replaceChildren(this.part("source", data.source, []), this.part("target", data.prompt, [this.end]));
    else if (data.gap) this.place.replaceChildren(this.gapped());
    else this.place.replaceChildren(this.part("", data.prompt, [this.end]));
    this.place.setAttribute("aria-label", "the text; left and right go from token to token");
  }

  part(title, text, more) {
    const part = make("div", "part");
    if (title) part.append(make("h3", "", title));
    const flow = make("div", "flow-of");
    flow.append(...text.pieces.flatMap((piece, i) => given(piece, text.special[i], this.page.data.spaced)), ...more);
    part.append(flow);
    return part;
  }

  /** A text whose gaps are filled where they stand: the words behind the start token go to the first gap, those behind the next one to the next. */
  gapped() {
    const { prompt, gap, spaced } = this.page.data;
    const flow = make("div", "flow-of");
    const from = prompt.ids.indexOf(gap.start);
    const begun = prompt.ids.slice(from);
    prompt.ids.slice(0, from).forEach((id, i) => {
      if (id !== gap.mask) return flow.append(...given(prompt.pieces[i], prompt.special[i], spaced));
      const hole = make("span", "gap-of");
      this.gaps.push(hole);
      flow.append(hole);
    });
    if (!this.gaps.length) this.gaps.push(flow.appendChild(make("span", "gap-of")));
    let filled = -1;
    begun.forEach((id, i) => {
      if (id === gap.start) filled++;
      else this.hole(filled).append(...given(prompt.pieces[from + i], prompt.special[from + i], spaced));
    });
    this.filled = filled;
    this.hole(filled).append(this.end);
    return flow;
  }

  hole(number) {
    return this.gaps[Math.max(0, Math.min(this.gaps.length - 1, number))];
  }

  put(node, at) {
    const { data } = this.page;
    const [lead, span] = token(node.piece, data.spaced);
    span.classList.add("written");
    span.classList.toggle("ended", data.ends.includes(node.id));
    span.classList.toggle("chosen", Boolean(node.chosen));
    span.style.setProperty("--tint", tint(node.p));
    span.dataset.at = at;
    this.spans.push({ span, lead });
    if (!data.gap) return this.end.before(lead, span);
    const before = this.page.tree.path(node.key).filter(({ id }) => id === data.gap.start).length;
    const hole = this.hole(this.filled + before);
    if (this.end.parentElement !== hole) hole.append(this.end);
    this.end.before(lead, span);
  }

  mark(path) {
    const { tree, run } = this.page;
    const at = tree.at ?? path.length - 1;
    this.picked?.classList.remove("picked");
    this.picked = this.spans[at]?.span;
    this.picked?.classList.add("picked");
    this.end.classList.toggle("picked", at >= path.length || !path.length);
    this.end.classList.toggle("writing", run.active);
    if (run.active) this.place.scrollTop = this.place.scrollHeight;
  }

  // --- pointer and keyboard ------------------------------------------------------------------------------------------------

  pick(event) {
    const { at } = event.target.closest("[data-at]")?.dataset ?? {};
    if (at === undefined) return;
    this.look(at === "end" ? this.page.tree.path().length : Number(at));
  }

  hover(event) {
    const { at } = event.target.closest?.("[data-at]")?.dataset ?? {};
    const node = at === undefined || at === "end" ? null : this.page.tree.path()[at];
    if (node) this.page.tip(node.piece, percent(node.p));
    else this.page.tip(null);
    if (this.pixels) return;
    this.glance(node ? Number(at) : null);
  }

  key(event) {
    const { tree } = this.page;
    const count = tree.path().length;
    const at = tree.at ?? Math.max(0, count - 1);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: count }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.look(Math.max(0, Math.min(count, to)));
  }
}

function given(piece, special, spaced) {
  const [lead, span] = token(piece, spaced);
  span.classList.add("given");
  span.classList.toggle("special", Boolean(special));
  return [lead, span];
}

/** [what stands between it and the token before, the token]. The sign for a space is faint, and a line may break there; `spaced` where pieces have no
 * spaces of their own. */
export function token(piece, spaced) {
  const span = make("bdi", "tok");
  const lead = spaced && !piece.startsWith("##") ? document.createTextNode(" ") : make(piece.startsWith("·") ? "wbr" : "span");
  if (piece.startsWith("·") && piece.length > 1) span.append(make("i", "", "·"), piece.slice(1));
  else span.textContent = piece;
  if (piece.endsWith("\\n")) span.append(make("br")); // the sign of a line break, and one
  return [lead, span];
}
