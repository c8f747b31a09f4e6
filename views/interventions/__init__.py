"""Charts of the page Interventions, and what they ask of a pair of runs."""
