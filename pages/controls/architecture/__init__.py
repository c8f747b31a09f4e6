"""Controls of the page Anatomy."""
