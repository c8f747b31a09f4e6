"""What a finished model is measured by on data it never saw, and a sample of what it does, for its card.

One file for each way of learning, with a function that measures a trainer's model and one that draws a sample; both are
called with the model in evaluation, by the objectives that name them.
"""
