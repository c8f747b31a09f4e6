"""What heads of a trained model do on a text: which copy, which look back, and how much each moves the answer."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from engine.analysis.circuits import unembed
from engine.analysis.heads import scores
from engine.checkpoints import Checkpoint
from engine.runtime.run import run
from engine.tokenizers.encoding import Encoding


class HeadScores(NamedTuple):
    """Shares of attention, layer head: to the token before, and to what followed this token earlier in the text."""

    previous: Tensor
    induction: Tensor


def head_scores(checkpoint: Checkpoint, encoding: Encoding) -> HeadScores:
    """Previous-token score (Clark et al. 2019) and induction score (Olsson et al. 2022) of every head on a text."""
    trace = run(checkpoint.model, encoding, keep=["*attn.pattern"])
    ids = torch.tensor(list(encoding.ids))
    found = [scores(pattern[0].float(), ids) for pattern in (trace[name] for name in trace)]
    return HeadScores(*(torch.stack([getattr(one, name) for one in found]) for name in HeadScores._fields))


def leading_head(wanted: Tensor, other: Tensor) -> tuple[int, int] | None:
    """Layer and head with the highest of the `wanted` scores (layer head) among those that have less of the `other`.

    Where a text repeats after one or two tokens, what came after an earlier copy is the token before, and a head that
    looks at it has both scores. None where no head has more of the wanted one.
    """
    wanted, other = wanted.nan_to_num(-1.0), other.nan_to_num(-1.0)
    allowed = wanted.masked_fill(wanted <= other, -2.0)
    layer, head = divmod(int(allowed.flatten().argmax()), wanted.shape[1])
    return (layer, head) if float(allowed[layer, head]) > 0 else None


@torch.no_grad()
def direct_effects(checkpoint: Checkpoint, encoding: Encoding, id: int) -> Tensor:
    """Share that each head adds by itself to the logit of a token at the last position, less its mean over all tokens,
    layer head, with the scale of the last norm as it was (Wang et al. 2022, section 3.2)."""
    model = checkpoint.model
    trace = run(model, encoding, keep=["*attn.head_out", "final_norm.scale"])
    written = torch.stack([trace[name][0, -1] for name in trace if name.endswith("head_out")])  # layer head d_model
    centred = (written - written.mean(-1, keepdim=True)) / trace["final_norm.scale"][0, -1]
    every = torch.arange(model.config.outputs)
    logits = unembed(model, centred * model.get_parameter("final_norm.weight"), every)
    return logits[..., id] - logits.mean(-1)
