// What the table wants the page to look at and to overlay. A rerun of the page may swallow what a view says, so it is said again until
// the page's data agree, or until they become something else.

const PATIENCE = 1500; // ms
const TRIES = 6;

export class Wishes {
  /** `names` maps an event to the entry of the page's data that follows from it, such as {look: "run"}. */
  constructor(emit, names) {
    Object.assign(this, { emit, names, data: {}, open: new Map() });
  }

  /** The page's data, with what is wanted in place of what is there still. */
  get wanted() {
    return { ...this.data, ...Object.fromEntries([...this.open].map(([event, { value }]) => [this.names[event], value])) };
  }

  want(event, value) {
    const known = this.text(event);
    this.drop(event);
    if (JSON.stringify(value) === known) return;
    const wish = { value, known, tries: TRIES, timer: 0 };
    this.open.set(event, wish);
    this.say(event, wish);
  }

  say(event, wish) {
    if (!wish.tries--) return this.drop(event);
    this.emit(event, wish.value);
    wish.timer = setTimeout(() => this.say(event, wish), PATIENCE);
  }

  told(data) {
    this.data = data;
    for (const [event, { known }] of this.open) if (this.text(event) !== known) this.drop(event);
  }

  text(event) {
    return JSON.stringify(this.data[this.names[event]]);
  }

  drop(event) {
    clearTimeout(this.open.get(event)?.timer);
    this.open.delete(event);
  }

  close() {
    for (const event of [...this.open.keys()]) this.drop(event);
  }
}
