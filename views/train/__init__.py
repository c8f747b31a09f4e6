"""The page Train: a run while it learns, and any of its steps."""
