import assert from "node:assert/strict";
import test from "node:test";
import { difference, equation, number, operand, percent, subscript } from "../../assets/views/core/format.js";
import { softmaxTexts } from "../../assets/views/attention/steps.js";
import { printed } from "../../assets/views/walkthrough/equations.js";

test("a number has five significant digits, and a minus of its own", () => {
  assert.equal(number(0), "0");
  assert.equal(number(-0), "0");
  assert.equal(number(1.234567), "1.2346");
  assert.equal(number(-12.34567), "−12.346");
  assert.equal(number(123456.7), "123456.7");
  assert.equal(number(0.0012345), "0.0012345");
});

test("a number too small or too large for digits has an exponent", () => {
  assert.equal(number(0.000123456), "1.2346e−4");
  assert.equal(number(-1234567), "−1.2346e6");
});

test("what is no number says so", () => {
  assert.equal(number(NaN), "not a number");
  assert.equal(number(Infinity), "∞");
  assert.equal(number(-Infinity), "−∞");
  assert.equal(percent(NaN), "not a number");
  assert.equal(difference(Infinity), "∞");
});

test("an operand stands in parentheses where its sign would follow another", () => {
  assert.equal(operand(2), "2.0000");
  assert.equal(operand(-2), "(−2.0000)");
});

test("a percentage has three significant digits, and is not rounded up to all", () => {
  const cases = [
    [0, "0"],
    [1, "100.0"],
    [0.12345, "12.3"],
    [0.012345, "1.23"],
    [0.0012345, "0.123"],
    [0.00012345, "0.0123"],
  ];
  for (const [share, text] of cases) assert.equal(percent(share), `${text}\u00a0%`);
  assert.equal(percent(0.99999), "99.99900\u00a0%");
  assert.equal(percent(1e-7), "1.0e−5\u00a0%");
});

test("a difference is 0 or a power of ten", () => {
  assert.equal(difference(0), "0");
  assert.equal(difference(-3.2e-7), "3e−7");
});

test("an index is written below the line", () => {
  assert.equal(subscript(120), "₁₂₀");
});

/** Pseudorandom numbers in [0, 1), always the same. */
function* drawn(seed = 1) {
  for (;;) yield (seed = (seed * 48271) % 2147483647) / 2147483647;
}

const random = drawn();
const draw = () => random.next().value;
const signed = () => (draw() - 0.5) * 10 ** (12 * draw() - 6);

const EQUATIONS = {
  "−ln p": () => [[Math.exp(-(10 ** (8 * draw() - 7)))], (p) => -Math.log(p)],
  "a × b": () => [[signed(), signed()], (a, b) => a * b, number, [number, operand]],
  "a + b": () => [[signed(), signed()], (a, b) => a + b, number, [number, operand]],
  "a + b that nearly cancel": () => [[1 + draw() / 1e4, -1], (a, b) => a + b, number, [number, operand]],
  "a / n": () => [[1000 * draw()], (a) => a / 37],
  "exp a": () => [[12 * draw()], Math.exp],
  "p × q": () => [[draw(), draw() ** 5], (a, b) => a * b, percent],
  "a sum of many": () => [Array.from({ length: 29 }, () => 12 * draw()), (...all) => all.reduce((a, b) => a + b, 0)],
};

for (const [name, make] of Object.entries(EQUATIONS))
  test(`a printed equation holds as it is printed: ${name}`, () => {
    for (let i = 0; i < 500; i++) {
      const [values, f, write = number, writes = write] = make();
      const result = f(...values);
      const made = equation(values, f, result, write, writes);
      assert.equal(made.sign, "=", `${values}`);
      const printed = made.texts.map((text) => Number(text.replace(/[()%\s]/g, "").replaceAll("−", "-")));
      const scale = write === percent ? 0.01 : 1;
      assert.equal(write(f(...printed.map((x) => x * scale))), made.result, `${made.texts} = ${made.result}`);
    }
  });

test("an operand has the fewest digits that will do", () => {
  const { texts, sign, result } = equation([Math.exp(-3.6757e-4)], (p) => -Math.log(p), 3.6757e-4);
  assert.deepEqual([texts, sign, result], [["0.9996325"], "=", "3.6757e−4"]);
  assert.deepEqual(equation([2, -3], (a, b) => a * b, -6, number, [number, operand]).texts, ["2.0000", "(−3.0000)"]);
});

test("what no digits make true is not said to be equal", () => {
  assert.equal(equation([2], (x) => x, 2.1).sign, "≈");
  assert.equal(equation([NaN], (x) => x, 1).sign, "≈");
});

const n = (value, form = "number") => ({ value: String(value), form });

test("a line of the walkthrough's arithmetic holds as it is printed", () => {
  const text = (pieces) => pieces.map((part, i) => printed(pieces)[i] ?? part.text ?? part).join("");
  const [x, mean, scale, weight, bias] = [1.0000321, 1.0000123, 0.0031234567, -1.2345678, 0.006];
  const value = ((x - mean) / scale) * weight + bias;
  const norm = ["(", n(x), " − ", n(mean, "operand"), ") / ", n(scale), " × ", n(weight, "operand"), " + "];
  const line = text([...norm, n(bias, "operand"), " = ", n(value)]);
  const [left, right] = line.replaceAll("−", "-").split(" = ");
  const [a, b, c, d, e] = left.match(/-?\d+\.\d+(e-?\d+)?/g).map(Number);
  assert.equal(number(((a - b) / c) * d + e).replace("−", "-"), right, line);
  assert.equal(
    text(["score = ", n(12.345678), " × ", n(0.25, "setting"), " = ", n(3.0864195)]),
    "score = 12.3457 × 0.25 = 3.0864",
  );
  assert.equal(
    text([
      "e^(",
      n(1),
      " − ",
      n(2),
      ") / Σ over 9 keys = ",
      n(0.36787944),
      " / ",
      n(3),
      " = ",
      n(0.1226265, "percent"),
    ]),
    "e^(1.0000 − 2.0000) / Σ over 9 keys = 0.36788 / 3.0000 = 12.3\u00a0%",
  );
  assert.equal(
    text(["(", n(2), " × ", n(3), ") + … 5 more (", n(4), ") = ", n(10)]),
    "(2.0000 × 3.0000) + … 5 more (4.0000) = 10.000",
  );
  assert.equal(text(["× up ", n(2), " = ", n(3)]), "× up 2.0000 = 3.0000"); // of a number that stands elsewhere
  assert.equal(text([{ text: "z", role: "value" }, " = Σ ", n(2)]), "z = Σ 2.0000");
});

test("each line of a softmax in numbers gives the next one as it is printed", () => {
  const read = (text) => Number(text.replace(/[%\s]/g, "").replaceAll("−", "-"));
  for (let i = 0; i < 200; i++) {
    const masked = Array.from({ length: 12 }, (_, key) => (key === 11 ? -Infinity : 30 * draw() - 15));
    const top = Math.max(...masked);
    const exponentials = masked.map((s) => Math.exp(s - top));
    const total = exponentials.reduce((sum, x) => sum + x, 0);
    const weights = exponentials.map((x) => x / total);
    const texts = softmaxTexts({ masked, top, exponentials, total, weights }, [...masked.keys()]);
    assert.ok(texts.holds);
    for (const [key, { score, power, exact }] of texts.columns.slice(0, 11).entries()) {
      assert.equal(exact(Math.exp(read(score) - read(texts.top))), power);
      assert.equal(percent(read(power) / read(texts.total)), percent(weights[key]));
    }
  }
});
