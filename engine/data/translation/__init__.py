"""English sentences and their French translations without end, with the words that translate each other.

Pair `index` of `seed` is always the same, on every machine and Python version: only `random.Random.random` and
its seeding by text are used. Every seed is a stream of its own; to hold out, train on one seed, measure on another.

A meaning is drawn (`drawing`), then written down twice (`english`, `french`). Every word carries the parts of the
meaning that it expresses, so the gold alignment is not guessed afterwards: two words are linked where they share one.

An English sentence has exactly one French translation, so that exact match is a fair measure. Where English
leaves a choice, these rules make it:

- "you" is "tu", "your" is "ton"; "you all" is "vous ... tous", and "your" in its sentence is "votre".
- "I", "you", "we" and "they" are masculine. In a second clause "it" and "they" stand for the subject of the first
  clause and take its French gender: "The cows sleep because they are tired" has "elles".
- "teacher", "doctor", "child", "friend" and "neighbor" are masculine; "big" is "grand", "new" is "nouveau".
- "this" and "that" are "ce"; "some" is "des" ("de" before an adjective) or "du"; after a negation the object's "a" or
  "any" is "de".
- The past is the passé composé, except "was" and "were", which are the imparfait.

There are no commas, questions or hyphens: the blank after a comma and before a French question mark, and the hyphen
itself, would be tokens of their own. `words` counts as the "word" tokenizer does, so "l'oiseau" is one word linked
to "the" and to "bird".

How many there are: "my small horse sees your pretty dress", one of the frames, has more than a hundred million
fillings in its tenses and negations, before a second adjective, a place, a time or another clause. About 360 English
and 580 French words occur, capitals and elided forms counted apart.
"""

from .pair import Crossing, Pair, pair, pairs, words

__all__ = ["Crossing", "Pair", "pair", "pairs", "words"]
