"""Weights that are stored as integers of few bits, with their scales beside them: recognised, and refused by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from engine.checkpoints.weights import Weights

KEYS = ("quantization_config", "quantization", "compression_config")  # of config.json
MARKS: Mapping[str, str] = {
    r"\.g_idx$": "GPTQ",
    r"\.q(weight|zeros)$": "GPTQ or AWQ",
    r"\.quant_state\.|\.(nested_)?(quant_map|absmax)$|\.SCB$": "bitsandbytes",
    r"\.weight_(packed|zero_point|scale|scale_inv|shape|global_scale)$": "compressed-tensors or FP8",
    r"\.scales$": "MLX",
    r"_(blocks|scales)$": "MXFP4",
}  # names of tensors that only such files have
PACKED = {"U32", "U16", "uint8", "int8", "int32", "uint32", "uint16", "float8_e4m3fn", "float8_e5m2"}
# the types of packed weights, of which one must stand beside such a tensor


def check_not_quantised(weights: Weights, config: Mapping[str, Any]) -> None:
    """Raise ValueError where config.json or the tensors say that weights are quantised."""
    said = [f"config.json has a {name}" for name in KEYS if config.get(name)]
    packed = not PACKED.isdisjoint(weights.dtypes.values())
    marks = ((name, kind) for mark, kind in MARKS.items() for name in weights.shapes if re.search(mark, name))
    said += [f"{name} is of {kind}" for name, kind in marks if packed][:1]
    if said:
        raise ValueError(f"the weights must not be quantised, and are ({', and '.join(said)}); dequantise them first.")
