// The shown head of every run on a long text side by side, and what each differs in from the first: one cursor and one zoom in all of them.
import { headingOf, headingOfDifference } from "./heading.js";
import { DifferenceMap, RunMap } from "./long_map.js";
import { DifferencePage, RunPage } from "./long_page.js";
import { make, range } from "../core/dom.js";

const GAP = 22;
const LARGER = 1.2; // a difference has the tokens of both runs
const NARROW = 620; // CSS pixels of a map below which its axes are narrow

export function mount(root, lab) {
  return new Maps(root, lab);
}

class Maps {
  constructor(root, lab) {
    this.root = root;
    this.lab = lab;
    this.places = [];
    this.shown = "";
    this.following = false;
    this.grid = make("div", "maps");
    root.append(this.grid);
  }

  destroy() {
    for (const { map } of this.places) map?.destroy();
    this.root.replaceChildren();
  }

  update() {
    const { root, lab } = this;
    root.hidden = lab.state.view !== "map";
    if (root.hidden) return;
    this.build();
    const columns = lab.narrow ? 1 : lab.sides.length === 2 ? 3 : lab.sides.length;
    const shares = columns === 3 && lab.sides.length === 2 ? [1, 1, LARGER] : range(0, columns).map(() => 1);
    this.grid.style.gridTemplateColumns = shares.map((share) => `minmax(0, ${share}fr)`).join(" ");
    this.grid.querySelector(".none")?.toggleAttribute("hidden", lab.narrow);
    const unit = (lab.across - GAP * (columns - 1)) / shares.reduce((sum, share) => sum + share, 0);
    for (const place of this.places) this.lay(place, Math.floor(unit * (place.differs ? shares.at(-1) : 1)));
    this.follow(null);
    this.show();
  }

  build() {
    const letters = this.lab.sides.map(({ letter }) => letter);
    if (this.shown === letters.join("")) return;
    this.shown = letters.join("");
    for (const { map } of this.places) map?.destroy();
    this.places = [
      ...letters.map((letter) => this.place(letter, false)),
      ...letters.slice(1).map((letter) => this.place(letter, true)),
    ];
    const elements = this.places.map(({ element }) => element);
    if (letters.length > 2) elements.splice(letters.length, 0, make("div", "map-of none"));
    this.grid.replaceChildren(...elements);
  }

  place(letter, differs) {
    const element = make("div", "map-of");
    const [heading, note, cells] = [make("div", "map-head"), make("p", "sentence"), make("div", "long-cells")];
    element.append(heading, note, cells);
    const page = differs ? new DifferencePage(this.lab, letter, this) : new RunPage(this.lab, letter, this);
    return { letter, differs, element, heading, note, cells, page, map: null };
  }

  lay(place, width) {
    const { lab } = this;
    const { letter, differs, heading, note, cells, page } = place;
    heading.replaceChildren(...(differs ? headingOfDifference(letter) : headingOf(lab, letter)));
    const able = page.able;
    note.hidden = able;
    cells.hidden = !able;
    place.able = able;
    if (!able) return void (note.textContent = lab.absent(letter));
    page.look(width, width < NARROW);
    place.map ??= differs ? new DifferenceMap(cells, page) : new RunMap(cells, page);
    place.map.measure();
  }

  get maps() {
    return this.places.filter(({ able, map }) => able && map);
  }

  /** Draws what is here, and asks for what is not. */
  show() {
    if (this.root.hidden) return;
    for (const { page, map } of this.maps) {
      page.see();
      map.update();
    }
    this.mark();
  }

  /** Shows the one cursor. */
  mark() {
    if (this.root.hidden) return;
    for (const { page, map } of this.maps) {
      page.see();
      map.mark();
    }
  }

  /** What the pointer is over in the map of `page`, or nothing. */
  point(page, where) {
    this.lab.point(where && page.token(where));
  }

  /** Another part of one map is looked at: the others follow, and the address says so in A's tokens. */
  moved(page) {
    if (this.following) return;
    const { lab } = this;
    const { map } = this.places.find((place) => place.page === page);
    const { zoom, top, left, wide } = map.window;
    const first = this.places[0];
    const at = lab.nearest("A", page.cell(top, left));
    const apart = [top - Math.floor(top), left - Math.floor(left)]; // within a token
    Object.assign(
      lab.state,
      zoom === 1
        ? { zoom: undefined, from: undefined }
        : {
            zoom: Number((page === first.page ? zoom : wide / first.map.rest.wide).toFixed(3)),
            from: [at.row + apart[0], at.col + apart[1]].map((x) => Number(x.toFixed(2))),
          },
    );
    lab.remember();
    this.follow(page);
  }

  /** Brings every map but that of `page` to where the state says. */
  follow(page) {
    const { zoom, from } = this.lab.state;
    const [first] = this.maps;
    if (!first) return;
    this.following = true;
    for (const { page: other, map } of this.maps) {
      if (other === page) continue;
      if (zoom === undefined) map.look(1, 0, 0);
      else {
        const place = other.place({ letter: "A", row: Math.floor(from[0]), col: Math.floor(from[1]) });
        map.look((zoom * first.map.rest.wide) / map.rest.wide, place.row + (from[0] % 1), place.col + (from[1] % 1));
      }
    }
    this.following = false;
  }

  /** Brings the chosen cell into view where it is out of it. */
  reveal() {
    const [first] = this.maps;
    if (!first) return;
    const { row, col } = first.page.place(this.lab.state.cursor);
    first.map.reveal(row, col);
  }

  /** The largest difference that is known, of all maps: where the ramp of each ends. */
  get most() {
    return Math.max(0, ...this.maps.map(({ page }) => page.largest ?? 0));
  }
}
