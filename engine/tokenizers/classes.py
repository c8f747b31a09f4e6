"""Tokenizer classes of transformers: the steps and marks that each builds around a vocabulary.

Of a tokenizer.json such a class takes the vocabulary alone; case, accents, spaces and marks are then those of
tokenizer_config.json, else its own. Which class it is, `tokenizer_class` says, else `model_type` of config.json.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.processors import RobertaProcessing, TemplateProcessing

from engine.tokenizers.charsmap import SPACE
from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.kinds.wordpiece import CONTINUES
from engine.tokenizers.pieces import read_state
from engine.tokenizers.pipeline_limits import check_pipeline, refuse_failure
from engine.tokenizers.special import END, UNKNOWN, read_roles, register_special_tokens

Settings = Mapping[str, Any]  # of tokenizer_config.json
CLIP_WORDS = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def set_byte_level(fast: Tokenizer, settings: Settings, charsmap: bytes) -> None:
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=bool(settings.get("add_prefix_space")))
    fast.decoder = decoders.ByteLevel()


def set_clip(fast: Tokenizer, settings: Settings, charsmap: bytes) -> None:
    """Small letters, words whose last piece is marked as their end."""
    spaces = normalizers.Replace(Regex(r"\s+"), " ")
    fast.normalizer = normalizers.Sequence([normalizers.NFC(), spaces, normalizers.Lowercase()])
    words = pre_tokenizers.Split(Regex(CLIP_WORDS), "removed", invert=True)
    fast.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    fast.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Replace("</w>", " ")])
    if isinstance(fast.model, models.BPE):
        fast.model.end_of_word_suffix = "</w>"


def set_neox(fast: Tokenizer, settings: Settings, charsmap: bytes) -> None:
    set_byte_level(fast, settings, charsmap)
    fast.normalizer = normalizers.NFC()


def set_qwen(fast: Tokenizer, settings: Settings, charsmap: bytes) -> None:
    set_neox(fast, settings, charsmap)
    spaced = bool(settings.get("add_prefix_space"))
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=spaced, use_regex=False)
    fast.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN_WORDS), "isolated"), bytewise])


def set_bert(fast: Tokenizer, settings: Settings, charsmap: bytes) -> None:
    fast.normalizer = normalizers.BertNormalizer(
        handle_chinese_chars=bool(settings.get("tokenize_chinese_chars", True)),
        strip_accents=None if settings.get("strip_accents") is None else bool(settings["strip_accents"]),
        lowercase=bool(settings.get("do_lower_case", True)),
    )
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.decoder = decoders.WordPiece(prefix=CONTINUES)


def set_spaced_words(fast: Tokenizer, settings: Settings, charsmap: bytes) -> None:
    """SentencePiece's words, each with a "▁" before it."""
    if charsmap:
        fast.normalizer = normalizers.Precompiled(charsmap)
    scheme = "always" if settings.get("add_prefix_space", True) else "never"
    words = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme=scheme)
    fast.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), words])
    fast.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme=scheme)


def set_t5(fast: Tokenizer, settings: Settings, charsmap: bytes) -> None:
    set_spaced_words(fast, {}, charsmap)


def set_albert(fast: Tokenizer, settings: Settings, charsmap: bytes) -> None:
    set_spaced_words(fast, settings, b"")
    steps: list[normalizers.Normalizer] = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    steps += [] if settings.get("keep_accents") else [normalizers.NFKD(), normalizers.StripAccents()]
    steps += [normalizers.Lowercase()] if settings.get("do_lower_case", True) else []
    steps += [normalizers.Precompiled(charsmap)] if charsmap else []
    fast.normalizer = normalizers.Sequence(steps)


def set_deberta(fast: Tokenizer, settings: Settings, charsmap: bytes) -> None:
    lower: list[normalizers.Normalizer] = [normalizers.Lowercase()] if settings.get("do_lower_case") else []
    spaces = normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " ")
    fast.normalizer = normalizers.Sequence([*lower, spaces, normalizers.NFC(), normalizers.Strip(left=False)])
    scheme = "always" if settings.get("add_prefix_space", True) else "first"
    words = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme=scheme)
    apart = [pre_tokenizers.Punctuation("isolated")] if settings.get("split_by_punct") else []
    fast.pre_tokenizer = pre_tokenizers.Sequence([*apart, words])
    fast.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme=scheme)


def set_pegasus(fast: Tokenizer, settings: Settings, charsmap: bytes) -> None:
    first = normalizers.Precompiled(charsmap) if charsmap else normalizers.Replace(Regex(r"\n"), " ")
    fast.normalizer = normalizers.Sequence([first, normalizers.Replace(Regex(" {2,}"), " ")])
    fast.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")
    fast.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme="always")


def set_llama(fast: Tokenizer, settings: Settings, charsmap: bytes) -> None:
    spaced = settings.get("add_prefix_space")
    spaced = True if spaced is None else bool(spaced)
    scheme = "never" if not spaced else "always" if settings.get("legacy", False) else "first"
    fast.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme=scheme, split=False)
    steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    fast.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if spaced else steps)


def set_gemma(fast: Tokenizer, settings: Settings, charsmap: bytes) -> None:
    fast.normalizer = normalizers.Replace(" ", SPACE)
    fast.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    fast.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])


def set_esm(fast: Tokenizer, settings: Settings, charsmap: bytes) -> None:
    """Each entry wherever it stands, the longest first, and what is left cut at white space."""
    entries = sorted(filter(None, fast.get_vocab()), key=len, reverse=True)
    found = pre_tokenizers.Split(Regex("|".join(map(re.escape, entries))), "isolated")
    fast.pre_tokenizer = pre_tokenizers.Sequence([found, pre_tokenizers.WhitespaceSplit()])


@dataclass(frozen=True)
class TokenizerClass:
    """`roles` are its special tokens where no file names others. `single` and `pair` name the marks around texts by
    their roles; left empty, they are what add_bos_token and add_eos_token ask for. A class that `keeps_marks` leaves
    those of a tokenizer.json.

    `in_bytes` is whether a BPE writes an unknown character as its bytes.
    """

    model: type[models.Model]
    set_steps: Callable[[Tokenizer, Settings, bytes], None]
    roles: Mapping[str, str]
    single: Sequence[str] = ()
    pair: Sequence[str] = ()
    keeps_marks: bool = False
    in_bytes: bool = False


CLS, SEP, BOS, EOS = "cls_token", "sep_token", "bos_token", "eos_token"
ENDS = {"unk_token": END, BOS: END, EOS: END}
FAIRSEQ = {BOS: "<s>", EOS: "</s>", SEP: "</s>", CLS: "<s>", "unk_token": UNKNOWN, "pad_token": "<pad>"}
FAIRSEQ |= {"mask_token": "<mask>"}
BERT_ROLES = {"unk_token": "[UNK]", SEP: "[SEP]", "pad_token": "[PAD]", CLS: "[CLS]", "mask_token": "[MASK]"}
CLS_ROLES = {BOS: "[CLS]", EOS: "[SEP]", **BERT_ROLES}
CLIP_ROLES = {BOS: "<|startoftext|>", **dict.fromkeys((EOS, "unk_token", "pad_token"), END)}
ESM_ROLES = {CLS: "<cls>", EOS: "<eos>", "unk_token": UNKNOWN, "pad_token": "<pad>", "mask_token": "<mask>"}
T5_ROLES = {EOS: "</s>", "unk_token": UNKNOWN, "pad_token": "<pad>"}
GEMMA_ROLES = {BOS: "<bos>", EOS: "<eos>", "unk_token": UNKNOWN, "pad_token": "<pad>", "mask_token": "<mask>"}
OF_BERT = (CLS, "$A:0", SEP), (CLS, "$A:0", SEP, "$B:1", f"{SEP}:1")
OF_FAIRSEQ = (BOS, "$A:0", EOS), (BOS, "$A:0", EOS, EOS, "$B:0", EOS)
OF_DEBERTA = (CLS, "$A:0", SEP), (CLS, "$A:0", SEP, SEP, "$B:0", SEP)

GPT2 = TokenizerClass(models.BPE, set_byte_level, ENDS, keeps_marks=True)
BERT = TokenizerClass(models.WordPiece, set_bert, BERT_ROLES, *OF_BERT)
ROBERTA = TokenizerClass(models.BPE, set_byte_level, FAIRSEQ, *OF_DEBERTA)
ALBERT = TokenizerClass(
    models.Unigram, set_albert, CLS_ROLES | {"unk_token": UNKNOWN, "pad_token": "<pad>"}, *OF_BERT, True
)
LLAMA = TokenizerClass(
    models.BPE, set_llama, {BOS: "<s>", EOS: "</s>", "unk_token": UNKNOWN}, keeps_marks=True, in_bytes=True
)

CLASSES = {
    "Albert": ALBERT,
    **dict.fromkeys(("Bart", "LED", "Longformer", "Mvp", "Roberta"), ROBERTA),
    **dict.fromkeys(("Bert", "ConvBert", "DistilBert", "Electra", "LayoutLM", "Lxmert", "MobileBert"), BERT),
    "SqueezeBert": BERT,
    "CLIP": TokenizerClass(models.BPE, set_clip, CLIP_ROLES, (BOS, "$A:0", EOS), (BOS, "$A:0", EOS, "$B:0", EOS)),
    "Camembert": TokenizerClass(models.Unigram, set_spaced_words, FAIRSEQ, *OF_FAIRSEQ),
    "Deberta": TokenizerClass(models.BPE, set_byte_level, CLS_ROLES, *OF_DEBERTA),
    "DebertaV2": TokenizerClass(models.Unigram, set_deberta, CLS_ROLES, *OF_BERT),
    **dict.fromkeys(("CodeGen", "GPT2", "Whisper"), GPT2),
    "Esm": TokenizerClass(models.WordLevel, set_esm, ESM_ROLES, (CLS, "$A:0", EOS), (CLS, "$A:0", EOS, "$B:0", EOS)),
    "GPTNeoX": TokenizerClass(models.BPE, set_neox, ENDS | {"pad_token": "<|padding|>"}),
    "Gemma": TokenizerClass(models.BPE, set_gemma, GEMMA_ROLES, keeps_marks=True, in_bytes=True),
    **dict.fromkeys(("Llama", "Phi3"), LLAMA),
    "MPNet": TokenizerClass(models.WordPiece, set_bert, FAIRSEQ | {"unk_token": "[UNK]"}, *OF_DEBERTA),
    "Pegasus": TokenizerClass(
        models.Unigram, set_pegasus, T5_ROLES | {"mask_token": "<mask_2>"}, ("$A", EOS), ("$A", "$B:0", EOS)
    ),
    "Qwen2": TokenizerClass(models.BPE, set_qwen, {"unk_token": END, EOS: END, "pad_token": END}, keeps_marks=True),
    "T5": TokenizerClass(models.Unigram, set_t5, T5_ROLES, ("$A", EOS), ("$A", EOS, "$B:0", EOS)),
    "XLMRoberta": TokenizerClass(models.Unigram, set_spaced_words, FAIRSEQ, *OF_FAIRSEQ),
}
NO_CLASS = ("", "PreTrained", "TokenizersBackend", "SentencePieceBackend", "PythonBackend")  # the files say everything
OF_TYPE = {
    "albert": "Albert",
    **dict.fromkeys(("bart", "roberta"), "Roberta"),
    **dict.fromkeys(("bert", "convbert", "distilbert", "electra", "mobilebert", "squeezebert"), "Bert"),
    "camembert": "Camembert",
    **dict.fromkeys(("clip", "clip_text_model"), "CLIP"),
    "deberta": "Deberta",
    "deberta-v2": "DebertaV2",
    "esm": "Esm",
    **dict.fromkeys(("gpt2", "gpt_neo", "gptj", "opt", "phi", "starcoder2", "codegen"), "GPT2"),
    **dict.fromkeys(("gpt_neox", "mpt", "olmo", "olmoe"), "GPTNeoX"),
    **dict.fromkeys(("gemma", "gemma2", "gemma3_text"), "Gemma"),
    **dict.fromkeys(("mistral", "mixtral", "phi3"), ""),  # of these transformers believes the file, whatever it names
    "mpnet": "MPNet",
    "nomic_bert": "Bert",
    "pegasus": "Pegasus",
    **dict.fromkeys(("qwen2", "qwen3"), "Qwen2"),
    **dict.fromkeys(("mt5", "t5"), "T5"),
    "xlm-roberta": "XLMRoberta",
}


def name_class(settings: Settings, config: Settings) -> str:
    """The class without "Tokenizer" and "Fast", from tokenizer_config.json and config.json; empty where none is."""
    named = settings.get("tokenizer_class") or config.get("tokenizer_class")
    kind = config.get("model_type")
    of_type = OF_TYPE.get(kind) if isinstance(kind, str) else None
    if not isinstance(named, str) or not named:
        return of_type or ""
    name = named.removesuffix("Fast").removesuffix("Tokenizer")
    if kind == "qwen2" and name in CLASSES:  # whose published files may name another by mistake
        return "Qwen2"
    return "" if name in NO_CLASS or (of_type == "" and name in CLASSES) else name


def finish_class(
    fast: Tokenizer,
    chosen: TokenizerClass,
    path: Path,
    settings: Settings,
    charsmap: bytes = b"",
    added: Sequence[AddedToken] = (),
    whole: bool = False,
) -> FastTokenizer:
    """Give a vocabulary the steps, special tokens and marks of a class. Raises ValueError, naming `path`."""
    roles = {**chosen.roles, **read_roles(path.parent)}
    if isinstance(fast.model, models.BPE):
        fast.model.unk_token = roles.get("unk_token") if chosen.set_steps in (set_gemma, set_clip) else None
        fast.model.fuse_unk = fast.model.byte_fallback = chosen.in_bytes
        fast.model.ignore_merges = False
    elif isinstance(fast.model, models.WordPiece):
        fast.model.unk_token = roles["unk_token"]
    with refuse_failure(f"Expected the steps of a tokenizer in {path}, got what fails", "fetch it again"):
        chosen.set_steps(fast, settings, charsmap)
        fast.add_tokens([*added])
    check_pipeline({"normalizer": read_state(fast.normalizer)}, path)
    register_special_tokens(fast, path.parent, chosen.roles)
    with refuse_failure(f"Expected special tokens beside {path} that can stand around a text", "name others"):
        lacking = _build_template(fast, chosen, roles, settings, whole)
    note = f"The vocabulary lacks {', '.join(lacking)}, which its class puts around each text: left out; add it there."
    return FastTokenizer(fast, roles, [note] if lacking else [])


def _build_template(
    fast: Tokenizer, chosen: TokenizerClass, roles: Mapping[str, str], settings: Settings, whole: bool
) -> list[str]:
    """Put the class's marks around texts, those that the vocabulary has, and return the others.

    `whole` is whether that comes from a tokenizer.json, beside which add_bos_token and add_eos_token ask for nothing.
    """
    if whole and chosen.keeps_marks and fast.post_processor is not None:
        return []
    ids = {role: id for role, token in roles.items() if (id := fast.token_to_id(token)) is not None}
    if chosen is ROBERTA and SEP in ids and CLS in ids:
        around = (roles[SEP], ids[SEP]), (roles[CLS], ids[CLS])
        trims, spaced = bool(settings.get("trim_offsets", True)), bool(settings.get("add_prefix_space"))
        fast.post_processor = RobertaProcessing(*around, trim_offsets=trims, add_prefix_space=spaced)
        return []
    single, pair = chosen.single, chosen.pair
    if not single:
        first = [BOS] if settings.get("add_bos_token") and not whole else []
        last = [EOS] if settings.get("add_eos_token") and not whole else []
        single = (*first, "$A:0", *last)
        pair = (*single, *(f"{mark}:1" for mark in first), "$B:1", *(f"{mark}:1" for mark in last))

    def fill(parts: Sequence[str]) -> list[str]:
        """The parts with the tokens of their roles."""
        split = [part.split(":") for part in parts]
        known = [(name, of) for name, *of in split if name in ids or name.startswith("$")]
        return [":".join([roles.get(name, name), *(of or "0")]) for name, of in known]

    marks = {roles[role]: id for role, id in ids.items()}
    fast.post_processor = TemplateProcessing(single=fill(single), pair=fill(pair), special_tokens=list(marks.items()))
    return sorted({repr(roles[name]) for part in pair if (name := part.split(":")[0]) in roles.keys() - ids.keys()})
