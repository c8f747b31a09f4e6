"""Reading the tokenizer of a checkpoint folder, whichever of the usual files it has."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import tokenizers
from tokenizers import Regex, models, pre_tokenizers

from engine.tokenizers.classes import CLASSES, LLAMA, Settings, TokenizerClass, finish_class, name_class
from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.jsonfile import LARGEST_FILE, check_file_size, check_ids, check_largest, read_object
from engine.tokenizers.kinds.wordpiece import CONTINUES
from engine.tokenizers.pieces import read_state
from engine.tokenizers.pipeline_limits import check_pipeline, flatten_steps, refuse_failure
from engine.tokenizers.ranks import TEKKEN, find_ranks, read_ranks
from engine.tokenizers.settings import FILES as SETTINGS_FILES
from engine.tokenizers.settings import obey_settings, read_settings
from engine.tokenizers.special import UNKNOWN, read_roles, register_special_tokens
from engine.tokenizers.spm import SentencePieceTokenizer
from engine.tokenizers.spm_checkpoints import FILES as SENTENCEPIECE
from engine.tokenizers.spm_checkpoints import (
    OF_CLASS,
    TARGET,
    TARGET_VOCABULARY,
    find_only_model_file,
    find_sentencepiece_file,
    read_sentencepiece,
)

T = TypeVar("T")

SPECIAL_NAME = re.compile(r"<[^<>\s]+>|\[[A-Z]+\]")

WHITE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace() and not 0x1C <= code <= 0x1F)  # as Unicode's
SETTINGS = SETTINGS_FILES[0]
WHOLE = "tokenizer.json"  # has a vocabulary and its steps; vocabulary files beside it are not read
BY_FILE = {"vocab.json": "GPT2", "vocab.txt": "Bert"}  # the class where no file names one
REBUILT = ("normalizer", "pre_tokenizer")
TEMPLATES = "additional_chat_templates/*.jinja"
OF_TOKENIZER = (
    WHOLE, SETTINGS, "special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "chat_template.json",
    "vocab.json", "merges.txt", "vocab.txt", "token_mappings.json", "normalizer.json", *SENTENCEPIECE, TARGET,
    TARGET_VOCABULARY, TEKKEN,
)  # fmt: skip
EXPECTED = {"vocab.json": "a byte-level BPE", "vocab.txt": "BERT's WordPiece"}


def read_tokenizer(folder: Path) -> FastTokenizer | None:
    """Read the tokenizer of a folder; None where there is none. Raises ValueError, naming the file, for a bad one."""
    ranks = None if (folder / WHOLE).is_file() else find_ranks(folder)
    tokenizer = _find_tokenizer(folder) if ranks is None else read_ranks(ranks)
    if tokenizer is not None:
        obey_settings(tokenizer, folder)
        tokenizer.files = collect_files(folder) if is_of_class(tokenizer, folder) else {}
        if ranks is not None:
            tokenizer.files = _write_whole(tokenizer, ranks)
    return tokenizer


def _write_whole(tokenizer: FastTokenizer, ranks: Path) -> dict[str, bytes]:
    """Its files, with a tokenizer.json that every library reads instead of a list of ranks."""
    settings, _ = read_settings(ranks.parent)
    said = {**settings, **tokenizer.roles, "tokenizer_class": "PreTrainedTokenizerFast"}
    made = {WHOLE: tokenizer.fast.to_str().encode(), SETTINGS: json.dumps(said, indent=2).encode()}
    return {name: data for name, data in tokenizer.files.items() if name != ranks.name} | made


def is_of_class(tokenizer: FastTokenizer, folder: Path) -> bool:
    """False for a SentencePiece file that no class of transformers reads as it is read here."""
    if not isinstance(tokenizer, SentencePieceTokenizer):
        return True
    name, unigram = name_class(*read_settings(folder)), isinstance(tokenizer.fast.model, models.Unigram)
    return name in OF_CLASS and (name not in CLASSES or (CLASSES[name].model is models.Unigram) == unigram)


def collect_files(folder: Path) -> dict[str, bytes]:
    """Files of a folder that say something of its tokenizer, by their names in it.

    Where config.json alone says its class, tokenizer_config.json is made to say it too, as transformers does: it is
    saved beside another config.json.
    """
    alone = find_only_model_file(folder)
    paths = [folder / name for name in (*OF_TOKENIZER, *([alone.name] if alone else []))]
    paths += sorted(folder.glob(TEMPLATES))
    small = [path for path in paths if path.is_file() and path.stat().st_size <= LARGEST_FILE]
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in small}
    settings, config = read_settings(folder)
    if settings.get("tokenizer_class") is None and (name := name_class(settings, config)):
        files[SETTINGS] = json.dumps({**settings, "tokenizer_class": f"{name}Tokenizer"}, indent=2).encode()
    return files


def _find_tokenizer(folder: Path) -> FastTokenizer | None:
    spm = None if (folder / WHOLE).is_file() else find_sentencepiece_file(folder)
    if spm is not None:
        return read_sentencepiece(spm)
    found = next((name for name in READERS if (folder / name).is_file()), None)
    if found is not None:
        return READERS[found](folder / found)
    spm = find_only_model_file(folder)
    return None if spm is None else read_sentencepiece(spm)


def _read_tokenizer_json(path: Path) -> FastTokenizer:
    state = read_object(path)
    check_pipeline(state, path)
    fast = _build(path, lambda: tokenizers.Tokenizer.from_file(str(path)))
    check_largest(fast.get_vocab(), path)
    settings, config = read_settings(path.parent)
    name = name_class(settings, config)
    chosen = CLASSES.get(name)
    level = any(step.get("type") == "ByteLevel" for step in flatten_steps(state.get("decoder"), "decoders"))
    if chosen is None or not isinstance(fast.model, chosen.model) or (chosen is LLAMA and level):
        register_special_tokens(fast, path.parent)
        notes = [f"{path.name} is read as it stands: {name}Tokenizer is no class that Loupe knows."] if name else []
        return FastTokenizer(fast, read_roles(path.parent), notes if chosen is None else ())
    made = _rebuild(fast, chosen, path, settings, state)
    if any(read_state(getattr(fast, part)) != read_state(getattr(made.fast, part)) for part in REBUILT):
        note = f"{path.name} gives the vocabulary, and its steps are those of {name}Tokenizer, as in transformers."
        made.notes = (*made.notes, note)
    return made


def _rebuild(
    fast: tokenizers.Tokenizer, chosen: TokenizerClass, path: Path, settings: Settings, state: Mapping[str, Any]
) -> FastTokenizer:
    """The vocabulary of a tokenizer.json among the steps of a class."""
    made = tokenizers.Tokenizer(fast.model)
    if fast.post_processor is not None:
        made.post_processor = fast.post_processor
    if fast.truncation is not None:
        made.enable_truncation(**fast.truncation)
    tables = (step.get("precompiled_charsmap") for step in flatten_steps(state.get("normalizer"), "normalizers"))
    charsmap = b64decode(next(filter(None, tables), ""))
    own = (
        () if "added_tokens_decoder" in settings else sorted(fast.get_added_tokens_decoder().items(), key=itemgetter(0))
    )
    return finish_class(made, chosen, path, settings, charsmap, [token for _, token in own], whole=True)


def _read_vocabulary_file(path: Path) -> FastTokenizer:
    """`vocab.json` with `merges.txt`, or `vocab.txt`: what is made of it, the class says."""
    settings, config = read_settings(path.parent)
    name = name_class(settings, config)
    chosen = CLASSES.get(name or BY_FILE[path.name])
    default = CLASSES[BY_FILE[path.name]]
    readable = (default.model, models.WordLevel) if path.name == "vocab.txt" else (default.model,)
    if settings.get("tokenizer_class") is None and (chosen is None or chosen.model not in readable):
        chosen = default
    if chosen is None or chosen.model not in readable or chosen.in_bytes:
        expected = EXPECTED[path.name]
        raise ValueError(
            f"Expected {expected} in {path}, got a {name}Tokenizer; save its tokenizer.json and load that."
        )
    if path.name == "vocab.txt":
        unknown = read_roles(path.parent).get("unk_token", chosen.roles["unk_token"])
        return finish_class(_read_lines_as(path, unknown, chosen.model), chosen, path, settings)
    return finish_class(_read_merges(path), chosen, path, settings)


def _read_merges(path: Path) -> tokenizers.Tokenizer:
    merges = path.with_name("merges.txt")
    if not merges.is_file():
        raise ValueError(f"Expected merges.txt beside {path}, found none; add it, or a tokenizer.json.")
    check_ids(read_object(path), path)
    check_file_size(merges)
    return tokenizers.Tokenizer(_build(merges, lambda: models.BPE.from_file(str(path), str(merges))))


def _read_lines_as(path: Path, unknown: str, model: type[models.Model]) -> tokenizers.Tokenizer:
    """`vocab.txt`, one entry a line."""
    ids = _read_lines(path)
    if unknown not in ids:
        raise ValueError(f"Expected {unknown!r:.80} among the {len(ids)} lines of {path}, found none; fetch it again.")
    if model is models.WordLevel:
        return tokenizers.Tokenizer(models.WordLevel(ids, unk_token=unknown))
    return tokenizers.Tokenizer(models.WordPiece(ids, unk_token=unknown, continuing_subword_prefix=CONTINUES))


def _read_lines(path: Path) -> dict[str, int]:
    """Ids by line number; white space at the end of a line is left away, and of an entry that stands twice the later
    one counts, as in the reference."""
    check_file_size(path)
    try:
        with path.open(encoding="utf-8", newline="\n") as lines:
            return {line.rstrip(WHITE): id for id, line in enumerate(lines)}
    except UnicodeDecodeError as error:
        raise ValueError(f"Expected UTF-8 text in {path}, got something else ({error}); fetch it again.") from error


def _read_token_mappings(path: Path) -> FastTokenizer:
    ids = check_ids(read_object(path).get("token2id"), path)
    fast = _build(path, lambda: build_word_list(ids))
    register_special_tokens(fast, path.parent)
    return FastTokenizer(fast, read_roles(path.parent))


def build_word_list(ids: Mapping[str, int]) -> tokenizers.Tokenizer:
    """Build the tokenizer of a plain list of words, as some checkpoints carry it, split at white space.

    An entry may be several words ("Thread Milling"): it is found before its single words, longest first. Without an
    entry <unk> the vocabulary is closed: see `check_words`.
    """
    phrases = sorted((entry for entry in ids if len(entry.split()) > 1), key=len, reverse=True)
    entry = "|".join([*map(re.escape, phrases), r"\S+"])
    fast = tokenizers.Tokenizer(models.WordLevel(dict(ids), unk_token=UNKNOWN))
    fast.pre_tokenizer = pre_tokenizers.Split(Regex(rf"(?<!\S)(?:{entry})(?!\S)"), "removed", invert=True)
    fast.add_special_tokens([name for name in ids if SPECIAL_NAME.fullmatch(name)])
    return fast


READERS: dict[str, Callable[[Path], FastTokenizer]] = {
    WHOLE: _read_tokenizer_json,
    "vocab.json": _read_vocabulary_file,
    "vocab.txt": _read_vocabulary_file,
    "token_mappings.json": _read_token_mappings,
}


def _build(path: Path, build: Callable[[], T]) -> T:
    with refuse_failure(f"Expected a tokenizer in {path}, got something else", "fetch it again"):
        return build()
