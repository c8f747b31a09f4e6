import js from "@eslint/js";
import compat from "eslint-plugin-compat";

export default [
  { ignores: ["node_modules/", "runs/", ".venv/", "assets/views/vendor/"] },
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
  { ...compat.configs["flat/recommended"], files: ["assets/views/**/*.js", "assets/notebook/*.js"] }, // package.json says for which browsers
  {
    files: ["assets/views/**/*.js", "assets/notebook/*.js"],
    ignores: ["assets/views/core/place.js", "assets/views/share/vector_*.js"], // the latter draws what is measured
    rules: {
      "no-restricted-properties": [
        "error",
        ...["clientX", "clientY", "offsetX", "offsetY", "pageX", "pageY", "innerWidth", "innerHeight"]
          .concat("getBoundingClientRect", "getClientRects")
          .map((property) => ({ property, message: "It is not in an element's pixels: core/place.js has what is." })),
      ],
      "no-restricted-globals": ["error", "innerWidth", "innerHeight"],
      "no-restricted-syntax": [
        "error",
        {
          selector: "ObjectPattern > Property[key.name=/^(client|offset|page)[XY]$/]",
          message: "It is not in an element's pixels: core/place.js has what is.",
        },
      ],
    },
  },
];
