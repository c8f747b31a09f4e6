"""The panel What if: edits in words, and their effects on a run."""
