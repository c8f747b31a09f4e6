"""The parts of a transformer, one concept a file. No file here knows a model family."""
