"""Norms and the MLP: which numbers each norm's mean runs over, and what works on each token alone."""

from typing import Any, get_args

import pandas as pd
import streamlit as st
import torch
from torch import Tensor

from engine.course.norms import NormName, averaged_over, batch_norm_at_inference, mlp_alone, normalise
from engine.runtime import library
from pages.controls.figures import matrix, picked_place
from pages.controls.learn.fields import choose_view, read_field, read_matrix, read_short_text
from pages.controls.learn.predict import is_answered, is_found, point, show_code
from pages.controls.learn.words import numeral
from pages.controls.learn.words import translate as _

BATCH = "[[1, 2, 3, 6], [2, 2, 8, 4], [0, 5, 1, 2], [4, 3, 3, 2]]"
MODEL, TEXT, LAYER = "everyday", "The cat sat on the mat", 1
MOST = 12  # tokens


def experiment() -> bool:
    x = read_field("norms-x", _("a batch: tokens down, features across"), BATCH, read_batch)
    rows = [_("token {number}").format(number=number + 1) for number in range(len(x))]
    features = [_("feature {number}").format(number=number + 1) for number in range(x.shape[1])]
    if not ask(x, rows, features):
        return False
    views = {"norms": _("three norms"), "inference": _("a batch of one"), "mlp": _("the MLP")}
    view = choose_view("norms-view", views)
    if view == "norms":
        draw_norms(x, rows, features)
    elif view == "inference":
        draw_inference(x, features)
    else:
        draw_mlp()
    return is_found("norms question")


def read_batch(said: str) -> Tensor:
    x = read_matrix(said)
    if len(x) < 2 or x.shape[1] < 2:
        raise ValueError(_("Expected two rows of two numbers at least; add some."))
    return x


def ask(x: Tensor, rows: list[str], features: list[str]) -> bool:
    key, (row, feature) = "norms question", (1, 1)
    above = st.container()
    cell = picked_place(f"{key} picture", tuple(x.shape))
    over = averaged_over((len(x), x.shape[1]), "layer", row, feature)
    answers = [(at[0], at[1]) for at in over.nonzero().tolist() if at != [row, feature]]
    mean = float(x[over].mean())
    reason = _("It averages the features of one token, here to {mean:g}; no other token comes in.").format(mean=mean)
    question = _("LayerNorm brings {feature} of {row} to scale. Click another number that its mean runs over.")
    answered = point(
        question.format(feature=features[feature], row=rows[row]),
        None if cell is None else (cell[0], cell[1]),
        answers,
        key=key,
        name=lambda at: f"{rows[at[0]]}, {features[at[1]]}",
        why=lambda _at: reason,
    )
    if not is_answered(key):
        with above:
            named = _("the batch")
            matrix(x, rows=rows, columns=features, digits=2, role="residual", key=f"{key} picture", label=named)
    return answered


def draw_norms(x: Tensor, rows: list[str], features: list[str]) -> None:
    names: dict[NormName, str] = {"layer": _("LayerNorm"), "rms": _("RMSNorm"), "batch": _("BatchNorm")}
    kinds: tuple[NormName, ...] = get_args(NormName)
    cell = picked_place("norms picture layer", tuple(x.shape)) or [1, 1]
    st.caption(_("Click a number of LayerNorm’s to see what each norm averages for it: marked in the lower row."))
    named: dict[str, Any] = {"rows": rows, "columns": [name.split()[-1] for name in features]}
    for place, kind in zip(st.columns(3), kinds, strict=True):
        with place:
            st.markdown(f"**{names[kind]}**")
            matrix(
                normalise(x, kind), scale="signed", role="residual", digits=2, key=f"norms picture {kind}",
                label=names[kind], **named,
            )  # fmt: skip
            over = averaged_over((len(x), x.shape[1]), kind, cell[0], cell[1])
            matrix(
                torch.where(over, x, float("nan")).nan_to_num(0.0) * over, role="key", digits=2,
                key=f"norms over {kind}", label=_("what is averaged"), **named,
            )  # fmt: skip
            st.caption(_("mean {mean:.3g}").format(mean=float(x[over].mean())))
    show_code(normalise, key="norms code", x=x, kind="layer")


def draw_inference(x: Tensor, features: list[str]) -> None:
    one = x[:1]
    mean, variance = x.mean(0), x.var(0, correction=0)
    ways = {
        _("LayerNorm, the first token alone"): normalise(one, "layer"),
        _("BatchNorm at training, in this batch"): normalise(x, "batch")[:1],
        _("BatchNorm at training, a batch of one"): normalise(one, "batch"),
        _("BatchNorm at inference, with what it kept"): batch_norm_at_inference(one, mean, variance),
    }
    written = [[numeral(value, ".3f") for value in found[0].tolist()] for found in ways.values()]
    table = pd.DataFrame(written, columns=features)
    table.insert(0, _("the first token"), list(ways))
    st.dataframe(table, hide_index=True, width="stretch")
    st.caption(_("A batch of one is its own mean, so nothing is left of it. LayerNorm never looks at others."))
    show_code(batch_norm_at_inference, key="norms code inference", x=one, mean=mean, variance=variance)


def draw_mlp() -> None:
    checkpoint = library.checkpoint(MODEL)
    encoding = read_field("norms-text", _("text"), TEXT, lambda said: read_short_text(checkpoint, said, MOST))
    gaps = mlp_alone(checkpoint, encoding, LAYER)
    config = checkpoint.model.config
    width = config.mlp.d_mlp if config.mlp else 0
    sentence = _("The MLP of block {layer}: from {d_model} numbers to {d_mlp} and back, for each token by itself.")
    st.markdown(sentence.format(layer=LAYER + 1, d_model=config.d_model, d_mlp=width))
    differences = [numeral(gap, ".1e") for gap in gaps.tolist()]
    table = pd.DataFrame({_("token"): list(encoding.pieces), _("alone or in the text, difference"): differences})
    st.dataframe(table, hide_index=True, width="stretch")
    st.caption(_("Nothing but rounding: only attention carries something from one token to another."))
