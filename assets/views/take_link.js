// The address of what is shown now: model, text and settings as the page says them, the view's own state behind the #.

const WRITTEN = 250; // ms until address.js has written what it was told
const LONGEST = 2 ** 19; // characters of a query, which Streamlit drops without a word where it is longer,
const MOST = 1000; // or where it names more

/** The part behind the #, with where the view stands even if nobody has moved it: an example may change one day. */
export async function state(view) {
  view.remember?.();
  await new Promise((resolve) => setTimeout(resolve, WRITTEN));
  return location.hash;
}

/**
 * Raises an Error, with a sentence, where it would be too long to be read. `hash` is what `state` gives, `take` is the payload's entry; `hidden` are controls that the link takes out of sight, `shade` fixes light or dark.
 */
export function link(take, hash, { hidden = [], shade = "" } = {}) {
  const query = new URLSearchParams(take.link);
  if (hidden.length) query.set("hide", hidden.join(","));
  if (shade) query.set("embed_options", `${shade}_theme`);
  const said = query.toString().replaceAll("%2C", ",");
  if (said.length > LONGEST) throw new Error(`No link can hold this: it would have ${written(said.length)} characters behind the ?, and at most ${written(LONGEST)} are read. Take a shorter text or fewer edits, or take the file or the lines of Python.`);
  return `${location.origin}${location.pathname}?${said}${hash}`;
}

/** What the address says in vain because it is too long to be read, a part of a sentence. */
export function unread() {
  const query = location.search.slice(1);
  const names = query.split("&").length;
  if (query.length <= LONGEST && names <= MOST) return [];
  const many = query.length > LONGEST ? [query.length, LONGEST, "characters"] : [names, MOST, "entries"];
  const [has, most] = many.slice(0, 2).map(written);
  return [`the address has ${has} ${many[2]} behind the ? and at most ${most} are read, so all that stands there (text, model, edits) is left out`];
}

function written(count) {
  return count.toLocaleString("en");
}

/** What the part behind the # asks for and this run does not have, a part of a sentence each. */
export function missed(state, data) {
  const lanes = data.lanes ?? data.sides?.[0].lanes; // of a comparison, those of the run that the others are compared with
  if (!lanes) return [];
  const sides = Object.keys(lanes);
  const side = state.side ?? sides.at(-1);
  if (!(side in lanes)) return [`there is no stack “${side}” here`];
  const { model, pieces } = lanes[side];
  const sizes = { layer: ["block", model.layers], head: ["head", model.heads], query: ["row", pieces.length] };
  const found = [];
  for (const [name, [word, size]] of Object.entries(sizes)) {
    const value = state[name];
    if (value === undefined) continue;
    if (!Number.isInteger(value) || value < 0) found.push(`${word} ${JSON.stringify(value)} is no whole number`);
    else if (value >= size) found.push(`${word} ${value + 1} is not here, there ${size === 1 ? "is 1" : `are ${size}`}`);
  }
  return found;
}
