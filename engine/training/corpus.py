"""A corpus of texts as one long row of token ids, made once for a run and kept in its folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Literal, TypeAlias

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.tokenizers import END, FastTokenizer, Tokenizer, read_tokenizer, train
from engine.tokenizers.fast import add_bert_template, remove_template
from engine.training.atomic import replace_atomically
from engine.training.base import tokenizer_of
from engine.training.data_recipe import Data, TokenizerRecipe
from engine.training.objectives.padding import Rows, gather_rows


@dataclass(frozen=True)
class Document:
    """Text, or several that belong together, as a sentence and its translation; `label` is what is known of it."""

    texts: tuple[str, ...]
    label: int = 0


Reading: TypeAlias = Callable[[Tokenizer, Document], Sequence[Sequence[int]]]  # the ids of each text of a document


def read_each(tokenizer: Tokenizer, document: Document) -> list[list[int]]:
    """Ids of each text as they are when it is typed."""
    return [tokenizer.ids(text) for text in document.texts]


def read_parts(tokenizer: Tokenizer, document: Document) -> list[list[int]]:
    """Ids of each text without the tokens that the tokenizer puts around one: parts of a row with its own marks."""
    return [tokenizer.ids(text, special=False) for text in document.texts]


@dataclass(frozen=True)
class Documents:
    """Documents to train on and those held out, each as a function that tells them from the first.

    `read` makes ids of a document. `special_tokens` are the tokenizer's; None leaves it its own. It knows all of
    `alphabet`, whatever it learns from. `template` says which tokens stand around a text, here and around whatever a
    person types: its kind's own, none (`bare`) or [CLS] and [SEP] (`bert`), which are then among `special_tokens`.
    """

    train: Callable[[], Iterator[Document]]
    held_out: Callable[[], Iterator[Document]]
    special_tokens: tuple[str, ...] | None = None
    read: Reading = read_each
    template: Literal["own", "bare", "bert"] = "own"
    alphabet: str = ""


@dataclass(frozen=True)
class Tokens:
    """`ids` of all texts, one behind the other; `starts` (document text) is where each begins, `labels` is document."""

    ids: Tensor
    starts: Tensor
    labels: Tensor

    def document(self, index: int) -> tuple[Tensor, ...]:
        """The ids of each of its texts."""
        starts = self.starts[index].tolist()
        after = int(self.starts[index + 1, 0]) if index + 1 < len(self.starts) else len(self.ids)
        return tuple(self.ids[begin:end] for begin, end in zip(starts, [*starts[1:], after], strict=True))

    def rows(self, indexes: Sequence[int], text: int) -> Rows:
        """Rows of the text of that number of each of these documents."""
        chosen = torch.tensor(indexes)
        return gather_rows(self.ids, self.starts[chosen, text], self.lengths[chosen, text])

    @cached_property
    def lengths(self) -> Tensor:
        """document text"""
        flat = torch.cat([self.starts.flatten(), torch.tensor([len(self.ids)])])
        return flat.diff().view_as(self.starts)


FIELDS = tuple(one.name for one in fields(Tokens))


@dataclass(frozen=True)
class Corpus:
    train: Tokens
    held_out: Tokens
    tokenizer: Tokenizer


def open_corpus(documents: Documents, data: Data, seed: int, folder: Path, base: str = "") -> Corpus:
    """Read from the run directory `folder` where an earlier start left it, made and written there otherwise.

    The tokenizer lies in the folder itself, where `engine.load` looks for it, and the tokens in `data/`. It is that of
    the checkpoint `base` where there is one.
    """
    key = blake2b(json.dumps([asdict(data), seed]).encode(), digest_size=8).hexdigest()
    file = folder / "data" / f"tokens-{key}.safetensors"
    kept = _load_cache(file)
    tokenizer = read_tokenizer(folder) if kept else None
    if kept and tokenizer is not None:
        return Corpus(_unpack(kept, "train"), _unpack(kept, "held_out"), tokenizer)
    corpus = make_corpus(documents, data.tokenizer, base)
    file.parent.mkdir(parents=True, exist_ok=True)
    corpus.tokenizer.save(folder)
    with replace_atomically(file) as partial:
        save_file(_pack(corpus.train, "train") | _pack(corpus.held_out, "held_out"), partial)
    return corpus


def _load_cache(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (FileNotFoundError, SafetensorError):
        return {}


def _pack(tokens: Tokens, part: str) -> dict[str, Tensor]:
    return {f"{part}.{name}": getattr(tokens, name) for name in FIELDS}


def _unpack(kept: dict[str, Tensor], part: str) -> Tokens:
    return Tokens(*(kept[f"{part}.{name}"] for name in FIELDS))


def make_corpus(documents: Documents, recipe: TokenizerRecipe, base: str = "") -> Corpus:
    told = documents.train()
    first = list(islice(told, recipe.sample))
    tokenizer = tokenizer_of(base) if base else train_tokenizer(first, documents, recipe)
    ours = tokenise(chain(first, told), tokenizer, documents.read)
    theirs = tokenise(documents.held_out(), tokenizer, documents.read)
    return Corpus(ours, theirs, tokenizer)


def train_tokenizer(first: Iterable[Document], documents: Documents, recipe: TokenizerRecipe) -> FastTokenizer:
    """Trains a tokenizer on the first documents, as many as the recipe says, and the alphabet."""
    texts = (text for document in first for text in document.texts)
    sample = chain([documents.alphabet] if documents.alphabet else [], texts)
    special = special_token_names(documents, recipe)
    return set_template(train(recipe.kind, sample, recipe.vocab_size, special), documents)


def special_token_names(documents: Documents, recipe: TokenizerRecipe) -> tuple[str, ...] | None:
    """The special tokens: those that the task needs, then the recipe's own. None leaves the tokenizer its own."""
    needed = documents.special_tokens
    if needed is None and recipe.special_tokens:
        needed = () if recipe.kind == "wordpiece" else (END,)
    return None if needed is None else (*needed, *recipe.special_tokens)


def set_template(tokenizer: FastTokenizer, documents: Documents) -> FastTokenizer:
    if documents.template == "own":
        return tokenizer
    return remove_template(tokenizer) if documents.template == "bare" else add_bert_template(tokenizer)


def tokenise(documents: Iterable[Document], tokenizer: Tokenizer, read: Reading) -> Tokens:
    ids: list[int] = []
    starts: list[list[int]] = []
    labels: list[int] = []
    for document in documents:
        starts.append([])
        labels.append(document.label)
        for each in read(tokenizer, document):
            starts[-1].append(len(ids))
            ids += each
    return Tokens(torch.tensor(ids, dtype=torch.int32), torch.tensor(starts), torch.tensor(labels))
