// Shows what reaches a view, and lets a test reach the store and the address through window.probe.
import * as address from "../core/address.js";
import { onHeldUp, request, stream } from "../core/store.js";

let mounts = 0;

export function mount(root, data, emit) {
  let updates = 0;
  const text = root.appendChild(document.createElement("output"));
  text.id = "probe";
  const draw = ({ count, arrays: { ramp } }) => {
    const query = getComputedStyle(root).getPropertyValue("--query");
    text.textContent = [count, `[${Array.from(ramp.data)}]`, ramp.dims, root.dataset.theme, query].join(" ");
    Object.assign(text.dataset, { mounts, updates });
  };
  mounts += 1;
  draw(data);
  window.probe = { address, emit, onHeldUp, request, root, stream, mounts: () => mounts };
  return {
    update(next) {
      updates += 1;
      draw(next);
    },
    destroy() {
      window.probe.destroyed = true;
    },
  };
}
