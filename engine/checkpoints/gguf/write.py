"""A checkpoint as one GGUF file.

What is written is read again before it is kept: only a model that comes back the same has a file.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from torch import Tensor

from engine.checkpoints.assemble import build_without_memory
from engine.checkpoints.canonical import canonical_config
from engine.checkpoints.checkpoint import Checkpoint
from engine.checkpoints.families import FAMILIES
from engine.checkpoints.family import Family, invert_rows, translate
from engine.checkpoints.gguf.header import ALIGNMENT, FLOATS, MAGIC, QUANTISED
from engine.checkpoints.gguf.rows import TIED, gguf_rows
from engine.checkpoints.gguf.settings import (
    ARCHITECTURES,
    LAYER,
    LOG_MULTIPLIER,
    POOLED,
    RMS,
    SHARED,
    SIGMOID,
    read_settings,
    read_vector,
)
from engine.checkpoints.gguf.tokenizer import (
    CONTROL,
    CUTS,
    NORMAL,
    PREFIX,
    ROLES,
    UNKNOWN,
    USER_DEFINED,
    tokenizer_files,
)
from engine.checkpoints.weights import Weights
from engine.json_text import parse_json
from engine.model.config import ModelConfig
from engine.model.quantised import SCHEMES
from engine.tokenizers import FastTokenizer, read_tokenizer
from engine.tokenizers.charsmap import SPACE
from engine.tokenizers.spm import UNIGRAM, SentencePieceTokenizer

VERSION, STEP = 3, 32
TYPES = {name: number for number, name in {**FLOATS, **QUANTISED}.items()}
FILE_TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9}  # general.file_type
U8, U32, F32, BOOL, TEXT, ARRAY, I32 = 0, 4, 6, 7, 8, 9, 5
# Whose queries, keys and values are one tensor, and whose gate and second map of the MLP are.
FUSED = ("phi3", "gpt2", "gptneox", "falcon", "bloom", "mpt", "nomic-bert", "modern-bert")
FUSED_MLP = ("phi3", "glm4", "modern-bert")
PATTERNED = ("exaone4", "olmo2", "modern-bert")  # which say which layers have a window
AS_FLOATS = ("position_embd", "token_types")  # which llama.cpp adds up, and does not decode
SEVERAL = {
    "llama": ("llama", "mixtral"), "olmo2": ("olmo2", "olmo3"), "deepseek2": ("deepseek_v2", "deepseek_v3"),
    "granitemoe": ("granitemoe", "granitemoeshared"), "bert": ("bert", "distilbert"),
}  # fmt: skip
TRIED = (
    "The cat sat on the mat, and it didn't move;  2 + 40 = 12345.\n\n\tÉtés, naïve, 中文!?", "I'LL  be\r\n there...",
    " x=f(3.14)*'a' <b>", "def run(x): return x**2",
)  # fmt: skip


def write_gguf(checkpoint: Checkpoint, path: Path, kind: str = "F16") -> None:
    """Writes one file with the matrices as F32, F16, or of a scheme that Loupe writes where their rows are whole
    blocks, else as F16. Raises ValueError for a model that no architecture of GGUF says, and for an unknown kind."""
    if kind not in FILE_TYPES:
        raise ValueError(f"a GGUF file is written as one of {', '.join(FILE_TYPES)}, got {kind!r:.40}.")
    model = checkpoint.model
    said, tensors = say_in_gguf(checkpoint.config, checkpoint.family, model.state_dict())
    said |= {"general.file_type": FILE_TYPES[kind], "general.quantization_version": 2, ALIGNMENT: STEP}
    said |= {"general.name": checkpoint.name, **say_tokenizer(checkpoint.tokenizer)}
    stored = {name: store(name, tensor, kind) for name, tensor in tensors.items()}
    partial = path.with_name(f".{path.name}.part")
    with partial.open("wb") as file:
        file.write(MAGIC + struct.pack("<IQQ", VERSION, len(stored), len(said)))
        for name, value in said.items():
            file.write(text(name) + pack_value(value))
        at = 0
        for name, (shape, number, data) in stored.items():
            axes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
            file.write(text(name) + axes + struct.pack("<IQ", number, at))
            at += -(-len(data) // STEP) * STEP
        file.write(bytes(-file.tell() % STEP))
        for _, _, data in stored.values():
            file.write(data + bytes(-len(data) % STEP))
    partial.replace(path)


def store(name: str, tensor: Tensor, kind: str) -> tuple[tuple[int, ...], int, bytes]:
    """Shape, type and bytes of a tensor."""
    values, shape = tensor.detach().float().cpu().contiguous(), tuple(tensor.shape)
    if values.dim() < 2 or name.startswith(AS_FLOATS) or kind == "F32":
        return shape, TYPES["float32"], values.numpy().tobytes()
    scheme = SCHEMES.get(kind)
    if scheme is None or shape[-1] % scheme.numbers:
        return shape, TYPES["float16"], values.half().numpy().tobytes()
    return shape, TYPES[kind], scheme.write(values).numpy().tobytes()


@lru_cache(maxsize=64)
def is_writable(config: ModelConfig, family: str) -> bool:
    """Tells whether an architecture of GGUF says a model of a family, by its config alone."""
    try:
        say_in_gguf(config, family, build_without_memory(config).state_dict())
    except ValueError:
        return False
    return True


def say_in_gguf(
    config: ModelConfig, family: str, state: Mapping[str, Tensor]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Metadata and tensors by the first architecture that says the model: the family's own first."""
    own = sorted(ARCHITECTURES, key=lambda name: ARCHITECTURES[name].family != family)
    for name in own:
        said = {"general.architecture": name} | {f"{name}.{key}": value for key, value in settings_of(config).items()}
        said |= {f"{name}.{key}": value for key, value in own_settings(name, config).items()}
        for one in families_of(name):
            tensors = tensors_of(one, name, config, state)
            if tensors and comes_back(config, said, tensors):
                return said, tensors
    raise ValueError(
        f"no architecture of GGUF that Loupe writes ({', '.join(ARCHITECTURES)}) says this model; save it as a folder."
    )


def families_of(name: str) -> Iterator[Family]:
    """Families that an architecture may be: with a language head, or none where it is an encoder."""
    of = ARCHITECTURES[name].family
    yield from (find_family(name, each) for each in ([of] if isinstance(of, str) else SEVERAL[name]))


def find_family(name: str, family: str) -> Family:
    encoder = ARCHITECTURES[name].encoder.get(family)
    return next(
        one
        for one in FAMILIES[family]
        if (one.head == "language" if encoder is None else one.architecture == encoder and not one.signs)
    )


def tensors_of(family: Family, name: str, config: ModelConfig, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors by GGUF's names; none where the model has one that the table lacks."""
    gated = config.mlp is not None and config.mlp.gated
    parts = {f"blk.0.attn_{'qkv' if name in FUSED else 'q'}.{one}" for one in ("weight", "bias")}
    parts = set() if name == "deepseek2" else parts  # whose attention has names of its own
    if gated and name not in FUSED_MLP:
        parts |= {"blk.0.ffn_gate.weight", "blk.0.ffn_gate.bias", "enc.blk.0.ffn_gate.weight"}
    rows = Family(family.name, rows=gguf_rows(family.name, config, parts)).bind(state)
    made = {one for row in rows for one in row.target}
    tied = {"head.weight"} if config.tied else set()
    if made | tied != state.keys() | tied:
        return {}
    found = dict(translate(dict(state), invert_rows(rows), config))
    return {one: tensor for one, tensor in found.items() if not (config.tied and one in TIED)}


def comes_back(config: ModelConfig, said: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> bool:
    """Tells whether what is said is read as the same model."""
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    weights = Weights(shapes, {}, dict.fromkeys(shapes, tensors.__getitem__), settings=dict(said))
    try:
        theirs = read_settings(weights)
        family = find_family(said["general.architecture"], theirs["model_type"])
        read = replace(family.read_config(theirs), vector=read_vector(weights))
        return canonical_config(read) == canonical_config(config)
    except (ValueError, OverflowError):
        return False


def settings_of(config: ModelConfig) -> dict[str, Any]:
    attention, mlp, positions = config.attention, config.mlp, config.positions
    found: dict[str, Any] = {
        "block_count": config.layers, "context_length": config.context, "embedding_length": config.d_model,
        "vocab_size": config.vocab_size, "attention.head_count": attention.heads,
        "attention.head_count_kv": config.kv_heads, "attention.key_length": config.d_head,
        "attention.value_length": config.d_head,
        RMS if config.norm.kind == "rms" else LAYER: float(config.norm.eps),
    }  # fmt: skip
    if mlp is not None:
        found["feed_forward_length"] = mlp.d_mlp
        if mlp.experts is not None:
            found |= {"expert_count": mlp.experts.count, "expert_used_count": mlp.experts.used}
            found["expert_feed_forward_length"] = mlp.d_mlp
            found |= settings_of_experts(config)
    if positions.kind == "rotary":
        turned = positions.turned or config.d_head
        found |= {"rope.freq_base": float(positions.theta), "rope.dimension_count": turned}
        if positions.other is not None and positions.other.theta is not None:
            found["rope.freq_base_swa"] = float(positions.other.theta)
        found |= settings_of_scaling(config)
    if (encoder := config.encoder) is not None:
        found |= {"block_count": encoder.layers, "decoder_block_count": config.layers}
        found |= {"decoder_start_token_id": encoder.start}
    if positions.has_buckets:
        found |= {"attention.relative_buckets_count": positions.buckets, LAYER: float(config.norm.eps)}
    if attention.mask == "full":
        found["attention.causal"] = False
    vector = config.vector
    if vector is not None and len(vector.pooled) == 1:
        found["pooling_type"] = next((kind for kind, one in POOLED.items() if one == vector.pooled[0]), 0)
    if attention.latent is not None:
        latent = attention.latent
        found |= {
            "attention.head_count_kv": 1, "attention.kv_lora_rank": latent.keys,
            "attention.key_length": latent.keys + config.d_turned, "attention.value_length": latent.keys,
            "attention.key_length_mla": config.d_head, "attention.value_length_mla": config.value_width(attention),
        } | ({} if latent.queries is None else {"attention.q_lora_rank": latent.queries})  # fmt: skip
    window = attention.window
    if window is not None and attention.mask == "full":
        window = 2 * (window - 1)  # both sides
    more = {
        "attention.sliding_window": window, "attn_logit_softcapping": attention.softcap,
        "final_logit_softcapping": config.head.softcap,
    }  # fmt: skip
    return found | {name: value for name, value in more.items() if value is not None}


def own_settings(name: str, config: ModelConfig) -> dict[str, Any]:
    """What single architectures say: which layers have the window (each, or one in how many has none), and what is
    scaled."""
    attention, found = config.attention, dict[str, Any]()
    if attention.window is not None and name in PATTERNED:
        slides = [attention.windowed is None or layer in attention.windowed for layer in range(config.layers)]
        found["attention.sliding_window_pattern"] = 3 if name == "modern-bert" else slides
    if name in ("command-r", "cohere2"):
        found["logit_scale"] = float(config.head.scale)
    if name.startswith("granite"):
        scale = config.d_head**-0.5 if attention.scale is None else attention.scale
        found |= {"attention.scale": float(scale), "logit_scale": 1 / config.head.scale}
        found |= {"embedding_scale": float(config.embedding.scale), "residual_scale": float(config.residual_scale)}
    return found


def settings_of_experts(config: ModelConfig) -> dict[str, Any]:
    mlp = config.mlp
    if mlp is None or mlp.experts is None:
        return {}
    experts = mlp.experts
    found: dict[str, Any] = {
        "expert_weights_scale": float(experts.scale), "expert_weights_norm": experts.renormalised,
        "expert_gating_func": SIGMOID if experts.scores == "sigmoid" else 1,
        "leading_dense_block_count": len(experts.dense),
        "expert_group_count": experts.groups, "expert_group_used_count": experts.groups_used,
    }  # fmt: skip
    if experts.shared:
        found |= {"expert_shared_count": experts.shared // mlp.d_mlp, SHARED: experts.shared}
    return found | ({} if experts.d_dense is None else {"feed_forward_length": experts.d_dense})


def settings_of_scaling(config: ModelConfig) -> dict[str, Any]:
    scaling = config.positions.scaling
    if scaling is None or scaling.kind not in ("linear", "yarn"):
        return {}
    found: dict[str, Any] = {"type": scaling.kind, "factor": float(scaling.factor)}
    found |= {} if scaling.kind == "linear" else {"original_context_length": scaling.trained}
    said = {f"rope.scaling.{name}": value for name, value in found.items()}
    scale = config.attention.scale
    if scaling.kind == "yarn" and scaling.factor > 1 and scale is not None:
        said[LOG_MULTIPLIER] = ((scale * config.d_head**0.5) ** 0.5 - 1) / math.log(scaling.factor)
    return said


# --- The tokenizer ---


def say_tokenizer(tokenizer: Any) -> dict[str, Any]:
    """Metadata of a tokenizer that comes back the same; of one that GGUF does not say, none."""
    if isinstance(tokenizer, SentencePieceTokenizer):
        candidates: Iterable[dict[str, Any]] = [say_sentencepiece(tokenizer)]
    elif isinstance(tokenizer, FastTokenizer):
        candidates = chain(say_bpe(tokenizer), say_words(tokenizer), say_unigram(tokenizer))
    else:
        return {}
    return next((said for said in candidates if reads_alike(tokenizer, said)), {})


def roles_of(tokenizer: FastTokenizer, ids: Mapping[str, int]) -> dict[str, Any]:
    """Special tokens by their roles, and whether they stand around a text."""
    said: dict[str, Any] = {
        name: ids[token]
        for role, name in ROLES.items()
        if (token := tokenizer.roles.get(role)) is not None and token in ids
    }
    around = tokenizer.encode("").ids
    for place, role in ((0, "bos"), (-1, "eos")):
        id = said.get(f"{role}_token_id")
        said[f"add_{role}_token"] = bool(around) and id is not None and around[place] == id
    return said


def say_sentencepiece(tokenizer: SentencePieceTokenizer) -> dict[str, Any]:
    model = tokenizer.model
    said: dict[str, Any] = {
        "model": "t5" if model.kind == UNIGRAM else "llama", "tokens": [piece.text for piece in model.pieces],
        "scores": [float(piece.score) for piece in model.pieces], "token_type": [piece.type for piece in model.pieces],
        "add_space_prefix": model.dummy_prefix, "remove_extra_whitespaces": model.one_space,
    }  # fmt: skip
    said |= {"precompiled_charsmap": model.charsmap} if model.charsmap else {}
    said |= roles_of(tokenizer, {piece.text: id for id, piece in enumerate(model.pieces)})
    return {PREFIX + name: value for name, value in said.items()}


def list_tokens(tokenizer: FastTokenizer) -> tuple[dict[str, int], list[str], list[int]] | None:
    """Ids by token, and the tokens and their types in the order of their ids; None where ids are left out."""
    ids = tokenizer.fast.get_vocab(with_added_tokens=True)
    if sorted(ids.values()) != list(range(len(ids))):
        return None
    added = tokenizer.fast.get_added_tokens_decoder()
    types = [NORMAL if id not in added else CONTROL if added[id].special else USER_DEFINED for id in range(len(ids))]
    return ids, sorted(ids, key=ids.__getitem__), types


def say_words(tokenizer: FastTokenizer) -> Iterator[dict[str, Any]]:
    """Metadata of BERT's WordPiece, whose tokens at the start of a word get a mark and the others lose theirs."""
    listed = list_tokens(tokenizer)
    if parse_json(tokenizer.fast.to_str())["model"].get("type") != "WordPiece" or listed is None:
        return
    ids, tokens, types = listed
    marked = [
        token if kind == CONTROL else token[2:] if token.startswith("##") else SPACE + token
        for token, kind in zip(tokens, types, strict=True)
    ]
    roles = {name: id for name, id in roles_of(tokenizer, ids).items() if not name.startswith("add_")}
    roles |= {"bos_token_id": roles["cls_token_id"]} if "cls_token_id" in roles else {}
    said = {"model": "bert", "pre": "default", "tokens": marked, "token_type": types, **roles}
    yield {PREFIX + name: value for name, value in said.items()}


def say_unigram(tokenizer: FastTokenizer) -> Iterator[dict[str, Any]]:
    """Metadata of a Unigram as transformers has it."""
    whole, listed = parse_json(tokenizer.fast.to_str()), list_tokens(tokenizer)
    if whole["model"].get("type") != "Unigram" or listed is None:
        return
    ids, tokens, types = listed
    unknown, scores = whole["model"]["unk_id"], dict(whole["model"]["vocab"])
    normal = whole["normalizer"] or {}
    tables = [one.get("precompiled_charsmap") for one in normal.get("normalizers", [normal])]
    said = {
        "model": "t5", "tokens": tokens, "scores": [float(scores.get(token, 0.0)) for token in tokens],
        "token_type": [UNKNOWN if id == unknown else kind for id, kind in enumerate(types)],
        **roles_of(tokenizer, ids), "unknown_token_id": unknown,
    }  # fmt: skip
    if table := next(filter(None, tables), None):
        said["precompiled_charsmap"] = base64.b64decode(table)
    for space in (True, False):
        for one in (True, False):
            more = {"add_space_prefix": space, "remove_extra_whitespaces": one}
            yield {PREFIX + name: value for name, value in (said | more).items()}


def say_bpe(tokenizer: FastTokenizer) -> Iterator[dict[str, Any]]:
    """Metadata of a byte-level BPE, by each way of cutting a text that GGUF has."""
    model = parse_json(tokenizer.fast.to_str())["model"]
    listed = list_tokens(tokenizer)
    if model.get("type") != "BPE" or listed is None:
        return
    ids, tokens, types = listed
    merges = [one if isinstance(one, str) else " ".join(one) for one in model["merges"]]
    said = {"model": "gpt2", "tokens": tokens, "token_type": types, "merges": merges, **roles_of(tokenizer, ids)}
    for pre in CUTS:
        yield {PREFIX + name: value for name, value in (said | {"pre": pre}).items()}


def reads_alike(tokenizer: FastTokenizer, said: Mapping[str, Any]) -> bool:
    """Tells whether what is said reads texts as the tokenizer does."""
    try:
        with TemporaryDirectory() as folder:
            for name, data in tokenizer_files(said).items():
                (Path(folder) / name).write_bytes(data)
            again = read_tokenizer(Path(folder))
    except ValueError:
        return False
    return again is not None and all(again.encode(one).ids == tokenizer.encode(one).ids for one in TRIED)


# --- Bytes ---


def text(value: str) -> bytes:
    data = value.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def pack_value(value: Any) -> bytes:
    """A value of the metadata behind its type."""
    if isinstance(value, bytes):
        return struct.pack("<IIQ", ARRAY, U8, len(value)) + value
    if isinstance(value, list):
        return struct.pack("<I", ARRAY) + pack_list(value)
    if isinstance(value, bool):
        return struct.pack("<I?", BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", U32, value)
    if isinstance(value, float):
        return struct.pack("<If", F32, value)
    return struct.pack("<I", TEXT) + text(str(value))


def pack_list(values: list[Any]) -> bytes:
    if values and isinstance(values[0], str):
        return struct.pack("<IQ", TEXT, len(values)) + b"".join(map(text, values))
    kinds = {bool: (BOOL, "?"), float: (F32, "<f4"), int: (I32, "<i4")}
    kind, dtype = kinds[type(values[0]) if values else int]
    return struct.pack("<IQ", kind, len(values)) + np.array(values, dtype).tobytes()
