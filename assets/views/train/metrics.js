// The curves of a run as they grow: a column of numbers for each thing that is measured, NaN where it was not.

const ROOM = 256; // lines that a column begins with

export class Metrics {
  constructor() {
    this.length = 0;
    this.columns = {}; // name -> Float64Array, of which the first `length` count
    this.edition = 0;
  }

  /** Adds the lines of one answer, {columns, arrays} with `metrics.<name>` each. */
  append({ columns, arrays }) {
    const count = columns.length ? arrays[`metrics.${columns[0]}`].data.length : 0;
    if (!count) return;
    for (const name of columns) this.columns[name] ??= new Float64Array(ROOM).fill(NaN);
    for (const [name, column] of Object.entries(this.columns)) {
      const roomy = grown(column, this.length + count);
      const added = arrays[`metrics.${name}`]?.data;
      if (added) roomy.set(added, this.length);
      this.columns[name] = roomy;
    }
    this.length += count;
    this.edition++;
  }

  has(name) {
    return name in this.columns;
  }

  /** All that was measured, one number a line. */
  column(name) {
    return this.columns[name]?.subarray(0, this.length) ?? new Float64Array(0);
  }

  get last() {
    return this.length ? this.columns.step[this.length - 1] : 0;
  }

  /** What `name` was at `step` or, where nothing was measured there, before; NaN where it never was. */
  at(name, step) {
    const [steps, values] = [this.columns.step, this.columns[name]];
    if (!values) return NaN;
    for (let i = upTo(steps, this.length, step); i >= 0; i--) if (!Number.isNaN(values[i])) return values[i];
    return NaN;
  }
}

function grown(column, length) {
  if (length <= column.length) return column;
  const wider = new Float64Array(Math.max(length, 2 * column.length)).fill(NaN);
  wider.set(column);
  return wider;
}

/** The index of the last of the first `length` ascending numbers that is at most `x`, -1 where none is. */
export function upTo(numbers, length, x) {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
