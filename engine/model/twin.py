"""A model's twin on another device, which computes in its place.

Everybody holds the model itself, whose weights lie in host memory; what a twin computes comes back there. So only a
forward pass knows of devices, and whatever reads weights or a trace beside it finds both where they always are.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.compiler import is_compiling
from torch.utils.weak import WeakTensorKeyDictionary

from engine.model.hooks import ActiveRun, HookPoint, active, current_run
from engine.model.layers.cache import KVCache
from engine.model.pass_queue import pass_queue
from engine.work_limit import check_work

Given = ParamSpec("Given")
Made = TypeVar("Made")
Forward = Callable[Concatenate[Any, Given], Made]
CPU = torch.device("cpu")
HALF = (torch.bfloat16, torch.float16)


class Twin:
    """A copy of a model with its weights in `dtype` on `device`, and the model's own hook points.

    Where the device's memory is used up, `notify` gets one sentence and the model itself computes.
    """

    @torch.inference_mode(False)  # a model may be opened while a text is written
    def __init__(
        self, model: nn.Module, device: torch.device, dtype: torch.dtype, notify: Callable[[str], None]
    ) -> None:
        self.device, self.dtype, self.notify = device, dtype, notify
        stored = {id(tensor) for tensor in model.state_dict(keep_vars=True).values()}
        memo: dict[int, Any] = {id(hook): hook for hook in hooks_of(model).values()}
        memo[id(hooks_of(model))] = hooks_of(model)
        for parameter in model.parameters():
            memo[id(parameter)] = nn.Parameter(parameter.detach().to(device, dtype), requires_grad=False)
        for buffer in model.buffers():  # tables of angles keep their precision, as they do when a checkpoint is opened
            rounded = id(buffer) in stored and buffer.is_floating_point()
            memo[id(buffer)] = buffer.to(device, dtype if rounded else buffer.dtype)
        self.model = copy.deepcopy(model, memo)

    def compute(self, forward: Forward[..., Made], model: nn.Module, *given: Any, **options: Any) -> Made:
        """Result of `forward` with the twin, in host memory and, of numbers with a fraction, in float32."""
        cache: KVCache | None = options.get("cache")
        if cache is not None and cache.tokens and cache.device != self.device:
            return forward(model, *given, **options)  # a text that was begun on the host goes on there
        before = None if cache is None else (cache.tokens, cache.memory)
        try:
            if cache is not None:
                cache.move(self.device, self.dtype)
            run = current_run()
            there = {name: self.move(value) for name, value in options.items()}
            with nullcontext() if run is None else active(HostRun(run)):
                return to_host(forward(self.model, *map(self.move, given), **there))
        except torch.OutOfMemoryError:
            pass  # and out of this block, so that the error no longer holds what was computed so far
        if cache is not None and before is not None:
            cache.rewind(before[0])
            cache.memory = before[1]
            for layer in cache.cross if cache.memory is None else ():
                layer.length = 0
            cache.move(CPU, next(model.parameters()).dtype)
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        self.notify(f"The memory of {self.device} is used up: this was computed on the CPU, which takes longer.")
        return forward(model, *given, **options)

    def move(self, value: Any) -> Any:
        """A tensor on the device; anything else as it is."""
        if not isinstance(value, Tensor):
            return value
        return value.to(self.device, self.dtype if value.is_floating_point() else value.dtype)


class HostRun:
    """The active run as a twin sees it: it records, edits and adapts in host memory."""

    def __init__(self, run: ActiveRun) -> None:
        self.run = run
        self.moved = WeakTensorKeyDictionary()  # what several hooks hold, such as a mask, is moved once

    @property
    def changes(self) -> bool:
        return self.run.changes

    def wants(self, hook: HookPoint) -> bool:
        return self.run.wants(hook)

    def visit(self, hook: HookPoint, value: Tensor) -> Tensor:
        if not self.run.wants(hook):
            return value
        host = self.moved.get(value)
        if host is None:
            host = self.moved[value] = to_host(value)
        seen = self.run.visit(hook, host)
        return value if seen is host else seen.to(value.device, value.dtype)

    def adapts(self, name: str) -> bool:
        return self.run.adapts(name)

    def adapt(self, name: str, x: Tensor, out: Tensor, training: bool) -> Tensor:
        if not self.run.adapts(name):
            return out
        return self.run.adapt(name, to_host(x), to_host(out), training).to(out.device, out.dtype)


twins: WeakKeyDictionary[nn.Module, Twin] = WeakKeyDictionary()


def computed_by_twin(forward: Forward[Given, Made]) -> Forward[Given, Made]:
    """Method of a model that its twin computes, where it has one, once it is its turn in the queue.

    With gradients it is the model's own: who wants them holds tensors, or PyTorch's hooks, of that model.
    """

    @wraps(forward)
    def compute(model: Any, *given: Given.args, **options: Given.kwargs) -> Made:
        if is_compiling():
            return forward(model, *given, **options)
        check_work()
        with pass_queue.enter(model, (*given, options.get("target"))):
            twin = None if torch.is_grad_enabled() else twins.get(model)
            if twin is None:
                return forward(model, *given, **options)
            return twin.compute(forward, model, *given, **options)

    return compute


def to_host(value: Any) -> Any:
    """A tensor, or each of a tuple, in host memory; bfloat16 and float16 become float32."""
    if isinstance(value, tuple):
        return tuple(map(to_host, value))
    if not isinstance(value, Tensor):
        return value
    once = value
    for axis, step in enumerate(value.stride()):
        if step == 0 and value.shape[axis] > 1:  # a mask that all heads share stays one in memory
            once = once.narrow(axis, 0, 1)
    return once.to(CPU, torch.float32 if value.dtype in HALF else value.dtype).expand(value.shape)


def hooks_of(model: nn.Module) -> dict[str, HookPoint]:
    hooks: dict[str, HookPoint] = model.hooks  # type: ignore[assignment]
    return hooks
