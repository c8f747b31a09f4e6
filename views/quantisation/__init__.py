"""The page Quantisation: its questions and its charts."""
