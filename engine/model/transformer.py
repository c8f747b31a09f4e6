"""The transformer: one stack of blocks, or two, and a head. Everything else is a function that takes one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from engine.model.config import ModelConfig
from engine.model.hooks import HookPoint, name_hooks
from engine.model.layers.cache import KVCache
from engine.model.layers.head import LanguageHead, MeanHead, Pooler, make_head
from engine.model.layers.lora import name_linears
from engine.model.layers.mask import Mask
from engine.model.layers.vector import TextVector
from engine.model.stack import Stack
from engine.model.twin import computed_by_twin
from engine.plurals import count_words


class Transformer(Stack):
    """A decoder, an encoder or both, as `config` says. Built on the meta device it takes no memory: `with
    torch.device("meta"): Transformer(c)`.

    `hooks` are its hook points by full name. Weights are uninitialised garbage until `initialise` or a
    checkpoint fills them.
    """

    def __init__(self, config: ModelConfig) -> None:
        nn.Module.__init__(self)
        self.config = config
        if config.encoder is None:
            self.build(config)
        else:
            self.encoder = Stack(config.encoder_stack)
            self.decoder = Stack(config.decoder_stack, shared=config.embedding.of_tokens)
        self._add_head(config)
        self.hooks: dict[str, HookPoint] = name_hooks(self)
        name_linears(self)
        self.hook_names = tuple(self.hooks)
        self.requested = frozenset(name for name, hook in self.hooks.items() if hook.on_request)
        self.merged: frozenset[str] = frozenset()  # digests of the adapters that the weights hold

    def _add_head(self, config: ModelConfig) -> None:
        kind = config.head.kind
        self.pooler = Pooler(config) if config.head.pooler else None
        self.next_sentence = nn.Linear(config.d_model, 2) if config.head.next_sentence else None
        self.head = make_head(config)
        self.language: LanguageHead | None = None
        if config.head.language:
            beside = replace(config.head, kind="language", classes=0, bias=None, language=False)
            self.language = LanguageHead(replace(config, head=beside))
        if kind in ("language", "masked"):
            self.hook_logits = HookPoint("logits", "batch pos vocab")
        elif kind != "none":
            self.hook_logits = HookPoint("logits", "batch class" if kind == "sequence" else "batch pos class")
        if kind != "none":
            axes = " ".join(self.hook_logits.axes)
            scores = config.link == "identity"
            self.hook_probs = None if scores else HookPoint("probs", axes, on_request=True)
        if config.head.next_sentence:
            self.hook_next_sentence = HookPoint("next_sentence", "batch class")
        self.vector = None if config.vector is None else TextVector(config)

    def forward(self, ids: Tensor, **options: Any) -> Tensor:
        """logits: batch pos vocab, batch pos class or batch class; without a head the last residual stream, or batch
        pos d_embed where that is mapped back (`ModelConfig.narrows`).

        `ids` is batch pos, or pixels, batch channel height width, for a model of pictures, or log-mel frames, batch mel
        frame, for one of sounds; `options` are those of `forward_with_pooled`.
        """
        return self.forward_with_pooled(ids, **options)[0]

    @computed_by_twin
    def forward_with_pooled(
        self,
        ids: Tensor,
        *,
        target: Tensor | None = None,
        segments: Tensor | None = None,
        mask: Mask | None = None,
        padding: Tensor | None = None,
        target_padding: Tensor | None = None,
        cache: KVCache | None = None,
        start: int = 0,
        resid: Tensor | None = None,
        memory: Tensor | None = None,
        logits_at: slice = slice(None),
    ) -> tuple[Tensor, Tensor | None]:
        """The logits, and those of a second head, batch class, or of a language head beside, batch pos vocab, or the
        vector of the whole text, batch component, where there is one.

        `target` is what an encoder-decoder's decoder reads. `mask` replaces the configured one (the decoder's, of two);
        `padding` (batch key, True where real) is added to either. With a `cache`, `ids` (or `target`) are only the new
        tokens. With `resid`, the run starts at block `start` from it instead of from the embedding; blocks are counted
        through, the encoder's first, and `memory` is what the encoder gave. `logits_at` picks positions of the result.
        """
        at = logits_at if self.reads_every_position else slice(None)
        if self.config.encoder is None:
            ids = self.replace_tokens(ids, resid)
            last = self.forward_resid(
                ids, segments=segments, mask=mask, padding=padding, cache=cache, start=start, resid=resid, at=at
            )
            return self.heads(last, padding, at, ids)
        layers, read = self.config.encoder.layers, ids
        if memory is None and cache is not None:
            memory = cache.memory
        if memory is None:
            read = self.encoder.replace_tokens(ids, resid)
            memory = self.encoder.forward_resid(read, padding=padding, start=start, resid=resid)
            start, resid = layers, None
        if cache is not None:
            cache.memory = memory
        if target is None:
            target, target_padding = self.begin(ids, padding)
        target = self.decoder.replace_tokens(target, resid)
        last = self.decoder.forward_resid(
            target,
            table=self.table,
            mask=mask,
            padding=target_padding,
            cache=cache,
            start=max(start - layers, 0),
            resid=resid,
            memory=memory,
            memory_padding=padding,
            at=at,
        )
        return self.heads(last, target_padding, at, read if self.config.rereads else target)

    def heads(
        self, last: Tensor, padding: Tensor | None = None, at: slice = slice(None), ids: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Logits from the last residual stream, batch pos d_model, which has the positions `at`; `ids` (batch pos) is
        what the model read."""
        whole = self.pool_text(last, padding, ids)
        vector = None if self.vector is None else self.vector(last, padding, ids)
        pooled = whole if self.pooler is None else self.pooler(whole)
        second = None if self.next_sentence is None else self.hook_next_sentence(self.next_sentence(pooled))
        if self.language is not None:
            second = self.language(last, self.table)
        second = second if vector is None else vector
        if self.head is None or self.config.head.kind == "none":
            return last if self.head is None else self.head(last), second
        if self.config.head.read == "vector" and vector is not None:
            pooled = vector
        read = pooled if self.config.head.kind == "sequence" and not self.config.head.averaged else last
        logits = self.hook_logits(self.head(read, self.table))
        if self.hook_probs is not None and self.hook_probs.is_active:
            self.hook_probs(self.probabilities(logits, None if padding is None else padding[:, at]))
        return logits, second

    def probabilities(self, logits: Tensor, padding: Tensor | None = None) -> Tensor:
        """Distribution that the head gives at temperature 1, in float32 and with the axes of `logits`.

        Over the vocabulary or the classes; of a span over the positions, for its start and its end (Devlin et al. 2019,
        section 4.2); of classes that do not exclude each other, or of one, the probability that each holds.
        """
        kind = self.config.head.kind
        if self.config.link == "logistic":
            return logits.float().sigmoid()
        if kind != "span":
            return logits.float().softmax(-1)
        if padding is not None:
            logits = logits.masked_fill(~padding[..., None], float("-inf"))
        return logits.float().softmax(1)

    def pool_text(self, last: Tensor, padding: Tensor | None, ids: Tensor | None = None) -> Tensor:
        """The position that stands for the whole text, or the mean of all, batch d_model."""
        if isinstance(self.head, MeanHead):
            return self.head.mean(last, padding)
        if self.config.head.read in ("first", "vector"):
            return last[:, 0]
        marked = self.config.head.padding is not None or self.config.head.mark is not None
        if padding is None and (ids is None or not marked):
            return last[:, -1]
        return last[torch.arange(len(last), device=last.device), self.find_last(last, padding, ids)]

    def find_last(self, last: Tensor, padding: Tensor | None, ids: Tensor | None) -> Tensor:
        """The position (batch) that a head which reads the last one reads: of what is real, of tokens that are no
        padding, or of marks, where the text has one."""
        pos, head = torch.arange(last.shape[1], device=last.device), self.config.head
        real = torch.ones(last.shape[:2], dtype=torch.bool, device=last.device) if padding is None else padding
        if ids is not None and ids.shape == real.shape:
            if head.padding is not None:
                real = real & (ids != head.padding)
            if head.mark is not None:
                marks = real & (ids == head.mark)
                real = torch.where(marks.any(1, keepdim=True), marks, real)
        return (real * pos).argmax(1)

    @property
    def reads_every_position(self) -> bool:
        """True if the head looks at each position by itself, so that the others can be left out."""
        head = self.config.head
        alone = not head.pooler and self.config.vector is None
        return head.kind in ("language", "masked", "token", "span") and alone

    def begin(self, ids: Tensor, padding: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Input of a decoder before anything was written, batch pos, and what of it is real.

        The start token alone; in front of the text itself, without its last token, where the decoder reads that again.
        """
        assert self.config.encoder is not None
        start = torch.full((len(ids), 1), self.config.encoder.start, dtype=torch.long, device=ids.device)
        return (torch.cat([start, ids[:, :-1]], dim=1), padding) if self.config.rereads else (start, None)

    @property
    def table(self) -> Tensor | None:
        """W_E, vocab d_model; None for a model of pictures."""
        embed = self.embed if self.config.encoder is None else self.encoder.embed
        if self.config.encoder is not None and not self.config.embedding.of_tokens:
            embed = self.decoder.embed
        tokens = embed.tokens
        return None if tokens is None else tokens.weight

    def check(self, ids: Tensor, past: int = 0) -> None:
        """Raises ValueError for ids (batch pos), pixels, or frames of a sound that this model cannot read."""
        patches, sound = self.config.embedding.patches, self.config.embedding.sound
        if sound is not None:
            shape = " x ".join(map(str, ids.shape))
            if ids.dim() != 3 or tuple(ids.shape[1:]) != (sound.bins, sound.frames) or not len(ids):
                raise ValueError(
                    f"this model reads sounds, batch x {sound.bins} x {sound.frames} (mel, frame), got {shape}; make "
                    "them with the checkpoint's processor."
                )
            return
        if patches is not None:
            wanted = (patches.channels, patches.image, patches.image)
            if ids.dim() != 4 or tuple(ids.shape[1:]) != wanted or not len(ids):
                raise ValueError(
                    f"this model reads pictures, batch x {' x '.join(map(str, wanted))} (channel, height, width), got "
                    f"{' x '.join(map(str, ids.shape))}; make them with the checkpoint's processor."
                )
            return
        self.check_tokens(ids, past)

    def check_tokens(self, ids: Tensor, past: int = 0) -> None:
        """Raises ValueError for ids (batch pos) that this model, or its decoder, cannot read after `past` others."""
        if ids.numel() == 0:
            raise ValueError("a run needs at least one token, got none; give it a longer text.")
        if ids.dim() != 2 or ids.is_floating_point():
            shape = " x ".join(map(str, ids.shape))
            raise ValueError(f"this model reads token ids, batch x pos, got {shape} of {ids.dtype}; give it a text.")
        length = past + ids.shape[1]
        if length > self.config.context:
            most = count_words(self.config.context, "token")
            raise ValueError(f"this model reads at most {most}, got {length}; shorten the text.")
        low, high = (int(end) for end in ids.aminmax())
        if low < 0 or high >= self.config.vocab_size:
            wrong = low if low < 0 else high
            raise ValueError(f"token ids must lie in 0..{self.config.vocab_size - 1}, got {wrong}; use its tokenizer.")
        infill = self.config.infill
        if infill is not None and length == self.config.context and bool((ids[:, 0] == infill.start).any()):
            raise ValueError("a span that begins the text must leave one token of the context free; shorten the text.")

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype


# What writes to the residual stream; cross_attn.out too.
WRITERS = ("attn.out.weight", "mlp.out.weight", "mlp.experts.out.weight", "mlp.shared.out.weight")


@torch.no_grad()
def initialise(model: Transformer, seed: int) -> Transformer:
    """N(0, 1 / sqrt(d_model)), divided by sqrt(2 layers) for what writes to the residual stream.

    The division is GPT-2's (Radford et al. 2019, section 2.3). Its fixed 0.02 is left out: it suits a d_model near a
    thousand, while a small model that starts with it attends evenly everywhere and learns later. Queries make up for
    a scale of the scores that is not the usual one, as in T5's code, where it is 1.
    """
    for name, drawn in draw_weights(model, seed):
        model.get_parameter(name).copy_(drawn)
    return model


def draw_weights(model: Transformer, seed: int) -> Iterator[tuple[str, Tensor]]:
    """Draws the values that `initialise` fills each parameter with, one after the other; `model` may have no memory."""
    generator = torch.Generator().manual_seed(seed)
    spread = model.config.d_model**-0.5
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            yield name, torch.zeros(parameter.shape)
        elif "norm" in name or name.endswith((".scale1", ".scale2")):
            yield name, torch.ones(parameter.shape)
        else:
            factor = spread_factor(model.config, name)
            yield name, torch.empty(parameter.shape).normal_(0.0, spread * factor, generator=generator)


def spread_factor(config: ModelConfig, name: str) -> float:
    """Factor of the spread 1 / sqrt(d_model) with which a matrix begins."""
    if name.endswith(WRITERS):
        return (2 * max(config.layers, 1)) ** -0.5
    if name.endswith("attn.q.weight"):
        attention = config.encoder.attention if config.encoder and name.startswith("encoder.") else config.attention
        return float(config.head_width(attention) ** -0.5 / (attention.scale or config.head_width(attention) ** -0.5))
    return 1.0
