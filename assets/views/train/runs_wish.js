// What the table wants the page to look at and to overlay: it shows as if it were so until the page's data say something.

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
    this.open.delete(event);
    if (JSON.stringify(value) === known) return;
    this.open.set(event, { value, known });
    this.emit(event, value);
  }

  told(data) {
    this.data = data;
    for (const [event, { known }] of this.open) if (this.text(event) !== known) this.open.delete(event);
  }

  text(event) {
    return JSON.stringify(this.data[this.names[event]]);
  }
}
