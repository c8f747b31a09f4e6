"""Why this token, why this head: what the explanation of a run costs beside the run itself."""

from __future__ import annotations

from collections.abc import Iterator
from time import sleep

import torch

from bench.models import GPT2_SMALL
from bench.paired import Row, paired
from engine.analysis.attribution import attribute
from engine.analysis.logit_lens import logit_lens
from engine.analysis.score_split import split_score
from engine.checkpoints import load
from engine.model.transformer import Transformer, initialise
from engine.runtime.run import run

TOKENS = 64
SPLIT_REACH = 0.05  # seconds


def rows() -> Iterator[Row]:
    model, ids = initialise(Transformer(GPT2_SMALL.config), seed=0), GPT2_SMALL.ids
    row = GPT2_SMALL.tokens - 1

    def attributed() -> object:
        return attribute(model, run(model, ids), row, 0)

    yield paired(
        f"traced forward and attribution, {GPT2_SMALL.name}",
        attributed,
        lambda: run(model, ids),
        1.2,
        seconds=6.0,
        note="against the traced forward",
    )

    streams = ["*resid_pre", "logits"]

    @torch.no_grad()
    def unembedded() -> None:
        """The least that a lens takes: a forward pass, and the head for each layer."""
        read = run(model, ids, streams)
        for layer in range(GPT2_SMALL.config.layers):
            model.heads(model.final_norm(read[f"blocks.{layer}.resid_pre"]), None, slice(None), ids)

    yield paired(
        f"forward and logit lens, {GPT2_SMALL.name}",
        lambda: logit_lens(model, run(model, ids, streams)),
        unembedded,
        1.3,
        seconds=8.0,
        note="against a forward and as many unembeddings",
    )
    stories = load("stories").model
    told = run(stories, torch.randint(stories.config.vocab_size, (1, TOKENS), generator=torch.manual_seed(0)))
    last = stories.config.layers - 1
    yield paired(
        f"score split of one head, stories, T={TOKENS}",
        lambda: split_score(stories, told, last, 0, TOKENS - 1, 0),
        lambda: sleep(SPLIT_REACH),
        1.0,
        note=f"against {SPLIT_REACH * 1e3:.0f} ms",
    )
