"""The page Long sequences: costs and patterns of attention variants."""
