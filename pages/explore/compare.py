"""Compare: two runs or more side by side, of any models, texts, training steps or edits."""

from functools import partial

from pages.controls.bar import bar
from pages.controls.compare.cosines import tell_cosines
from pages.controls.compare.export import comparison_export, comparison_of, run_address
from pages.controls.compare.run import Side
from pages.controls.compare.runs import sides, silence
from pages.controls.model_input.model_input import EXAMPLES, Subject
from pages.controls.model_input.notice import notice
from pages.controls.prediction import await_guess
from pages.controls.share.export import draw_page
from pages.controls.state.session import event_value
from views.compare.compare import compare
from views.compare.pair import ComparedRun, match_attentions
from views.core.component import plotly_address, view
from views.what_if.questions import WHAT_IF

MENU = {"title": "Compare", "address": "compare", "place": 4}

PICTURE = "compare"
picture = view("compare", events=("silence",))


def shown_side(side: Side) -> ComparedRun:
    cut = notice(Subject(side.name, side.checkpoint, side.reading, side.limit), side.run)
    said = " ".join(text for text in (side.problem, cut) if text)
    return ComparedRun(side.letter, side.title, side.reading, side.run, said)


def on_silence() -> None:
    """A head of one side is silenced, or heard again; a browser sends it, so that anything may come."""
    match event_value(PICTURE, "silence"):
        case {"letter": str(letter), "layer": int(layer), "head": int(head), "side": str(side), "focus": str(focus)}:
            silence(letter, layer, head, side, focus == "cross_attn")


found, edited, waiting = sides()
first, *others = map(shown_side, found)
pairs = [match_attentions(first, other) for other in others]
comparison = comparison_of(found, pairs)
await_guess(comparison.digest)
export = comparison_export(found, comparison)
look = {"layer": 0, "head": 0, **EXAMPLES.get(first.title, {}).get("look", {})}
titles = dict.fromkeys([first.title, *(other.title for other in others)])
bar(" and ".join(titles), look=look, names=[side.name for side in found])
addresses = {side.letter: run_address(side) for side in found}
notes = {"look": look, "take": export.header, "plotly": plotly_address(), "addresses": addresses}
drawn = compare(pairs, notes)
waiting.empty()
mount = partial(picture, key=PICTURE, on={"silence": on_silence})
tell_cosines(found)
draw_page(export, drawn, mount, *comparison.parts, unsaved=[(WHAT_IF, context) for context in edited])
