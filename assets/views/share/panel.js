// Share & export below a chart of Streamlit's: host.js puts it below this view, in which nothing is drawn.

/**
 * @param {HTMLElement} root
 */
export function mount(root) {
  root.hidden = true;
  return { update() {}, destroy() {} };
}
