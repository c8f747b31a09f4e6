"""Which texts make it fire: the strongest places of every head and every neuron over many texts, found in one pass.

A head is as strong at a position as what it writes there is long, |z W_O| (Kobayashi et al. 2020, section 2, of whole
heads); a neuron of an MLP as its activation, which what it writes is proportional to (Geva et al. 2021, section 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.inputs.readers import Reading
from engine.inputs.samples import samples
from engine.model.layers.attention import Attention
from engine.model.layers.mlp import MLP
from engine.model.transformer import Transformer
from engine.runtime.lru_cache import Shelf
from engine.runtime.run import run
from engine.runtime.shared_work import SharedWork
from engine.runtime.trace import Trace

Unit = Literal["head", "neuron"]

TEXTS, LENGTH = 64, 48  # that are read, and their tokens
KEPT = 12  # texts of a head or a neuron
BYTES = 2**29


@dataclass(frozen=True)
class Strongest:
    """Texts, for each unit of a layer, in which it is strongest, the strongest first (unit place each): `text` is the
    number of the text, -1 where there were fewer, `pos` where in it, `value` how strong."""

    text: Tensor
    pos: Tensor
    value: Tensor

    def add(self, number: int, strengths: Tensor) -> Strongest:
        """Adds another text, whose strengths are pos unit."""
        value, pos = strengths.max(0)
        new = torch.full_like(pos, number)
        values = torch.cat([self.value, value[:, None]], 1)
        order = values.argsort(dim=1, descending=True, stable=True)[:, : self.value.shape[1]]
        text, at = torch.cat([self.text, new[:, None]], 1), torch.cat([self.pos, pos[:, None]], 1)
        return Strongest(text.gather(1, order), at.gather(1, order), values.gather(1, order))


def no_places(units: int) -> Strongest:
    none = torch.full((units, KEPT), -1)
    return Strongest(none, none.clone(), torch.full((units, KEPT), float("-inf")))


@dataclass
class Survey:
    """Texts read so far, and the strongest places of each layer's heads and neurons, by the name of its stack."""

    readings: list[Reading] = field(default_factory=list)
    found: dict[tuple[str, int, Unit], Strongest] = field(default_factory=dict)


@torch.no_grad()
def survey(model: Transformer, readings: Iterable[Reading]) -> Iterator[Survey]:
    """After each of `readings` what was found so far."""
    so_far = Survey()
    for number, reading in enumerate(readings):
        trace = run(model, reading.read, read_hooks(model), target=reading.target)
        so_far.readings.append(reading)
        for place, strengths in strengths_of(model, trace):
            before = so_far.found.get(place) or no_places(strengths.shape[1])
            so_far.found[place] = before.add(number, strengths)
        yield so_far


def read_hooks(model: Transformer) -> list[str]:
    """Lists the hooks that `strengths_of` reads."""
    return [name for name in model.hook_names if name.endswith((".attn.z", ".mlp.post"))]


def strengths_of(model: Transformer, trace: Trace) -> Iterator[tuple[tuple[str, int, Unit], Tensor]]:
    """Measures how strong each head and each neuron of every layer is, pos unit."""
    sides = ("",) if model.config.encoder is None else ("encoder", "decoder")
    for side in sides:
        blocks = (getattr(model, side) if side else model).blocks
        for layer, block in enumerate(blocks):
            hook = f"{side and side + '.'}blocks.{layer}."
            yield (side, layer, "head"), lengths_written(block.attn, trace[f"{hook}attn.z"][0])
            if isinstance(block.mlp, MLP):
                yield (side, layer, "neuron"), trace[f"{hook}mlp.post"][0].float()


def lengths_written(attention: Attention, z: Tensor) -> Tensor:
    """|z W_O| of every head, pos head; `z` is pos head d_head."""
    share = attention.out.weight.unflatten(1, (attention.heads, attention.d_head)).float()  # d_model head d_head
    gram = torch.einsum("mhd,mhe->hde", share, share)
    return torch.einsum("phd,hde,phe->ph", z.float(), gram, z.float()).clamp(min=0).sqrt()


# --- of a checkpoint ---


surveyed = Shelf[SharedWork[Survey]](BYTES)


def surveying_of(checkpoint: Checkpoint) -> SharedWork[Survey]:
    """The work that surveys a checkpoint, on TEXTS of `samples`."""
    model, config = checkpoint.model, checkpoint.model.config
    units = config.attention.heads + (config.mlp.d_mlp if config.mlp else 0)
    made = SharedWork(survey(model, samples(checkpoint, TEXTS, LENGTH)), TEXTS, Survey())
    return surveyed.find(model) or surveyed.keep(model, made, units * config.layers * KEPT * 24)


def find_strongest(checkpoint: Checkpoint, side: str, layer: int, part: Unit) -> tuple[list[Reading], Strongest]:
    """The texts that were read, and the strongest places in them of each head or neuron of a layer.

    Raises ValueError for a layer that has none."""
    made = surveying_of(checkpoint).reach()
    if (side, layer, part) not in made.found:
        raise ValueError(f"this layer has no {part}s; choose another one.")
    return made.readings, made.found[side, layer, part]
