"""The page Walkthrough: one run of a model from its tokens to its prediction."""
