"""What of a run is looked at while it trains, and how that is kept."""
