"""What a model reads: texts, pairs, gaps and pictures, made from what a person gives."""
