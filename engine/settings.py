"""The settings file of Loupe, for a program of the engine: the command line, or a process that trains."""

from __future__ import annotations


def read_settings() -> None:
    """Reads the settings before all else; importing this module reads nothing.

    Raises SystemExit, with a sentence, for settings that cannot be.
    """
    from server.settings import fill_budget

    fill_budget()
