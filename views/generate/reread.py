"""What a page about one run is given to read the same tokens as a text that is written."""

from __future__ import annotations

from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.inputs.readers import SPAN, given_target, kind, tokens
from views.generate.session import GenerationContext


def fields_after(writing: GenerationContext, begun: tuple[int, ...]) -> dict[str, str] | None:
    """Fields of the prompt with what was `begun` after it; None where such a page reads other tokens: no text stands
    for these, or they are too many."""
    checkpoint, fields, ids = writing.checkpoint, dict(writing.fields), (*writing.prompt.ids, *begun)
    if not fields or max(len(ids), len(writing.prompt.source)) > budget.max_tokens:
        return None
    if kind(checkpoint) == "pixels" or not begun:
        return None if begun else fields
    tokenizer, infill = checkpoint.tokenizer, checkpoint.config.infill
    field = {"translation": "target", "infill": "span"}.get(kind(checkpoint), "text")
    first = {"target": 1, "span": ids.index(infill.start) + 1 if infill else 0}.get(field, 0)
    written = ids[first:]
    fields[field] = " ".join(map(str, written)) if tokenizer is None else tokenizer.decode(written, special=False)
    try:
        same = bool(fields[field].strip()) and read_again(checkpoint, fields) == ids
    except ValueError:
        return None
    return fields if same else None


def read_again(checkpoint: Checkpoint, fields: dict[str, str]) -> tuple[int, ...]:
    match kind(checkpoint):
        case "translation":
            return given_target(checkpoint, fields["target"]).ids
        case "infill":
            return tokens(checkpoint, f"{fields['text']}{SPAN}{fields['span']}").ids
    return tokens(checkpoint, fields["text"]).ids
