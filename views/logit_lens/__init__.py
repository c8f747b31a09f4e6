"""Logit lens: what a model would say before every block."""
