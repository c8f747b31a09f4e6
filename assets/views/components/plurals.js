// Counts with their noun.

/** The count and the noun in the number it asks for: "1 block", "1,200 blocks". */
export function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
