// The few lines of DOM that every view needs. Text is always textContent, whatever it holds.

/** An element with a class and a text. */
export function make(tag, className = "", text = null) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== null) element.textContent = text;
  return element;
}

/** A section under a small heading, with a softer note behind it. */
export function section(name, note) {
  const element = make("section");
  const heading = make("h3", "", name);
  if (note) heading.append(make("span", "note", ` ${note}`));
  element.append(heading);
  return element;
}

/** [from, from + 1, ..., to - 1] */
export function range(from, to) {
  return Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
}
