"""Controls of the page Checkpoint: opening, downloading, load errors."""
