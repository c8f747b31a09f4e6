"""LTI 1.3: what a platform of courses asks of Loupe, and the scores that it gets."""
