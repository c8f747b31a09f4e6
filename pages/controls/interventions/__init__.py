"""Controls of the page Interventions: where what a sweep found leads."""
