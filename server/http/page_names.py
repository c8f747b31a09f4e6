"""Pages as metrics and logs name them."""

from functools import cache

from pages.controls.menu import entries


def name_page(address: str) -> str:
    """The address where it is one of the menu, "other" for whatever else somebody may have typed."""
    return address if address in _addresses() else "other" if address else entries()[0].address


@cache
def _addresses() -> frozenset[str]:
    return frozenset(entry.address for entry in entries())
