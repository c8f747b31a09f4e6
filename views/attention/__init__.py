"""The page Attention: every head, one head, and the tiles of a long text."""
