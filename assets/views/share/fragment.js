// Ours, since a server never sees what stands behind the # of an address: hands over what earlier links have there, once.
import * as address from "../core/address.js";

/**
 * @param {HTMLElement} root
 * @param {{names: string[]}} data entries that the page keeps in its query now
 * @param {(event: string, value: object) => void} emit
 */
export function mount(root, data, emit) {
  root.hidden = true;
  const here = Object.entries(address.read()).filter(([name]) => data.names.includes(name));
  if (here.length) {
    address.write(Object.fromEntries(here.map(([name]) => [name, null])));
    emit("entries", Object.fromEntries(here));
  }
  return { update() {}, destroy() {} };
}
