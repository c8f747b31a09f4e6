/** What stands on elements of ours beside what every browser has. */
interface HTMLElement {
  /** The view that draws in it, for tests: the numbers behind a picture. */
  loupe?: any;
}
