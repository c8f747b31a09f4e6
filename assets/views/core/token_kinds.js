// Sorts of tokens, by what their pieces are made of, each with its words and the role whose colour it has in a picture.

export const KINDS = [
  ["word", "begins a word", "residual"],
  ["inside", "inside a word", "attention"],
  ["number", "number", "probability"],
  ["mark", "mark", "key"],
  ["special", "special", "edited"],
  ["byte", "byte", "soft"],
];

/** What sort of token each piece is. */
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
