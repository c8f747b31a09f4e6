"""Corpora and tasks: what the models of the laboratory are trained on. Each is reproducible from a seed."""
