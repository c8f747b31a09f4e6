"""What a tokenizer puts around a text by itself."""

from __future__ import annotations

from tokenizers.processors import TemplateProcessing

from engine.tokenizers.fast import FastTokenizer

FIRST, LAST = "[CLS]", "[SEP]"


def bare(tokenizer: FastTokenizer) -> FastTokenizer:
    """Nothing: for models that read texts as they stand."""
    tokenizer.fast.post_processor = TemplateProcessing(single="$A", pair="$A:0 $B:0", special_tokens=[])
    return tokenizer


def enclosed(tokenizer: FastTokenizer) -> FastTokenizer:
    """[CLS] A [SEP] for one text and [CLS] A [SEP] B [SEP] for two, as BERT has it; both marks are special tokens."""
    ids = tokenizer.special_tokens
    tokenizer.fast.post_processor = TemplateProcessing(
        single=[f"{FIRST}:0", "$A:0", f"{LAST}:0"],
        pair=[f"{FIRST}:0", "$A:0", f"{LAST}:0", "$B:1", f"{LAST}:1"],
        special_tokens=[(name, ids[name]) for name in (FIRST, LAST)],
    )
    return tokenizer
