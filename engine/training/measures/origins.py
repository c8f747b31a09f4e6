"""How much of each head's attention is on the symbol that the next one of the answer is: on the diagonal where symbols
are copied, on the anti-diagonal where they are reversed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from engine.data.task import Pair
from engine.runtime.run import run
from engine.training.examples.completion import prompt
from engine.training.measures.exact import asked_of, taught
from engine.training.sources.completion import Completion
from engine.training.sources.pairs import Ids
from engine.training.trainer import Trainer

EXAMPLES = 100


def origins(trainer: Trainer) -> dict[str, Any]:
    """Mean attention weight (0 to 1) on the symbol to be written, in the row that predicts it and with the right
    symbols before it: of each head, [layer][head], and of the best. {} for tasks that write no symbol of the source.
    """
    source = taught(trainer)
    asked = [(pair, ids) for pair, ids in asked_of(source, EXAMPLES) if one_a_symbol(source.task.origins(pair), ids)]
    if not asked:
        return {}
    rows = torch.cat([weights(trainer, pair, ids) for pair, ids in asked], dim=-1)  # layer head row
    mean = rows.mean(-1)
    layer, head = divmod(int(mean.argmax()), mean.shape[1])
    best = {"layer": layer, "head": head, "weight": float(mean.max())}
    return {"attention_on_origin": best | {"heads": [[round(one, 4) for one in row] for row in mean.tolist()]}}


def one_a_symbol(places: Sequence[int], ids: Ids) -> bool:
    """Tells whether each symbol of the target is known to be one of the source and is a token."""
    return len(places) == len(ids[1]) > max(places, default=0) - len(ids[0]) and max(places, default=0) < len(ids[0])


def weights(trainer: Trainer, pair: Pair, ids: Ids) -> Tensor:
    """layer head row: the weight of each row that predicts a symbol on that symbol."""
    source, (read, target) = taught(trainer), ids
    model, layers = trainer.result, trainer.result.config.layers
    key = torch.tensor(source.task.origins(pair))
    row = torch.arange(len(key))
    if isinstance(source, Completion):
        names = [f"blocks.{layer}.attn.pattern" for layer in range(layers)]
        whole = torch.cat([prompt(read, source.marks), target.long()])
        trace, row = run(model, whole[None].to(trainer.full_model.device), keep=names), row + len(read)
    else:
        names = [f"decoder.blocks.{layer}.cross_attn.pattern" for layer in range(layers)]
        begun = trainer.checkpoint().target(pair.target)
        trace = run(model, read.long()[None].to(trainer.full_model.device), keep=names, target=begun)
    return torch.stack([trace[name][0] for name in names]).cpu()[:, :, row, key]
