"""What a reader of a page's tokens must know of them, in sentences above the picture."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from engine.analysis.surprise import compare_with_guessing
from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.inputs.familiarity import distance_to_training
from engine.inputs.readers import Reading
from engine.plurals import count_words
from engine.tokenizers.encoding import Encoding
from engine.tokenizers.pieces import SHOWN_BYTES
from pages.controls.model_input.model_input import EXAMPLES, Subject
from views.core.run_context import Run


def notice(shown: Subject, run: Run) -> str:
    """Sentences on the tokens that a text longer than the limit loses, on those that are bytes, on words that the model
    does not have, and on whether it knows such a text or picture."""
    told = [cut_notice(shown), bytes_notice(shown.reading), unknown_notice(shown), strange_notice(shown, run)]
    return " ".join(filter(None, [*told, strange_picture_notice(shown)]))


def unknown_notice(shown: Subject) -> str:
    tokenizer, read = shown.checkpoint.tokenizer, shown.reading.read
    if tokenizer is None or tokenizer.unknown_id is None or not isinstance(read, Encoding):
        return ""
    at = [at for at, one in enumerate(read.ids) if one == tokenizer.unknown_id]
    words = dict.fromkeys(read.text[slice(*read.spans[one])].strip() for one in at)
    first = next(iter(words), "")
    if not first:
        return ""
    others = f" and {count_words(len(words) - 1, 'more word')} are" if len(words) > 1 else " is"
    return f"“{first}”{others} unknown to this model, which reads {read.pieces[at[0]]} instead."


def strange_notice(shown: Subject, run: Run) -> str:
    """Sentence about a text that the model foresees worse than by guessing."""
    trace, read = run.before or run.trace, shown.reading.read
    if not isinstance(read, Encoding) or "logits" not in trace:
        return ""
    what = "picture" if shown.reading.picture is not None else "text"
    return guessing_notice(shown.checkpoint, read.ids, trace["logits"][0], what)


def guessing_notice(checkpoint: Checkpoint, ids: Sequence[int], logits: Tensor, what: str) -> str:
    """Sentence about a text or picture that is foreseen worse than by guessing, else empty. `logits` (pos vocab) are
    those of all `ids`."""
    found = compare_with_guessing(checkpoint, ids, logits)
    if found is None or found[0] <= found[1]:
        return ""
    known = EXAMPLES.get(checkpoint.name, {}).get("text", "").strip().split("\n")[0]
    return (
        f"The model foresees this {what} worse than by guessing: {found[0]:.1f} nats a token, where guessing takes "
        f"{found[1]:.1f}." + (f" A text of its kind: “{known}”." if known else "")
    )


def strange_picture_notice(shown: Subject) -> str:
    """Sentence about a picture that lies further from the digits of the training than digits do."""
    distance = distance_to_training(shown.checkpoint, shown.reading)
    if distance is None or not distance.is_far:
        return ""
    return (
        "This picture is unlike the digits that this model was trained on: it differs from the nearest by "
        f"{distance.found:.1f} of 16 grey levels a pixel, where new digits differ by at most {distance.most:.1f}."
    )


def bytes_notice(reading: Reading) -> str:
    read = [one for one in (reading.read, reading.target) if isinstance(one, Encoding)]
    parts = [(letter, one.pieces[first]) for one in read for first, _, letter in one.letters_in_parts()]
    letters = {letter: piece for letter, piece in reversed(parts) if SHOWN_BYTES.search(piece)}
    if not letters:
        return ""
    *rest, (letter, piece) = letters.items()
    if not rest:
        return f"“{letter}” has no token of its own: its rows are the bytes of its UTF-8, such as {piece}."
    others = count_words(len(rest), "more letter")
    return f"“{letter}” and {others} have no token of their own: their rows are bytes of their UTF-8, such as {piece}."


def cut_notice(shown: Subject) -> str:
    """Tokens that a text longer than the limit loses; empty when nothing is cut."""
    whole, limit = shown.reading.whole, shown.limit
    if whole is None or len(whole) <= limit:
        return ""
    kept = set(whole.positions_within(limit))
    start = next(whole.spans[at][0] for at in range(len(whole)) if at not in kept)
    lost = whole.text[start : whole.second if start < (whole.second or 0) else None].strip()
    reads = limit == shown.checkpoint.model.config.context
    raised = "LOUPE_LONG_TOKENS" if limit == budget.long_tokens else "LOUPE_MAX_TOKENS"
    whose = "this model reads" if reads else f"this page draws (raise it with {raised})"
    return (
        f"The text has {count_words(len(whole), 'token')} and {whose} {limit}; "
        f"{'the last ' if whole.second is None else ''}{len(whole) - limit:,} are cut, "
        f"from “{lost[:40]}{'…' if len(lost) > 40 else ''}”."
    )
