"""SentencePiece's own files (`tokenizer.model`, `spiece.model`, ...), read into a pipeline of `tokenizers`.

The ids are those of the sentencepiece library. It is not run on the file, which comes from others: only its
description of the format is used, and what was read is checked before anything is built from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import tokenizers
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from engine.tokenizers.charsmap import SPACE, Charsmap, Normaliser, PlacedText, is_damaged, join_texts, match_longest
from engine.tokenizers.encoding import Encoding
from engine.tokenizers.fast import BETWEEN, FastTokenizer
from engine.tokenizers.jsonfile import ID_LIMIT
from engine.tokenizers.vocabulary import check_unicode

proto: Any = sentencepiece_model_pb2  # its classes are made at run time
LARGEST_FILE = 32 * 1024**2  # bytes; of published models the largest has 5 million
LONGEST_PIECE = 512  # characters, the trainer's own limit
UNIGRAM, BPE, WORD, CHAR = 1, 2, 3, 4  # trainer_spec.model_type
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6  # pieces[].type
UNKNOWN_COSTS = 10.0  # an unknown character's score is that much below the lowest
NEVER = -1e6  # the score of a piece that no text is cut into
TYPED_BYTE = "<(?=0x[0-9A-F]{2}>)"  # typed out, <0x41> is six characters and not the letter A


class Piece(NamedTuple):
    text: str
    score: float
    type: int


class Model(NamedTuple):
    """`pieces` in the order of their ids; `roles` names special tokens as transformers does."""

    path: Path
    kind: int
    pieces: tuple[Piece, ...]
    byte_fallback: bool
    charsmap: bytes
    dummy_prefix: bool
    one_space: bool
    roles: Mapping[str, str]


def read_model(path: Path) -> Model:
    """Read a file. Raises ValueError, naming it, for what is no SentencePiece model, or one of another kind."""
    if path.stat().st_size > LARGEST_FILE:
        raise ValueError(
            f"Expected at most {LARGEST_FILE:,} bytes in {path}, got {path.stat().st_size:,}; is it a tokenizer?"
        )
    data = path.read_bytes()
    try:
        read = proto.ModelProto.FromString(data)
        pieces = tuple(Piece(piece.piece, piece.score, piece.type) for piece in read.pieces)
    except DecodeError as error:
        raise ValueError(f"Expected a SentencePiece model in {path}, got something else; fetch it again.") from error
    trained, normal = read.trainer_spec, read.normalizer_spec
    wrong = next(_find_faults(read, pieces), None)
    if wrong is not None:
        raise ValueError(f"Expected a SentencePiece model that can be read in {path}, got {wrong}; fetch another.")
    ids = {"bos_token": trained.bos_id, "eos_token": trained.eos_id, "pad_token": trained.pad_id}
    marks = {role: pieces[id].text for role, id in ids.items() if 0 <= id < len(pieces) and pieces[id].type == CONTROL}
    return Model(
        path=path,
        kind=trained.model_type,
        pieces=pieces,
        byte_fallback=trained.byte_fallback,
        charsmap=normal.precompiled_charsmap,
        dummy_prefix=normal.add_dummy_prefix,
        one_space=normal.remove_extra_whitespaces,
        roles={**marks, "unk_token": next(piece.text for piece in pieces if piece.type == UNKNOWN)},
    )


def _find_faults(read: Any, pieces: Sequence[Piece]) -> Iterator[str]:
    """Name what is damaged, or was trained with an option that would give other ids here."""
    if not read.HasField("trainer_spec") or not read.HasField("normalizer_spec"):
        yield "one that was cut off"
    if not 0 < len(pieces) < ID_LIMIT:
        yield f"{len(pieces):,} pieces"
    if not all(isinstance(piece.text, str) for piece in pieces):
        yield "pieces that are no text"
    texts = {piece.text for piece in pieces}
    if len(texts) < len(pieces) or "" in texts:
        yield "pieces that are empty, or there twice"
    if max(map(len, texts), default=0) > LONGEST_PIECE:
        yield f"a piece of more than {LONGEST_PIECE} characters"
    if not all(isfinite(piece.score) for piece in pieces):
        yield "a score that is no number"
    if sum(piece.type == UNKNOWN for piece in pieces) != 1:
        yield "not one unknown piece"
    if is_damaged(read.normalizer_spec.precompiled_charsmap):
        yield "a table of characters that is damaged"
    if read.trainer_spec.model_type == WORD:
        yield "one of whole words"
    if read.trainer_spec.treat_whitespace_as_suffix or not read.normalizer_spec.escape_whitespaces:
        yield "one that marks spaces in another way"
    if read.denormalizer_spec.precompiled_charsmap:
        yield "one that changes what it decodes"
    if read.trainer_spec.model_type != UNIGRAM and any(piece.type == UNUSED for piece in pieces):
        yield "merges through pieces that are not to be used"
    spelt = {piece.text for piece in pieces if piece.type == BYTE}
    if (spelt or read.trainer_spec.byte_fallback) and spelt != {f"<0x{byte:02X}>" for byte in range(256)}:
        yield "other bytes than the 256"


def build_pipeline(model: Model) -> tokenizers.Tokenizer:
    """Build the cutting alone: it expects text that was normalised, and has the model's own special tokens."""
    fast = tokenizers.Tokenizer(build_unigram(model) if model.kind == UNIGRAM else build_bpe(model))
    if model.kind == UNIGRAM and model.byte_fallback:
        fast.pre_tokenizer = pre_tokenizers.Split(Regex(TYPED_BYTE), "merged_with_previous")
    steps: list[decoders.Decoder] = [decoders.Replace(SPACE, " ")]
    steps += [decoders.ByteFallback()] if model.byte_fallback else []
    steps += [decoders.Fuse()]
    steps += [decoders.Strip(" ", 1, 0)] if model.dummy_prefix else []
    fast.decoder = decoders.Sequence(steps)
    fast.add_tokens(
        [
            AddedToken(piece.text, normalized=False, special=piece.type != USER_DEFINED)
            for piece in model.pieces
            if piece.type in (UNKNOWN, CONTROL, USER_DEFINED)
        ]
    )
    return fast


def build_unigram(model: Model) -> models.Unigram:
    unknown = next(id for id, piece in enumerate(model.pieces) if piece.type == UNKNOWN)
    scores = [(piece.text, _score(piece)) for piece in model.pieces]
    return models.Unigram(scores, unknown, model.byte_fallback)


def _score(piece: Piece) -> float:
    """A score that is never compared must not be the lowest, from which that of the unknown is reckoned."""
    return piece.score if piece.type == NORMAL else NEVER if piece.type == UNUSED else 0.0


def build_bpe(model: Model) -> models.BPE:
    """Two neighbours that make a piece are merged, the piece of the highest score first, of equal ones the leftmost."""
    ids = {piece.text: id for id, piece in enumerate(model.pieces)}
    merged = [piece for piece in model.pieces if piece.type == NORMAL] if model.kind == BPE else []
    merges = [
        (piece.text[:at], piece.text[at:])
        for piece in sorted(merged, key=lambda piece: -piece.score)
        for at in range(1, len(piece.text))
        if piece.text[:at] in ids and piece.text[at:] in ids
    ]
    unknown = model.roles["unk_token"]
    return models.BPE(ids, merges, unk_token=unknown, fuse_unk=True, byte_fallback=model.byte_fallback)


class SentencePieceTokenizer(FastTokenizer):
    """Tokenizer that reads what stands between two special tokens as sentencepiece reads a text of its own.

    A special token typed in letters that the model's table turns into plain ones (full width, say) counts too.
    """

    def __init__(self, fast: tokenizers.Tokenizer, model: Model, roles: Mapping[str, str]) -> None:
        super().__init__(fast, {**model.roles, **roles})
        own = {piece.text for piece in model.pieces if piece.type == USER_DEFINED}
        added = {token.content for token in fast.get_added_tokens_decoder().values()}
        self._markers = match_longest(added - own)
        self._normalise = Normaliser(Charsmap(model.charsmap), match_longest(own), model.dummy_prefix, model.one_space)
        self.model = model

    def encode(self, text: str, pair: str | None = None, *, special: bool = True) -> Encoding:
        first = self.normalise(text)
        if pair is None:
            return _place_spans(super().encode(first.text, special=special), text, first)
        second = self.normalise(pair)
        found = super().encode(first.text, second.text, special=special)
        between = PlacedText(BETWEEN, ((0, len(BETWEEN)),))
        start = len(text) + len(BETWEEN)
        joined = join_texts([(0, first), (len(text), between), (start, second)])
        return replace(_place_spans(found, text + BETWEEN + pair, joined), second=start)

    def pipeline_input(self, text: str) -> str:
        return self.normalise(text).text

    def normalise(self, text: str) -> PlacedText:
        """Normalise the text that is cut into pieces. Raises ValueError for a lone surrogate."""
        check_unicode(text)
        parts, at = [], 0
        for marker in self._markers.finditer(text) if self._markers and not self.fast.encode_special_tokens else ():
            parts.append((at, self._normalise(text[at : marker.start()])))
            parts.append((0, PlacedText(marker[0], (marker.span(),) * len(marker[0]))))
            at = marker.end()
        return join_texts([*parts, (at, self._normalise(text[at:]))])

    def save(self, path: Path) -> None:
        """Save like FastTokenizer. Without `files` `tokenizers` then normalises, nearly as sentencepiece does (see
        `charsmap.py`)."""
        if self.files:
            return super().save(path)
        whole = tokenizers.Tokenizer.from_str(self.fast.to_str())
        whole.normalizer = _build_normalizer(self.model)
        FastTokenizer(whole, self.roles).save(path)


def _place_spans(encoding: Encoding, text: str, read: PlacedText) -> Encoding:
    """Place spans in the text as it was typed, from those in what was made of it."""
    starts = [start for start, _ in read.spans]
    ends = [0, *(end for _, end in read.spans)]
    spans = ((starts[start], ends[end]) if end > start else (ends[end],) * 2 for start, end in encoding.spans)
    return replace(encoding, text=text, spans=tuple(spans))


def _build_normalizer(model: Model) -> normalizers.Normalizer:
    steps: list[normalizers.Normalizer] = [normalizers.Precompiled(model.charsmap)] if model.charsmap else []
    if model.one_space:
        ends = Regex(rf"\A +|[ {SPACE}]+\z")  # Strip would remove every white space: line ends, tabs, U+00A0
        steps += [normalizers.Replace(ends, ""), normalizers.Replace(Regex(" {2,}"), " ")]
    steps += [normalizers.Prepend(SPACE)] if model.dummy_prefix else []
    return normalizers.Sequence([*steps, normalizers.Replace(" ", SPACE)])
