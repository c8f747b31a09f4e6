"""Hook points: the named places where a value of the computation can be read or changed.

Who listens is never stored on the model. The active run is a ContextVar, so two threads that share a model
cannot see each other's recordings or edits.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Protocol

from torch import Tensor, nn
from torch.compiler import is_compiling

# What a sublayer adds to the stream: the first of these hooks that a block has.
ADDED = {
    "attn": ("added1", "norm1_after.out", "attn.out"),
    "cross_attn": ("added_cross", "cross_attn.out"),
    "mlp": ("added2", "norm2_after.out", "mlp.out"),
}
# TransformerLens's words for our hooks. Its `hook_attn_scores` fires after the mask: our `masked_scores`.
TRANSFORMER_LENS = {
    "hook_embed": "embed.tokens",
    "hook_pos_embed": "embed.positions",
    "hook_resid_pre": "resid_pre",
    "hook_resid_mid": "resid_mid",
    "hook_resid_post": "resid_post",
    "hook_attn_out": "attn.out",  # the first of ADDED, see `canonical`
    "hook_mlp_out": "mlp.out",
    "hook_q": "q",
    "hook_k": "k",
    "hook_v": "v",
    "hook_rot_q": "q_rotated",
    "hook_rot_k": "k_rotated",
    "hook_attn_scores": "masked_scores",
    "hook_pattern": "pattern",
    "hook_z": "z",
    "hook_result": "head_out",
    "hook_pre": "pre",
    "hook_pre_linear": "up",
    "hook_post": "post",
    "hook_scale": "scale",
    "hook_normalized": "normalized",
    "hook_expert_weights": "router.weights",
    "hook_expert_indices": "router.chosen",
    "embed_ln": "embed.norm",
    "ln1": "norm1",
    "ln1_post": "norm1_after",
    "ln2": "norm2",
    "ln2_post": "norm2_after",
    "ln_final": "final_norm",
}
# Of one expert, whose `hook_pre` in TransformerLens is what its `hook_pre_linear` is elsewhere.
OF_EXPERT = {"hook_gate": "pre", "hook_pre": "up", "hook_post": "post"}
_OF_EXPERT = re.compile(r"(?<!\w)experts\.(\d+|\*)\.(" + "|".join(OF_EXPERT) + r")(?!\w)")
_ALIAS = re.compile(r"(\*?)(?<!\w)(" + "|".join(sorted(TRANSFORMER_LENS, key=len, reverse=True)) + r")(?!\w)")

Axes = tuple[str, ...]


class ActiveRun(Protocol):
    @property
    def changes(self) -> bool:
        """True if it edits anything at all."""

    def wants(self, hook: HookPoint) -> bool: ...

    def visit(self, hook: HookPoint, value: Tensor) -> Tensor:
        """The value that is computed with from here on: `value` itself where it does not want the hook."""

    def adapts(self, name: str) -> bool:
        """True if it may add something to what the linear map `name` makes."""

    def adapt(self, name: str, x: Tensor, out: Tensor, training: bool) -> Tensor:
        """`out`, what the linear map `name` makes of `x`, with what adapters add to it."""


_active: ContextVar[ActiveRun | None] = ContextVar("loupe_active_run", default=None)


class HookPoint:
    """Wraps the line that makes a value: `pattern = self.hook_pattern(softmax(masked_scores))`.

    `axes` name the value's dimensions and become the axis labels of every picture. A
    hook that is `on_request` is left out of `keep="*"`, because its value is computed only when somebody asks
    for it by name.
    """

    __slots__ = ("name", "axes", "on_request")

    def __init__(self, name: str, axes: str, on_request: bool = False) -> None:
        self.name = name  # relative to its module until `name_hooks` completes it
        self.axes: Axes = tuple(axes.split())
        self.on_request = on_request

    def __call__(self, value: Tensor) -> Tensor:
        if is_compiling():
            return value
        run = _active.get()
        return value if run is None else run.visit(self, value)

    @property
    def is_active(self) -> bool:
        """True if the active run records or edits this value, so that it has to be made explicitly."""
        if is_compiling():
            return False
        run = _active.get()
        return run is not None and run.wants(self)

    def __repr__(self) -> str:
        return f"HookPoint({self.name}: {' '.join(self.axes)})"


def any_wanted(hooks: Iterable[HookPoint]) -> bool:
    """True if one of them is active."""
    if is_compiling():
        return False
    run = _active.get()
    return run is not None and any(run.wants(hook) for hook in hooks)


def run_has_edits() -> bool:
    """True if the active run changes values, so that what is known of them beforehand may not hold."""
    if is_compiling():
        return False
    run = _active.get()
    return run is not None and run.changes


def adapt(name: str, x: Tensor, out: Tensor, training: bool) -> Tensor:
    """`out` (... out) of the linear map `name` of `x` (... in), with what the active run's adapters add to it."""
    if is_compiling():
        return out
    run = _active.get()
    return out if run is None else run.adapt(name, x, out, training)


def current_run() -> ActiveRun | None:
    return _active.get()


@contextmanager
def active(run: ActiveRun) -> Iterator[None]:
    token = _active.set(run)
    try:
        yield
    finally:
        _active.reset(token)


def name_hooks(model: nn.Module) -> dict[str, HookPoint]:
    """Give every hook point of `model` its full name (module path + its own) and return them by name."""
    hooks: dict[str, HookPoint] = {}
    for path, module in model.named_modules():
        for value in vars(module).values():
            if isinstance(value, HookPoint):
                value.name = f"{path}.{value.name}" if path else value.name
                hooks[value.name] = value
    return hooks


def canonical(name: str, names: Collection[str]) -> str:
    """A hook name or shell-style pattern in Loupe's words; TransformerLens's are translated, others returned
    as they are.

    `*hook_k` is `*.k`: an alias is a whole word, and must not become the end of another one (`mask`). `names` are the
    model's: what a sublayer adds to the stream is behind its norm where that stands behind it, and scaled where it is.
    """

    def translate(match: re.Match[str]) -> str:
        ours = TRANSFORMER_LENS[match[2]]
        if match[2] in ("hook_attn_out", "hook_mlp_out"):
            added = ADDED[ours.removesuffix(".out")]
            ours = next((one for one in added if any(name.endswith(f".{one}") for name in names)), ours)
        return match[1] + ("." if match[1] else "") + ours

    name = _OF_EXPERT.sub(lambda match: f"experts.{match[1]}.{OF_EXPERT[match[2]]}", name)
    return _ALIAS.sub(translate, name)


@lru_cache(maxsize=512)
def match_hooks(pattern: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names that a name, an alias or a shell-style pattern stands for. Raises KeyError for none."""
    wanted = canonical(pattern, names)
    found = tuple(n for n in names if n == wanted or fnmatchcase(n, wanted) or fnmatchcase(f".{n}", wanted))
    if not found:
        raise KeyError(f"no hook is called {pattern!r}; this model has {fold_layers(names)}.")
    return found


def fold_layers(names: Iterable[str]) -> str:
    """The names with layers folded: `blocks.{0-3}.attn.q` once instead of four times."""
    found: dict[str, list[int]] = {}
    for name in names:
        found.setdefault(re.sub(r"\.\d+\.", ".{}.", name), []).extend(map(int, re.findall(r"\.(\d+)\.", name)))
    return ", ".join(name.replace("{}", f"{{{join_ranges(layers)}}}") for name, layers in found.items())


def join_ranges(numbers: Sequence[int]) -> str:
    """Numbers in their order, those that follow each other as their first and last: 0-3,5-5."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{first}-{last}" for first, last in runs)
