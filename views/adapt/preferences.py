"""Charts of learning from preferences: a text painted by its reward, a policy's curves, and its next tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from views.charts.template import AltairChart, colors
from views.core.theme import Shade, diverging_scale, tokens

LINE, ROW = 88, 30  # characters of a painted line, and its CSS pixels
WIDTH, HEIGHT = 280, 170  # CSS pixels of a curve with its axes
CURVES = {  # by its name in the metrics
    "reward": "reward", "kl": "KL, nats an answer", "entropy": "entropy, nats a token",
    "clip_fraction": "share of clipped tokens", "length": "tokens of an answer", "margin": "margin",
    "chosen_reward": "implicit reward of chosen", "rejected_reward": "implicit reward of rejected", "beta": "β",
    "reference_point": "reference point, nats an answer", "chosen_loss": "loss of chosen, nats a token",
    "held_out_loss": "held-out loss", "held_out_accuracy": "held-out accuracy", "held_out_margin": "held-out margin",
    "held_out_reward": "held-out reward", "held_out_kl": "held-out KL, nats an answer",
    "held_out_length": "tokens of a held-out answer", "held_out_watched": "watched, on held-out prompts",
    "held_out_distinct": "distinct pairs of words",
}  # fmt: skip


def painted_table(pieces: Sequence[str], rewards: Sequence[float]) -> pd.DataFrame:
    """Tokens as they are laid out in lines: token, reward, line, begin and end in characters."""
    rows, line, begin = [], 0, 0
    for piece, reward in zip(pieces, rewards, strict=True):
        if begin and begin + len(piece) > LINE:
            line, begin = line + 1, 0
        rows.append((piece, reward, line, begin, begin + len(piece)))
        begin += len(piece)
    return pd.DataFrame(rows, columns=["token", "reward", "line", "begin", "end"])


def draw_painted(table: pd.DataFrame, shade: Shade) -> AltairChart:
    most = float(table["reward"].abs().max()) or 1.0
    scale = alt.Scale(range=diverging_scale(shade, "value"), domain=[-most, most])
    wide = alt.Scale(domain=[0, max(LINE, int(table["end"].max()))], nice=False)
    base = alt.Chart(table, height=alt.Step(ROW)).encode(
        x=alt.X("begin:Q", scale=wide, axis=None),
        y=alt.Y("line:O", axis=None),
        tooltip=["token", alt.Tooltip("reward", format="+.6f")],
    )
    cells = base.mark_rect(stroke=colors(shade)["ground"]).encode(
        x2="end:Q", color=alt.Color("reward:Q", scale=scale, title="reward", legend=alt.Legend(format="+.2f"))
    )
    words = base.mark_text(align="left", dx=2, font=tokens()["fonts"]["mono"], color=colors(shade)["ink"])
    return cells + words.encode(text="token:N")


def curve_table(metrics: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Table of those of CURVES that the lines of metrics.jsonl hold: step, measure, value."""
    flat = [(line["step"], {**line, **line.get("also", {})}) for line in metrics]
    rows = [
        (step, title, values[name])
        for name, title in CURVES.items()
        for step, values in flat
        if values.get(name) is not None
    ]
    return pd.DataFrame(rows, columns=["step", "measure", "value"])


def draw_curve(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """The curve of one measure of `curve_table`."""
    return (
        alt.Chart(table, height=HEIGHT, title=str(table["measure"].iloc[0]))
        .mark_line(point={"size": 14}, color=colors(shade)["attention"])
        .encode(
            x=alt.X("step:Q", title=None, axis=alt.Axis(tickCount=5)),
            y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=False)),
            tooltip=["measure", "step", alt.Tooltip("value", format=".6g")],
        )
    )


def draw_kl(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`table` has position, token and kl in nats."""
    return alt.Chart(table, height=2 * HEIGHT).mark_bar(color=colors(shade)["probability"]).encode(
        x=alt.X("position:O", title="after token", axis=alt.Axis(
            labelAngle=-35, labelExpr=_names(table["token"]),
        )),
        y=alt.Y("kl:Q", title="KL from the base, nats"),
        tooltip=["position", "token", alt.Tooltip("kl", format=".6f")],
    )  # fmt: skip


def _names(labels: Sequence[str]) -> str:
    """Vega expression of the label at a position from 1."""
    return f"{json.dumps(list(labels))}[datum.value - 1]"


def draw_next_tokens(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`table` has token, of ("base" or "result") and probability."""
    hues = [colors(shade)[role] for role in ("soft", "probability")]
    return (
        alt.Chart(table, height=alt.Step(9))
        .mark_bar()
        .encode(
            y=alt.Y("token:N", sort=list(dict.fromkeys(table["token"])), title=None),
            yOffset=alt.YOffset("of:N"),
            x=alt.X("probability:Q", axis=alt.Axis(format="%")),
            color=alt.Color("of:N", title=None, scale=alt.Scale(domain=["base", "result"], range=hues)),
            tooltip=["token", "of", alt.Tooltip("probability", format=".6f")],
        )
    )
