"""Attention over long sequences: what is left out so that the cost stops growing with the square of the length."""
