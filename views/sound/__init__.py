"""Charts of what a model hears: its frames, and where the decoder looks in time."""
