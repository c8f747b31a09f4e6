"""Edits of a run as controls, and as part of a link."""
