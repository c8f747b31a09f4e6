"""A shipped checkpoint to begin with instead of random weights: what it has learned is fine-tuned for another task
(Radford et al. 2018, section 3.2).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields, replace

from engine.checkpoints import load, shipped_names
from engine.checkpoints.load import find_place, open_model
from engine.model.config import ModelConfig
from engine.model.transformer import Transformer
from engine.tokenizers import FastTokenizer
from engine.tokenizers.special import USUAL

OF_DATA = frozenset({"vocab_size", "head", "encoder", "infill"})  # what the data completes in a recipe's model


def shipped_name(name: str) -> str:
    if name not in shipped_names():
        raise ValueError(
            f"base must be a shipped checkpoint ({', '.join(shipped_names())}), got {name!r:.200}; publish it."
        )
    return name


def check_base(name: str, config: ModelConfig, but: Collection[str] = ()) -> None:
    """Raises ValueError where `config` is not that of a shipped checkpoint, `but` for some of it; reads no weights."""
    theirs = replace(open_model(find_place(shipped_name(name)), {}, {}).config, dropout=config.dropout)
    keys = [one.name for one in fields(config) if one.name not in but]
    different = [key for key in keys if getattr(theirs, key) != getattr(config, key)]
    if different:
        wanted = ", ".join(f"{key} = {getattr(theirs, key)}" for key in different)
        raise ValueError(f"model must be that of the base {name}, with {wanted}; correct it, or leave out base.")


def begin_with(model: Transformer, name: str) -> Transformer:
    """`model` with the weights of a checkpoint. Raises ValueError where that is made of something else."""
    check_base(name, model.config)
    model.load_state_dict(load(name).model.state_dict())
    return model


def tokenizer_of(name: str, wanted: Sequence[str]) -> FastTokenizer:
    """Tokenizer of a checkpoint. Raises ValueError where it lacks a special token; its own end will do."""
    tokenizer = load(shipped_name(name)).tokenizer
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
