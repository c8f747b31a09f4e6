"""The page Open a model: its report, its tensors, its weights, its tables of vectors."""
