// Nothing to see: a place for "Take away" (host.js) on a page whose charts are not drawn by a module of this folder.
export function mount() {
  return { update() {}, destroy() {} };
}
