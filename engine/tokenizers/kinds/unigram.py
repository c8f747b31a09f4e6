"""Unigram (Kudo 2018, section 3.2): every piece has a probability, and a text is its most probable pieces.

Learned from many candidate pieces by EM: those whose loss costs the likelihood least go, until `vocab_size`
are left. Spaces are SentencePiece's: the text gets one in front, so that "the" is one piece wherever it
stands, which is why a text that begins with a space and one that does not may be encoded alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from engine.json_text import parse_json
from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.kind import TokenizerKind
from engine.tokenizers.special import END, UNKNOWN, unique_names
from engine.tokenizers.vocabulary import check_corpus, check_room

SPACE = "\u2581"  # SentencePiece's stand-in
DIGITS = 4  # of a score; sums of many floats in the order of a random hash differ from the tenth on
PENALTY = 1e-4  # by which the trainer tells apart the characters that EM dropped


def train(texts: Iterable[str], vocab_size: int = 1024, special_tokens: Sequence[str] = (END,)) -> FastTokenizer:
    """Train a Unigram. All characters of the texts are pieces, any other is <unk>; special tokens follow the pieces.

    Fewer entries than `vocab_size` are made where the texts have no more candidates.
    """
    names = unique_names([UNKNOWN, *special_tokens])
    learned = check_corpus(texts)
    characters = {SPACE if character == " " else character for text in learned for character in text} | {SPACE}
    check_room(vocab_size, len(names) + len(characters) - 1)
    space = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="first")
    trained = Tokenizer(models.Unigram())
    trained.pre_tokenizer = space
    trained.train_from_iterator(
        learned,
        trainers.UnigramTrainer(vocab_size=vocab_size, special_tokens=names, unk_token=UNKNOWN, show_progress=False),
    )
    scores = dict(parse_json(trained.model.__getstate__())["vocab"])
    pieces = _order_pieces({piece: score for piece, score in scores.items() if piece not in names})
    # Of the special tokens the model has the unknown one alone, as it must, less probable than the characters of its
    # name: it would read any other as itself where it is only text.
    lowest = pieces[-1][1]
    fast = Tokenizer(models.Unigram([(UNKNOWN, (len(UNKNOWN) + 1) * lowest), *pieces], 0, False))
    fast.pre_tokenizer = space
    fast.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme="first")
    fast.add_special_tokens([UNKNOWN, *(name for name in names if name != UNKNOWN)])
    return FastTokenizer(fast)


def _order_pieces(scores: dict[str, float]) -> list[tuple[str, float]]:
    """Order pieces, the most probable first, equal ones by code point, so that the same texts give the same ids.

    The characters that EM dropped come back with the lowest score; the trainer sets them apart by steps of
    `PENALTY` in a random order, which is undone here.
    """
    characters = [piece for piece in scores if len(piece) == 1]
    lowest = min(scores.values())
    dropped = {piece for piece in characters if scores[piece] < lowest + PENALTY * len(characters)}
    rounded = {piece: round(lowest if piece in dropped else score, DIGITS) for piece, score in scores.items()}
    return sorted(rounded.items(), key=lambda item: (-item[1], item[0]))


KIND = TokenizerKind("unigram", 6, train, "Unigram", vocabulary=1_024)
