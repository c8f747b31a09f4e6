"""How well a model of everyday English reads a visitor's words, knows its facts and goes on with stories."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from engine.checkpoints import load
from engine.checkpoints.locate import present_names
from engine.data import mixture
from engine.data.corpora import read_corpus
from engine.data.everyday import Fact, Writer, unseen_facts, write_story
from engine.data.kinds.everyday import Everyday
from engine.data.seeds import seed_for
from engine.data.stories import story
from engine.model.transformer import Transformer
from engine.tokenizers import END, Tokenizer
from engine.training.measures.antecedents import measure_antecedents
from engine.training.sources.source import Source
from engine.training.sources.windows import Windows
from engine.training.trainer import Trainer

WORD = re.compile(r"(?<!['’\w])[^\W\d_]+")  # what stands behind an apostrophe is the rest of a word
MOSTLY = 0.8  # of a sentence's words
STORIES, SENTENCES = 60, 500
BATCH = 32
DECODED = 1_000_000  # tokens at once
LONGEST = 600  # characters of a story: fewer tokens than either model reads
OTHER = "stories"  # the shipped model that learnt from children's stories alone


def measure_everyday(trainer: Trainer) -> dict[str, Any]:
    """`whole_words`: of hand-written sentences that no document has, the share of which MOSTLY of the words are whole
    tokens. `facts`: how many are known in a wording that no document has, and of these `sums`. `bits_per_byte`: of
    held-out texts of each kind, the model's and that of the shipped model OTHER, whose tokens are others. `it`: see
    `measure_antecedents`.
    """
    tokenizer, seed = trainer.source.tokenizer, trainer.recipe.data_seed
    assert tokenizer is not None
    sentences = read_corpus("everyday/visitors")["sentences"]
    asked = unread(unseen_facts(), trainer.source)
    sums = [fact for fact in asked if fact.kind == "adding"]
    texts = {
        "children's stories": [story(seed_for(seed, "held-out stories"), index) for index in range(STORIES)],
        "everyday stories": [
            write_story(Writer(random.Random(f"{seed_for(seed, 'held-out everyday')}:{index}:story").random))
            for index in range(STORIES)
        ],
    }
    data = trainer.recipe.data.expect(Everyday)
    if data.tales:
        texts["tales"] = mixture.part_of(mixture.tales(data.tales), "held_out", seed)[:STORIES]
    if data.sentences:
        texts["sentences"] = mixture.part_of(mixture.english(data.sentences), "held_out", seed)[:SENTENCES]
    bits = {kind: {"this model": bits_per_byte(trainer.result, tokenizer, some)} for kind, some in texts.items()}
    if OTHER in present_names():
        other = load(OTHER)
        assert other.tokenizer is not None
        for kind, some in texts.items():
            bits[kind][OTHER] = bits_per_byte(other.model, other.tokenizer, some)
    return {
        "whole_words": {
            "sentences": len(sentences),
            "mostly_whole": sum(whole_share(tokenizer, text) >= MOSTLY for text in sentences) / len(sentences),
            "all_whole": sum(whole_share(tokenizer, text) == 1 for text in sentences) / len(sentences),
        },
        **{
            name: {"right": count_known(trainer.result, tokenizer, some), "asked": len(some), "decoding": "greedy"}
            for name, some in (("facts", asked), ("sums", sums))
        },
        "bits_per_byte": bits,
        "it": measure_antecedents(trainer.checkpoint()),
        "unseen": "no sentence, wording of a fact or story is among those trained on",
    }


def whole_share(tokenizer: Tokenizer, text: str) -> float:
    """The share of the words, as runs of letters, that are one token each; the space before a word may belong to it."""
    spans = set(tokenizer.encode(text, special=False).spans)
    words = list(WORD.finditer(text))
    whole = [word.span() in spans or (word.start() - 1, word.end()) in spans for word in words]
    return sum(whole) / len(words)


def unread(facts: Sequence[Fact], source: Source) -> list[Fact]:
    """Facts that appear nowhere word for word in the training texts: a longer wording, or another line, may say the
    same."""
    assert isinstance(source, Windows)
    tokens, tokenizer = source.corpus.train, source.corpus.tokenizer
    for ids in tokens.ids.split(DECODED):
        text = tokenizer.decode(ids.tolist())
        facts = [fact for fact in facts if f"{fact.prompt} {fact.answer}." not in text]
    return list(facts)


@torch.no_grad()
def count_known(model: Transformer, tokenizer: Tokenizer, facts: Sequence[Fact]) -> int:
    """Number of answers that, each with its full stop, are the model's first choices token by token."""
    known = 0
    for some in (facts[at : at + BATCH] for at in range(0, len(facts), BATCH)):
        asked = [len(tokenizer.encode(fact.prompt, special=False).ids) for fact in some]
        whole = [tokenizer.encode(f"{fact.prompt} {fact.answer}.", special=False).ids for fact in some]
        ids = pad_sequence([torch.tensor(row[:-1], device=model.device) for row in whole], batch_first=True)
        chosen = model(ids).argmax(-1).tolist()
        known += sum(
            choice[start - 1 : len(row) - 1] == list(row[start:])
            for choice, start, row in zip(chosen, asked, whole, strict=True)
        )
    return known


@torch.no_grad()
def bits_per_byte(model: Transformer, tokenizer: Tokenizer, texts: Iterable[str]) -> float:
    """Bits per byte of the beginnings of the texts, as far as they fit the context, for a model that starts after its
    end token."""
    bits = length = 0.0
    for text in map(first_sentences, texts):
        read = tokenizer.encode(END + text, special=False)
        ids = read.ids[: model.config.context + 1]
        logits = model(tensor(ids[:-1], model))[0]
        loss = nn.functional.cross_entropy(logits, tensor(ids[1:], model)[0], reduction="sum")
        bits += float(loss) / math.log(2)
        length += len(read.text[len(END) : read.spans[len(ids) - 1][1]].encode())
    return bits / length


def first_sentences(text: str) -> str:
    """The first whole sentences of a text, of at most LONGEST characters, or what there is room for of a longer one."""
    return text if len(text) <= LONGEST else text[: text.rfind(". ", 0, LONGEST) + 1] or text[:LONGEST]


def tensor(ids: Sequence[int], model: Transformer) -> Tensor:
    """batch pos"""
    return torch.tensor([ids], device=model.device)
