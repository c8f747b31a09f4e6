// An older link to "/" holds a text and a model: it opens the Walkthrough, with what stands behind the # too.
export function mount() {
  const there = new URL("walkthrough", location.href);
  [there.search, there.hash] = [location.search, location.hash];
  location.replace(there);
  return { update() {}, destroy() {} };
}
