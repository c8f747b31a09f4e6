"""The page Anatomy: blocks, parameters, memory and work of a configuration."""
