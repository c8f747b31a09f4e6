"""Controls of the page Compare: its two to four runs."""
