"""The page Similarity: its questions and its charts."""
