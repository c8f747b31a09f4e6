"""How much a language model gains from what stands far back in a long text."""

from __future__ import annotations

from itertools import count, takewhile
from typing import Any

import torch
from torch import Tensor, nn

from engine.model.transformer import Transformer
from engine.training.sources.windows import Windows
from engine.training.trainer import Trainer

TEXTS = 64  # held-out texts, each read from its beginning to its end, or as far as the model reads
STRETCH = 128  # tokens of which the loss is told by itself
READ = (64, 256)  # tokens to which a shortened reading is cut, beside the whole


def measure_distance(trainer: Trainer) -> dict[str, Any]:
    """`loss_by_position`: of held-out texts, in nats a token, by the last position of each stretch that most of them
    reach. `end_by_tokens_read`: of the last stretch of each text, by how many tokens at most are read before each of
    its tokens; "all" are those from its beginning."""
    assert isinstance(trainer.source, Windows)
    held, model = trainer.source.corpus.held_out, trainer.result
    texts = [held.document(index)[0][: trainer.source.length] for index in range(min(TEXTS, len(held.starts)))]
    long = [text.long()[None] for text in texts if len(text) > STRETCH + max(READ)]
    if not long:  # the model reads too little
        return {}
    whole = [losses(model, ids)[0] for ids in long]
    stretches = ([one[end - STRETCH : end] for one in whole if len(one) >= end] for end in count(STRETCH, STRETCH))
    common = takewhile(lambda found: 2 * len(found) > len(long), stretches)
    ends = {str(read): torch.cat([end_losses(model, ids, STRETCH, read) for ids in long]) for read in READ}
    ends["all"] = torch.cat([one[-STRETCH:] for one in whole])
    return {
        "texts": len(long),
        "loss_by_position": {
            str(STRETCH * (at + 1)): float(torch.cat(found).mean()) for at, found in enumerate(common)
        },
        "end_by_tokens_read": {read: float(found.mean()) for read, found in ends.items()},
    }


@torch.no_grad()
def losses(model: Transformer, ids: Tensor) -> Tensor:
    """batch pos -> batch pos - 1, in nats."""
    found = []
    for some in ids.to(model.device).split(4):
        logits = model(some[:, :-1])
        found.append(nn.functional.cross_entropy(logits.transpose(1, 2), some[:, 1:], reduction="none"))
    return torch.cat(found)


def end_losses(model: Transformer, ids: Tensor, width: int, read: int) -> Tensor:
    """Losses of the last `width` tokens of one text (1 pos), of which each is predicted from at most `read` tokens
    before it: the text is read in pieces, and of a piece the second half counts."""
    half, last = read // 2, ids.shape[1] - width
    pieces = [ids[:, at - half : at + half] for at in range(last, ids.shape[1] - half + 1, half)]
    return losses(model, torch.cat(pieces))[:, half - 1 :].flatten()
