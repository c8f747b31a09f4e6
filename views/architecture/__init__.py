"""The page Architecture: blocks, parameters, memory and work of a configuration."""
