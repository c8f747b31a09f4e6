"""The tokenizer that a GGUF file holds, as the files that transformers has of it.

A SentencePiece model becomes one again; a byte-level BPE is cut by the expressions of its `pre`, which are those of
llama.cpp as `tokenizers` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors

from engine.plurals import count_words

PREFIX = "tokenizer.ggml."
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # SentencePiece's numbers too
# What a piece is to SentencePiece; no text is cut into one that is not used, and none is merged through it.
KINDS = {NORMAL: NORMAL, UNKNOWN: UNKNOWN, CONTROL: CONTROL, USER_DEFINED: USER_DEFINED, UNUSED: CONTROL, BYTE: BYTE}
ROLES = {
    "bos_token": "bos_token_id", "eos_token": "eos_token_id", "unk_token": "unknown_token_id",
    "pad_token": "padding_token_id", "sep_token": "seperator_token_id", "mask_token": "mask_token_id",
}  # fmt: skip
BPE, UNIGRAM = 2, 1  # SentencePiece's kinds of models

PUNCTUATION = r"[\p{P}\$\+<=>\^~\|`]+"
ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
BEFORE = r"[^\r\n\p{L}\p{N}]?"
REST_WITH_SLASH = REST.replace(r"[\r\n]*", r"[\r\n/]*", 1)
LLAMA3 = rf"{ENDINGS}|{BEFORE}\p{{L}}+|\p{{N}}{{1,3}}|{REST}"
QWEN2 = rf"{ENDINGS}|{BEFORE}\p{{L}}+|\p{{N}}|{REST}"
TEKKEN = rf"{BEFORE}{UPPER}*{LOWER}+|{BEFORE}{UPPER}+{LOWER}*|\p{{N}}|{REST_WITH_SLASH}"
GPT4O = rf"{BEFORE}{UPPER}*{LOWER}+{ENDINGS}?|{BEFORE}{UPPER}+{LOWER}*{ENDINGS}?|\p{{N}}{{1,3}}|{REST_WITH_SLASH}"
BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"
# What `pre` is called -> the expressions that cut a text, one after the other.
CUTS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(
        ("gpt-2", "mpt", "olmo", "jais", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de"), (GPT2,)
    ),
    **dict.fromkeys(
        ("llama-bpe", "llama3", "llama-v3", "falcon3", "dbrx", "smaug-bpe", "glm4", "chatglm-bpe"), (LLAMA3,)
    ),
    **dict.fromkeys(("qwen2", "stablelm2", "deepseek-r1-qwen", "megrez"), (QWEN2,)),
    **dict.fromkeys(
        ("starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"), (r"\p{N}", GPT2)
    ),
    **dict.fromkeys(("gpt-4o", "llama4"), (GPT4O,)),
    "tekken": (TEKKEN,),
    "falcon": (PUNCTUATION, GPT2, "[0-9][0-9][0-9]"),
    **dict.fromkeys(("bloom", "poro-chat", "gpt3-finnish"), (BLOOM,)),
    "default": (PUNCTUATION.replace("`", ""), GPT2, r"\p{N}+", "[0-9][0-9][0-9]"),
}
WHOLE_FIRST = ("llama-bpe", "llama3", "llama-v3", "falcon3", "tekken")  # a word that is a token is not merged anew


def tokenizer_files(metadata: Mapping[str, Any]) -> dict[str, bytes]:
    """Files of a tokenizer by their names; none where the file has no tokenizer. Raises ValueError, in one sentence,
    for one that cannot be built."""
    kind, tokens = metadata.get(f"{PREFIX}model"), metadata.get(f"{PREFIX}tokens")
    if kind in (None, "none") or tokens is None:
        return {}
    if not isinstance(tokens, list) or not tokens or not all(isinstance(one, str) for one in tokens):
        raise ValueError("tokenizer.ggml.tokens must be a list of texts; convert the model again.")
    types = metadata.get(f"{PREFIX}token_type") or [NORMAL] * len(tokens)
    if len(types) != len(tokens):
        raise ValueError(f"tokenizer.ggml.token_type must say a type for each of {count_words(len(tokens), 'token')}.")
    if kind == "llama":
        return {"tokenizer.model": sentencepiece_file(metadata, tokens, types)} | settings_file(metadata, tokens, True)
    if kind == "gpt2":
        return {"tokenizer.json": bpe_file(metadata, tokens, types)} | settings_file(metadata, tokens, False)
    raise ValueError(f"tokenizer.ggml.model must be llama or gpt2, got {kind!r:.40}; bring a tokenizer.json beside it.")


def settings_file(metadata: Mapping[str, Any], tokens: Sequence[str], spaced: bool) -> dict[str, bytes]:
    """tokenizer_config.json: special tokens by their roles, what stands around a text, the template of turns."""
    said: dict[str, Any] = {}
    for role, name in ROLES.items():
        id = metadata.get(PREFIX + name)
        if isinstance(id, int) and 0 <= id < len(tokens):
            said[role] = tokens[id]
    said["add_bos_token"] = adds(metadata, "bos", spaced or metadata.get(f"{PREFIX}pre") in WHOLE_FIRST[:3])
    said["add_eos_token"] = adds(metadata, "eos", False)
    if not spaced:
        said["tokenizer_class"] = "PreTrainedTokenizerFast"
    elif metadata.get(f"{PREFIX}add_space_prefix") is False:
        said["add_prefix_space"] = False
    if isinstance(template := metadata.get("tokenizer.chat_template"), str):
        said["chat_template"] = template
    return {"tokenizer_config.json": json.dumps(said, ensure_ascii=False).encode()}


def adds(metadata: Mapping[str, Any], role: str, usual: bool) -> bool:
    said = metadata.get(f"{PREFIX}add_{role}_token")
    return usual if said is None else bool(said)


def sentencepiece_file(metadata: Mapping[str, Any], tokens: Sequence[str], types: Sequence[int]) -> bytes:
    """A SentencePiece model of BPE."""
    scores = metadata.get(f"{PREFIX}scores") or [0.0] * len(tokens)
    if len(scores) != len(tokens):
        raise ValueError(f"tokenizer.ggml.scores must say a score for each of {count_words(len(tokens), 'token')}.")
    said = metadata.get(f"{PREFIX}unknown_token_id")
    unknown = said if isinstance(said, int) and 0 <= said < len(tokens) else 0
    model = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
    for number, (token, score, kind) in enumerate(zip(tokens, scores, types, strict=True)):
        kept = KINDS.get(kind, NORMAL)
        kept = UNKNOWN if number == unknown else CONTROL if kept == UNKNOWN else kept  # of which a model has one
        model.pieces.add(piece=token, score=float(score), type=kept)
    model.trainer_spec.model_type = BPE
    model.trainer_spec.byte_fallback = BYTE in types
    for role in ("bos", "eos", "unk", "pad"):
        id = metadata.get(PREFIX + ROLES[f"{role}_token"])
        setattr(model.trainer_spec, f"{role}_id", id if isinstance(id, int) and 0 <= id < len(tokens) else -1)
    model.normalizer_spec.add_dummy_prefix = metadata.get(f"{PREFIX}add_space_prefix") is not False
    model.normalizer_spec.remove_extra_whitespaces = bool(metadata.get(f"{PREFIX}remove_extra_whitespaces"))
    model.normalizer_spec.escape_whitespaces = True
    return bytes(model.SerializeToString())


def bpe_file(metadata: Mapping[str, Any], tokens: Sequence[str], types: Sequence[int]) -> bytes:
    """tokenizer.json of a byte-level BPE."""
    pre = metadata.get(f"{PREFIX}pre") or "default"
    if pre not in CUTS:
        raise ValueError(
            f"tokenizer.ggml.pre must be one that Loupe cuts by ({', '.join(CUTS)}), got {pre!r:.40}; bring the "
            "model's tokenizer.json beside the file."
        )
    merges = metadata.get(f"{PREFIX}merges") or []
    pairs = [tuple(one.split(" ", 1)) for one in merges if isinstance(one, str) and " " in one.strip()]
    ids = {token: id for id, token in enumerate(tokens)}
    known = [pair for pair in pairs if len(pair) == 2 and {*pair, "".join(pair)} <= ids.keys()]
    fast = Tokenizer(models.BPE(ids, known, ignore_merges=pre in WHOLE_FIRST))
    cuts = [pre_tokenizers.Split(Regex(cut), "isolated") for cut in CUTS[pre]]
    fast.pre_tokenizer = pre_tokenizers.Sequence([*cuts, pre_tokenizers.ByteLevel(False, use_regex=False)])
    fast.decoder = decoders.ByteLevel()
    for special, kind in ((True, CONTROL), (False, USER_DEFINED)):
        own = [token for token, one in zip(tokens, types, strict=True) if one == kind]
        fast.add_tokens([AddedToken(token, normalized=False, special=special) for token in own])
    fast.post_processor = around(metadata, tokens)
    return fast.to_str().encode()


def around(metadata: Mapping[str, Any], tokens: Sequence[str]) -> Any:
    """Wraps a text in what stands around it: the start and the end token, where the file asks for them."""
    llama3 = metadata.get(f"{PREFIX}pre") in WHOLE_FIRST[:3]
    found = {role: metadata.get(PREFIX + ROLES[f"{role}_token"]) for role in ("bos", "eos")}
    marks = {role: tokens[id] for role, id in found.items() if isinstance(id, int) and 0 <= id < len(tokens)}
    first = [marks["bos"]] if "bos" in marks and adds(metadata, "bos", llama3) else []
    last = [marks["eos"]] if "eos" in marks and adds(metadata, "eos", False) else []
    level = processors.ByteLevel(trim_offsets=False)
    if not first and not last:
        return level
    single, pair = [*first, "$A", *last], [*first, "$A", *last, *first, "$B:1", *last]
    named = [(token, tokens.index(token)) for token in {*first, *last}]
    return processors.Sequence([level, processors.TemplateProcessing(single=single, pair=pair, special_tokens=named)])
