"""Why: what wrote the logit of a token, and what wrote the score of a head."""
