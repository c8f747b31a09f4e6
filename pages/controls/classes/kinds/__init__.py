"""The kinds of steps of a class session: every file here declares its KIND, as pages/controls/classes/kind.py says."""
