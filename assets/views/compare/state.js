// What the page about comparisons looks at, as it stands in the address: read whatever somebody typed there, and written.

/**
 * `other` names the head of the second run where it was picked; `cursor` is {letter, row, col} in the tokens of that run. `view` is the
 * tab; `heads` are those that a view compares, by letter, and `own` what the views of one head have of their own: each checks its own.
 * `zoom` and `from`, [row, column], say what of A's map is in view where it is not the whole, which only maps of long texts know.
 * @param {Record<string, any>} address
 */
export function restore({
  layer,
  head,
  other,
  match,
  with: beside,
  attention,
  over,
  at,
  view,
  heads,
  shows,
  zoom,
  from,
}) {
  return {
    view: typeof view === "string" ? view : "map",
    heads: plain(heads)
      ? Object.fromEntries(Object.entries(heads).filter(([, list]) => Array.isArray(list) && list.every(isHead)))
      : {},
    own: plain(shows) ? shows : {},
    chosen: whole(layer) || whole(head),
    layer: whole(layer) ? layer : 0,
    head: whole(head) ? head : 0,
    other: isHead(other) ? other : null,
    match: match === "alike" || match === "same" ? match : null, // null: what suits the models
    beside: typeof beside === "string" ? beside : "B",
    attention: typeof attention === "string" ? attention : null,
    over: over === "texts" ? over : null, // what similarity is a mean over: the texts that are read, or many
    ...(Number.isFinite(zoom) && zoom > 1 && isPlace(from) ? { zoom, from } : { zoom: undefined, from: undefined }),
    cursor:
      Array.isArray(at) && typeof at[0] === "string" && whole(at[1]) && whole(at[2])
        ? { letter: at[0], row: at[1], col: at[2] }
        : null,
  };
}

/**
 * What goes into the address; null takes an entry out.
 * @param {Record<string, any>} state
 */
export function remembered({
  layer,
  head,
  other,
  match,
  beside,
  attention,
  over,
  cursor,
  moved,
  view,
  heads,
  own,
  zoom,
  from,
}) {
  return {
    view: view === "map" ? null : view,
    heads: Object.keys(heads).length ? heads : null,
    shows: Object.keys(own).length ? own : null,
    layer,
    head,
    other,
    match,
    over,
    with: beside === "B" ? null : beside,
    attention: moved ? attention : null,
    at: cursor && [cursor.letter, cursor.row, cursor.col],
    zoom,
    from,
  };
}

/** @param {unknown} one */
function isHead(one) {
  return Array.isArray(one) && one.length === 2 && one.every(whole);
}

/** @param {unknown} one */
function isPlace(one) {
  return Array.isArray(one) && one.length === 2 && one.every((x) => Number.isFinite(x) && x >= 0);
}

/** @param {unknown} value */
function plain(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

/** @param {unknown} value */
function whole(value) {
  return typeof value === "number" && Number.isInteger(value) && value >= 0;
}
