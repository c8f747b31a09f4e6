"""Texts that are read in two parts: what follows a prompt, and what an encoder-decoder writes."""

from __future__ import annotations

from collections.abc import Collection

from engine.tokenizers.encoding import Encoding
from engine.tokenizers.protocol import Tokenizer


def read_continuation(
    tokenizer: Tokenizer, text: str, continuation: str, special: bool = True
) -> tuple[list[int], list[int]]:
    """Ids of a prompt, with the marks that stand before it if `special`, and of what follows it, without those after
    it.

    Both are read as one text and cut, so that nothing but what is written stands between them: no mark of the
    template, and no space that the tokenizer puts before a text. A token that has characters of both belongs to the
    continuation, as only the whole of it can be predicted (TRL reads both as one text too, and cuts by the number of
    the prompt's tokens). Where that token is the unknown one, as of a vocabulary of words, each is read by itself.
    """
    prompt, whole = (tokenizer.ids(one, special=special) for one in (text, text + continuation))
    if continuation and whole[: len(prompt)] == prompt:
        return prompt, whole[len(prompt) :]
    read = without_last_marks(tokenizer.encode(text + continuation, special=special))
    cut = next((at for at, (_, stop) in enumerate(read.spans) if stop > len(text)), len(read))
    if cut < len(read) and read.spans[cut][0] < len(text) and read.ids[cut] == tokenizer.unknown_id:
        return list(without_last_marks(tokenizer.encode(text, special=special)).ids), tokenizer.ids(
            continuation, special=False
        )
    return list(read.ids[:cut]), list(read.ids[cut:])


def without_last_marks(encoding: Encoding) -> Encoding:
    """The encoding without the tokens that the tokenizer itself put after the text."""
    count = len(encoding)
    while count and encoding.special[count - 1] and encoding.spans[count - 1][0] == encoding.spans[count - 1][1]:
        count -= 1
    return encoding.first(count)


def read_target(tokenizer: Tokenizer, text: str, ends: Collection[int]) -> Encoding:
    """Target of an encoder-decoder whose texts end with one of `ends`, without that end.

    It is read by the tokenizer of targets, and begins with what that puts before a text (<s> of BART).
    """
    read = tokenizer.of_targets.encode(text)
    return read.first(len(read) - 1) if read.ids and read.ids[-1] in ends else read
