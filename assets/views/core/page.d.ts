/** What stands on elements of ours beside what every browser has. */
interface HTMLElement {
  /** The view that draws in it, for tests: the numbers behind a picture. */
  loupe?: any;
}

/** Not in every browser that Loupe is for. */
declare const Float16Array: { new (buffer: ArrayBufferLike, offset: number, count: number): Float32Array } | undefined;
