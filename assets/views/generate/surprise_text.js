// The text with each token tinted by its surprise; of a picture, its pixels.
import { make } from "../core/dom.js";
import { boxIn } from "../core/place.js";
import { colourOf, token } from "./text.js";

/** @typedef {import("./surprise.js").Tab} Tab */

const DEEPEST = 46; // percent of the hue, at the surprise of a blind guess and beyond
const LARGEST = 340; // CSS pixels of a picture's side

export class Painted {
  /** @type {HTMLElement[]} of a text that comes in several answers, every token, read or not */
  places;
  /** @type {HTMLElement | null | undefined} that of the token that is looked at */
  picked;

  /**
   * @param {HTMLElement} root
   * @param {Tab} tab
   */
  constructor(root, tab) {
    this.root = root;
    this.tab = tab;
    /** @type {HTMLElement[]} */
    this.spans = [];
    /** @type {HTMLElement[]} */
    this.before = [];
    this.legend = make("p", "text-legend");
    this.place = make("div", "text-of");
    this.place.tabIndex = 0;
    this.place.setAttribute("role", "group");
    this.place.setAttribute("aria-label", "the text, tinted by surprise; left and right go from token to token");
    this.place.addEventListener("click", (/** @type {MouseEvent} */ event) =>
      this.on(event, (index) => tab.look(index)),
    );
    this.place.addEventListener("pointerover", (/** @type {PointerEvent} */ event) =>
      this.on(
        event,
        (index) => tab.tip(tab.tokens[index]),
        () => tab.tip(null),
      ),
    );
    this.place.addEventListener("pointerleave", () => tab.tip(null));
    this.place.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
      event.stopPropagation();
      tab.key(event);
    });
    root.append(this.legend, this.place);
  }

  /**
   * @param {Event} event
   * @param {(index: number) => void} work
   */
  on(event, work, otherwise = () => {}) {
    const { index } =
      /** @type {HTMLElement | null | undefined} */ (/** @type {Element} */ (event.target).closest?.("[data-index]"))
        ?.dataset ?? {};
    if (index === undefined) otherwise();
    else work(Number(index));
  }

  update() {
    const { tab } = this;
    if (this.drawn !== tab.found) this.build();
    if (tab.inPieces) this.paint();
    if (this.spans[tab.at] !== this.picked) this.pick(this.spans[tab.at]);
  }

  /** @param {HTMLElement | undefined} span */
  pick(span) {
    const { tab } = this;
    for (const one of [this.picked, ...this.before]) one?.classList.remove("picked", "before");
    const { at, window } = tab.tokens[tab.at];
    const [begin] = tab.here.windows[window];
    this.before = tab.inWindows ? this.places.slice(begin, at) : [];
    for (const one of this.before) one.classList.add("before");
    span?.classList.add("picked");
    this.picked = span;
    if (!tab.bring || !span || tab.at !== tab.page.state.surprise_at) return;
    tab.bring = false;
    this.show(span);
  }

  /**
   * Scrolls the text's own box, where the token is outside of it.
   * @param {HTMLElement} span
   */
  show(span) {
    const { top, height } = boxIn(span, this.place);
    const below = top + height - this.place.offsetHeight;
    if (top < 0) this.place.scrollTop += top - 6;
    else if (below > 0) this.place.scrollTop += below + 6;
  }

  build() {
    const { tab } = this;
    const { data } = tab.page;
    this.drawn = tab.found;
    this.spans = [];
    this.picked = null;
    this.before = [];
    const bar = make("span", "legend-bar surprise-bar");
    const blind = `${tab.blind.toFixed(1)} bits or more: a blind guess among ${data.vocab.toLocaleString("en")}`;
    const more = tab.inWindows
      ? [
          make("span", "opens-of", "the next window predicts from here"),
          make("span", "before-of", "what the chosen token was predicted from"),
        ]
      : [];
    this.legend.replaceChildren(make("span", "", "0 bits: certain"), bar, make("span", "", blind), ...more);
    const flow = data.grid ? this.picture() : tab.inPieces ? this.unread() : this.words();
    const source = data.source && this.part("source", data.source.pieces);
    this.place.replaceChildren(...(source ? [source, this.part("target", [], flow)] : [flow]));
  }

  /**
   * @param {string} title
   * @param {string[]} pieces
   */
  part(title, pieces, flow = make("div", "flow-of")) {
    const part = make("div", "part");
    flow.append(
      ...pieces.flatMap((piece) => {
        const [lead, span] = token(piece, this.tab.page.data.spaced);
        span.classList.add("given");
        return [lead, span];
      }),
    );
    part.append(make("h3", "", title), flow);
    return part;
  }

  /** What is read and not asked for stands between the tokens. */
  words() {
    const { tab } = this;
    const { read, pieces } = tab.here;
    const asked = new Map(tab.tokens.map((one, i) => [one.at, i]));
    const flow = make("div", "flow-of");
    for (let at = 0; at <= read.length; at++) {
      const index = asked.get(at);
      if (index === undefined && at === read.length) break;
      const [lead, span] = token(
        index === undefined ? pieces[read[at]] : tab.tokens[index].piece,
        tab.page.data.spaced,
      );
      if (index === undefined) span.classList.add("given");
      else this.tint(span, index);
      flow.append(lead, span);
    }
    return flow;
  }

  /** A text that comes in several answers: each token is tinted once it has been predicted. */
  unread() {
    const { read, pieces, windows } = this.tab.here;
    const flow = make("div", "flow-of");
    const opens = new Set(windows.slice(1).map(([, asked]) => asked));
    this.places = read.map((id, at) => {
      const [lead, span] = token(pieces[id], this.tab.page.data.spaced);
      span.classList.add(at ? "unread" : "given");
      span.classList.toggle("opens", opens.has(at));
      flow.append(lead, span);
      return span;
    });
    return flow;
  }

  paint() {
    const { tokens } = this.tab;
    for (let index = this.spans.length; index < tokens.length; index++) {
      const span = this.places[tokens[index].at];
      span.classList.remove("unread");
      this.tint(span, index);
    }
  }

  /**
   * @param {HTMLElement} span
   * @param {number} index
   */
  tint(span, index) {
    const { tab } = this;
    const token = tab.tokens[index];
    span.classList.add("surprising");
    span.classList.toggle("ended", tab.page.data.ends.includes(token.id));
    span.dataset.index = String(index);
    span.style.setProperty("--tint", `${Math.round(DEEPEST * Math.min(1, token.surprise / tab.blind))}%`);
    this.spans.push(span);
  }

  picture() {
    const { tab } = this;
    const { data, across } = tab.page;
    const { rows, columns } = /** @type {import("./generate.js").Pixels} */ (data.grid);
    const side = Math.max(8, Math.floor(Math.min(LARGEST, across - 40) / columns));
    const picture = make("div", "s-pixels");
    picture.style.gridTemplateColumns = `repeat(${columns}, ${side}px)`;
    for (let cell = 0; cell < Math.min(rows * columns, tab.tokens.length); cell++) {
      const pixel = make("i", "s-pixel");
      pixel.style.height = `${side}px`;
      const shown = make("i", "s-colour");
      shown.style.background = colourOf(data, tab.tokens[cell].id);
      pixel.append(shown);
      this.tint(pixel, cell);
      picture.append(pixel);
    }
    return picture;
  }
}
