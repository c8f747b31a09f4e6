"""What several tables of data have."""

from engine.model.option import Option

DOCUMENTS = Option(help="Examples to learn from, drawn from the seed.")
HELD_OUT = Option(help="What the model is measured on and never learns from: a number of examples, or a share.")
LEAST_LENGTH = Option(help="Symbols that are drawn at least.")
MOST_LENGTH = Option(help="Symbols that are drawn at most.")
MOST_WORDS = Option(help="Words and marks of a sentence at most.")
SYMBOLS = Option(help="The symbols that are drawn from.")
MIXED = Option(help="Of the file of published texts that is mixed with these.", decided=True)
