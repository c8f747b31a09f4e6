// The file of a picture in a frame, in the cell of a notebook: what is looked at there and what Python says, kept alike.
// anywidget loads this text by itself: it imports nothing, and is no part of the bundle of assets/views.

/** @typedef {{get(name: string): any, set(name: string, value: any): void, save_changes(): void,
 *   on(name: string, callback: () => void): void, off(name: string, callback: () => void): void}} Model */

/** @param {{model: Model, el: HTMLElement}} cell */
function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width: 100%; height: ${model.get("height")}px; border: 0; resize: vertical`;
  frame.srcdoc = model.get("html");
  let heard = "";

  const hear = (/** @type {MessageEvent} */ { data, source }) => {
    if (source !== frame.contentWindow || !data?.loupe) return;
    heard = JSON.stringify(data.loupe);
    model.set("look", data.loupe);
    model.save_changes();
  };
  const tell = () => {
    if (JSON.stringify(model.get("look")) === heard) return;
    frame.contentWindow?.postMessage({ loupe: model.get("look") }, "*");
  };
  window.addEventListener("message", hear);
  model.on("change:look", tell);
  el.append(frame);
  return () => {
    window.removeEventListener("message", hear);
    model.off("change:look", tell);
  };
}

export default { render };
