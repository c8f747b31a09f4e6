"""What a link can hold of the page Open a model."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from engine.checkpoints.report import Status
from pages.controls.model_input.parameters import MODEL
from pages.controls.state.page_state import PageState
from pages.controls.state.parameter import Choice, Flag, Hideable, Number, Several, Text, choice
from views.checkpoint.embedding import KINDS, METHODS

ALL = "all heads"
FRAMES = ("main cluster", "all")
SPACES = {"2-D": 2, "3-D": 3}

CHECKPOINT = PageState(
    "checkpoint", replace(MODEL, label="checkpoint", carried=False),
    choice("matrix", "", (), label="matrix"), choice("head", ALL, (ALL,), label="head"), Flag("circuit", False),
    Flag("log_counts", False, label="log counts"),
    choice("table", "", (), label="table"), Choice("how", "pca", {**METHODS}, label="method"),
    choice("axes", "2-D", SPACES, label="axes"), choice("frame", FRAMES[0], FRAMES, label="frame"),
    Several("without", [], {kind: title for kind, (title, *_) in KINDS.items()}, label="hide"),
    Number("token", 0, 0, 2**31 - 1),  # has no widget
    choice("status", None, get_args(Status), label="status"),
    Hideable("numbers", hidden_as="precision", element='[class*="st-key-numbers-"]'),
    Hideable("own files", hidden_as="your files"), Hideable("actions", hidden_as="other pages, export"),
    Text("named", "", 1_000, label="find a tensor by its name"),
)  # fmt: skip
