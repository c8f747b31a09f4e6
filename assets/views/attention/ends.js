// Where a ramp ends, on a page that shows one run and on a page that shows several.

/**
 * The value at which the ramp, or the bar, of what is called `name` is full; `own` is that of the run of `page` by itself. On a page
 * about several runs (compare_ends.js) it is the largest of theirs, so that the same colour is the same number in all of them.
 */
export function endOf(page, name, own) {
  return page.end ? page.end(name, own) : own;
}
