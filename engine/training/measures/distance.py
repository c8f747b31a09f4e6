"""How much a language model gains from what stands far back in a long text."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from engine.model.transformer import Transformer
from engine.training.sources.windows import Windows
from engine.training.trainer import Trainer

TEXTS = 64  # held-out texts, each read from its beginning
BINS = 8  # stretches of a text, whose losses are told apart
READ = (64, 256)  # tokens to which a shortened reading is cut, beside the whole


def measure_distance(trainer: Trainer) -> dict[str, Any]:
    """`loss_by_position`: of held-out texts, in nats a token, by the last position of each of BINS stretches.
    `end_by_tokens_read`: of their last stretch, by how many tokens at most are read before each of its tokens."""
    assert isinstance(trainer.source, Windows)
    held, length = trainer.source.corpus.held_out, trainer.source.length
    starts = [int(one) for one in held.starts[:, 0] if int(one) + length <= len(held.ids)][:TEXTS]
    ids = torch.stack([held.ids[start : start + length].long() for start in starts])
    whole = losses(trainer.result, ids)
    width = whole.shape[1] // BINS
    bins = whole[:, : width * BINS].unflatten(1, (BINS, width)).mean((0, 2)).tolist()
    end = {read: float(end_loss(trainer.result, ids, width, read)) for read in READ if read < whole.shape[1] - width}
    return {
        "texts": len(starts),
        "loss_by_position": {str(width * (at + 1)): loss for at, loss in enumerate(bins)},
        "end_by_tokens_read": {**{str(read): loss for read, loss in end.items()}, str(whole.shape[1]): bins[-1]},
    }


@torch.no_grad()
def losses(model: Transformer, ids: Tensor) -> Tensor:
    """batch pos -> batch pos - 1, in nats."""
    found = []
    for some in ids.to(model.device).split(4):
        logits = model(some[:, :-1])
        found.append(nn.functional.cross_entropy(logits.transpose(1, 2), some[:, 1:], reduction="none"))
    return torch.cat(found)


def end_loss(model: Transformer, ids: Tensor, width: int, read: int) -> Tensor:
    """Mean loss of the last `width` tokens, of which each is predicted from at most `read` tokens before it: the text
    is read in pieces, and of a piece the second half counts."""
    half, last = read // 2, ids.shape[1] - width
    pieces = [ids[:, at - half : at + half] for at in range(last, ids.shape[1] - half + 1, half)]
    return torch.cat([losses(model, piece)[:, half - 1 :] for piece in pieces], 1).mean()
