import js from "@eslint/js";

export default [
  { ignores: ["node_modules/", "runs/", ".venv/"] },
  js.configs.recommended,
  {
    rules: {
      "no-control-regex": "off", // SVG has no place for control characters, which are taken out
      "no-undef": "off", // tsc knows what a browser has
      "no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_", ignoreRestSiblings: true }],
      eqeqeq: "error",
      "no-var": "error",
      "prefer-const": ["error", { destructuring: "all" }],
      "object-shorthand": "error",
    },
  },
];
