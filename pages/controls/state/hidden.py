"""What a class link hides, as the session remembers it."""

from __future__ import annotations

from collections.abc import Sequence

from pages.controls.state.session import Remembered

HIDDEN = Remembered[Sequence[str]]("hidden controls", tuple)


def is_hidden(*names: str) -> bool:
    """Tells whether a link hid one of these controls, so that nothing else may change what it holds."""
    return any(name in HIDDEN.get() for name in names)
