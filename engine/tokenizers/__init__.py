"""Tokenizers: from text to ids and back, with every piece placed in the text and drawn.

`train("bpe", texts)` learns one (`tokenizer_kinds()` lists the kinds), `read_tokenizer(folder)` reads one.
"""

from engine.tokenizers.encoding import Encoding
from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.files import read_tokenizer
from engine.tokenizers.pieces import draw_piece
from engine.tokenizers.protocol import Tokenizer
from engine.tokenizers.special import END, UNKNOWN
from engine.tokenizers.trainers import tokenizer_kinds, train

__all__ = [
    "END",
    "UNKNOWN",
    "Encoding",
    "FastTokenizer",
    "Tokenizer",
    "draw_piece",
    "read_tokenizer",
    "tokenizer_kinds",
    "train",
]
