"""What the page Similarity asks of two towers: how well texts go with a picture, and which patches and words do it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import Any

import altair as alt
import pandas as pd
import plotly.graph_objects as go
import torch
from PIL import Image
from torch import Tensor

from engine.analysis.text_vectors import OUT, cosines, cosines_without, read_text, text_vectors, vector_without
from engine.checkpoints import Checkpoint
from engine.checkpoints.towers import TowerPair
from engine.tokenizers.encoding import Encoding
from views.charts.template import AltairChart, at_least, colors, plotly_template
from views.core.bound_source import Imports
from views.core.questions import Registry
from views.core.run_context import RunContext
from views.core.table_files import Table
from views.core.theme import Shade, diverging_scale
from views.similarity.charts import name_text
from views.why.charts import signed_cells

PAIRS = Registry()
SIDE = 340  # CSS pixels of a picture
STRIP = 12  # patches of a step of the measurement


@dataclass(frozen=True, kw_only=True)
class PairContext(RunContext):
    """A run of the tower of pictures, and `texts` that the tower of texts, called `texts_name`, reads; `text` is the
    one whose cosine with the picture is looked into."""

    other: Checkpoint
    texts_name: str
    texts: tuple[str, ...]
    text: str

    @property
    def attributes(self) -> Mapping[str, str]:  # type: ignore[override]
        made = {name: name for name in ("other", "pixels", "read")}
        return {**RunContext.attributes, **made, "texts": repr(self.texts), "text": repr(self.text)}

    @property
    def digest(self) -> str:
        return f"{super().digest} {self.texts} {self.text}"

    @property
    def pair(self) -> TowerPair:
        assert self.checkpoint.pair is not None
        return self.checkpoint.pair

    @property
    def pixels(self) -> Tensor:
        return self.trace.ids

    @property
    def read(self) -> Encoding:
        return read_text(self.other, self.text)

    @property
    def vectors(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """The picture's vector and the chosen text's, both component."""
        at = self.texts.index(self.text)
        return self.trace[OUT][0], found_vectors(self)[at]

    def labels(self, axis: str, query: Mapping[str, Any]) -> Sequence[str] | None:
        return self.read.pieces if axis == "token" else super().labels(axis, query)

    def script(self, imports: Imports, lines: Sequence[str], only: tuple[str, ...] | None = None) -> str:
        module = "engine.analysis.text_vectors"
        imports = {**imports, module: {"read_text", *imports.get(module, ())}}
        imports = {**imports, "engine": {"load", *imports.get("engine", ())}}
        made = [f"other = load({self.texts_name!r})", "pixels = trace.ids", f"read = read_text(other, {self.text!r})"]
        return super().script(imports, [*made, *lines], only)


def found_vectors(run: PairContext) -> Tensor:
    return run.cached(("vectors", run.texts), lambda: text_vectors(run.other, run.texts))


def found_cosines(run: PairContext) -> Tensor:
    """Cosine of the picture with each text."""
    return cosines(run.trace[OUT][:1], found_vectors(run))[0]


def texts_table(run: PairContext) -> Table:
    found = found_cosines(run)
    columns: dict[str, Any] = {
        "text": list(run.texts),
        "value": found.tolist(),
        "score": run.pair.scores(found).tolist(),
        "probability": run.pair.probabilities(found).tolist(),
    }
    return Table(columns, {"model": run.model_name, "table": "texts beside a picture"})


def patch_steps(run: PairContext) -> list[Callable[[], list[float]]]:
    """The cosine without each patch, a step for the next few."""
    patches = run.model.config.embedding.patches
    assert patches is not None
    _, text = run.vectors

    def measure(begin: int) -> list[float]:
        end = min(begin + STRIP, patches.count)
        made = [vector_without(run.model, run.pixels, patches.before + at) for at in range(begin, end)]
        return cosines(torch.stack(made), text[None])[:, 0].tolist()

    begins = range(0, patches.count, STRIP)
    return [partial(run.cached, ("patches", run.text, begin), partial(measure, begin)) for begin in begins]


def word_steps(run: PairContext) -> list[Callable[[], float]]:
    """The cosine without each token, a step a token."""
    picture, _ = run.vectors

    def measure(at: int) -> float:
        return float(cosines(vector_without(run.other.model, run.read, at)[None], picture[None])[0, 0])

    return [partial(run.cached, ("word", run.text, at), partial(measure, at)) for at in range(len(run.read))]


def plain_cosine(run: PairContext) -> float:
    return float(found_cosines(run)[run.texts.index(run.text)])


def patches_table(run: PairContext) -> Table:
    """A line for each patch: where it is in the picture, and by how much the cosine falls where nobody sees it."""
    patches = run.model.config.embedding.patches
    assert patches is not None
    without = [value for step in patch_steps(run) for value in step()]
    plain, side = plain_cosine(run), patches.side
    columns: dict[str, Any] = {
        "row": [at // side + 1 for at in range(patches.count)],
        "column": [at % side + 1 for at in range(patches.count)],
        "value": [plain - value for value in without],
    }
    return Table(columns, {"model": run.model_name, "table": "patches and the cosine"})


def words_table(run: PairContext) -> Table:
    plain = plain_cosine(run)
    columns: dict[str, Any] = {
        "token": [f"{at + 1} {piece}" for at, piece in enumerate(run.read.pieces)],
        "value": [plain - step() for step in word_steps(run)],
    }
    return Table(columns, {"model": run.texts_name, "table": "tokens and the cosine"})


@PAIRS.question("texts_of_picture", returns={"cosine": ("text",)}, make_table=texts_table)
def ask_texts(run: PairContext) -> Tensor:
    """Cosine of a picture with each of several texts."""
    return cosines(run.trace["vector.out"][:1], text_vectors(run.other, run.texts))[0]


@PAIRS.question("patches_of_cosine", returns={"cosine": ("pos",)}, make_table=patches_table, steps=patch_steps)
def ask_patches(run: PairContext) -> Tensor:
    """Cosine of a picture and a text where nobody sees a patch."""
    return cosines_without(run.model, run.pixels, text_vectors(run.other, [run.text])[0])


@PAIRS.question("words_of_cosine", returns={"cosine": ("token",)}, make_table=words_table, steps=word_steps)
def ask_words(run: PairContext) -> Tensor:
    """Cosine of a text and a picture where nobody sees a token."""
    return cosines_without(run.other.model, run.read, run.trace["vector.out"][0])


def encode_picture(picture: Tensor) -> str:
    """A picture, height width channel in 0..1, as an address of its own."""
    shown = (picture.clamp(0, 1) * 255).round().byte()
    image = Image.fromarray(shown[..., 0].numpy() if shown.shape[-1] == 1 else shown.numpy())
    file = BytesIO()
    image.save(file, "PNG")
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"


def draw_texts(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`value`, the cosine, of each text, with its probability."""
    named = table.assign(name=[name_text(at, text) for at, text in enumerate(table["text"])])
    told = [alt.Tooltip("text"), alt.Tooltip("value", format=".4f", title="cosine")]
    told += [alt.Tooltip("score", format=".3f"), alt.Tooltip("probability", format=".4f")]
    base = alt.Chart(named, height=alt.Step(26)).encode(y=alt.Y("name:N", title=None, sort=None), tooltip=told)
    low, high = min(float(table["value"].min()), 0.0), max(float(table["value"].max()), 0.0)
    room = alt.Scale(domain=[low, high + 0.2 * (high - low)], nice=False)  # for what is written behind a bar
    bars = base.mark_bar(color=colors(shade)["attention"]).encode(x=alt.X("value:Q", title="cosine", scale=room))
    written = base.mark_text(align="left", dx=4).encode(x="value:Q", text=alt.Text("probability:Q", format=".1%"))
    return at_least(bars + written, 420)


def draw_patches(picture: Tensor, table: pd.DataFrame, shade: Shade) -> go.Figure:
    """`value` of each patch, over the picture, height width channel in 0..1."""
    side, most = int(table["row"].max()), max(float(table["value"].abs().max()), 1e-9)
    values = table["value"].to_numpy().reshape(side, side)
    places = list(range(1, side + 1))
    cells = go.Heatmap(
        z=values, x=places, y=places, zmin=-most, zmax=most, opacity=0.62, xgap=1, ygap=1,
        colorscale=diverging_scale(shade, "attention"), colorbar={"title": {"text": "falls by"}, "thickness": 12},
        hovertemplate="row %{y}, column %{x}: %{z:.5f}<extra></extra>",
    )  # fmt: skip
    axis = {"showgrid": False, "zeroline": False, "visible": False, "range": [0.5, side + 0.5]}
    below = {
        "source": encode_picture(picture), "xref": "x", "yref": "y", "x": 0.5, "y": 0.5, "sizex": side, "sizey": side,
        "sizing": "stretch", "layer": "below",
    }  # fmt: skip
    return go.Figure(
        cells,
        go.Layout(
            template=plotly_template(shade), height=SIDE, margin={"t": 8, "b": 8, "l": 8, "r": 8}, images=[below],
            xaxis={**axis, "constrain": "domain"},
            yaxis={**axis, "range": [side + 0.5, 0.5], "scaleanchor": "x", "constrain": "domain"},
        ),
    )  # fmt: skip


def draw_words(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`value` of each token of the text."""
    named = table.assign(part="text", written=table["value"].map(lambda value: f"{round(value, 3) + 0.0:.3f}"))
    across = ("token", "hidden token", list(table["token"]))
    return signed_cells(
        named, shade, across, ("part", "", ["text"]), [alt.Tooltip("token")], does="the cosine falls by"
    )


def pair_charts(picture: Tensor) -> dict[str, tuple[str, Callable[[pd.DataFrame, Shade], AltairChart | go.Figure]]]:
    """Charts of two towers, by title, for a picture (height width channel in 0..1)."""
    return {
        "How well each text goes with the picture": ("texts_of_picture", draw_texts),
        "Which patches carry it": ("patches_of_cosine", partial(draw_patches, picture)),
        "Which words carry it": ("words_of_cosine", draw_words),
    }
