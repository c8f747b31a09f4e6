"""Heads of two models, compared over several texts that both can read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from engine.analysis.similarity import PatternPair, Similarity, head_similarity
from engine.inputs.readers import Reading, kind, read_text
from engine.inputs.samples import samples
from engine.runtime.run import run
from engine.tokenizers.encoding import Encoding
from views.compare.pair import ComparedRun, RunPair, match_attentions, vocabulary
from views.core.lanes import lanes

TEXTS = 24
LONGEST = 48  # tokens of each of them
PLAIN = ("text", "pair")  # kinds of models that read any text


def over_texts(pair: RunPair, number: int) -> Similarity:
    """Similarity of the heads of an attention, with the edits of both. Raises ValueError where no text suits both."""
    return head_similarity(pairs(pair, number))


def pairs(pair: RunPair, number: int) -> Iterator[PatternPair]:
    for mine in samples(pair.first.run.checkpoint, TEXTS, LONGEST):
        theirs = same_for(pair.first, pair.second, mine)
        yield match_attentions(again(pair.first, mine), again(pair.second, theirs)).patterns(number)


def same_for(first: ComparedRun, second: ComparedRun, given: Reading) -> Reading:
    """Gives the second model what the first one reads."""
    kinds = [kind(one.run.checkpoint) for one in (first, second)]
    if kinds[0] == kinds[1] and vocabulary(first) == vocabulary(second):
        return given
    if isinstance(given.read, Encoding) and given.read.text and all(one in PLAIN for one in kinds):
        return read_text(second.run.checkpoint, given.read.text, LONGEST)
    raise ValueError("The two read different things, so that no other texts suit both.")


def again(shown: ComparedRun, given: Reading) -> ComparedRun:
    """The same model with the same edits on another text."""
    try:
        model, edits = shown.run.checkpoint.model, shown.run.trace.edits
        trace = run(model, given.read, ["*attn.pattern"], edits, target=given.target)
    except (KeyError, IndexError, RuntimeError) as error:
        raise ValueError(f"The edits of {shown.letter} were made for its own text: {error}") from None
    context = replace(shown.run, trace=trace, lanes=lanes(shown.run.checkpoint, given))
    return replace(shown, reading=given, run=context)
