// Counts with their noun.

/** The count and the noun in the number it asks for: "1 block", "1,200 blocks"; `plural` is one that no s makes. */
export function counted(count, noun, plural = `${noun}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : plural}`;
}
