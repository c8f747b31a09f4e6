"""What Loupe's engine costs, measured side by side with transformers on the same weights: `python -m bench`."""
