"""Controls of the page Attention."""
