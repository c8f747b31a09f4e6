"""The page Compare: two to four runs and their differences."""
