// One end for each ramp in all runs that are shown side by side: the largest of those that they would have alone.

export class Ends {
  /** `again(letters)` draws the runs once more whose ramps turned out to end elsewhere than when they were drawn. */
  constructor(again) {
    this.again = again;
    this.known = new Map(); // name -> Map of letter -> {own, drawn}
    this.stale = new Set(); // letters to be drawn again
    this.turns = {}; // letter -> how often it was
  }

  /** Where the ramp `name` of a run ends, which alone would end at `own`. */
  end(letter, name, own) {
    if (!this.known.has(name)) this.known.set(name, new Map());
    const runs = this.known.get(name);
    runs.set(letter, { own, drawn: own });
    return this.agree(runs, letter);
  }

  /** A run shows nothing any more. */
  forget(letter) {
    for (const runs of this.known.values()) if (runs.delete(letter)) this.agree(runs, null);
  }

  agree(runs, asking) {
    const most = Math.max(...Array.from(runs.values(), ({ own }) => own));
    for (const [letter, run] of runs) {
      if (letter !== asking && run.drawn !== most) this.redraw(letter);
      run.drawn = most;
    }
    return most;
  }

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
