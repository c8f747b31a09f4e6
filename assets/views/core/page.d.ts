/** What stands on elements of ours beside what every browser has. */
interface HTMLElement {
  /** The view that draws in it, for tests: the numbers behind a picture. */
  loupe?: any;
}

/** Not in every browser that Loupe is for. */
declare const Float16Array: { new (buffer: ArrayBufferLike, offset: number, count: number): Float32Array } | undefined;

/** The library of charts, once core/plotly.js has loaded it. */
declare var Plotly: { relayout: (chart: HTMLElement, change: object) => unknown };

/** Numbers of a run, as they came. */
type Cells = Float32Array | Float64Array | Int32Array | Uint8Array;

/** Rows by columns of them: element (r, c) is `data[offset + r * stride + c]`. */
interface Block {
  data: Cells;
  offset: number;
  stride: number;
  rows: number;
  cols: number;
}

/** What the colours of numbers begin and end with (palette.js). */
type Scale = "unit" | "signed" | "mask";

/** What Streamlit hands a component over. */
interface StreamlitComponent {
  data: Uint8Array;
  parentElement: ShadowRoot;
  setTriggerValue: (event: string, value: unknown) => void;
}
