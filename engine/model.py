"""The transformer: embedding, blocks, final norm, head. Everything else is a function that takes one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.config import ModelConfig
from engine.hooks import HookPoint, name_hooks
from engine.layers.block import Block
from engine.layers.cache import KVCache
from engine.layers.embed import Embed
from engine.layers.head import LanguageHead
from engine.layers.mask import AttentionMask, Causal, Full, Mask, Padding, Prefix, SlidingWindow
from engine.layers.norm import make_norm


class Transformer(nn.Module):
    """A decoder as `config` says. Built on the meta device it takes no memory: `with torch.device("meta"):
    Transformer(c)`.

    `hooks` are its hook points by full name. Weights are uninitialised garbage until `initialise` or a
    checkpoint fills them.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = Embed(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.final_norm = (
            make_norm(config.norm, config.d_model) if config.norm.place == "before" else nn.Identity()
        )
        self.head = LanguageHead(config)
        self.hook_logits = HookPoint("logits", "batch pos vocab")
        self.hooks: dict[str, HookPoint] = name_hooks(self)
        self.hook_names = tuple(self.hooks)

    def forward(
        self,
        ids: Tensor,
        *,
        mask: Mask | None = None,
        padding: Tensor | None = None,
        cache: KVCache | None = None,
        start: int = 0,
        resid: Tensor | None = None,
        logits_at: slice = slice(None),
    ) -> Tensor:
        """logits, batch pos vocab.

        `mask` replaces the configured one; `padding` (batch key, True where real) is added to either. With a
        `cache`, `ids` are only the new tokens. With `resid`, the run starts at block `start` from it instead
        of from the embedding. `logits_at` picks the positions that get logits.
        """
        past = cache.tokens if cache is not None else 0
        pos = torch.arange(past, past + ids.shape[1], device=ids.device)
        seen = AttentionMask(
            self.mask(mask, padding), pos, torch.arange(past + ids.shape[1], device=ids.device)
        )
        if resid is None:
            resid = self.embed(ids, pos)
        for layer in range(start, len(self.blocks)):
            resid = self.blocks[layer](resid, seen, cache.layers[layer] if cache is not None else None)
        if cache is not None:
            cache.tokens += ids.shape[1]
        resid = self.final_norm(resid[:, logits_at])
        return self.hook_logits(self.head(resid, self.embed.tokens.weight))

    def mask(self, override: Mask | None = None, padding: Tensor | None = None) -> Mask:
        """The configured mask, or `override`, together with what padding forbids."""
        attention = self.config.attention
        if override is not None:
            mask = override
        else:
            mask = {"causal": Causal(), "full": Full(), "prefix": Prefix(0)}[attention.mask]
            if attention.window is not None:
                mask = mask & SlidingWindow(attention.window)
        return mask if padding is None else mask & Padding(padding)

    def check(self, ids: Tensor, past: int = 0) -> None:
        """Raises ValueError for ids (batch pos) that this model cannot read."""
        length = past + ids.shape[1]
        if ids.numel() == 0:
            raise ValueError("a run needs at least one token, got none; give it a longer text.")
        if length > self.config.context:
            raise ValueError(
                f"this model reads at most {self.config.context} tokens, got {length}; shorten the text."
            )
        low, high = (int(end) for end in ids.aminmax())
        if low < 0 or high >= self.config.vocab_size:
            wrong = low if low < 0 else high
            raise ValueError(
                f"token ids must lie in 0..{self.config.vocab_size - 1}, got {wrong}; use its tokenizer."
            )

    @property
    def device(self) -> torch.device:
        return self.embed.tokens.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.embed.tokens.weight.dtype


@torch.no_grad()
def initialise(model: Transformer, seed: int) -> Transformer:
    """N(0, 1 / sqrt(d_model)), divided by sqrt(2 layers) for what writes to the residual stream.

    The division is GPT-2's (Radford et al. 2019, section 2.3). Its fixed 0.02 is left out: it suits a d_model near a
    thousand, while a small model that starts with it attends evenly everywhere and learns later.
    """
    generator = torch.Generator().manual_seed(seed)
    spread = model.config.d_model**-0.5
    writers = ("attn.out.weight", "mlp.out.weight")
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter.zero_()
        elif "norm" in name:
            parameter.fill_(1.0)
        else:
            shrink = (2 * max(model.config.layers, 1)) ** -0.5 if name.endswith(writers) else 1.0
            drawn = torch.empty(parameter.shape).normal_(0.0, spread * shrink, generator=generator)
            parameter.copy_(drawn)
    return model
