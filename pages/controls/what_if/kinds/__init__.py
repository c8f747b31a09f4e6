"""The kinds of edits: every file here declares its KIND, as pages/controls/what_if/kind.py says."""
