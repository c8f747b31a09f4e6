"""A corpus of texts as one long row of token ids, made once for a run and kept in its folder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import blake2b
from heapq import nsmallest
from itertools import chain, islice
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.data.documents import Document, Documents, Reading
from engine.data.drawing import lot
from engine.data.own import Columns
from engine.data.tokenizer_recipe import TokenizerRecipe
from engine.plurals import count_words
from engine.tokenizers import END, FastTokenizer, Tokenizer, read_tokenizer, train
from engine.tokenizers.fast import add_bert_template, remove_template
from engine.training.base.base import tokenizer_of
from engine.training.examples.padding import Rows, gather_rows
from engine.training.recipe.data_recipe import Data
from engine.training.run.atomic import replace_atomically
from engine.training.run.folder import RunFolder

TELL_UNKNOWN = 0.01  # share of tokens
LOOKED_AT, SOME_UNKNOWN, NAMED_UNKNOWN = 100_000, 1_000, 8  # letters of a text, unknown ones of all, and those named


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
    """`notes` are sentences for a person about what was read."""

    train: Tokens
    held_out: Tokens
    tokenizer: Tokenizer
    notes: tuple[str, ...] = ()


def open_corpus(documents: Documents, data: Data, seed: int, folder: Path, base: str = "") -> Corpus:
    """Read from the run directory `folder` where an earlier start left it, made and written there otherwise.

    The tokenizer lies in the folder itself, where `engine.load` looks for it, and the tokens in `data/`. It is that of
    the checkpoint `base` where there is one.
    """
    key = blake2b(json.dumps([data.tables, seed]).encode(), digest_size=8).hexdigest()
    file = folder / "data" / f"tokens-{key}.safetensors"
    kept = _load_cache(file)
    tokenizer = read_tokenizer(folder) if kept else None
    if kept and tokenizer is not None:
        return with_notes(Corpus(_unpack(kept, "train"), _unpack(kept, "held_out"), tokenizer), documents)
    known = read_tokenizer(folder) if RunFolder(folder).weights.exists() else None  # whose ids the weights have learned
    corpus = make_corpus(documents, data, seed, base, known)
    file.parent.mkdir(parents=True, exist_ok=True)
    corpus.tokenizer.save(folder)
    with replace_atomically(file) as partial:
        save_file(_pack(corpus.train, "train") | _pack(corpus.held_out, "held_out"), partial)
    return with_notes(corpus, documents)


def with_notes(corpus: Corpus, documents: Documents) -> Corpus:
    unknown = describe_unknown(corpus, documents)
    return replace(corpus, notes=(*documents.notes, unknown) if unknown else documents.notes)


def describe_unknown(corpus: Corpus, documents: Documents) -> str:
    """Sentence about tokens that the tokenizer does not know, where they are more than TELL_UNKNOWN of all; the letters
    are those of the first texts that have some."""
    ids, id = (corpus.train.ids, corpus.held_out.ids), corpus.tokenizer.unknown_id
    whole = sum(map(len, ids))
    unknown = 0 if id is None else sum(int((part == id).sum()) for part in ids)
    if unknown <= TELL_UNKNOWN * whole:
        return ""
    letters = Counter[str]()
    for text in chain.from_iterable(one.texts for one in chain(documents.train(), documents.held_out())):
        read = corpus.tokenizer.encode(text[:LOOKED_AT], special=False)
        spans = (span for one, span in zip(read.ids, read.spans, strict=True) if one == id)
        letters.update(chain.from_iterable(text[start:end].split() for start, end in spans))
        if letters.total() >= SOME_UNKNOWN:
            break
    named = ", ".join(f"{word!r:.20} {count:,}" for word, count in letters.most_common(NAMED_UNKNOWN))
    return (
        f"{100 * unknown / whole:.1f} % of the tokens of the data, {unknown:,} of {whole:,}, are unknown to the "
        f"tokenizer and all alike to the model (of {count_words(letters.total(), 'letter')} looked at {named}); take a "
        "tokenizer that knows them."
    )


def _load_cache(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (FileNotFoundError, SafetensorError):
        return {}


def _pack(tokens: Tokens, part: str) -> dict[str, Tensor]:
    return {f"{part}.{name}": getattr(tokens, name) for name in FIELDS}


def _unpack(kept: dict[str, Tensor], part: str) -> Tokens:
    return Tokens(*(kept[f"{part}.{name}"] for name in FIELDS))


def make_corpus(documents: Documents, data: Data, seed: int, base: str = "", known: Tokenizer | None = None) -> Corpus:
    told = documents.train()
    first, some = choose_sample(told, data, seed)
    tokenizer = known or (tokenizer_of(base) if base else train_tokenizer(some, documents, data.tokenizer))
    ours = tokenise(chain(first, told), tokenizer, documents.read)
    theirs = tokenise(documents.held_out(), tokenizer, documents.read)
    return Corpus(ours, theirs, tokenizer)


def choose_sample(told: Iterator[Document], data: Data, seed: int) -> tuple[Sequence[Document], Sequence[Document]]:
    """Selects documents of `told`, and of them those that a tokenizer learns from. Generated documents are like each
    other, and the first will do; a person's rows may be sorted, so theirs are drawn from all, and characters are
    all."""
    recipe = data.tokenizer
    if not isinstance(data.table, Columns):
        first = list(islice(told, recipe.sample))
        return first, first
    rows = list(told)
    if recipe.declared.learns_all or len(rows) <= recipe.sample:
        return rows, rows
    drawn = nsmallest(recipe.sample, range(len(rows)), lambda row: lot(f"tokenizer {row}", seed))
    return rows, [rows[row] for row in sorted(drawn)]


def train_tokenizer(some: Iterable[Document], documents: Documents, recipe: TokenizerRecipe) -> FastTokenizer:
    """Trains a tokenizer on these documents and the alphabet."""
    texts = (text for document in some for text in document.texts)
    sample = chain([documents.alphabet] if documents.alphabet else [], texts)
    special = special_token_names(documents, recipe)
    return set_template(train(recipe.kind, sample, recipe.vocab_size, special), documents)


def special_token_names(documents: Documents, recipe: TokenizerRecipe) -> tuple[str, ...] | None:
    """The special tokens: those that the task needs, then the recipe's own. None leaves the tokenizer its own."""
    needed = documents.special_tokens
    if needed is None and recipe.special_tokens:
        needed = () if recipe.declared.own_marks else (END,)
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
