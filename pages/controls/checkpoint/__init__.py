"""Controls of the page Open a model: opening, downloading, load errors."""
