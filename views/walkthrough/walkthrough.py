"""What the walkthrough draws: one run of a model, laid out for assets/views/walkthrough/walkthrough.js."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from engine.analysis.answers import words
from engine.analysis.heads import CrossScores, HeadScores
from engine.analysis.tiles import thumbnails
from engine.generation.sampling import Distribution
from engine.runtime.trace import Trace
from views.core.lanes import Lane, candidate_names, digest, drawable, drawable_axes, lane_header, model_header
from views.core.payload import pack
from views.walkthrough.outcome import Outcome

WHOLE = 6 * 2**20  # bytes; a trace larger than this is sent one layer at a time
CANDIDATES = 24  # next tokens listed at every position
TOGETHER = 32  # explanations in one answer: a cell in every head and block, so that turning to one asks nothing
THUMBNAIL = 32  # cells a side of a thumbnail, when the pattern itself is not there


def walkthrough(
    trace: Trace,
    lanes: Sequence[Lane],
    *,
    name: str,
    outcome: Outcome | None,
    scores: Mapping[str, HeadScores | CrossScores],
    notes: Mapping[str, Any],
    layer: int = 0,
    picture: Tensor | None = None,
    original: Tensor | None = None,
) -> bytes:
    """The payload of the whole page for the first text of `trace`; the last of `lanes` is the one with the head.

    `scores` are of every attention, as `measure_heads` names them.

    A trace of more than WHOLE bytes brings only `layer` of each lane and thumbnails of all the patterns; the rest is
    asked for with `layer_payload`. `picture` is height width channel, in 0..1, with -1 where there is nothing yet;
    `original` is the one that a model completes.
    """
    per_layer = [h for h in trace if "blocks." in h]
    size = sum(trace[h].numel() // trace[h].shape[0] * 4 for h in per_layer if "batch" in trace.dims(h))
    whole = size <= WHOLE
    drawn = lanes[-1].config.head.kind in ("token", "span")  # few enough logits for a column each
    arrays = {h: drawable(trace, h) for h in trace if "blocks." not in h and (drawn or h != "logits")}
    for lane in lanes:
        count = lane.config.layers
        for one in range(count) if whole else [min(layer, count - 1)]:
            arrays.update(layer_arrays(trace, one, lane.side))
        if not whole:
            arrays.update(all_thumbnails(trace, lane))
        if lane.side == "encoder":
            last = encoder_output(trace)
            arrays[last] = drawable(trace, last)
    header = {
        "trace": digest(name, trace),
        "model": model_header(name, lanes[-1].config),
        "lanes": {lane.side: lane_header(trace, lane) for lane in lanes},
        "dtype": str(next(v.dtype for v in trace.values() if v.is_floating_point())).removeprefix("torch."),
        "together": TOGETHER,
        "edited": sorted({h for edit in trace.edits for h in edit.touches()}),
        **(outcome_header(outcome) if outcome else UNSAID),
        **notes,
    }
    for kind, measured in scores.items():
        arrays.update({f"scores.{kind}.{key}": value for key, value in vars(measured).items()})
    if outcome:
        arrays.update({f"next.{key}": value for key, value in candidates(outcome.following).items()})
    arrays.update({key: value for key, value in (("picture", picture), ("original", original)) if value is not None})
    axes = {hook: trace.dims(hook) for hook in trace if hook in arrays}
    return pack(header, arrays, {h: drawable_axes(a) for h, a in axes.items()})


def outcome_header(outcome: Outcome) -> dict[str, Any]:
    sampled, following = outcome.sampled, outcome.following
    listed = following.logits.topk(min(CANDIDATES, following.logits.shape[-1])).indices
    drawn = None if sampled is None else {"id": sampled, "probability": float(following.probabilities[-1, sampled])}
    return {
        "reads": outcome.reads,
        "names": candidate_names(listed, outcome.names, extra=[] if sampled is None else [sampled]),
        "sampled": drawn,
        "follows": outcome.follows,
        "link": outcome.link,
        "count": following.logits.shape[-1],
        "noun": outcome.noun,
        "answer": answer_header(outcome),
    }


UNSAID = dict.fromkeys(("reads", "sampled", "follows", "link", "count", "noun", "answer")) | {"names": {}}


def answer_header(outcome: Outcome) -> dict[str, Any] | None:
    """The answer as text, and as the product of two probabilities."""
    answer = outcome.answer
    if answer is None or outcome.read is None:
        return None
    start, end = outcome.following.probabilities
    shares = [float(start[answer.start]), float(end[answer.end])]
    return {"start": answer.start, "end": answer.end, "text": words(outcome.read, answer), "shares": shares}


def encoder_output(trace: Trace) -> str:
    """The hook that holds what the decoder's cross-attention reads."""
    ends = (".resid_post", "norm2.out", "final_norm.out")
    return [hook for hook in trace if hook.startswith("encoder.") and hook.endswith(ends)][-1]


def layer_payload(trace: Trace, layer: int, side: str = "") -> bytes:
    """Every value of one layer. Raises ValueError for a layer the trace does not have."""
    arrays = layer_arrays(trace, layer, side)
    if not arrays:
        raise ValueError(f"this run has no layer {layer}; ask for one that it has.")
    return pack({"layer": layer}, arrays)


def layer_arrays(trace: Trace, layer: int, side: str = "") -> dict[str, Tensor]:
    prefix = f"{side}.blocks.{layer}." if side else f"blocks.{layer}."
    return {h: drawable(trace, h) for h in trace if h.startswith(prefix)}


def all_thumbnails(trace: Trace, lane: Lane) -> dict[str, Tensor]:
    kinds = ["attn", *(["cross_attn"] if lane.config.encoder else [])]
    side = f"{lane.side}." if lane.side else ""
    patterns = {f"{side}{kind}": trace.stack(f"{side}{kind}.pattern")[:, 0] for kind in kinds}
    return {f"thumbnails.{name}": thumbnails(pattern, THUMBNAIL) for name, pattern in patterns.items()}


def candidates(following: Distribution) -> dict[str, Tensor]:
    """The likeliest next tokens at every position, pos candidate, and what the cuts kept in all, pos."""
    count = min(CANDIDATES, following.logits.shape[-1])
    order = following.logits.topk(count).indices

    def candidate_values(values: Tensor) -> Tensor:
        return values.gather(-1, order)

    return {
        "id": order.int(),
        "logit": candidate_values(following.logits),
        "scaled": candidate_values(following.scaled),
        "share": candidate_values(following.shares),
        "in_top_k": candidate_values(following.in_top_k),
        "in_top_p": candidate_values(following.in_top_p),
        "probability": candidate_values(following.probabilities),
        "kept_k": following.in_top_k.sum(-1).int(),
        "kept_p": following.in_top_p.sum(-1).int(),
        "peak": following.scaled.amax(-1),
        "total": following.shares.amax(-1).reciprocal(),  # the sum of e^(scaled - peak): the peak's own term is 1
        "kept_share": following.shares.where(following.in_top_p, 0.0).sum(-1),
    }
