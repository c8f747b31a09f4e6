"""The transformer: its config, its hook points, its layers, its stacks, and published configurations."""
