"""Several processes, several machines, and what is computed otherwise there."""
