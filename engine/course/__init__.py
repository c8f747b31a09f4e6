"""Small computations that the course shows step by step, each equal to what the models do."""
