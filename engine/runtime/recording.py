"""What one run keeps and changes as its values come by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from functools import lru_cache

from torch import Tensor

from engine.edits import Edit, RealTokens
from engine.model.hooks import HookPoint, match_hooks
from engine.model.transformer import Transformer
from engine.work_limit import check_work


class Recording:
    """The active run: keeps what was asked for and applies edits as the values come by."""

    def __init__(
        self,
        model: Transformer,
        kept: frozenset[str],
        edits: Sequence[Edit],
        padding: Tensor | None,
        target_padding: Tensor | None = None,
    ) -> None:
        self.kept, self.hooks = kept, model.hooks
        self.real = RealTokens(padding, padding)
        self.decoder_real, self.cross_real = (
            RealTokens(target_padding, target_padding),
            RealTokens(target_padding, padding),
        )
        self.values: dict[str, Tensor] = {}
        self.edits = edits_by_hook(edits, model)
        self.changes = bool(edits)
        self.wanted = kept | self.edits.keys() if edits else kept

    def wants(self, hook: HookPoint) -> bool:
        return hook.name in self.wanted

    def visit(self, hook: HookPoint, value: Tensor) -> Tensor:
        check_work()
        name = hook.name
        if self.changes:
            for edit in self.edits.get(name, ()):
                value = edit.apply(hook, value, self.real_at(name))
        if name in self.kept:
            self.values[name] = value
        return value

    def adapts(self, name: str) -> bool:
        return self.changes and name in self.edits

    def adapt(self, name: str, x: Tensor, out: Tensor, training: bool) -> Tensor:
        if self.changes:
            for edit in self.edits.get(name, ()):
                out = edit.adapt(name, x, out, training)
        return out

    def behind(self) -> Recording:
        """Recording of the same kind, with the edits that go on behind the text that was read."""
        later = copy(self)
        going = {n: [edit for edit in edits if edit.reach(self.hooks[n]) == "each"] for n, edits in self.edits.items()}
        later.edits = {name: edits for name, edits in going.items() if edits}
        later.wanted = self.kept | later.edits.keys()
        return later

    def real_at(self, name: str) -> RealTokens:
        if not name.startswith("decoder."):
            return self.real
        return self.cross_real if ".cross_attn." in name else self.decoder_real


def edits_by_hook(edits: Iterable[Edit], model: Transformer) -> dict[str, list[Edit]]:
    """A wildcard means what `keep` means by it."""
    found: dict[str, list[Edit]] = {}
    for edit in edits:
        for pattern in edit.touches():
            for name in kept_names((pattern,), model.hook_names, model.requested):
                found.setdefault(name, []).append(edit)
    return found


@lru_cache(maxsize=256)
def kept_names(keep: tuple[str, ...], names: tuple[str, ...], on_request: frozenset[str]) -> frozenset[str]:
    """The hooks that `keep` names; what is computed only on request takes more than a wildcard."""
    kept: set[str] = set()
    for pattern in keep:
        matches = set(match_hooks(pattern, names))
        kept |= {n for n in matches if n not in on_request or pattern.endswith(n.rsplit(".", 1)[-1])} or matches
    return frozenset(kept)
