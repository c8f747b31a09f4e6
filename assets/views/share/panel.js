// Nothing is drawn here: a chart of Streamlit's stands above, and host.js puts Share & export below.
export const mount = () => ({ update() {}, destroy() {} });
