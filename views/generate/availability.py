"""Which tabs of the page Generate have nothing to show of a prompt, and why: behind one that is longer than its model
reads nothing can be written, nor by a model that fills in what is masked; some of these can still be measured."""

from __future__ import annotations

from engine.analysis.surprise import slides
from engine.budget import budget
from engine.generation.prompt import Prompt
from engine.model.layers.rotary import depends_on_length

WRITING = ("write", "beam", "cache")
WINDOWS = "The tab Surprise reads it whole, in windows that overlap."
BOTH = (
    "This model reads every text in both directions and fills in what is masked, so it writes nothing after one; "
    "choose a model that writes."
)
MASKS = "The tab Surprise masks each token in turn."


def missing_tabs(prompt: Prompt) -> dict[str, str]:
    """A sentence for each such tab."""
    why, more = unwritten(prompt), why_no_surprise(prompt)
    found = dict.fromkeys(WRITING, why) if why else {}
    return {**found, "surprise": more} if more else found


def notice(prompt: Prompt) -> str:
    """Notice above the tabs; empty where there is all to show."""
    why, more = unwritten(prompt), why_no_surprise(prompt)
    if not why or why == more:
        return why
    return f"{why} {more or (WINDOWS if prompt.checkpoint.config.generates else MASKS)}"


def unwritten(prompt: Prompt) -> str:
    """Why nothing can be written behind a prompt; empty where something can."""
    if not prompt.checkpoint.config.generates:
        return BOTH
    return "" if prompt.fits else beyond(prompt)


def why_no_logits(prompt: Prompt) -> str:
    """Why there are no logits behind a prompt, not even behind its last tokens; empty where there are."""
    return "" if slides(prompt.checkpoint) else unwritten(prompt)


def beyond(prompt: Prompt) -> str:
    """Says of a prompt that is longer than its model reads what is too long and by how much."""
    config, ids, source = prompt.checkpoint.config, len(prompt.ids), len(prompt.source)
    reads = f"This model reads at most {config.context:,} tokens"
    if source > config.context:
        return f"{reads} of a source, and this one has {source:,}; shorten it."
    if config.encoder is not None:
        return f"{reads} of a target, its start among them, and this one has {ids:,}; shorten it."
    if config.infill is not None:
        return f"{reads}, of the text and of what fills its gap together, and here are {ids:,}; shorten it."
    return f"{reads} at a time, and the text has {ids:,}, so nothing can be written after it; shorten it."


def two_readings(prompt: Prompt, most: int) -> str:
    """Says where the logits of what is written and those of its text read whole differ; empty where they are one."""
    config = prompt.checkpoint.config
    kinds = map(config.positions.of_layer, range(config.layers))
    changing = [one.scaling for one in kinds if one.scaling is not None and depends_on_length(one)]
    scaling = min(changing, key=lambda one: one.trained, default=None)
    length = len(prompt.ids) + min(most, prompt.tokens_left)
    if scaling is None or not prompt.fits or length <= scaling.trained:
        return ""
    return (
        f"Beyond the {scaling.trained:,} tokens that this model was trained for, its rotary angles change with the "
        "length: a token is chosen here as transformers does, from keys that keep the angles at which they were read, "
        "and the other pages read a text whole, at the angles of its own length, so that their logits differ."
    )


def why_no_surprise(prompt: Prompt) -> str:
    """Why the surprise of a prompt cannot be measured; empty where it can."""
    if prompt.fits:
        return ""
    if not slides(prompt.checkpoint):
        return beyond(prompt)
    if len(prompt.ids) <= budget.surprise_tokens:
        return ""
    return (
        f"Surprise is measured of at most {budget.surprise_tokens:,} tokens, and the text has {len(prompt.ids):,}; "
        "shorten it or raise LOUPE_SURPRISE_TOKENS."
    )
