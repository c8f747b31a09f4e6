"""What one run recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from engine.edits import Edit
from engine.model.hooks import Axes, HookPoint, canonical, match_hooks
from engine.model.layers.mask import Mask
from engine.plurals import count_words
from engine.tokenizers.encoding import Encoding

ONE_EXPERT = re.compile(r"(?P<mlp>.*\.mlp)\.experts\.(?P<expert>\d+)\.(?P<part>pre|up|post|out)")


class Trace(Mapping[str, Tensor]):
    """Hook name -> value, in the order the values were computed; read-only. TransformerLens's names work as
    well, and `blocks.l.mlp.experts.e.pre`, `.up`, `.post` and `.out` are of one expert: a sparse tensor, which has the
    tokens that were sent to it alone.

    `ids` is batch pos, or the pixels of pictures, or the frames of sounds. `encodings` are the inputs where they came
    with text, one a batch row; `target` (batch pos) is what a decoder behind an encoder read, with its
    `target_encodings`. `padding` and `target_padding` (batch pos, None: all) are True where a token of either stands.
    `edits`, `mask` and `logits_at` are those the run was made with, `past` the tokens that its cache held before, and
    `hooks` all hook points of the model by name. `start` is the first block that was computed, the encoder's counted
    first: what stands before it was taken from a base. It is the number of blocks where only what follows them was
    computed, and one more where nothing was. `seconds` is how long that took.
    """

    def __init__(
        self,
        values: dict[str, Tensor],
        hooks: Mapping[str, HookPoint],
        ids: Tensor,
        padding: Tensor | None = None,
        encodings: tuple[Encoding, ...] = (),
        edits: tuple[Edit, ...] = (),
        mask: Mask | None = None,
        logits_at: slice = slice(None),
        past: int = 0,
        target: Tensor | None = None,
        target_encodings: tuple[Encoding, ...] = (),
        target_padding: Tensor | None = None,
    ) -> None:
        self._values, self.hooks = values, hooks
        self.ids, self.padding, self.encodings = ids, padding, encodings
        self.edits, self.mask, self.logits_at, self.past = edits, mask, logits_at, past
        self.target, self.target_encodings, self.target_padding = target, target_encodings, target_padding
        self.start = 0
        self.seconds = 0.0

    def __getitem__(self, name: str) -> Tensor:
        value = self._values.get(name)
        if value is None and (one := ONE_EXPERT.fullmatch(canonical(name, self.hooks))) is not None:
            return self._of_expert(one["mlp"], int(one["expert"]), one["part"])
        return self._values[self._resolve(name)] if value is None else value

    def _of_expert(self, mlp: str, expert: int, part: str) -> Tensor:
        """Values that one expert made of the tokens that were sent to it: batch pos width, sparse over batch and
        pos."""
        chosen, slots = self[f"{mlp}.router.chosen"], self[f"{mlp}.experts.{part}"]
        batch, pos, slot = (chosen == expert).nonzero(as_tuple=True)
        size = (*chosen.shape[:2], slots.shape[-1])
        return torch.sparse_coo_tensor(torch.stack([batch, pos]), slots[batch, pos, slot], size, check_invariants=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        try:
            return name in self._values or (isinstance(name, str) and self[name] is not None)
        except KeyError:
            return False

    def dims(self, name: str) -> Axes:
        """The names of the axes of a recorded value."""
        return self.hooks[name if name in self._values else self._resolve(name)].axes

    def stack(self, suffix: str) -> Tensor:
        """Stacks one hook of every layer, layer first: `stack("attn.pattern")` is layer batch head pos key.

        Of two stacks the decoder's, unless the suffix says `encoder.`: `stack("encoder.attn.pattern")`.
        """
        side, _, part = suffix.partition(".")
        side, part = (side, part) if side in ("encoder", "decoder") else ("decoder", suffix)
        wanted = re.compile(rf"({side}\.)?blocks\.\d+\.{re.escape(canonical(part, self.hooks))}")
        values = [value for name, value in self.items() if wanted.fullmatch(name)]
        if not values:
            raise KeyError(f"no layer's {suffix!r} was recorded; pass 'blocks.*.{suffix}' in run(..., keep=[...]).")
        return torch.stack(values)

    @property
    def pictures(self) -> bool:
        """True if `ids` are the pixels of pictures, batch channel height width."""
        return self.ids.dim() == 4

    @property
    def sounds(self) -> bool:
        """True if `ids` are the log-mel frames of sounds, batch mel frame."""
        return self.ids.dim() == 3

    @property
    def encoding(self) -> Encoding:
        """The input of a run on one text. Raises ValueError where there were none or several."""
        if len(self.encodings) != 1:
            raise ValueError(
                f"this trace has {len(self.encodings)} encodings, not one; use trace.encodings or trace.ids."
            )
        return self.encodings[0]

    @property
    def bytes(self) -> int:
        """Memory held by the recorded values, views of the same storage counted once."""
        storages = {v.untyped_storage().data_ptr(): v.untyped_storage().nbytes() for v in self._values.values()}
        return sum(storages.values())

    def _resolve(self, name: str) -> str:
        (found, *more) = match_hooks(name, tuple(self.hooks))
        if more:
            raise KeyError(f"{name!r} stands for {len(more) + 1} hooks; name one of them, or use stack().")
        if found not in self._values:
            raise KeyError(f"{found!r} was not recorded; pass it in run(..., keep=[...]).")
        return found

    def __repr__(self) -> str:
        return f"Trace({count_words(len(self), 'value')}, {self.bytes / 2**20:.1f} MiB)"
