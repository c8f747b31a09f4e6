"""A plain list of words, as some checkpoints carry it in `token_mappings.json`: split at white space."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from engine.tokenizers.special import UNKNOWN

SPECIAL_NAME = re.compile(r"<[^<>\s]+>|\[[A-Z]+\]")


def plain_words(ids: Mapping[str, int]) -> Tokenizer:
    """An entry may be several words ("Thread Milling"): it is found before its single words, longest first.

    Without an entry <unk> the vocabulary is closed: see `closed.py`.
    """
    phrases = sorted((entry for entry in ids if len(entry.split()) > 1), key=len, reverse=True)
    entry = "|".join([*map(re.escape, phrases), r"\S+"])
    fast = Tokenizer(models.WordLevel(dict(ids), unk_token=UNKNOWN))
    fast.pre_tokenizer = pre_tokenizers.Split(Regex(rf"(?<!\S)(?:{entry})(?!\S)"), "removed", invert=True)
    fast.add_special_tokens([name for name in ids if SPECIAL_NAME.fullmatch(name)])
    return fast
