"""Pure functions of a trace or a model."""
