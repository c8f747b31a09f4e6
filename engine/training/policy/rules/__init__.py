"""Rules that score an answer to a prompt: a file a rule, named as the rule is."""
