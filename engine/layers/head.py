"""From the last residual stream to logits."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from engine.config import ModelConfig


class LanguageHead(nn.Module):
    """logits = resid W_U^T; a tied head's W_U is the token embedding (Press & Wolf 2017)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.weight = None if config.tied else nn.Parameter(torch.empty(config.vocab_size, config.d_model))

    def forward(self, resid: Tensor, embedding: Tensor) -> Tensor:
        return linear(resid, embedding if self.weight is None else self.weight)
