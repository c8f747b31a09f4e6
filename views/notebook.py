"""A run, and what is found in it, in the cells of a notebook: the files that work alone, each in a frame.

show(checkpoint, trace)                                                    # every head, as the page Attention has them
show(checkpoint, trace, attribute(checkpoint.model, trace, row=8, id=5))   # or a score's split, or a lens
register(get_ipython(), checkpoint, trace)                                 # from here on they show themselves
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pandas as pd

from engine.analysis.attribution import Attribution
from engine.analysis.heads import most_telling_head
from engine.analysis.logit_lens import Lens
from engine.analysis.score_split import ScoreSplit
from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.inputs.readers import Reading
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from views.attention.attention import TABLE, attention
from views.attention.questions import ATTENTION
from views.charts.standalone import Figure, chart_file
from views.core.export import CHARTED, MOST_ANSWERS, answer_all, self_contained
from views.core.lanes import is_long, lanes, measure_heads
from views.core.questions import Page
from views.core.run_context import RUN, RunContext
from views.core.table_files import Table
from views.logit_lens.charts import draw_candidates, draw_distance
from views.logit_lens.questions import tabulate_lens
from views.why.charts import draw_parts, draw_split
from views.why.questions import tabulate_parts, tabulate_split

if TYPE_CHECKING:
    from views.notebook_widget import Widget

HEIGHT = 640  # CSS pixels of a frame
ROOM = 1_000_000  # bytes of the answers to what is asked by clicks
Result = Attribution | ScoreSplit | Lens
CHARTS: dict[type, tuple[str, Callable[[RunContext, Any], Table], Sequence[Any]]] = {
    Attribution: ("What each part adds to the logit", tabulate_parts, [draw_parts]),
    ScoreSplit: ("What wrote the query and the key", tabulate_split, [draw_split]),
    Lens: ("Logit lens", partial(tabulate_lens, name="lens"), [draw_candidates, draw_distance]),
}


@dataclass(frozen=True)
class NotebookPicture:
    """A picture as the text of an HTML file that works alone, to write to a file too."""

    html: str = field(repr=False)

    @cached_property
    def widget(self) -> Widget:
        """The picture as a widget of anywidget, whose `look` can be set. Raises ModuleNotFoundError without that."""
        from views.notebook_widget import Widget

        return Widget(html=self.html, height=HEIGHT)

    @property
    def look(self) -> dict[str, Any]:
        """Selection in the cell now, as the address of a page names it, counted from 0: layer, head, query.
        Raises ModuleNotFoundError without anywidget."""
        return dict(self.widget.look)

    def _repr_mimebundle_(self, **asked: Any) -> Any:
        return self.widget._repr_mimebundle_(**asked) if find_spec("anywidget") else {}

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {HEIGHT}px; border: 0; resize: vertical"
        return f'<iframe srcdoc="{html.escape(self.html)}" style="{style}"></iframe>'


def show(checkpoint: Checkpoint, trace: Trace, result: Result | None = None, **place: int) -> NotebookPicture:
    """Every head of a run, or what `result` found in it. `place` is the layer, head, query and key to look at first.

    Raises ValueError for a run of another model, and for a text too long to draw; KeyError for a run that kept too
    little.
    """
    if trace.hooks is not checkpoint.model.hooks:
        raise ValueError("expected a run of this checkpoint's model, got one of another; pass the one that was run.")
    run = context_of(checkpoint, trace)
    read = "".join(run.lanes[0].pieces)
    caption = [f"{run.model_name} · {read}"]
    if result is None:
        return show_heads(run, caption, place)
    title, tabulate, charts = CHARTS[type(result)]
    frame = pd.DataFrame(tabulate(run, result).columns)
    figures: list[Figure] = [partial(chart, frame) for chart in charts]
    return NotebookPicture(chart_file(title, figures, caption=caption))


def show_heads(run: RunContext, caption: Sequence[str], place: dict[str, int]) -> NotebookPicture:
    if is_long(run.lanes):
        raise ValueError(
            f"expected at most {budget.max_tokens} tokens, of which every weight is drawn; run a shorter text."
        )
    source, own = run.lanes[0], run.lanes[-1]
    layer, head = most_telling_head(run.trace, source.special, own.side, source is not own)
    look = {"layer": layer, "head": head, **place}
    payload = attention(
        run.trace, run.lanes, name=run.model_name, table=TABLE, layer=look["layer"], notes={"notice": "", "look": look},
        scores={kind: vars(scores) for kind, scores in measure_heads(run.trace, run.lanes).items()},
    )  # fmt: skip
    page = Page((RUN, run), (ATTENTION, run))
    asked = (query for query in page.carried_queries() if query["ask"] not in CHARTED)  # 2 MB of Plotly in each cell
    answers = answer_all(asked, page.answer, MOST_ANSWERS, ROOM)
    state = f"#{urlencode(place)}" if place else ""
    return NotebookPicture(
        self_contained("attention", payload, title="Attention", caption=caption, state=state, answers=answers)
    )


def context_of(checkpoint: Checkpoint, trace: Trace) -> RunContext:
    """A run of one text as a page has it."""
    read = trace.ids[0] if trace.pictures else encoding_of(checkpoint, trace.ids[0].tolist(), trace.encodings)
    target = None if trace.target is None else trace.target[0].tolist()
    wrote = None if target is None else encoding_of(checkpoint, target, trace.target_encodings)
    return RunContext(checkpoint.name, checkpoint, trace, lanes(checkpoint, Reading(read, target=wrote)))


def encoding_of(checkpoint: Checkpoint, ids: Sequence[int], encodings: Sequence[Encoding]) -> Encoding:
    """Encoding of the input in pieces; plain ids have those of the tokenizer."""
    if encodings:
        return encodings[0]
    tokenizer = checkpoint.tokenizer
    return Encoding.from_ids(ids, None if tokenizer is None else [tokenizer.piece(one) for one in ids])


def register(shell: Any, checkpoint: Checkpoint, trace: Trace) -> None:
    """Lets runs of a checkpoint's model, and what is found in one of them, show themselves in a notebook, whose `shell`
    is `get_ipython()`."""
    formatter = shell.display_formatter.formatters["text/html"]

    def show_run(made: Trace) -> str | None:
        return show(checkpoint, made)._repr_html_() if made.hooks is checkpoint.model.hooks else None

    formatter.for_type(Trace, show_run)
    for kind in CHARTS:
        formatter.for_type(kind, lambda result: show(checkpoint, trace, result)._repr_html_())
