"""The model and what it reads: controls that several pages share."""
