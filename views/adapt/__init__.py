"""Charts of what a training changed of its base."""
