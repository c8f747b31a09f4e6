"""Controls of the page Train: recipes, data, runs."""
