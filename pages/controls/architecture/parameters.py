"""What a link can hold of the page Anatomy: two models, the switches and sizes of the first, and what costs are for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from engine.analysis.switches import MAY_BE_NONE, SWITCHES, option_label, sizes
from engine.model.config import ModelConfig
from pages.controls.model_input.parameters import MODEL
from pages.controls.state.history import READABLE
from pages.controls.state.page_state import Here, PageState
from pages.controls.state.parameter import Hideable, Number, Text, choice, one_of

FIRST = "bert-base"  # the model a visitor meets
NOBODY = "nothing"
SIZES = {"layers": "layers", "d_model": "width, d", "heads": "heads", "d_mlp": "MLP width"}
KEYS = {name: "d" if name == "d_model" else name for name in SIZES}  # "d_model" is the model of D on the page Compare
MOST = 2**20
LENGTH = 512  # tokens, at first
BYTES = {"bfloat16": 2, "float32": 4, "int8": 1}
OF_MODEL = (*(switch.name for switch in SWITCHES), *KEYS.values(), "length")

ANATOMY = PageState(
    "architecture",
    replace(MODEL, default=FIRST, carried=False),
    Text("against", NOBODY, READABLE, label="compare with", hidden_as="compare with"),
    *(choice(switch.name, "", ()) for switch in SWITCHES),
    *(
        Number(KEYS[size], 1, 0 if size in MAY_BE_NONE else 1, MOST, older=("d_model",) if size == "d_model" else ())
        for size in SIZES
    ),
    Number("length", LENGTH, 1, MOST, label="length, tokens", hidden_as="length"),
    Number("batch", 1, 1, 256, hidden_as="batch"),
    Hideable("switches", hidden_as="switches and sizes"),
    Hideable("published", hidden_as="as published"),
    choice("number", "bfloat16", BYTES, label="numbers in", hidden_as="numbers in"),
)


@dataclass
class PossibleModel:
    """Switches and sizes of the last model that was possible."""

    name: str = ""
    switches: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)


def adjust_to(here: Here, models: list[str], config: ModelConfig) -> None:
    """Every switch has the options of that model, and stands where the model has it."""
    here.adjust("against", rule=one_of([NOBODY, *models]))
    for switch in SWITCHES:
        options = {option: option_label(option) for option in switch.options(config)}
        here.adjust(switch.name, options=options, default=switch.get(config))
    here.set_defaults(**{KEYS[size]: value for size, value in sizes(config).items()})
    here.adjust("length", high=config.context, default=min(config.context, LENGTH))
