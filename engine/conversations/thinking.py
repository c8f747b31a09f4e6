"""What a model thinks before it answers: the marks around it, which differ by who trained the model."""

from __future__ import annotations

from engine.conversations.template import read_templates
from engine.tokenizers import Tokenizer

# Qwen3 and DeepSeek R1, Magistral, gpt-oss, Seed-OSS, Command A, Granite 3.3
MARKS = (
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
    ("<seed:think>", "</seed:think>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
)


def find_thinking_marks(tokenizer: Tokenizer | None) -> list[tuple[str, str]]:
    """Pairs of marks, before and after a thinking part, of which a chat template or a special token has one."""
    if tokenizer is None:
        return []
    known = (*read_templates(tokenizer).values(), *tokenizer.special_tokens)
    return [(before, after) for before, after in MARKS if any(before in one or after in one for one in known)]
