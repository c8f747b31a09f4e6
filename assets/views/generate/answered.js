// What a model wrote, token by token, and what else it might have written at the token that is looked at.
import { make } from "../core/dom.js";
import { percent } from "../core/format.js";

export class Answered {
  constructor(page, title) {
    this.page = page;
    this.element = make("div", "answered");
    this.tokens = make("div", "answered-tokens");
    this.tokens.setAttribute("role", "group");
    this.tokens.setAttribute("aria-label", title);
    this.rows = make("div", "answered-rows");
    this.element.append(this.tokens, this.rows);
  }

  /** `found` is {tokens, pieces, arrays}, null for nothing; `name` stands before the names of its arrays. */
  show(found, name = "") {
    this.element.hidden = !found?.tokens.length;
    if (this.element.hidden) return;
    this.found = { ...found, ids: found.arrays[`${name}top.id`], shares: found.arrays[`${name}top.probability`] };
    const first = found.tokens.findIndex(({ piece }) => /[\p{L}\p{N}]/u.test(piece));
    this.chips = found.tokens.map(({ piece }, at) => {
      const chip = make("button", "answered-token");
      chip.type = "button";
      chip.append(make("bdi", "", piece));
      chip.style.setProperty("--tint", `${Math.round(54 * Math.sqrt(this.own(at)))}%`);
      chip.title = percent(this.own(at));
      chip.addEventListener("click", () => this.look(at));
      return chip;
    });
    this.tokens.replaceChildren(...this.chips);
    this.look(Math.max(0, first));
  }

  /** The most probable tokens at a place, the written one among them. */
  at(place) {
    const { ids, shares, pieces } = this.found;
    const width = ids.shape[1];
    return Array.from({ length: width }, (_, row) => ({ piece: pieces[ids.data[place * width + row]], id: ids.data[place * width + row], p: shares.data[place * width + row] }));
  }

  own(place) {
    const { id } = this.found.tokens[place];
    return this.at(place).find((row) => row.id === id).p;
  }

  look(place) {
    this.chips.forEach((chip, at) => chip.setAttribute("aria-pressed", String(at === place)));
    const rows = this.at(place);
    this.rows.replaceChildren(...rows.map(({ piece, id, p }) => {
      const row = make("div", "answered-row");
      const track = make("span", "track");
      const bar = make("i", "bar");
      bar.style.width = `${(100 * p) / rows[0].p}%`;
      track.append(bar);
      row.classList.toggle("is-chosen", id === this.found.tokens[place].id);
      row.append(make("bdi", "", piece), track, make("span", "share", percent(p)));
      return row;
    }));
  }
}
