// Sorts of tokens, by what their pieces are made of, each with its words and the role whose colour it has in a picture.

export const KINDS = [
  ["word", "begins a word", "residual"],
  ["inside", "inside a word", "attention"],
  ["number", "number", "probability"],
  ["mark", "mark", "key"],
  ["special", "special", "edited"],
  ["byte", "byte", "soft"],
];

/**
 * What sort of token each piece is.
 * @param {string[]} pieces
 * @param {Iterable<number>} special
 */
export function kindsOf(pieces, special) {
  const specials = new Set(special);
  const marked = pieces.some((piece) => /^[·▁]\p{L}/u.test(piece));
  const continued = pieces.some((piece) => piece.startsWith("##"));
  return pieces.map((piece, id) => {
    if (specials.has(id)) return "special";
    if (/^<[0-9A-F]{2}>$/.test(piece) || /^<0x[0-9A-F]{2}>$/.test(piece)) return "byte";
    const plain = piece.replace(/^[·▁]+|^##/u, "");
    if (/^\p{N}+$/u.test(plain)) return "number";
    if (!/\p{L}/u.test(plain)) return "mark";
    const begins = continued ? !piece.startsWith("##") : !marked || /^[·▁]/u.test(piece);
    return begins ? "word" : "inside";
  });
}

/**
 * Pieces in which bytes that make a character, of one token or of several, are that character: it stands where its first byte is,
 * and tokens that only go on with it are "". Bytes that make none stay as they are.
 * @param {string[]} pieces
 */
export function joinBytes(pieces) {
  const shown = pieces.map(() => "");
  /** @type {{ i: number, unit: string, byte: number }[]} */
  let begun = [];
  const giveUp = () => {
    for (const { i, unit } of begun) shown[i] += unit;
    begun = [];
  };
  pieces.forEach((piece, i) => {
    for (const unit of piece.match(/<(?:0x)?[0-9A-F]{2}>|[^<]+|</g) ?? []) {
      const byte = /^<(?:0x)?([0-9A-F]{2})>$/.exec(unit);
      const value = byte ? parseInt(byte[1], 16) : 0;
      const goesOn = (value & 0xc0) === 0x80;
      if (value < 0x80 || goesOn === !begun.length) giveUp(); // no byte, or not one that may stand here
      if (value < 0x80 || (goesOn && !begun.length)) shown[i] += unit;
      else begun.push({ i, unit, byte: value });
      if (begun.length && begun.length === lengthOf(begun[0].byte)) {
        const character = decode(begun.map(({ byte }) => byte));
        if (character === "\ufffd") giveUp();
        else shown[begun[0].i] += character;
        begun = [];
      }
    }
  });
  giveUp();
  return shown;
}

/**
 * How many bytes a character has in UTF-8 that begins with this one.
 * @param {number} byte
 */
function lengthOf(byte) {
  return byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
}

/**
 * The character of these bytes, or the sign for none.
 * @param {number[]} bytes
 */
function decode(bytes) {
  const text = new TextDecoder().decode(Uint8Array.from(bytes));
  return text.includes("\ufffd") ? "\ufffd" : text;
}
