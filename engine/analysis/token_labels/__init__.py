"""Labels of tokens, computed from the text: a file a kind."""
