"""Models of two towers, for pictures and for texts, whose vectors are compared: a folder of both opens as either.

`load("folder")` is the tower of pictures and `load("folder#text")` that of texts; each is a checkpoint of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints.families import FAMILIES
from engine.checkpoints.family import Family
from engine.checkpoints.weights import Weights

MARK, TOWER = "#text", "tower"  # what ends the name of a tower of texts, and the correction that asks for one
PICTURE, TEXT = "vision_config", "text_config"  # keys of config.json
# What files of older programs say in each tower of things that no tower has, and the values that change nothing.
OF_ANY_MODEL: dict[str, tuple[Any, ...]] = {
    "add_cross_attention": (False, None),
    "dropout": (0, None),
    "tf_legacy_loss": (True, False, None),
    "tie_encoder_decoder": (True, False, None),
    "tie_word_embeddings": (True, False, None),
}
NAMES = {PICTURE: ("vision_model.", "visual_projection."), TEXT: ("text_model.", "text_projection.")}  # how they begin
SCALE, BIAS = "logit_scale", "logit_bias"  # names of tensors


@dataclass(frozen=True)
class TowerPair:
    """What makes a score of the cosine of a picture's and a text's vector: cosine x `scale` + `bias`.

    `each` text is then judged by itself, by the logistic function (Zhai et al. 2023, SigLIP, section 3.2), or softmax
    shares a picture among texts (Radford et al. 2021, CLIP, section 2.3). `reads` is what this tower reads.
    """

    reads: str
    scale: float
    bias: float
    each: bool

    def scores(self, cosines: Tensor) -> Tensor:
        """Logits of the same shape."""
        return cosines * self.scale + self.bias

    def probabilities(self, cosines: Tensor) -> Tensor:
        """Of each text to go with the picture, or shares of all texts, along the last axis."""
        scores = self.scores(cosines).double()
        return scores.sigmoid() if self.each else scores.softmax(-1)


def split_name(name: str) -> tuple[str, dict[str, str]]:
    """The name of a folder, and what is corrected of it where the name asks for its tower of texts."""
    return (name.removesuffix(MARK), {TOWER: "text"}) if name.endswith(MARK) else (name, {})


def is_pair(config: Mapping[str, Any]) -> bool:
    """True for a config.json of two towers."""
    return any(family.half_of == (config.get("model_type"), key) for key in (PICTURE, TEXT) for family in towers())


def towers() -> list[Family]:
    return [family for families in FAMILIES.values() for family in families if family.half_of]


def open_half(theirs: Mapping[str, Any], weights: Weights, tower: str) -> tuple[dict[str, Any], Weights, TowerPair]:
    """config.json and weights of one tower, and what compares it with the other. Raises ValueError for another tower
    than "picture" and "text", and for scales that are no numbers."""
    if tower not in ("picture", "text"):
        raise ValueError(f'tower must be "picture" or "text", got {tower!r:.80}.')
    key = TEXT if tower == "text" else PICTURE
    family = next(one for one in towers() if one.half_of == (theirs.get("model_type"), key))
    own = [theirs.get(key), theirs.get(f"{key}_dict")]
    if not any(isinstance(one, Mapping) for one in own):
        raise ValueError(f"config.json's {key} must be a table that describes a tower, got {own[0]!r:.80}.")
    config: dict[str, Any] = {}
    for one in own:
        config |= dict(one) if isinstance(one, Mapping) else {}
    config = {
        name: value for name, value in config.items() if name not in OF_ANY_MODEL or value not in OF_ANY_MODEL[name]
    }
    config |= {"model_type": family.name, "architectures": [family.architecture]}
    if theirs.get("projection_dim") is not None:
        config["projection_dim"] = theirs["projection_dim"]
    pair = TowerPair(tower, number_in(weights, SCALE).exp().item(), number_in(weights, BIAS).item(), BIAS in weights)
    return config, only_of(weights, family), pair


def number_in(weights: Weights, name: str) -> Tensor:
    if name not in weights:
        return torch.zeros(())
    if weights.shapes[name] not in ((), (1,)):
        raise ValueError(f"{weights.label(name)} must be one number, got shape {weights.shapes[name]}.")
    return weights[name].double().reshape(())


def only_of(weights: Weights, family: Family) -> Weights:
    """The tensors of one tower; what is of neither stays, so that the report names it."""
    assert family.half_of is not None
    begun = tuple(names for key, names in NAMES.items() if key != family.half_of[1])
    foreign = (*(name for names in begun for name in names), SCALE, BIAS)
    return replace(
        weights, shapes={name: shape for name, shape in weights.shapes.items() if not name.startswith(foreign)}
    )
