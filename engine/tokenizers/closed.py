"""Vocabularies without an unknown token: a word outside them has no id, and the person must hear which."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

import tokenizers
from tokenizers import models


def check_words(fast: tokenizers.Tokenizer, ids: Mapping[str, int], text: str) -> None:
    """ValueError for the first word of `text` that a closed word vocabulary lacks; other tokenizers pass."""
    model = fast.model
    if not isinstance(model, models.WordLevel) or model.unk_token in ids:
        return
    plain = fast.normalizer.normalize_str(text) if fast.normalizer else text
    words = fast.pre_tokenizer.pre_tokenize_str(plain) if fast.pre_tokenizer else [(plain, (0, len(plain)))]
    unknown = next((word for word, _ in words if word and word not in ids), None)
    if unknown is not None:
        nearest = ", ".join(map(repr, get_close_matches(unknown, ids, n=5, cutoff=0.0)))
        raise ValueError(
            f"Expected words of this vocabulary, got {unknown!r}, and it has no token for unknown words; "
            f"use one of its {len(ids)} words, such as {nearest}."
        )
