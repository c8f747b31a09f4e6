// How large the elements of a block are: where its ramp ends.

const OUTLIERS = 0.01; // the share of elements that lie beyond
const SORTED = 4096; // elements up to which sorting is the faster way
const bins = new Uint32Array(1 << 16);
const known = new WeakMap(); // typed array -> Map of the part that was measured -> its extent; what is drawn is never written to

/**
 * Where the ramp of a block ends: the |element| that all but 1 in 100 stay below, so that one outlier fades nothing.
 * @param {Block} block
 * @returns {number}
 */
export function extent({ data, offset, stride, rows, cols }) {
  const part = `${offset} ${stride} ${rows} ${cols}`;
  let found = known.get(data);
  if (!found) known.set(data, (found = new Map()));
  if (!found.has(part)) found.set(part, measured(data, offset, stride, rows, cols));
  return found.get(part);
}

/**
 * The largest element, 1 where none is above 0: where the ramp of lengths ends.
 * @param {Block} block
 */
export function largest({ data, offset, stride, rows, cols }) {
  let most = 0;
  for (let r = 0; r < rows; r++) {
    const start = offset + r * stride;
    for (let i = start; i < start + cols; i++) if (data[i] > most) most = data[i];
  }
  return most || 1;
}

/**
 * @param {Cells} data
 * @param {number} offset
 * @param {number} stride
 * @param {number} rows
 * @param {number} cols
 */
function measured(data, offset, stride, rows, cols) {
  const sizes = new Float32Array(rows * cols);
  let [n, most] = [0, 0];
  for (let r = 0; r < rows; r++) {
    const start = offset + r * stride;
    for (let i = start; i < start + cols; i++) {
      const size = Math.abs(data[i]);
      if (!(size < Infinity)) continue;
      sizes[n++] = size;
      if (size > most) most = size;
    }
  }
  if (!n) return 1;
  const rank = Math.min(n - 1, Math.floor((1 - OUTLIERS) * n));
  return (n <= SORTED ? sizes.subarray(0, n).sort()[rank] : ranked(sizes, n, rank)) || Math.fround(most) || 1;
}

/**
 * The element of rank `rank` of the first `n`, none below 0: their bits are in the same order, and are counted in two halves.
 * @param {Float32Array} sizes
 * @param {number} n
 * @param {number} rank
 */
function ranked(sizes, n, rank) {
  const bits = new Uint32Array(sizes.buffer, 0, n);
  bins.fill(0);
  for (let i = 0; i < n; i++) bins[bits[i] >>> 16]++;
  const [high, before] = reached(rank);
  bins.fill(0);
  for (let i = 0; i < n; i++) if (bits[i] >>> 16 === high) bins[bits[i] & 0xffff]++;
  const [low] = reached(rank - before);
  return new Float32Array(Uint32Array.of(((high << 16) | low) >>> 0).buffer)[0];
}

/**
 * The bin in which the element of a rank lies, and how many lie in those before it.
 * @param {number} rank
 */
function reached(rank) {
  let before = 0;
  let bin = 0;
  while (before + bins[bin] <= rank) before += bins[bin++];
  return [bin, before];
}
