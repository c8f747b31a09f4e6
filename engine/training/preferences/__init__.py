"""Learning from preferences, as pure functions of tensors and texts.

A person, or one of the rules of `rules`, prefers one answer of a `pairs.Pair`. A reward model learns a number from that
(`reward`), which `ppo` or `grpo` maximise at a price for leaving the reference (`kl`); `dpo` learns from the pairs
themselves. Functions named `score_...` return scalars by name, of which "loss" is minimised.
"""
