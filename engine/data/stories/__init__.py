"""Small English stories without end, for a small language model to learn from and a class to look at.

Story `index` of `seed` is always the same text, on every machine and Python version: only
`random.Random.random` and its seeding by text are used, which Python keeps stable. Every seed is a stream of
its own; to hold out, train on one seed and measure on another.

How many there are: `moved` alone, one of the 38 plots, has 32 x 31 pairs of names, 15 things x 20 adjectives,
7 x 6 containers and 12 x 11 colours, all named in the text: more than a thousand million stories, before any
sentence is worded in a second way.
"""

from .story import Member, Story, stories, story, tell

__all__ = ["Member", "Story", "stories", "story", "tell"]
