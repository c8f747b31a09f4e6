"""The page Long context: costs and patterns of attention variants."""
