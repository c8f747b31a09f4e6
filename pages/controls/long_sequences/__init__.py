"""Controls of the page Long context."""
