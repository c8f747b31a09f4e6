"""`analyse MODEL TEXT`: what every head of a model does with a text, or what each layer would say, as a table;
`analyse RECIPE`, as `sweep` does, what heads do to the answers of a file of pairs of prompts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from engine.analysis.heads import SCORES, HeadScores, head_scores
from engine.analysis.logit_lens import logit_lens
from engine.budget import budget
from engine.checkpoints import Checkpoint, load
from engine.cli import sweep
from engine.inputs.readers import Reading, kind, read_text, read_translation
from engine.runtime.run import run
from engine.runtime.trace import Trace

Row = Iterable[object]
MEASURED = [score for score in SCORES if score.key in HeadScores.__dataclass_fields__]  # of a run, not of weights


def add_to(commands: Any) -> None:
    looking = commands.add_parser("analyse", help="measure every head of a model on a text, or read its layers")
    looking.add_argument(
        "model", help="a shipped model, a folder or a file, run:NAME[@STEP], hub:org/name, or a .toml recipe of a sweep"
    )
    looking.add_argument("text", nargs="?", help="what it reads; without a tokenizer ids: '3 1 4'")
    looking.add_argument("--target", default="", help="of an encoder-decoder, which else writes its own")
    looking.add_argument("--of", choices=TABLES, help="the table (default: heads)")
    sweep.add_options(looking.add_argument_group("of a recipe, instead of what it says"))
    looking.set_defaults(run=analyse)


def analyse(options: argparse.Namespace) -> int:
    """Prints the table with tabs between its columns, which spreadsheets and pandas read."""
    swept, looked = sweep.given_options(options), [name for name in ("target", "of") if getattr(options, name)]
    if options.text is None and options.model.endswith(".toml"):
        if looked:
            raise ValueError(
                f"a recipe of a sweep must be given without --{looked[0]}, which is for a text; leave it out."
            )
        return sweep.sweep(options)
    if options.text is None:
        raise ValueError("analyse must be given a text after the model, or a .toml recipe of a sweep alone; add it.")
    if swept:
        raise ValueError(f"a text must be given without --{next(iter(swept))}, which is for a recipe; leave it out.")
    checkpoint = load(options.model)
    if kind(checkpoint) in ("picture", "pixels"):
        raise ValueError("analyse must be given a model that reads text, got one that reads pictures; open the app.")
    reading = (
        read_translation(checkpoint, options.text, options.target, budget.long_tokens)
        if kind(checkpoint) == "translation"
        else read_text(checkpoint, options.text, budget.long_tokens)
    )
    if len(reading.read) == 0:
        raise ValueError("the text must have a token at least, got none; write something.")
    trace = run(checkpoint.model, reading.read, target=reading.target)
    for row in TABLES[options.of or "heads"](checkpoint, reading, trace):
        print(*row, sep="\t", file=sys.stdout)
    return 0


def tabulate_heads(checkpoint: Checkpoint, reading: Reading, trace: Trace) -> Iterator[Row]:
    """A row a head, by the definitions of `engine.analysis.heads.SCORES`."""
    yield ["side", "layer", "head", *(f"{score.key} ({score.unit})" for score in MEASURED)]
    for side in ("encoder", "decoder") if checkpoint.config.encoder is not None else ("",):
        found = head_scores(trace, side)
        layers, heads = found.first.shape
        for layer in range(layers):
            for head in range(heads):
                values = [float(getattr(found, score.key)[layer, head]) for score in MEASURED]
                yield [side or "-", layer, head, *(f"{value:.4f}" for value in values)]


def tabulate_layers(checkpoint: Checkpoint, reading: Reading, trace: Trace) -> Iterator[Row]:
    """A row a layer and place: what the model would say if it stopped there, and what is lost by that."""
    found = logit_lens(checkpoint.model, trace, count=1)
    yield ["layer", "row", "likeliest", "probability", "lost (bits)"]
    for layer, ids in enumerate(found.ids[..., 0].tolist()):
        for row, id in enumerate(ids):
            said, lost = found.probability[layer, row, 0], found.kl[layer, row]
            yield [layer, row, name_candidate(checkpoint, id), f"{said:.4f}", f"{lost:.4f}"]


def name_candidate(checkpoint: Checkpoint, id: int) -> str:
    """A token between quotation marks, a label, or what has neither by its number."""
    if checkpoint.config.head.kind in ("language", "masked"):
        return repr(checkpoint.tokenizer.decode([id], special=True)) if checkpoint.tokenizer is not None else str(id)
    return checkpoint.labels[id] if id < len(checkpoint.labels) else str(id)


TABLES = {"heads": tabulate_heads, "layers": tabulate_layers}
