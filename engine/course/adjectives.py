"""Whether a head of a trained model looks from a noun at its adjective, or only at what stands before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.data.corpora import read_corpus
from engine.runtime.run import run


class Look(NamedTuple):
    """A text that ends at a noun, and the characters in it that are looked at from there."""

    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        return self.text[self.start : self.end]


def write_looks(part: str) -> dict[str, list[Look]]:
    """Sentences of a part of corpora/everyday/adjectives.toml, as many of each kind. `near`: an adjective right before
    the noun; `bare`: none, and the word before it; `noun`: a noun in the adjective's place; `far`: an adjective behind
    which “and” and a second one stand; `second`: the same sentences, and that second adjective."""
    words = read_corpus("everyday/adjectives")[part]
    found: dict[str, list[Look]] = {kind: [] for kind in ("near", "bare", "noun", "far", "second")}
    for (row, adjective), (column, noun) in product(enumerate(words["adjectives"]), enumerate(words["nouns"])):
        at = (row + column) % len(words["adjectives"])  # so that no two sentences of a kind are the same
        start, second, other = (words[key][at] for key in ("starts", "between", "nouns_before"))
        begun = f"{start} "
        both = f"{begun}{adjective} and {second} {noun}"
        found["near"].append(look_at(f"{begun}{adjective} {noun}", adjective, len(begun)))
        found["bare"].append(look_at(f"{begun}{noun}", start.split()[-1], start.rindex(" ") + 1))
        found["noun"].append(look_at(f"{begun}{other} {noun}", other, len(begun)))
        found["far"].append(look_at(both, adjective, len(begun)))
        found["second"].append(look_at(both, second, both.rindex(second)))
    return found


def look_at(text: str, word: str, start: int) -> Look:
    return Look(text, start, start + len(word))


def count_looks(checkpoint: Checkpoint, looks: Sequence[Look]) -> Tensor:
    """Share of the texts, layer head, in which a head's largest weight from the last token is on the word."""
    assert checkpoint.tokenizer is not None
    names = [f"blocks.{layer}.attn.pattern" for layer in range(checkpoint.config.layers)]
    right = []
    for look in looks:
        encoding = checkpoint.tokenizer.encode(look.text)
        trace = run(checkpoint.model, encoding, keep=names)
        most = torch.stack([trace[name][0, :, -1].argmax(-1) for name in names])
        on = torch.tensor([start < look.end and end > look.start for start, end in encoding.spans])
        right.append(on[most])
    return torch.stack(right).double().mean(0)


@dataclass(frozen=True)
class AdjectiveHead:
    """The head that looked most often at the adjective right before the noun in one part of the sentences, `chosen_by`
    that share, and what it does in the other: `shares` by kind, of `asked` sentences each. `far_layer` and `far_head`
    are chosen alike for an adjective farther away, at which that one looks in `far_share` of the other sentences."""

    layer: int
    head: int
    chosen_by: float
    asked: int
    shares: dict[str, float]
    far_layer: int
    far_head: int
    far_share: float


def find_adjective_head(checkpoint: Checkpoint) -> AdjectiveHead:
    """Chooses a head on one part of the sentences and measures it on the other, which shares no noun and no adjective
    with it; and beside it what a head that always looks one token back would do as well."""
    chosen, measured = write_looks("chosen"), write_looks("measured")
    near, far = (count_looks(checkpoint, chosen[kind]) for kind in ("near", "far"))
    (layer, head), (far_layer, far_head) = (divmod(int(one.argmax()), one.shape[1]) for one in (near, far))
    found = {kind: count_looks(checkpoint, looks) for kind, looks in measured.items()}
    shares = {kind: float(one[layer, head]) for kind, one in found.items()}
    far_share = float(found["far"][far_layer, far_head])
    asked = len(measured["near"])
    return AdjectiveHead(layer, head, float(near[layer, head]), asked, shares, far_layer, far_head, far_share)
