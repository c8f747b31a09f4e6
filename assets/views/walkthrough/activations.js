// The activations: each as it is written, and as it is computed.

export const ACTIVATIONS = {
  relu: ["max(0, x)", (x) => Math.max(0, x)],
  gelu: ["x Φ(x)", (x) => (x / 2) * (1 + erf(x / Math.SQRT2))],
  gelu_tanh: ["x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))", (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)))],
  quick_gelu: ["x / (1 + e^−1.702x)", (x) => x / (1 + Math.exp(-1.702 * x))],
  silu: ["x / (1 + e^−x)", (x) => x / (1 + Math.exp(-x))],
  tanh: ["(e^x − e^−x) / (e^x + e^−x)", Math.tanh],
};

/** The error function by its Maclaurin series, and 1 minus its continued fraction where that converges faster. */
function erf(x) {
  const size = Math.abs(x);
  if (size < 3) {
    let term = size;
    let total = size;
    for (let n = 1; n < 60; n++) total += (term *= (-size * size) / n) / (2 * n + 1);
    return (Math.sign(x) * 2 * total) / Math.sqrt(Math.PI);
  }
  let fraction = 0;
  for (let n = 40; n > 0; n--) fraction = n / 2 / (size + fraction);
  return Math.sign(x) * (1 - Math.exp(-size * size) / ((size + fraction) * Math.sqrt(Math.PI)));
}
