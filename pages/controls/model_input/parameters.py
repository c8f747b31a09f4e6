"""What every page that runs a model can hold in its link: the model, and what that reads."""

from __future__ import annotations

from engine.runtime.limits import FIRST_MODEL
from pages.controls.state.parameter import Number, Text

LONGEST = 2**19  # characters; Streamlit reads no longer query
MOST_PICTURES = 9_999

MODEL = Text("model", FIRST_MODEL, LONGEST, label="model", carried=True, hidden_as="the model")
FIELDS = (
    Text("text", "", LONGEST, label="text", carried=True, hidden_as="the text"),
    Text("second", "", LONGEST, label="second text (optional)", carried=True, hidden_as="the second text"),
    Text("target", "", LONGEST, label="target (empty: the model writes it)", carried=True, hidden_as="the target"),
    Text("span", "", LONGEST, label="in the gap (empty: the model writes it)", carried=True,
         hidden_as="the gap’s words"),
    Number("picture", 0, 0, MOST_PICTURES, carried=True, hidden_as="the picture"),
    Number("given", 32, 0, MOST_PICTURES, label="pixels given", carried=True, hidden_as="pixels given"),
)  # fmt: skip
INPUT = (MODEL, *FIELDS)

ATTENTION = Number(
    "attention", 1.0, 0.1, 4.0, step=0.05, label="attention temperature", carried=True,
    hidden_as="attention temperature",
    help="Divides the scores inside every head before its softmax: low makes attention sharp, high makes it even. "
    "It changes everything after it. 1 is the model as it was trained.",
)  # fmt: skip
