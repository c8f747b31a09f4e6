// Beside the plane: the vector that is chosen, its nearest by cosine, and a search by name or id.
import { make } from "../core/dom.js";

const SUGGESTIONS = 8;

export class List {
  /** `shown` is the Projected of projection.js. */
  constructor(element, shown) {
    Object.assign(this, { element, shown });
  }

  show() {
    if (!this.searching) {
      this.search = make("input", "search-of");
      this.search.type = "search";
      this.search.addEventListener("input", () => this.suggest());
      this.search.addEventListener("keydown", (event) => event.key === "Enter" && this.found?.length && this.take(this.found[0]));
      this.searching = make("div", "found-of");
      this.rest = make("div", "near-of");
      this.rest.setAttribute("aria-live", "polite");
      this.element.replaceChildren(this.search, this.searching, this.rest);
    }
    const what = `a ${this.shown.table.title}`;
    this.search.placeholder = `find ${what}`;
    this.search.setAttribute("aria-label", `find ${what}`);
    const title = make("p", "chosen-of");
    title.append(make("bdi", "", this.shown.name(this.shown.chosen)), make("small", "", `id ${this.shown.chosen}`));
    const rows = make("div", "rows-of");
    rows.append(make("p", "what-of", "nearest by cosine"));
    for (let k = 0; k < 10 && this.shown.near; k++) {
      if (k >= this.shown.near.ids.length) break;
      const row = make("button", "near-row");
      row.type = "button";
      const share = this.shown.near.similarity[k];
      const track = make("span", "track-of");
      track.appendChild(make("span")).style.width = `${Math.max(0, 100 * share)}%`;
      row.append(make("bdi", "", this.shown.name(this.shown.near.ids[k])), track, make("span", "cosine", share.toFixed(3).replace("-", "−")));
      row.addEventListener("click", () => this.shown.choose(this.shown.near.ids[k]));
      rows.append(row);
    }
    this.rest.replaceChildren(title, rows);
  }

  take(id) {
    this.search.value = "";
    this.suggest();
    this.shown.choose(id);
  }

  suggest() {
    const text = this.search.value;
    this.found = [];
    if (text && this.shown.pieces) {
      const plain = (piece) => piece.replace(/^[·▁]|^##/u, "");
      const exact = [];
      const begins = [];
      for (let id = 0; id < this.shown.pieces.length; id++) {
        const piece = this.shown.pieces[id];
        if (piece === text || plain(piece) === text) exact.push(id);
        else if (begins.length < SUGGESTIONS && (plain(piece).startsWith(text) || piece.startsWith(text))) begins.push(id);
      }
      this.found = [...exact, ...begins].slice(0, SUGGESTIONS);
    } else if (/^\d+$/.test(text) && Number(text) < this.shown.table.rows) this.found = [Number(text)];
    this.searching.replaceChildren(
      ...this.found.map((id) => {
        const button = make("button", "found-row");
        button.type = "button";
        button.append(make("bdi", "", this.shown.name(id)), make("small", "", String(id)));
        button.addEventListener("click", () => this.take(id));
        return button;
      }),
      ...(text && !this.found.length ? [make("p", "none-of", "no such entry")] : []),
    );
  }
}
