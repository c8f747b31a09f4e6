"""How much a model gains from far back is measured on what it is given, and on no more."""

import torch
from torch import nn

from engine.model.config import MLP, Attention, ModelConfig, Positions
from engine.model.transformer import Transformer, initialise
from engine.training.measures.distance import end_losses, losses


def test_each_token_of_the_end_is_predicted_from_so_many_tokens_at_most() -> None:
    config = ModelConfig(11, 64, 16, 2, Attention(2), MLP(24), Positions("rotary"))
    model = initialise(Transformer(config), 0).eval()
    ids = torch.randint(11, (3, 65), generator=torch.Generator().manual_seed(0))
    whole = losses(model, ids)
    expected = nn.functional.cross_entropy(model(ids[:, :-1]).transpose(1, 2), ids[:, 1:], reduction="none")
    torch.testing.assert_close(whole, expected)
    found = end_losses(model, ids[:1], 16, 16)
    pieces = [losses(model, ids[:1, at - 8 : at + 8])[:, 7:] for at in (49, 57)]
    torch.testing.assert_close(found, torch.cat(pieces).flatten())
