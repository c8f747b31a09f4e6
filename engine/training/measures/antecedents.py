"""Which head looks from "it" at what it stands for: chosen on some sentences, measured on others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from engine.checkpoints import Checkpoint
from engine.data.corpora import read_corpus
from engine.runtime.run import run

Sentence = tuple[str, str, str]  # the text up to "it", what that is, and the other noun


def sentences() -> list[Sentence]:
    """Two of each row of corpora/everyday/antecedents.toml: the same two nouns, each once what "it" is."""
    found = []
    for text, first, of_first, second, of_second in read_corpus("everyday/antecedents")["rows"]:
        found += [(f"{text} {of_first} it", first, second), (f"{text} {of_second} it", second, first)]
    return found


def right_heads(checkpoint: Checkpoint, sentence: Sentence) -> Iterator[tuple[int, int]]:
    """(layer, head) of those that give, from "it", more attention to what it is than to the other noun."""
    text, noun, other = sentence
    assert checkpoint.tokenizer is not None
    encoding = checkpoint.tokenizer.encode(text)

    def tokens_of(word: str) -> list[int]:
        start = text.index(f" {word}") + 1
        return [at for at, (a, b) in enumerate(encoding.spans) if a < start + len(word) and b > start]

    names = [f"blocks.{layer}.attn.pattern" for layer in range(checkpoint.config.layers)]
    trace = run(checkpoint.model, encoding, keep=names)
    for layer, name in enumerate(names):
        row = trace[name][0, :, -1]  # head key
        for head in (row[:, tokens_of(noun)].sum(1) > row[:, tokens_of(other)].sum(1)).nonzero().flatten().tolist():
            yield layer, head


def measure_antecedents(checkpoint: Checkpoint) -> dict[str, Any]:
    """`right` of `asked` sentences, of the head that was right most often in as many other ones, `chosen_by` that."""
    told = sentences()
    half = len(told) // 2

    def count(some: Sequence[Sentence]) -> Counter[tuple[int, int]]:
        return Counter(place for sentence in some for place in right_heads(checkpoint, sentence))

    chosen, other = count(told[:half]), count(told[half:])
    (layer, head), best = min(chosen.items(), key=lambda item: (-item[1], item[0]))
    return {"layer": layer, "head": head, "right": other[layer, head], "asked": half, "chosen_by": best}
