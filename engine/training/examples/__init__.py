"""What a model is asked: one file each makes the examples of one way of learning, from ids, texts or pictures.

`engine/scoring` says how wrong answers are; `engine/training/objectives` is what a recipe may name.
"""
