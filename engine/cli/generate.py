"""`python -m engine generate MODEL PROMPT`: a text that a model writes, and what ended it."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from engine.checkpoints import Checkpoint, load
from engine.generation.beam import beam
from engine.generation.generate import generate
from engine.generation.prompt import Text, begin, text_of
from engine.generation.stopping import stopping_rules

# What `generate` calls each setting, its type, and what it does.
DRAWING: dict[str, tuple[Any, str]] = {
    "temperature": (float, "what logits are divided by; 0 is greedy (default: 1)"),
    "top_k": (int, "keep the K most probable tokens"),
    "top_p": (float, "keep the most probable tokens that reach the share P"),
    "min_p": (float, "keep those at least P times as probable as the most probable"),
    "typical_p": (float, "keep those of the most expected surprise that reach the share P"),
    "repetition_penalty": (float, "above 1: make tokens that were read less probable"),
    "penalty_alpha": (float, "contrastive search, with --top-k"),
    "seed": (int, "of the random numbers (default: 0)"),
}
SEARCH: dict[str, tuple[Any, str]] = {
    "length_penalty": (float, "of beams: the power of the length that scores are divided by (default: 1)"),
    "n_best": (int, "of beams: how many texts to print (default: 1)"),
}


def add_to(commands: Any) -> None:
    writing = commands.add_parser("generate", help="let a model go on with a text, and say what ended it")
    writing.add_argument("model", help="a shipped model, a folder or a file, run:NAME[@STEP], or hub:org/name")
    writing.add_argument("prompt", help="the text to go on with, or the source; without a tokenizer ids: '3 1 4'")
    writing.add_argument("--target", help="how an encoder-decoder's text begins")
    writing.add_argument("--max-tokens", type=int, metavar="N", help="at most so many (default: 50)")
    for name, (kind, told) in {**DRAWING, **SEARCH}.items():
        writing.add_argument(flag(name), type=kind, metavar=name[0].upper(), help=told)
    writing.add_argument("--greedy", action="store_true", help="always the most probable token")
    writing.add_argument("--beams", type=int, metavar="N", help="search with N hypotheses side by side")
    writing.add_argument("--stop", action="append", default=[], metavar="TEXT", help="end where this was written")
    writing.add_argument("--past-end", action="store_true", help="do not end at an end token")
    writing.set_defaults(run=run_generate)


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def run_generate(options: argparse.Namespace) -> int:
    checkpoint = load(options.model)
    prompt, target = (parse_prompt(checkpoint, text) for text in (options.prompt, options.target))
    assert prompt is not None
    common = {"target": target, "stop_at_end": not options.past_end, "stop_strings": options.stop or None}
    if options.beams is None:
        refuse(options, SEARCH, "is for beams; name --beams or leave it out.")
        write(checkpoint, prompt, options, common)
    else:
        refuse(options, DRAWING, "has no part in a search with beams; leave out one of the two.")
        search(checkpoint, prompt, options, common)
    return 0


def parse_prompt(checkpoint: Checkpoint, text: str | None) -> Text | None:
    """Ids where there is no tokenizer."""
    if text is None or checkpoint.tokenizer is not None:
        return text
    if not all(word.isdecimal() for word in text.split()):
        raise ValueError(f"this model has no tokenizer, so it must be given ids such as 3 1 4, got {text!r}.")
    return [int(word) for word in text.split()]


def write(checkpoint: Checkpoint, prompt: Text, options: argparse.Namespace, common: dict[str, Any]) -> None:
    settings = {"greedy": options.greedy or None, **common, **given_settings(options, DRAWING)}
    steps = list(generate(checkpoint, prompt, options.max_tokens, **settings))
    if steps and steps[-1].stopped is not None:
        print(steps[-1].text)
        print(steps[-1].stopped.sentence, file=sys.stderr)
        return
    begun = begin(checkpoint, prompt, common["target"])
    print(text_of(checkpoint, begun.ids))
    print(stopping_rules(begun, options.max_tokens).limit.sentence, file=sys.stderr)


def search(checkpoint: Checkpoint, prompt: Text, options: argparse.Namespace, common: dict[str, Any]) -> None:
    if options.greedy:
        raise ValueError("--greedy and --beams are two ways to write; leave out one of the two.")
    found = beam(checkpoint, prompt, options.beams, options.max_tokens, **common, **given_settings(options, SEARCH))
    for one in found.hypotheses:
        print(one.text)
        ended = one.stopped.sentence if one.stopped else ""
        print(f"score {one.score:.4f}, log-probability {one.log_probability:.4f} nats. {ended}", file=sys.stderr)


def given_settings(options: argparse.Namespace, settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name in settings if (value := getattr(options, name)) is not None}


def refuse(options: argparse.Namespace, settings: dict[str, Any], why: str) -> None:
    found = given_settings(options, settings)
    if found:
        raise ValueError(f"{flag(next(iter(found)))} {why}")
