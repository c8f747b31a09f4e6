"""The plain files of llama2.c (github.com/karpathy/llama2.c): a header of seven numbers, then float32 and nothing else.

Version 0 is what `run.c` reads, version 1 begins with a magic number; both have the tensors of all layers of one kind
side by side. A file has no names: those given here are `run.c`'s. Its tokenizer is a file of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from engine.checkpoints.family import DROPPED, Family, Transform
from engine.checkpoints.weights import Weights, weights_of_tensors
from engine.model.config import MLP, Attention, ModelConfig, Norm, Positions
from engine.tokenizers.spm import (
    BPE,
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    Model,
    Piece,
    SentencePieceTokenizer,
    build_pipeline,
)
from engine.tokenizers.spm_checkpoints import add_marks

MAGIC = b"24ka"  # 0x616b3432, "ak42"
FIRST, LATER = 28, 256  # bytes of the header in version 0, and from version 1 on
MOST_LAYERS = 1000
LONGEST_TOKEN = 512  # bytes
SPECIAL = {0: Piece("<unk>", 0.0, UNKNOWN), 1: Piece("<s>", 0.0, CONTROL), 2: Piece("</s>", 0.0, CONTROL)}
BYTES = range(3, 259)
Named = tuple[str, tuple[int, ...]]


class Sizes(NamedTuple):
    """Numbers of the header. `tied` is a sign of the vocabulary's size in version 0, and a byte in version 1."""

    dim: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    vocab: int
    context: int
    tied: bool
    version: int

    @property
    def d_head(self) -> int:
        return self.dim // self.heads


def is_llama2c(path: Path) -> bool:
    """True for a file that begins like one of these; PyTorch's `.bin` are zip files or pickles, and do not."""
    with path.open("rb") as file:
        start = file.read(FIRST)
    if start[:4] == MAGIC:
        return True
    numbers = struct.unpack("<7i", start) if len(start) == FIRST else (0,)
    return start[:2] not in (b"PK", b"\x80\x02") and 0 < min(map(abs, numbers)) <= max(map(abs, numbers)) < 2**24


def read_llama2c(path: Path) -> tuple[Family, ModelConfig, Weights]:
    """Raises ValueError where the file's size is not what its header says. The weights are a private map of it."""
    sizes = read_sizes(path)
    header = LATER if sizes.version else FIRST
    shapes = dict(iterate_layout(sizes))
    expected = header + 4 * sum(map(prod, shapes.values()))
    size = path.stat().st_size
    if size != expected:
        raise ValueError(f"{path} must be {expected:,} bytes long by its header, got {size:,}; fetch it again.")
    numbers = torch.from_file(str(path), shared=False, size=size // 4, dtype=torch.float32)
    tensors: dict[str, Tensor] = {}
    at = header // 4
    for name, shape in shapes.items():
        tensors[name] = numbers[at : at + prod(shape)].view(shape)
        at += prod(shape)
    return FAMILY, build_config(sizes), weights_of_tensors(tensors, path, mapped=True)


def read_sizes(path: Path) -> Sizes:
    """Raises ValueError for a header that no model of this kind can have."""
    with path.open("rb") as file:
        header = file.read(LATER)
    later = header[:4] == MAGIC
    if len(header) < (LATER if later else FIRST):
        raise ValueError(f"{path} must begin with a header of llama2.c, and has {len(header)} bytes; fetch it again.")
    version, start = (struct.unpack_from("<i", header, 4)[0], 8) if later else (0, 0)
    if later and version != 1:
        raise ValueError(f"{path} must be of version 0 or 1, got the quantised {version}; export it again.")
    dim, hidden, layers, heads, kv_heads, vocab, context = struct.unpack_from("<7i", header, start)
    tied = header[36] != 0 if later else vocab > 0
    sizes = Sizes(dim, hidden, layers, heads, kv_heads, vocab if later else abs(vocab), context, tied, version)
    wrong = min(sizes[:7]) < 1 or layers > MOST_LAYERS
    if wrong or dim % heads or heads % kv_heads or sizes.d_head % 2:
        raise ValueError(f"{path} must begin with sizes that make a model, got {', '.join(map(str, sizes[:7]))}.")
    return sizes


def iterate_layout(sizes: Sizes) -> Iterator[Named]:
    """Names and shapes in the order of the file."""
    dim, hidden, narrow = sizes.dim, sizes.hidden, sizes.kv_heads * sizes.d_head
    embedding, final = ("token_embedding_table", (sizes.vocab, dim)), ("rms_final_weight", (dim,))
    norms: list[Named] = [("rms_att_weight", (dim,)), ("rms_ffn_weight", (dim,))]
    attention: list[Named] = [("wq", (dim, dim)), ("wk", (narrow, dim)), ("wv", (narrow, dim)), ("wo", (dim, dim))]
    mlp: list[Named] = [("w1", (hidden, dim)), ("w2", (dim, hidden)), ("w3", (hidden, dim))]
    angles = [(f"freq_cis_{part}", (sizes.context, sizes.d_head // 2)) for part in ("real", "imag")]

    def of_each_layer(kinds: list[Named]) -> Iterator[Named]:
        return ((f"{name}.{layer}", shape) for name, shape in kinds for layer in range(sizes.layers))

    if sizes.version:
        yield from of_each_layer(norms)
        yield from (final, embedding)
        yield from of_each_layer([*attention, *mlp])
    else:
        yield embedding
        yield from of_each_layer([norms[0], *attention, norms[1], *mlp])
        yield from (final, *angles)
    if not sizes.tied:
        yield "wcls", (sizes.vocab, dim)


def build_config(sizes: Sizes) -> ModelConfig:
    return ModelConfig(
        vocab_size=sizes.vocab,
        context=sizes.context,
        d_model=sizes.dim,
        layers=sizes.layers,
        attention=Attention(sizes.heads, kv_heads=sizes.kv_heads, bias=False, out_bias=False),
        mlp=MLP(sizes.hidden, "silu", gated=True, bias=False),
        positions=Positions("rotary"),
        norm=Norm("rms", eps=1e-5),
        tied=sizes.tied,
    )


def neighbours_to_halves(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    """Rows of W_Q or W_K so that numbers that share an angle, neighbours in the file, stand half a head apart.

    Queries and keys change alike, so no score does. transformers stores Llama's in this order.
    """
    return [w.view(-1, config.d_head // 2, 2, w.shape[1]).transpose(1, 2).reshape(w.shape) for w in tensors]


def halves_to_neighbours(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return [w.view(-1, 2, config.d_head // 2, w.shape[1]).transpose(1, 2).reshape(w.shape) for w in tensors]


ROTARY = Transform(neighbours_to_halves, halves_to_neighbours)

FAMILY = Family(
    name="llama2.c",
    rows=(
        ("token_embedding_table", "embed.tokens.weight"),
        ("rms_att_weight.{}", "blocks.{}.norm1.weight"),
        ("wq.{}", "blocks.{}.attn.q.weight", ROTARY),
        ("wk.{}", "blocks.{}.attn.k.weight", ROTARY),
        ("wv.{}", "blocks.{}.attn.v.weight"),
        ("wo.{}", "blocks.{}.attn.out.weight"),
        ("rms_ffn_weight.{}", "blocks.{}.norm2.weight"),
        ("w1.{}", "blocks.{}.mlp.pre.weight"),
        ("w2.{}", "blocks.{}.mlp.out.weight"),
        ("w3.{}", "blocks.{}.mlp.up.weight"),
        ("rms_final_weight", "final_norm.weight"),
        ("freq_cis_real", DROPPED),  # cosines and sines of the angles, which run.c skips as well
        ("freq_cis_imag", DROPPED),
        ("wcls", "head.weight"),
    ),
    tied={"wcls": "token_embedding_table"},
)


def tokenizer_beside(path: Path, vocab_size: int) -> SentencePieceTokenizer | None:
    """Tokenizer in `tok512.bin` (for 512 tokens) or `tokenizer.bin` beside the weights; None where neither is."""
    files = (path.with_name(name) for name in (f"tok{vocab_size}.bin", "tokenizer.bin"))
    return next((read_tokens(file, vocab_size) for file in files if file.is_file() and file != path), None)


def read_tokens(path: Path, vocab_size: int) -> SentencePieceTokenizer:
    """Read a tokenizer: the length of the longest token, then a score, a length and the bytes of each.

    As `run.c` reads a text, it is a SentencePiece BPE that leaves spaces as they are. Raises ValueError,
    naming the file.
    """
    if path.stat().st_size > 4 + vocab_size * (8 + LONGEST_TOKEN):
        raise ValueError(f"{path} must hold {vocab_size} short tokens, and is longer than those; fetch it again.")
    data = path.read_bytes()
    pieces = tuple(SPECIAL.get(id) or read for id, read in enumerate(_pieces(path, data, vocab_size)))
    if len({piece.text for piece in pieces}) < vocab_size or vocab_size < BYTES.stop:
        raise ValueError(f"{path} must hold 3 marks, 256 bytes and other tokens, no two alike; fetch it again.")
    roles = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    model = Model(path, BPE, pieces, True, b"", dummy_prefix=True, one_space=False, roles=roles)
    return SentencePieceTokenizer(add_marks(build_pipeline(model), first=["<s>"]), model, roles)


def _pieces(path: Path, data: bytes, count: int) -> Iterator[Piece]:
    at = 4
    for id in range(count):
        score, length = struct.unpack_from("<fi", data, at) if at + 8 <= len(data) else (0.0, -1)
        at += 8 + length
        if not 0 <= length <= LONGEST_TOKEN or at > len(data) or score != score:
            raise ValueError(f"{path} must hold {count} tokens, and ends or is damaged at token {id}; fetch it again.")
        if id in BYTES:
            yield Piece(f"<0x{id - BYTES.start:02X}>", score, BYTE)
        else:
            yield Piece(data[at - length : at].decode("utf-8", "replace").replace(" ", "\u2581"), score, NORMAL)
    if at != len(data):
        raise ValueError(f"{path} must hold {count} tokens, and {len(data) - at} bytes more follow; fetch it again.")
