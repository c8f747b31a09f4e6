"""Controls of the page Architecture."""
