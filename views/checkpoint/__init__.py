"""The page Checkpoint: its report, its tensors, its weights, its tables of vectors."""
