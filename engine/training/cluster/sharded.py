"""Weights in parts over several processes (Rajbhandari et al. 2020, section 5.3, as PyTorch's `fully_shard` has it).

Each process holds a part of every tensor and of what the optimiser remembers of it; those of a block are whole only
while it computes. Whoever looks at the model, or writes it, is given a whole copy in the first process's host memory,
gathered once for each step that is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.linalg import vector_norm

from engine.checkpoints.assemble import build_without_memory
from engine.model.layers.block import Block
from engine.model.transformer import Transformer
from engine.plurals import count_words
from engine.training.cluster.parallel import Peers, together
from engine.training.launch.machine import Plan
from engine.training.recipe.optimiser import optimiser_state
from engine.training.recipe.recipe import Recipe
from engine.training.run.folder import RunFolder
from engine.training.trainer import Trainer


def hold_part(whole: Tensor, parameter: Tensor) -> Tensor:
    """This process's part of `whole`, which is cut as the parameter is."""
    assert isinstance(parameter, DTensor)
    return distribute_tensor(whole, parameter.device_mesh, parameter.placements, src_data_rank=None)


class ShardedTrainer(Trainer):
    """Trainer of one among several processes, each with a part of the model, and the rows that it would have otherwise.

    Raises ValueError where the losses would be scaled, or two processes share a card.
    """

    _hold = staticmethod(hold_part)

    def __init__(self, recipe: Recipe, run: RunFolder, plan: Plan, peers: Peers) -> None:
        if plan.scaled:
            raise ValueError(
                "machine.shard needs weights whose losses are not scaled, and the precision is float16; set "
                'machine.precision to "bfloat16" or "float32".'
            )
        if plan.device == "cuda" and distributed.get_backend() != "nccl":
            raise ValueError(
                f"machine.shard needs a card for each process, got {count_words(torch.cuda.device_count(), 'card')}; "
                "start as many processes as there are cards."
            )
        self.copy: tuple[int, Transformer] | None = None  # the step that it is of, and the whole model
        super().__init__(recipe, run, replace(plan, compile=False), peers)
        count = count_words(peers.count, "process", "processes")
        self.why = (f"Sharded over {count}: each holds a part of every weight, and compiles nothing.",)

    def _place(self, model: Transformer) -> Transformer:
        mesh = init_device_mesh(self.device.type, (self.peers.count,))
        for module in (*(one for one in model.modules() if isinstance(one, Block)), model):
            part = fully_shard(module, mesh=mesh, reshard_after_forward=True)
            part.set_gradient_divide_factor(1.0)  # losses are shares of the whole batch's already
            part.set_force_sum_reduction_for_comms(True)
        register_fsdp_forward_method(model, "forward_with_pooled")
        return model

    def _add_up(self, gradients: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """PyTorch has added them up, in parts; returns their norms."""
        squares = torch.stack([vector_norm(local_part(tensor)) ** 2 for tensor in gradients.values()])
        self.peers.all_reduce_sum([squares])
        return dict(zip(gradients, squares.sqrt(), strict=True))

    @property
    def full_model(self) -> Transformer:
        if self.copy is None or self.copy[0] != self.step:
            self.copy = None  # before there is another one
            model = build_without_memory(self.model.config)
            model.load_state_dict(self._gather_weights(), assign=True)
            self.copy = self.step, model.requires_grad_(False).eval()
        return self.copy[1]

    @together
    def _gather_weights(self) -> dict[str, Tensor]:
        return self._gather(self.model.state_dict())

    @together
    def _remember(self) -> dict[str, Tensor]:
        return self._gather(optimiser_state(self.model, self.optimiser))

    def _gather(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Whole tensors in host memory, on the process that leads; on the others none."""
        found: dict[str, Tensor] = {}
        for name, tensor in tensors.items():
            whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
            if self.peers.leads:
                found[name] = whole.detach().cpu()
        return found

    @together
    def restore(self, file: Path) -> None:
        super().restore(file)
        self.copy = None

    @together
    def measure(self, batches: int | None = None) -> dict[str, float]:
        return super().measure(batches)


def local_part(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
