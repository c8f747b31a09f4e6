"""DeBERTa (He et al. 2021), as transformers names it: as v2, with a vector of its own for every distance, and queries,
keys and values in one matrix, head by head, of which the keys have no bias."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.checkpoints.families import deberta_v2
from engine.checkpoints.families.deberta_v2 import BOTH, PARTS, choose_terms, every, split_words
from engine.checkpoints.families.gpt_neox import HEAD_BY_HEAD
from engine.checkpoints.family import Family
from engine.checkpoints.keys import Key, Table

LAYER = "deberta.encoder.layer.{}.attention.self."
OF_V2 = ("norm_rel_ebd", "position_buckets", "share_att_key")


def choose_known_terms(theirs: Table) -> str:
    words = split_words(theirs)
    if unknown := [word for word in words if word not in BOTH]:
        raise ValueError(f"config.json's pos_att_type must name {' and '.join(BOTH)} alone, got {unknown[0]!r:.80}.")
    return choose_terms(theirs)


def read_keys(keys: tuple[Key, ...]) -> tuple[Key, ...]:
    """v2's, without those that are its own."""
    return tuple(
        replace(key, **every(choose_known_terms)) if key.theirs == "pos_att_type" else key
        for key in keys
        if key.theirs not in OF_V2
    )


def read_rows(rows: tuple[tuple[Any, ...], ...]) -> tuple[tuple[Any, ...], ...]:
    """v2's, with v1's own for queries, keys and values."""
    others = (row for row in rows if f"{LAYER}" not in row[0] and ".encoder.LayerNorm." not in row[0])
    return (
        *others,
        (f"{LAYER}in_proj.weight", tuple(f"blocks.{{}}.attn.{letter}.weight" for letter in "qkv"), HEAD_BY_HEAD),
        (f"{LAYER}q_bias", "blocks.{}.attn.q.bias"),
        (f"{LAYER}v_bias", "blocks.{}.attn.v.bias"),
        (f"{LAYER}pos_proj.weight", "blocks.{}.attn.position_k.weight"),
        *((f"{LAYER}pos_q_proj.{part}", f"blocks.{{}}.attn.position_q.{part}") for part in PARTS),
    )


def as_first(family: Family) -> Family:
    own = {"attention.key_bias": False, "positions.own_maps": True, "positions.buckets": 0}
    return replace(
        family,
        name="deberta",
        architecture=str(family.architecture).replace("DebertaV2", "Deberta"),
        keys=read_keys(tuple(family.keys)),
        always={**family.always, **own},
        only={"talking_head": False},
        rows=read_rows(tuple(family.rows)),
        kept=tuple(name for name in family.kept if "LayerNorm" not in name),
        defaults=DEFAULTS,
    )


DEFAULTS = {
    "vocab_size": 50265,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
}
FAMILIES = tuple(map(as_first, deberta_v2.FAMILIES))
