"""Rotary positions in config.json, in transformers 5's words (`rope_parameters`) and the ones before
(`rope_theta` and `rope_scaling`): read from either, written as both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, get_args

from engine.checkpoints.keys import ConfigTable, Key, Table, write_only_key
from engine.model.config import ScalingKind

THETA = 10_000.0
PLAIN = "default"  # transformers' word for no scaling
TRAINED = "original_max_position_embeddings"
CONTEXT = "max_position_embeddings"
TABLES = ("rope_scaling", "rope_parameters")
SCALINGS: Mapping[str, str] = {kind: kind for kind in get_args(ScalingKind)}

DOUBLES = (
    ("rope_scaling", "rope_parameters"),
    *((TRAINED, f"{table}.{TRAINED}") for table in TABLES),
    *((f"{table}.rope_type", f"{table}.type") for table in TABLES),
    *((f"{table}.rope_theta", name) for table in TABLES for name in ("rope_theta", "rotary_emb_base")),
    *((f"{table}.partial_rotary_factor", name) for table in TABLES for name in ("partial_rotary_factor", "rotary_pct")),
)  # of two ways to say one setting, the one that transformers takes before the other


def read_rope_table(theirs: Table) -> ConfigTable:
    """Read the table of rotary settings; of two, the old one counts, as in transformers."""
    name = next((name for name in TABLES if theirs.get(name)), TABLES[-1])
    found = theirs.get(name) or {}
    if any(isinstance(value, Mapping) for value in found.values()):
        raise ValueError(f"config.json's {name} must be one table for all layers, got {found!r:.80}.")
    return ConfigTable(found, source=f"config.json's {name}.")


def read_theta(theirs: Table, name: str = "rope_theta", otherwise: float = THETA) -> Any:
    """theta; `name` is what older files of the family call it, `otherwise` what counts where none is said."""
    return read_rope_table(theirs).get("rope_theta", theirs.get(name, otherwise))


def read_scaling(theirs: Table, scalings: Mapping[str, str] = SCALINGS) -> dict[str, Any] | None:
    """The fields of RotaryScaling; `scalings` are the family's words for kinds. Raises ValueError for another word, or
    for an option that Loupe has not."""
    rope = read_rope_table(theirs)
    kind = rope.get("rope_type", rope.get("type", PLAIN))
    if kind == PLAIN:
        return None
    if kind not in scalings:
        known = ", ".join((PLAIN, *scalings))
        raise ValueError(f"{rope.source}rope_type must be one of {known}, got {kind!r:.80}.")
    kind = scalings[kind]
    context: Any = theirs.get(CONTEXT)
    if kind in ("linear", "dynamic"):
        return {"kind": kind, "factor": require(rope, kind, "factor"), "trained": context}
    trained = theirs.get(TRAINED) or rope.get(TRAINED) or context
    made = {"kind": kind, "trained": trained}
    if kind == "llama3":
        named = {"factor": "factor", "low": "low_freq_factor", "high": "high_freq_factor"}
        return made | {ours: require(rope, kind, name) for ours, name in named.items()}
    factor = rope.get("factor")
    made |= {"factor": context / trained if factor is None else factor, "attention": rope.get("attention_factor")}
    if kind == "longrope":
        return made | {ours: require(rope, kind, f"{ours}_factor") for ours in ("short", "long")}
    made["whole"] = rope.get("truncate", True)
    if made["attention"] is None and rope.get("mscale") and rope.get("mscale_all_dim"):
        made["attention"] = yarn_attention_factor(made["factor"], rope["mscale"]) / yarn_attention_factor(
            made["factor"], rope["mscale_all_dim"]
        )
    return made | {"slow": rope.get("beta_slow") or 1.0, "fast": rope.get("beta_fast") or 32.0}


def require(rope: ConfigTable, kind: str, name: str) -> Any:
    if rope.get(name) is None:
        raise ValueError(f"{rope.source}{name} must be there, without which {kind} scales nothing; add it.")
    return rope[name]


def yarn_attention_factor(factor: float, mscale: float) -> float:
    """DeepSeek's generalisation of yarn's attention factor (Peng et al. 2023, section 3.4)."""
    return 0.1 * mscale * math.log(factor) + 1 if factor > 1 else 1.0


def write_scaling(scaling: Table | None) -> dict[str, Any] | None:
    """The inverse of `scaling_of`: the old `rope_scaling`."""
    if scaling is None:
        return None
    kind = scaling["kind"]
    out = {"rope_type": kind, "factor": scaling["factor"]}
    if kind in ("linear", "dynamic"):
        return out
    out |= {TRAINED: scaling["trained"]}
    if kind == "llama3":
        return out | {"low_freq_factor": scaling["low"], "high_freq_factor": scaling["high"]}
    if scaling["attention"] is not None:
        out |= {"attention_factor": scaling["attention"]}
    if kind == "yarn":
        out |= {} if scaling["whole"] else {"truncate": False}
        return out | {"beta_slow": scaling["slow"], "beta_fast": scaling["fast"]}
    return out | {"short_factor": list(scaling["short"]), "long_factor": list(scaling["long"])}


def write_parameters(theta: float, scaling: Table | None) -> dict[str, Any]:
    """The new `rope_parameters`."""
    return {"rope_type": PLAIN, **(write_scaling(scaling) or {}), "rope_theta": theta}


def read_whole_heads(theirs: Table, theta: float = THETA) -> tuple[Any, dict[str, Any] | None]:
    """theta and scaling, where every component of a head must turn."""
    part = read_rope_table(theirs).get("partial_rotary_factor", theirs.get("partial_rotary_factor"))
    if part not in (None, 1):
        raise ValueError(f"config.json's partial_rotary_factor must be 1 for this model_type, got {part!r:.80}.")
    return read_theta(theirs, otherwise=theta), read_scaling(theirs)


def read_context(longest: Any, theirs: Table) -> Any:
    """Context length. Under dynamic scaling `max_position_embeddings` is only the length of training."""
    scaling = read_scaling(theirs)
    dynamic = scaling is not None and scaling["kind"] == "dynamic"
    return int(longest * scaling["factor"]) if scaling is not None and dynamic else longest


def write_context(context: int, ours: Table) -> int:
    scaling = ours["positions"]["scaling"]
    longest: int = scaling["trained"] if scaling is not None and scaling["kind"] == "dynamic" else context
    return longest


CONTEXT_KEY = Key(CONTEXT, "context", reads=read_context, writes=write_context)
OLD_SCALING = write_only_key("rope_scaling", lambda ours: write_scaling(ours["positions"]["scaling"]))


def whole_heads_keys(theta: float = THETA) -> tuple[Key, ...]:
    """Keys of a family that turns whole heads; `theta` counts where config.json says none."""
    return (
        CONTEXT_KEY,
        Key(
            "rope_parameters",
            ("positions.theta", "positions.scaling"),
            default=lambda theirs: read_whole_heads(theirs, theta),
            reads=lambda _, theirs: read_whole_heads(theirs, theta),
            writes=lambda both, _: write_parameters(*both),
        ),
        write_only_key("rope_theta", lambda ours: ours["positions"]["theta"]),
        OLD_SCALING,
    )


KEYS = whole_heads_keys()
