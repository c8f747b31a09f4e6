"""What counts as text: any Unicode, which lone surrogates (halves of a UTF-16 pair) are not."""

from __future__ import annotations

from collections.abc import Iterable


def check_unicode(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"Expected Unicode text, got the lone surrogate U+{ord(text[error.start]):04X} at index "
            f"{error.start}; remove it, or decode the text again with the right encoding."
        ) from error
    return text


def corpus(texts: Iterable[str]) -> list[str]:
    """The texts to learn a vocabulary from; a single string is one text, not one text a character."""
    checked = [check_unicode(text) for text in ([texts] if isinstance(texts, str) else texts)]
    if not any(checked):
        raise ValueError("Expected text to learn a vocabulary from, got none; give at least one character.")
    return checked
