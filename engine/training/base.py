"""A shipped checkpoint to begin with instead of random weights: what it has learned is fine-tuned for another task
(Radford et al. 2018, section 3.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from engine.checkpoints import Checkpoint, load, shipped_names
from engine.model.transformer import Transformer
from engine.tokenizers import FastTokenizer
from engine.tokenizers.special import USUAL


def open_base(name: str) -> Checkpoint:
    if name not in shipped_names():
        raise ValueError(f"base must be a shipped checkpoint ({', '.join(shipped_names())}), got {name!r}; publish it.")
    return load(name)


def begin_with(model: Transformer, name: str) -> Transformer:
    """`model` with the weights of a checkpoint. Raises ValueError where that is made of something else."""
    base, config = open_base(name), model.config
    theirs = replace(base.config, dropout=config.dropout)
    different = [one.name for one in fields(config) if getattr(theirs, one.name) != getattr(config, one.name)]
    if different:
        wanted = ", ".join(f"{key} = {getattr(theirs, key)}" for key in different)
        raise ValueError(f"model must be that of the base {name}, with {wanted}; correct it, or leave out base.")
    model.load_state_dict(base.model.state_dict())
    return model


def tokenizer_of(name: str, wanted: Sequence[str]) -> FastTokenizer:
    """Tokenizer of a checkpoint. Raises ValueError where it lacks a special token; its own end will do."""
    tokenizer = open_base(name).tokenizer
    if not isinstance(tokenizer, FastTokenizer):
        raise ValueError(f"base must be a checkpoint that reads texts, got {name}; choose another.")
    ends = () if tokenizer.end_id is None else USUAL["eos_token"]
    missing = [one for one in wanted if one not in tokenizer.special_tokens and one not in ends]
    if missing:
        raise ValueError(
            f"base must have the special tokens {', '.join(missing)}, and {name} lacks them; give that its tokens in "
            "data.tokenizer.special_tokens and train it again."
        )
    return tokenizer
