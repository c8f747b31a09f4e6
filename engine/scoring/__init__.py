"""What a model is asked of a batch, and how wrong it was: for training, which makes that less, and for analysis."""
