"""From averaging to attention: a loop, a matrix, a softmax, and weights made from the data, on one tensor."""

import streamlit as st
import torch

from engine.course.averaging import (
    average_by_loop,
    running_sums,
    scores_of,
    softmax_weights,
    triangular_weights,
    weighted_average,
)
from pages.controls.figures import matrix
from pages.controls.learn.fields import other_input, read_field, read_matrix, write_matrix
from pages.controls.learn.predict import estimate, is_found, show_code
from pages.controls.learn.words import translate as _
from views.core.markdown import code_markdown

TENSOR = "[[1, 3], [2, 1], [0, 1]]"
OTHERS = "[[4, 0], [2, 2], [0, 7]]", "[[1, 5], [3, 1], [2, 2], [6, 0]]"
TOLERANCE = 0.01


def experiment() -> bool:
    x = read_field("averaging-x", _("x, one row a token"), TENSOR, read_matrix)
    mean = average_by_loop(x)
    total = " + ".join(f"{value:g}" for value in x[:, -1].tolist())
    reason = _("The last row is the mean of all rows: ({total}) / {count}.").format(count=len(x), total=total)
    question = _("Every row becomes the mean of itself and the rows above. What is the last number of the last row?")
    answer = float(mean[-1, -1])
    again = other_input("averaging-x", (TENSOR, *OTHERS))
    if not estimate(question, answer, TOLERANCE, key="averaging question", why=lambda _said: reason, again=again):
        return False
    ways = {"loop": _("a loop"), "matrix": _("a matrix"), "softmax": _("a softmax"), "data": _("weights of the data")}
    way = st.segmented_control(
        _("made by"), list(ways), default="loop", key="averaging-way", required=True, format_func=ways.__getitem__
    )
    out = mean if way == "loop" else draw_weights(str(way), x)
    if way == "loop":
        sums = write_matrix(running_sums(x))
        st.caption(_("Running sums {sums}, each divided by how many rows it has.").format(sums=sums))
        show_code(average_by_loop, key="averaging code", x=x)
    st.markdown(_("out = {values}").format(values=code_markdown(write_matrix(out, 3))))
    if way != "data":
        gap = float((out - mean).abs().max())
        st.caption(_("Largest difference from the loop: {gap:.1e}.").format(gap=gap))
    return is_found("averaging question")


def draw_weights(way: str, x: torch.Tensor) -> torch.Tensor:
    """The weights of one of the ways, and what they make of `x`."""
    names = [str(pos) for pos in range(len(x))]
    scores = scores_of(x) if way == "data" else torch.zeros(len(x), len(x))
    if way == "matrix":
        weights, terms = triangular_weights(len(x)), {}
    else:
        weights, terms = softmax_weights(scores), {_("score"): scores}
    matrix(
        weights, rows=names, columns=names, terms=terms, digits=2, key=f"averaging {way}", label=_("weights, pos key")
    )  # fmt: skip
    if way == "matrix":
        show_code(triangular_weights, key="averaging code matrix", length=len(x))
    else:
        show_code(softmax_weights, key=f"averaging code {way}", scores=scores)
    return weighted_average(weights, x)
