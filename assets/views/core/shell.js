// The shell of what a page draws: an element as wide as there is room, the state that the address keeps, keys, sources, and the sentence in place
// of a part that could not be loaded.
import * as address from "./address.js";
import { make } from "./dom.js";
import { memoize, observe } from "./observe.js";

const NARROW = 800; // CSS pixels of width below which everything stands in one column

/**
 * Draws again (`refresh`) at another width, which is `across`.
 * @template Data
 */
export class View {
  /** @type {Data} once it is here */
  data;
  /** @type {boolean} whether everything stands in one column */
  narrow;

  /**
   * @param {HTMLElement} root
   * @param {string} name
   */
  constructor(root, name) {
    this.element = make("div", `shell ${name}`);
    this.element.loupe = this; // for tests: the numbers behind the picture
    root.append(this.element);
    this.across = 0;
    this.edition = 0; // grows with everything that makes every picture another one: data, width, theme, what else a view says
    this.resize = new ResizeObserver(() => this.element.clientWidth !== this.across && this.data && this.measure());
    this.resize.observe(this.element);
  }

  destroy() {
    this.destroyed = true;
    this.resize.disconnect();
    this.element.remove();
  }

  /** How much room there is, and everything drawn again in it. */
  measure() {
    this.across = this.element.clientWidth;
    if (!this.across) return;
    this.narrow = this.across < NARROW;
    this.element.classList.toggle("narrow", this.narrow);
    this.edition++;
    this.refresh();
  }

  /**
   * As observe.js has it, and once more for another edition of the page.
   * @template {unknown[]} Given
   * @template Drawn
   * @param {(...given: Given) => Drawn} draw
   */
  memoize(draw) {
    return memoize((/** @type {Given} */ ...given) => (this.edition, draw(...given)));
  }

  refresh() {}
}

/**
 * @typedef {{ restore: (entries: Record<string, any>) => any, remembered?: (state: any, page: any) => object, emit?: any }} Keeping
 * what is the state of the address's entries, and its entries
 */

/**
 * What looks at what the address names.
 * @template {object} State
 * @template {Record<string, any>} Parts
 * @template [Data=any]
 * @extends {View<Data>}
 */
export class Shell extends View {
  /** @type {Parts} */
  parts;

  /**
   * @param {Keeping} keeping
   * @param {HTMLElement} root
   * @param {string} name
   */
  constructor(root, name, keeping) {
    const { restore, remembered, emit } = keeping;
    super(root, name);
    this.emit = emit;
    this.remembered = remembered;
    /** @type {State} */
    this.state = observe(restore(address.read()));
    /** @type {any} */
    this.hover = null;
    /** @param {KeyboardEvent} event */
    this.onKey = (event) => this.key(event);
    window.addEventListener("keydown", this.onKey);
    this.unfollow = address.follow((entries) => this.data && this.turn(restore(entries)));
  }

  destroy() {
    window.removeEventListener("keydown", this.onKey);
    this.unfollow();
    super.destroy();
  }

  /**
   * The address names another state.
   * @param {Partial<State>} state
   */
  turn(state) {
    this.go(state);
  }

  /** @param {object} change */
  go(change) {
    Object.assign(this.state, change);
  }

  remember() {
    address.show(this.state);
    address.write(this.remembered?.(this.state, this));
  }

  /** The model whose heads the keys turn. */
  get model() {
    return /** @type {any} */ (this).trace.model;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (!this.data || isElsewhere(event)) return;
    const state = /** @type {any} */ (this.state);
    const { layers, heads } = this.model;
    const [head, layer] = [{ "[": -1, "]": 1 }[event.key], { "{": -1, "}": 1 }[event.key]];
    if (head) this.go({ head: (state.head + head + heads) % heads });
    if (layer) this.go({ layer: (state.layer + layer + layers) % layers });
  }

  /**
   * @param {string | null} title
   * @param {string} [value]
   */
  tip(title, value) {
    this.parts.tip(title, value);
  }

  /** @param {string} sentence */
  tell(sentence) {
    this.parts.live.textContent = sentence;
  }
}

/**
 * How much of a run is here is the affair of its source, which `take(data, Source)` adopts; that of a long text, whose payload comes with
 * `tile`, is a module that nobody else needs, loaded with the first of them.
 * @template {object} State
 * @template {Record<string, any>} Parts
 * @template {object} [Data=any]
 * @template {{ stop: () => void }} [Source=any]
 * @extends {Shell<State, Parts, Data>}
 */
export class SourceShell extends Shell {
  /** @type {Source} */
  source;

  /**
   * @param {Keeping & { Whole: any, loadTiled: () => Promise<any> }} keeping
   * @param {HTMLElement} root
   * @param {string} name
   */
  constructor(root, name, keeping) {
    super(root, name, keeping);
    this.Whole = keeping.Whole;
    this.loadTiled = keeping.loadTiled;
  }

  destroy() {
    this.source?.stop();
    super.destroy();
  }

  /** @param {Data} data */
  update(data) {
    this.newest = data;
    const tiled = "tile" in data;
    if (!tiled || this.Tiled) return this.take(data, tiled ? this.Tiled : this.Whole);
    const late = () => this.destroyed || data !== this.newest;
    attempt(async () => {
      this.Tiled = (await this.loadTiled()).TiledSource;
      if (!late()) this.take(data, this.Tiled);
    }).then(({ sorry }) => sorry && !late() && this.element.replaceChildren(sorry()));
  }

  /**
   * @param {Data} data
   * @param {new (page: object) => Source} Source
   */
  take(data, Source) {
    this.adopt(Source);
    this.data = data;
  }

  /**
   * Returns whether the source before was of another class, which it stops.
   * @param {new (page: object) => Source} Source
   */
  adopt(Source) {
    if (this.source instanceof Source) return false;
    this.source?.stop();
    this.source = new Source(this);
    return true;
  }
}

/**
 * What `fetched` promises, such as a module, or `sorry()`, the sentence that stands in its place.
 * @template Module
 * @param {() => Promise<Module>} fetched
 */
export async function attempt(fetched) {
  try {
    return { module: await fetched(), sorry: null };
  } catch (error) {
    console.error(error);
    const sentence = `This view could not be loaded: ${error.message}. Reload the page; if it stays, report it.`;
    return { module: null, sorry: () => make("p", "sentence", sentence) };
  }
}

/**
 * Whether a pressed key is meant for what has the focus, or for the browser.
 * @param {KeyboardEvent} event
 */
export function isElsewhere(event, fields = "input, textarea, select, [contenteditable]") {
  const [target] = event.composedPath();
  return (
    event.ctrlKey || event.metaKey || event.altKey || (target instanceof Element && Boolean(target.closest(fields)))
  );
}
