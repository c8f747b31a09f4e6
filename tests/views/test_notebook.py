"""What a notebook shows of a run: the numbers of its tensors in a frame that asks no network, by itself where asked."""

import json
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
import torch

from engine import Checkpoint, Trace, load, run
from engine.analysis.attribution import attribute
from engine.analysis.logit_lens import logit_lens
from engine.analysis.score_split import split_score
from tests.views.test_export import OTHERS, given, sources, unpacked
from views.core.payload import unpack
from views.notebook import NotebookPicture, register, show

TEXT = 'Max gave the red ball to Anna. "Thank you," said'


class Frame(HTMLParser):
    """Reads a cell's HTML as a browser does; `file` is what its one frame holds."""

    def __init__(self, cell: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(cell)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.file = dict(attrs)["srcdoc"] or ""


@pytest.fixture(scope="module")
def made() -> tuple[Checkpoint, Trace]:
    checkpoint = load("stories")
    return checkpoint, run(checkpoint.model, checkpoint.tokenizer.encode(TEXT))


def file_of(shown: NotebookPicture) -> str:
    frame = Frame(shown._repr_html_())
    assert frame.tags == ["iframe"] and frame.file == shown.html
    assert "default-src &#x27;none&#x27;" in frame.file and "connect-src" not in frame.file
    assert not re.search(r'<(script|link|img)[^>]*(src|href)="http', frame.file)
    return frame.file


def drawn(shown: NotebookPicture, number: int = 0) -> list[dict]:
    """Lines of the table that a chart of the file draws."""
    (found,) = re.findall(r'<script type="application/json" id="given">(.*?)</script>', file_of(shown))
    (data,) = json.loads(found)[number]["light"]["datasets"].values()
    return data


def test_a_run_shows_every_head_and_the_one_that_is_asked_for(made: tuple[Checkpoint, Trace]) -> None:
    checkpoint, trace = made
    page = file_of(show(checkpoint, trace, layer=3, head=1))
    _, arrays = unpack(unpacked(given(page)["payload"]))
    for layer in range(checkpoint.model.config.layers):
        hook = f"blocks.{layer}.attn.pattern"
        torch.testing.assert_close(torch.tensor(arrays[hook].data), trace[hook][0])
    assert given(page)["state"] == "#layer=3&head=1" and given(page)["answers"] and 'id="plotly"' not in page
    assert not [one[0] for text in sources(page).values() for one in OTHERS.finditer(text)]


def test_an_attribution_a_split_and_a_lens_show_their_numbers(made: tuple[Checkpoint, Trace]) -> None:
    checkpoint, trace = made
    model, row = checkpoint.model, len(trace["logits"][0]) - 1
    found = attribute(model, trace, row, 9)
    assert [one["value"] for one in drawn(show(checkpoint, trace, found))] == list(found.values.values())
    split = split_score(model, trace, 2, 1, 5, 3)
    values = [one["value"] for one in drawn(show(checkpoint, trace, split))]
    assert sum(values) == pytest.approx(float(trace["blocks.2.attn.scores"][0, 1, 5, 3]), abs=1e-4)
    lens = logit_lens(model, trace)
    cells = drawn(show(checkpoint, trace, lens))
    wanted = lens.probability[..., 0].flatten().tolist()
    assert [one["probability"] for one in cells] == pytest.approx(wanted)
    assert [one["kl"] for one in drawn(show(checkpoint, trace, lens), 1)] == pytest.approx(lens.kl.flatten().tolist())


def test_results_show_themselves_once_registered(made: tuple[Checkpoint, Trace]) -> None:
    checkpoint, trace = made
    known: dict[type, object] = {}
    html = SimpleNamespace(for_type=known.__setitem__)
    register(SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/html": html})), checkpoint, trace)
    found = attribute(checkpoint.model, trace, 3, 9)
    assert known[type(found)](found) == show(checkpoint, trace, found)._repr_html_()
    assert known[Trace](trace).startswith("<iframe srcdoc=")
    other = load("induction")
    assert known[Trace](run(other.model, [1, 2, 3])) is None
    with pytest.raises(ValueError, match="of another"):
        show(other, trace)


def test_a_cell_is_a_widget_whose_look_comes_back(
    made: tuple[Checkpoint, Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = show(*made, layer=1, head=2)
    assert "application/vnd.jupyter.widget-view+json" in shown._repr_mimebundle_()[0]
    assert shown.widget is shown.widget and shown.widget.html == shown.html and shown.look == {}
    shown.widget.look = {"layer": 3, "head": 0}
    assert shown.look == {"layer": 3, "head": 0}
    monkeypatch.setattr("views.notebook.find_spec", lambda name: None)
    assert show(*made)._repr_mimebundle_() == {}  # and the HTML is shown


@pytest.mark.parametrize("name", ["digits-vit", "translate-en-fr", "tales-bert"])
def test_every_kind_of_model_is_shown_from_its_run_alone(name: str) -> None:
    checkpoint = load(name)
    given = torch.zeros(1, 1, 8, 8) if name == "digits-vit" else checkpoint.tokenizer.encode("The cat").ids
    assert file_of(show(checkpoint, run(checkpoint.model, given)))
    with pytest.raises(ValueError, match="at most 256 tokens"):
        long = load("long-stories")
        show(long, run(long.model, [5] * 257))
