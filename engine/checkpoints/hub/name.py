"""The name of a checkpoint on a hub: `hub:org/name`, or `hub:org/name@revision`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from huggingface_hub.utils import HFValidationError, validate_repo_id

PREFIX = "hub:"
BRANCH = "main"
REVISION = re.compile(r"[A-Za-z0-9][\w.+-]*(/[A-Za-z0-9][\w.+-]*)*", re.ASCII)
LONGEST_REVISION = 200  # characters; a revision becomes the name of a file


@dataclass(frozen=True)
class HubName:
    """`revision` is a branch, a tag or a commit."""

    repo: str
    revision: str = BRANCH

    def __str__(self) -> str:
        return f"{PREFIX}{self.repo}" + (f"@{self.revision}" if self.revision != BRANCH else "")


def parse(text: str) -> HubName:
    """Raises ValueError for anything but a plain name: it becomes part of an address and of a path."""
    repo, at, revision = text.removeprefix(PREFIX).partition("@")
    try:
        validate_repo_id(repo)
        plain = text.startswith(PREFIX)
    except HFValidationError:
        plain = False
    if not plain or (at and (len(revision) > LONGEST_REVISION or not REVISION.fullmatch(revision))):
        raise ValueError(
            f"Expected hub:org/name or hub:org/name@revision, of letters, digits and . _ - alone, got {text[:200]!r}; "
            "copy the name as the hub shows it."
        )
    return HubName(repo, revision or BRANCH)
