"""The tokenizer that a GGUF file holds, as the files that transformers has of it.

A SentencePiece model of BPE becomes one again; a byte-level BPE is cut by the expressions of its `pre`, which are those
of llama.cpp as `tokenizers` writes them; BERT's WordPiece and T5's Unigram are the pipelines that transformers makes of
their files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from engine.plurals import count_words
from engine.tokenizers.charsmap import SPACE, is_damaged
from engine.tokenizers.spm import NEVER

PREFIX = "tokenizer.ggml."
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # SentencePiece's numbers too
# What a piece is to SentencePiece; no text is cut into one that is not used, and none is merged through it.
KINDS = {NORMAL: NORMAL, UNKNOWN: UNKNOWN, CONTROL: CONTROL, USER_DEFINED: USER_DEFINED, UNUSED: CONTROL, BYTE: BYTE}
ROLES = {
    "bos_token": "bos_token_id", "eos_token": "eos_token_id", "unk_token": "unknown_token_id",
    "pad_token": "padding_token_id", "sep_token": "seperator_token_id", "mask_token": "mask_token_id",
    "cls_token": "cls_token_id",
}  # fmt: skip
BPE = 2  # SentencePiece's kind of model
# BERT's special tokens -> how a file may call their ids, and whether none can be done without.
OF_WORDS = {
    "[CLS]": (("cls_token_id", "bos_token_id"), True), "[SEP]": (("seperator_token_id", "eos_token_id"), True),
    "[UNK]": (("unknown_token_id",), True), "[PAD]": (("padding_token_id",), False),
    "[MASK]": (("mask_token_id",), False),
}  # fmt: skip

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
DEEPSEEK3 = (
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
)
HAN = "[一-龥ࠀ-一가-퟿]+"
# Its letters are those with a case, which the file lists one by one.
DEEPSEEK = ("[\r\n]", r"\s?[\p{Lu}\p{Ll}\p{Lt}]+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", HAN, r"\p{N}+")
DEEPSEEK_CODER = ("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", HAN, r"\p{N}")
SEED = QWEN2.replace(r"\p{N}]+[\r\n]*|", r"\p{N}\r\n]+|")
BAILING = QWEN2.replace(r"\s*[\r\n]+|", r"\s*[\r\n]|")
BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"
# What `pre` is called -> the expressions that cut a text, one after the other.
CUTS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(
        (
            "gpt-2",
            "mpt",
            "olmo",
            "jais",
            "phi-2",
            "jina-es",
            "jina-de",
            "jina-v2-es",
            "jina-v2-de",
            "jina-v1-en",
            "jina-v2-code",
            "roberta-bpe",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "modern-bert",
            "exaone4",
            "trillion",
            "granite-docling",
        ),
        (GPT2,),
    ),
    **dict.fromkeys(
        (
            "llama-bpe",
            "llama3",
            "llama-v3",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
            "jina-v5-nano",
            "dbrx",
            "smaug-bpe",
            "glm4",
            "chatglm-bpe",
        ),
        (LLAMA3,),
    ),
    **dict.fromkeys(
        ("qwen2", "stablelm2", "deepseek-r1-qwen", "megrez", "kormo", "f2llmv2", "hunyuan", "grok-2"), (QWEN2,)
    ),
    **dict.fromkeys(
        ("starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"), (r"\p{N}", GPT2)
    ),
    **dict.fromkeys(("gpt-4o", "llama4", "kanana2", "minimax-m2"), (GPT4O,)),
    **dict.fromkeys(("deepseek-v3", "hunyuan-dense"), DEEPSEEK3),
    "deepseek-llm": DEEPSEEK,
    "deepseek-coder": DEEPSEEK_CODER,
    "seed-coder": (SEED,),
    **dict.fromkeys(("bailingmoe", "bailingmoe2", "llada-moe"), (BAILING,)),
    "tekken": (TEKKEN,),
    "falcon": (PUNCTUATION, GPT2, "[0-9][0-9][0-9]"),
    **dict.fromkeys(("bloom", "poro-chat", "gpt3-finnish"), (BLOOM,)),
    "viking": (BLOOM, r"\p{N}"),
    "default": (PUNCTUATION.replace("`", ""), GPT2, r"\p{N}+", "[0-9][0-9][0-9]"),
}
# Whose texts begin with a token of the start, and of which a word that is a token is not merged anew.
BEGINS = (
    "llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano", "tekken",
)  # fmt: skip


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
    if kind not in WHOLE:
        known = ", ".join(("llama", *WHOLE))
        raise ValueError(
            f"tokenizer.ggml.model must be one of {known}, got {kind!r:.40}; bring a tokenizer.json beside it."
        )
    return {"tokenizer.json": WHOLE[kind](metadata, tokens, types)} | settings_file(metadata, tokens, False)


def settings_file(metadata: Mapping[str, Any], tokens: Sequence[str], spaced: bool) -> dict[str, bytes]:
    """tokenizer_config.json: special tokens by their roles, what stands around a text, the template of turns."""
    said: dict[str, Any] = {}
    for role, name in ROLES.items():
        id = metadata.get(PREFIX + name)
        if isinstance(id, int) and 0 <= id < len(tokens):
            said[role] = tokens[id]
    if metadata[f"{PREFIX}model"] in ("llama", "gpt2"):
        said["add_bos_token"] = adds(metadata, "bos", spaced or metadata.get(f"{PREFIX}pre") in BEGINS)
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


def read_scores(metadata: Mapping[str, Any], tokens: Sequence[str]) -> list[float]:
    scores: list[float] = metadata.get(f"{PREFIX}scores") or [0.0] * len(tokens)
    if len(scores) != len(tokens):
        raise ValueError(f"tokenizer.ggml.scores must say a score for each of {count_words(len(tokens), 'token')}.")
    return scores


def read_unknown(metadata: Mapping[str, Any], tokens: Sequence[str]) -> int:
    said = metadata.get(f"{PREFIX}unknown_token_id")
    return said if isinstance(said, int) and 0 <= said < len(tokens) else 0


def sentencepiece_file(metadata: Mapping[str, Any], tokens: Sequence[str], types: Sequence[int]) -> bytes:
    """A SentencePiece model of BPE."""
    scores, unknown = read_scores(metadata, tokens), read_unknown(metadata, tokens)
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
    fast = Tokenizer(models.BPE(ids, known, ignore_merges=pre in BEGINS))
    cuts = [pre_tokenizers.Split(Regex(cut), "isolated") for cut in CUTS[pre]]
    fast.pre_tokenizer = pre_tokenizers.Sequence([*cuts, pre_tokenizers.ByteLevel(False, use_regex=False)])
    fast.decoder = decoders.ByteLevel()
    add_own_tokens(fast, tokens, types)
    fast.post_processor = around(metadata, tokens)
    return fast.to_str().encode()


def word_file(metadata: Mapping[str, Any], tokens: Sequence[str], types: Sequence[int]) -> bytes:
    """tokenizer.json of BERT's WordPiece, whose tokens at the start of a word stand in the file behind a mark, and the
    others plainly. No file says that letters are made small: they are where no token has a large one."""
    names = [name_word_piece(token, kind) for token, kind in zip(tokens, types, strict=True)]
    ids = {name: id for id, name in enumerate(names)}
    if len(ids) < len(names):
        raise ValueError("tokenizer.ggml.tokens must differ from one another, and two are alike; convert it again.")
    special = {usual: find_special(metadata, names, usual) for usual in OF_WORDS}
    first, last, unknown = (name or lacking(usual) for usual, name in special.items() if OF_WORDS[usual][1])
    fast = Tokenizer(models.WordPiece(ids, unk_token=unknown))
    large = (name for name in names if not name.startswith("[") and name not in special.values())
    fast.normalizer = normalizers.BertNormalizer(lowercase=all(name.lower() == name for name in large))
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.decoder = decoders.WordPiece()
    own = [name for name, kind in zip(names, types, strict=True) if kind == CONTROL or name in special.values()]
    fast.add_tokens([AddedToken(name, normalized=False, special=True) for name in own])
    fast.post_processor = processors.TemplateProcessing(
        single=[first, "$A", last],
        pair=[first, "$A", last, "$B:1", f"{last}:1"],
        special_tokens=[(name, ids[name]) for name in {first, last}],
    )
    return fast.to_str().encode()


def name_word_piece(token: str, kind: int) -> str:
    """BERT's own name of a token."""
    if kind == CONTROL or (len(token) > 2 and token[0] + token[-1] == "[]"):
        return token
    return token[1:] if token.startswith(SPACE) else f"##{token}"


def find_special(metadata: Mapping[str, Any], names: Sequence[str], usual: str) -> str | None:
    """The token that the file names for a role, else the one that is usual, where it has that."""
    ids = (metadata.get(PREFIX + role) for role in OF_WORDS[usual][0])
    id = next((id for id in ids if isinstance(id, int) and 0 <= id < len(names)), None)
    return usual if id is None and usual in names else None if id is None else names[id]


def lacking(usual: str) -> str:
    raise ValueError(
        f"tokenizer.ggml.tokens must have a token such as {usual}, and the file names none; convert it again."
    )


def unigram_file(metadata: Mapping[str, Any], tokens: Sequence[str], types: Sequence[int]) -> bytes:
    """tokenizer.json of a SentencePiece model of a Unigram, as transformers makes it for T5 and XLM-RoBERTa."""
    scores, unknown = read_scores(metadata, tokens), read_unknown(metadata, tokens)
    table = bytes(one & 255 for one in metadata.get(f"{PREFIX}precompiled_charsmap") or ())
    if is_damaged(table):
        raise ValueError(
            "tokenizer.ggml.precompiled_charsmap must be a table of characters, and is damaged; fetch it again."
        )
    never = [NEVER if kind == UNUSED else float(score) for score, kind in zip(scores, types, strict=True)]
    fast = Tokenizer(models.Unigram(list(zip(tokens, never, strict=True)), unknown, BYTE in types))
    steps: list[normalizers.Normalizer] = [normalizers.Precompiled(table)] if table else []
    if metadata.get(f"{PREFIX}remove_extra_whitespaces") is not False:
        steps += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    fast.normalizer = normalizers.Sequence(steps)
    spaced = "never" if metadata.get(f"{PREFIX}add_space_prefix") is False else "always"
    fast.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme=spaced)
    fast.decoder = decoders.Metaspace(SPACE, prepend_scheme=spaced)
    add_own_tokens(fast, tokens, types)
    if (post := around(metadata, tokens)) is not None:
        fast.post_processor = post
    return fast.to_str().encode()


WHOLE: Mapping[str, Callable[[Mapping[str, Any], Sequence[str], Sequence[int]], bytes]] = {
    "gpt2": bpe_file, "bert": word_file, "t5": unigram_file,
}  # fmt: skip


def add_own_tokens(fast: Tokenizer, tokens: Sequence[str], types: Sequence[int]) -> None:
    for special, kind in ((True, CONTROL), (False, USER_DEFINED)):
        own = [token for token, one in zip(tokens, types, strict=True) if one == kind]
        fast.add_tokens([AddedToken(token, normalized=False, special=special) for token in own])


def around(metadata: Mapping[str, Any], tokens: Sequence[str]) -> Any:
    """Wraps a text in what stands around it: the start and the end token, where the file asks for them; None for
    nothing of either."""
    unigram = metadata[f"{PREFIX}model"] == "t5"
    llama3 = metadata.get(f"{PREFIX}pre") in BEGINS
    found = {role: metadata.get(PREFIX + ROLES[f"{role}_token"]) for role in ("bos", "eos")}
    marks = {role: tokens[id] for role, id in found.items() if isinstance(id, int) and 0 <= id < len(tokens)}
    first = [marks["bos"]] if "bos" in marks and adds(metadata, "bos", llama3) else []
    last = [marks["eos"]] if "eos" in marks and adds(metadata, "eos", unigram) else []
    level = [] if unigram else [processors.ByteLevel(trim_offsets=False)]
    if not first and not last:
        return next(iter(level), None)
    between = last if unigram and first else first
    single, pair = [*first, "$A", *last], [*first, "$A", *last, *between, "$B:1", *last]
    named = [(token, tokens.index(token)) for token in {*first, *last}]
    return processors.Sequence([*level, processors.TemplateProcessing(single=single, pair=pair, special_tokens=named)])
