"""Learning from preferences, as pure functions of tensors and texts.

A person, or a rule (a file of `rules`), prefers one answer of a `pairs.PreferencePair`. A reward model learns a number
from that, which policies maximise at a price for leaving the reference (`kl`); others learn from the pairs themselves.
Each is a file of `engine.training.objectives.kinds`; `learner` is what they have in common in a training.
"""
