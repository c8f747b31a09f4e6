// Reads the one format in which numbers travel (written by views/core/payload.py):
//   [u32 header length][JSON header][zeros up to a multiple of 8][raw arrays, each at a multiple of 8]
// The typed arrays look into the bytes they came in, without a copy, whenever those bytes start at a multiple of 8.

const ALIGNMENT = 8;
/** @type {Record<string, number>} bytes of an element */
const SIZE = { f32: 4, f16: 2, u8: 1, i32: 4, bool: 1 };

/**
 * @typedef {{ data: any, dtype: string, shape: number[], dims: string[] }} NamedArray
 * @typedef {{ arrays: Record<string, NamedArray>, [entry: string]: any }} Payload
 */

/**
 * Uint8Array -> {...header, arrays: {name: {data, dtype, shape, dims}}}.
 * f16 comes as a Float16Array, or, in a browser without one, as a Float32Array with the same values.
 * @param {Uint8Array} bytes
 * @returns {Payload}
 */
export function unpack(bytes) {
  if (!(bytes instanceof Uint8Array)) {
    throw new TypeError(`expected the payload as a Uint8Array, got ${Object.prototype.toString.call(bytes)}`);
  }
  if (bytes.length < 4)
    throw new RangeError(`expected a payload of at least 4 bytes, got ${bytes.length}; it is cut off`);
  if (bytes.byteOffset % ALIGNMENT) bytes = bytes.slice();
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  if (4 + length > bytes.length) {
    throw new RangeError(`expected a header of ${length} bytes, got ${bytes.length - 4}; the payload is cut off`);
  }
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const start = Math.ceil((4 + length) / ALIGNMENT) * ALIGNMENT;
  /** @type {Payload["arrays"]} */
  const arrays = {};
  for (const [name, entry] of Object.entries(header.arrays)) arrays[name] = read(bytes, start, name, entry);
  return { ...header, arrays };
}

/**
 * @param {Uint8Array} bytes
 * @param {number} start
 * @param {string} name
 * @param {{ dtype: string, shape: number[], dims: string[], offset: number }} entry
 * @returns {NamedArray}
 */
function read(bytes, start, name, { dtype, shape, dims, offset }) {
  const count = shape.reduce((product, size) => product * size, 1);
  const begin = start + offset;
  if (!(dtype in SIZE)) throw new TypeError(`expected array "${name}" as one of ${Object.keys(SIZE)}, got ${dtype}`);
  if (begin + count * SIZE[dtype] > bytes.length) {
    throw new RangeError(
      `expected ${count * SIZE[dtype]} bytes for array "${name}", got ${bytes.length - begin}; it is cut off`,
    );
  }
  return { data: typed(dtype, bytes.buffer, bytes.byteOffset + begin, count), dtype, shape, dims };
}

/**
 * @param {string} dtype
 * @param {ArrayBufferLike} buffer
 * @param {number} offset
 * @param {number} count
 */
function typed(dtype, buffer, offset, count) {
  if (dtype === "f32") return new Float32Array(buffer, offset, count);
  if (dtype === "i32") return new Int32Array(buffer, offset, count);
  if (dtype !== "f16") return new Uint8Array(buffer, offset, count);
  if (typeof Float16Array === "function") return new Float16Array(buffer, offset, count);
  return Float32Array.from(new Uint16Array(buffer, offset, count), widen);
}

/**
 * The value of an IEEE half, given its 16 bits.
 * @param {number} bits
 */
export function widen(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -14 * (fraction / 1024);
}
