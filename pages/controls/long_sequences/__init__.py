"""Controls of the page Long sequences."""
