// Seconds of a token at several lengths, measured one after the other by the server until it is through or stopped.

const measured = new Map(); // trace -> [{length, cached, again}], as long as the page is open

export class Measuring {
  /** `changed()` is called when there is something new. */
  constructor(page, changed) {
    Object.assign(this, { page, changed, found: [], lengths: [], active: false, said: "", turn: 0 });
  }

  /** Of a prompt: what was measured for it before. */
  of(trace, lengths) {
    if (this.active) this.stop();
    Object.assign(this, { trace, lengths, found: measured.get(trace) ?? [], said: "" });
  }

  async start() {
    const turn = ++this.turn;
    const { trace, page } = this;
    Object.assign(this, { active: true, found: [], said: "measuring …" });
    this.changed();
    try {
      for (const length of this.lengths) {
        const one = await page.inquire({ ask: "cache_time", begun: page.written, length });
        if (turn !== this.turn) return;
        this.found = [...this.found, one];
        this.said = `${this.found.length} of ${this.lengths.length} lengths`;
        measured.set(trace, this.found);
        this.changed();
      }
      Object.assign(this, { active: false, said: "" });
    } catch (error) {
      if (turn !== this.turn) return;
      Object.assign(this, { active: false, said: error.message });
    }
    this.changed();
  }

  stop() {
    if (!this.active) return;
    this.turn++;
    Object.assign(this, { active: false, said: "" });
    this.changed();
  }
}
