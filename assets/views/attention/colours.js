// Which colour each of the compared heads has, which it keeps while others come and go, and where a ramp ends.

export const MOST = 12; // heads compared at once: as many colours as tokens.json has for them

const given = new WeakMap(); // page -> Map of "layer.head" -> number of its colour; a window has those of the page that it is in

/** The heads that are compared, [[layer, head], ...], the shown one first. */
export function compared(page) {
  const { layer, head, heads = [] } = page.state;
  const others = heads.filter(([l, h]) => l !== layer || h !== head);
  return [[layer, head], ...others].slice(0, MOST);
}

/** The role (a colour of tokens.json) of each of `heads`: attention's own where there is one only. */
export function roles(page, heads) {
  if (heads.length === 1) return ["attention"];
  const owner = page.page ?? page;
  const colours = given.get(owner) ?? new Map();
  given.set(owner, colours);
  const names = heads.map((head) => head.join("."));
  for (const name of colours.keys()) if (!names.includes(name)) colours.delete(name);
  for (const name of [...names].sort()) {
    if (colours.has(name)) continue;
    const taken = new Set(colours.values());
    for (let n = 1; !colours.has(name); n++) if (!taken.has(n)) colours.set(name, n);
  }
  return names.map((name) => `head-${colours.get(name)}`);
}

/**
 * The value at which the ramp, or the bar, of what is called `name` is full; `own` is that of the run of `page` by itself. On a page
 * about several runs (compare_ends.js) it is the largest of theirs, so that the same colour is the same number in all of them.
 */
export function endOf(page, name, own) {
  return page.end ? page.end(name, own) : own;
}
