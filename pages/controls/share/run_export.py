"""Share & export for a page that draws one run: what its link holds, and what stands in the page's fields."""

from __future__ import annotations

from typing import Any

from pages.controls.model_input.model_input import Subject, field_value, texts_read
from pages.controls.share.export import Export
from pages.controls.share.links import NAMED, address_of
from pages.controls.state.page_state import Here
from pages.controls.what_if.kind import in_words
from views.core.run_context import Run
from views.what_if.edit_words import Terms
from views.what_if.experiment import spell


def run_export(
    title: str, here: Here, subject: Subject, run: Run, controls: tuple[str, ...] = (), **options: Any
) -> Export:
    """`controls` are keys of what stands above the picture; `options` are an Export's."""
    fields = subject.fields
    texts = texts_read(fields)
    read = " · ".join(texts) if texts or not fields else f"picture {field_value('picture')}"
    known = [name for name in controls if name in here.state.parameters]
    link = address_of(subject.name, fields) | here.link(*known)
    shown = [*fields, "model", *controls]
    edits = edits_in_words(subject, run)
    about: dict[str, Any] = {"model": subject.name, "edits": edits, "predicts": True}
    return Export(title, here.state.page, run, read, link, shown, **about, **options)


def edits_in_words(subject: Subject, run: Run) -> str:
    """Says what the run was changed by; "" where by nothing."""
    terms = Terms(run.lanes, subject.checkpoint.model.hook_names, lambda ids: spell(subject.checkpoint, ids))
    made = run.trace.edits
    said = [in_words(edit, terms) for edit in made[:NAMED]]
    said += [f"{len(made) - NAMED} more"] if len(made) > NAMED else []
    return f"edited: {'; '.join(said)}" if said else ""
