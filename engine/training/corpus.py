"""A text corpus as one long row of token ids, made once for a run and kept in its folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.data.stories import story
from engine.data.text import read_text, split
from engine.tokenizers import Tokenizer, read_tokenizer, train
from engine.training.atomic import replacing
from engine.training.recipe import Data, Stories, Text
from engine.training.seeds import seed_for

_Texts = Callable[[], Iterator[str]]


@dataclass(frozen=True)
class Tokens:
    """`ids` of all documents, each closed by the end token; `starts` is where each document begins."""

    ids: Tensor
    starts: Tensor


@dataclass(frozen=True)
class Corpus:
    train: Tokens
    held_out: Tokens
    tokenizer: Tokenizer


def open_corpus(data: Data, seed: int, folder: Path) -> Corpus:
    """Read from the run directory `folder` where an earlier start left it, made and written there otherwise.

    The tokenizer lies in the folder itself, where `engine.load` looks for it, and the tokens in `data/`.
    """
    key = blake2b(json.dumps([asdict(data), seed]).encode(), digest_size=8).hexdigest()
    file = folder / "data" / f"tokens-{key}.safetensors"
    kept = _kept(file)
    tokenizer = read_tokenizer(folder) if kept else None
    if kept and tokenizer is not None:
        return Corpus(Tokens(kept["train"], kept["train_starts"]), Tokens(kept["held"], kept["held_starts"]), tokenizer)
    corpus = make_corpus(data, seed)
    file.parent.mkdir(parents=True, exist_ok=True)
    corpus.tokenizer.save(folder)
    parts = {"train": corpus.train.ids, "train_starts": corpus.train.starts}
    parts |= {"held": corpus.held_out.ids, "held_starts": corpus.held_out.starts}
    with replacing(file) as partial:
        save_file(parts, partial)
    return corpus


def _kept(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (FileNotFoundError, SafetensorError):
        return {}


def make_corpus(data: Data, seed: int) -> Corpus:
    train_texts, held_texts = documents(data, seed)
    sample = islice(train_texts(), data.tokenizer.sample)
    tokenizer = train(data.tokenizer.kind, sample, data.tokenizer.vocab_size)
    return Corpus(tokenised(train_texts(), tokenizer), tokenised(held_texts(), tokenizer), tokenizer)


def documents(data: Data, seed: int) -> tuple[_Texts, _Texts]:
    """The documents to train on and those held out, each as a function that tells them from the first."""
    if data.stories is not None:
        return _stories(data.stories, seed)
    if data.text is not None:
        return _file(data.text)
    raise ValueError("repeats are drawn as numbers and have no documents; use RepeatedSequences.")


def _stories(recipe: Stories, seed: int) -> tuple[_Texts, _Texts]:
    ours, theirs = seed_for(seed, "stories"), seed_for(seed, "held-out stories")
    return (
        lambda: (story(ours, index) for index in range(recipe.documents)),
        lambda: (story(theirs, index) for index in range(recipe.held_out)),
    )


def _file(recipe: Text) -> tuple[_Texts, _Texts]:
    """One document each: a window may begin anywhere in the text, but none reaches over the cut."""
    try:
        train_text, held_text = split(read_text(recipe.path), recipe.held_out)
    except FileNotFoundError:
        raise ValueError(
            f"data.text.path must be a file, got {recipe.path}; there is none, correct the path."
        ) from None
    return lambda: iter([train_text]), lambda: iter([held_text])


def tokenised(texts: Iterable[str], tokenizer: Tokenizer) -> Tokens:
    ids: list[int] = []
    starts: list[int] = []
    for text in texts:
        starts.append(len(ids))
        ids.extend(tokenizer.encode(text, special=False).ids)
        if tokenizer.end_id is not None:
            ids.append(tokenizer.end_id)
    return Tokens(torch.tensor(ids, dtype=torch.int32), torch.tensor(starts, dtype=torch.int64))
