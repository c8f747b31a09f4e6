export function mount(root, data) {
  throw new Error(`expected nothing, got ${data.why}`);
}
