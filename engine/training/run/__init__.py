"""The folder of a run: what is written there as it trains, and who reads it."""
