"""From averaging to attention: a loop, a matrix, a softmax, and weights made from the data, on one tensor."""

import streamlit as st
import torch
from torch import Tensor

from engine.course.averaging import (
    average_by_loop,
    running_sums,
    scores_of,
    softmax_weights,
    triangular_weights,
    weighted_average,
)
from pages.controls.figures import cover, matrix
from pages.controls.learn.fields import other_input, read_field, read_matrix, write_matrix
from pages.controls.learn.predict import estimate, is_answered, is_found, point, show_code
from pages.controls.words import numerals
from pages.controls.words import translate as _
from views.core.markdown import code_markdown

TENSOR = "[[2, 3], [1, 1], [0, 1]]"
OTHERS = "[[4, 0], [2, 1], [0, 2]]", "[[1, 5], [3, 1], [2, 2], [6, 0]]"
TOLERANCE = 0.01
QUESTION, SHARE, MOST = "averaging question", "averaging share question", "averaging most question"


def experiment() -> bool:
    above = st.container()
    x = read_field("averaging-x", _("x, one row a token"), TENSOR, read_matrix)
    mean = average_by_loop(x)
    shown = ask(x, mean)
    with above:
        draw_means(x, mean, covered=not (shown and is_answered(QUESTION)))
    if not shown:
        return False
    ways = {"loop": _("a loop"), "matrix": _("a matrix"), "softmax": _("a softmax"), "data": _("weights of the data")}
    way = st.segmented_control(
        _("made by"), list(ways), default="loop", key="averaging-way", required=True, format_func=ways.__getitem__
    )
    if way == "matrix":
        weights = draw_shares(len(x))
    elif way == "data":
        weights = draw_looks(x)
    else:
        weights = softmax_weights(torch.zeros(len(x), len(x)))
    if way == "loop":
        sums = write_matrix(running_sums(x))
        st.caption(_("Running sums {sums}, each divided by how many rows it has.").format(sums=sums))
        show_code(average_by_loop, key="averaging code", x=x)
    elif way == "softmax":
        scores = torch.zeros(len(x), len(x))
        draw_weights(weights, "averaging softmax", scores)
        show_code(softmax_weights, key="averaging code softmax", scores=scores)
    out = mean if way == "loop" else weighted_average(weights, x)
    if way == "data" and not is_answered(MOST):  # what comes out tells where the last row looks
        return is_found(QUESTION)
    st.markdown(_("out = {values}").format(values=code_markdown(write_matrix(out, 3))))
    if way != "data":
        gap = float((out - mean).abs().max())
        st.caption(_("Largest difference from the loop: {gap:.1e}.").format(gap=gap))
    return is_found(QUESTION)


def draw_means(x: Tensor, mean: Tensor, covered: bool) -> None:
    """The rows and beside them their means; the last number is covered while it is asked for."""
    both = torch.cat([x, mean], dim=1)
    columns = [name.format(number=at + 1) for name in (_("x {number}"), _("mean {number}")) for at in range(len(x[0]))]
    matrix(
        cover(both, (-1, -1)) if covered else both, rows=number_rows(len(x)), columns=columns, scale="signed",
        role="residual", digits=3, key=f"{QUESTION} picture", label=_("each row, and the mean of it and those above"),
    )  # fmt: skip


def number_rows(count: int) -> list[str]:
    return [str(at + 1) for at in range(count)]


def ask(x: Tensor, mean: Tensor) -> bool:
    column = x[:, -1]
    total = " + ".join(f"{value:g}" for value in column.tolist())
    reason = _("The last row is the mean of all rows: ({total}) / {count}.").format(count=len(x), total=total)
    mistakes = [
        (column.sum(), _("That is the sum, not yet divided by the number of rows.")),
        (x[-1].mean(), _("That is a mean along the row; each column is averaged by itself.")),
        (column[:-1].mean(), _("That leaves out the row itself, which counts too.")),
        (mean[:, -1].mean(), _("That is the mean of means; each row averages x, not the means above.")),
    ]

    def why(said: float) -> str:
        if abs(said - float(mean[-1, -1])) <= TOLERANCE:
            return reason
        named = next((name for value, name in mistakes if abs(said - float(value)) <= TOLERANCE), "")
        return f"{named} {reason}".strip()

    question = _("Every row becomes the mean of itself and the rows above. Which number is covered?")
    again = other_input("averaging-x", (TENSOR, *OTHERS))
    return estimate(question, float(mean[-1, -1]), TOLERANCE, key=QUESTION, why=why, again=again)


def draw_weights(weights: Tensor, key: str, scores: Tensor | None = None) -> None:
    names = number_rows(len(weights))
    terms = {} if scores is None else {_("score"): scores}
    matrix(weights, rows=names, columns=names, terms=terms, digits=2, key=key, label=_("weights, pos key"))


def draw_shares(length: int) -> Tensor:
    """The weights of the means; one share of the last row is asked for."""
    weights, above = triangular_weights(length), st.container()
    question = _("One weight is covered: how much of row 1 is in row {row}?").format(row=length)
    reason = _("Row {row} averages itself and all above, each as much as the others: 1 / {row}.").format(row=length)
    estimate(question, float(weights[-1, 0]), TOLERANCE, key=SHARE, why=lambda _said: reason)
    with above:
        draw_weights(weights if is_answered(SHARE) else cover(weights, (-1, 0)), f"{SHARE} picture")
    show_code(triangular_weights, key="averaging code matrix", length=length)
    return weights


def draw_looks(x: Tensor) -> Tensor:
    """The weights that the data make; the row that the last one looks at most is asked for."""
    scores, above = scores_of(x), st.container()
    weights, last = softmax_weights(scores), len(x) - 1
    reason = _("Its scores are {scores}: the largest one gets the largest weight, whichever row it is.")
    point(
        _("The last row is covered. Click in it where it looks most."),
        weights.shape,
        [(last, at) for at in (weights[last] == weights[last].max()).nonzero().flatten().tolist()],
        key=MOST,
        name=lambda at: _("row {row}, column {column}").format(row=at[0] + 1, column=at[1] + 1),
        why=lambda _said: reason.format(scores=numerals(scores[last].tolist(), ".2f")),
    )
    with above:
        draw_weights(weights if is_answered(MOST) else cover(weights, last), f"{MOST} picture", scores)
    show_code(softmax_weights, key="averaging code data", scores=scores)
    return weights
