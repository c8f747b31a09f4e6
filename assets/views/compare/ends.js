// One end for each ramp in all runs that are shown side by side: the largest of those that they would have alone.

/** @typedef {Map<string, { own: number, drawn: number }>} Runs by letter: where a ramp would end alone, and where it was drawn to end */

export class Ends {
  /**
   * `again(letters)` draws the runs once more whose ramps turned out to end elsewhere than when they were drawn.
   * @param {(letters: string[]) => void} again
   */
  constructor(again) {
    this.again = again;
    /** @type {Map<string, Runs>} */
    this.known = new Map(); // name -> Map of letter -> {own, drawn}
    /** @type {Set<string>} */
    this.stale = new Set(); // letters to be drawn again
    /** @type {Record<string, number>} */
    this.turns = {}; // letter -> how often it was
  }

  /**
   * Where the ramp `name` of a run ends, which alone would end at `own`.
   * @param {string} letter
   * @param {string} name
   * @param {number} own
   */
  end(letter, name, own) {
    const runs = this.known.get(name) ?? new Map();
    this.known.set(name, runs);
    runs.set(letter, { own, drawn: own });
    return this.agree(runs, letter);
  }

  /**
   * A run shows nothing any more.
   * @param {string} letter
   */
  forget(letter) {
    for (const runs of this.known.values()) if (runs.delete(letter)) this.agree(runs, null);
  }

  /**
   * @param {Runs} runs
   * @param {string | null} asking
   */
  agree(runs, asking) {
    const most = Math.max(...Array.from(runs.values(), ({ own }) => own));
    for (const [letter, run] of runs) {
      if (letter !== asking && run.drawn !== most) this.redraw(letter);
      run.drawn = most;
    }
    return most;
  }

  /** @param {string} letter */
  redraw(letter) {
    this.turns[letter] = (this.turns[letter] ?? 0) + 1;
    if (!this.stale.size)
      queueMicrotask(() => {
        const letters = [...this.stale];
        this.stale.clear();
        this.again(letters);
      });
    this.stale.add(letter);
  }
}
