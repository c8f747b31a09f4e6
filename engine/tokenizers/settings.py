"""Keys of tokenizer_config.json: which are read, which are knowingly without effect, and a sentence for the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.plurals import count_words
from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.jsonfile import read_object
from engine.tokenizers.special import LISTS, ROLES, read_special_names

FILES = ("tokenizer_config.json", "special_tokens_map.json")
SEGMENTS = "token_type_ids"
BYTEWISE = ("bpe", "byte", "char")  # BPE, whose spaces transformers leaves as they are
MOST_NAMED = 5  # in one note
READ = "read"
KEYS = {  # each with READ, or why it is without effect
    **dict.fromkeys((*ROLES, *LISTS, "added_tokens_decoder"), READ),
    **dict.fromkeys(("tokenizer_class", "add_prefix_space", "trim_offsets", "legacy", "extra_ids"), READ),
    **dict.fromkeys(
        ("do_lower_case", "strip_accents", "tokenize_chinese_chars", "keep_accents", "split_by_punct"), READ
    ),
    **dict.fromkeys(("clean_up_tokenization_spaces", "split_special_tokens"), READ),
    **dict.fromkeys(("truncation_side", "model_input_names"), READ),
    **dict.fromkeys(("add_bos_token", "add_eos_token"), "read; beside a tokenizer.json without effect in transformers"),
    **dict.fromkeys(
        ("model_max_length", "max_len", "max_length", "stride", "truncation_strategy"), "the model's length"
    ),
    **dict.fromkeys(("padding_side", "pad_token_type_id", "pad_to_multiple_of"), "no padding"),
    "chat_template": READ,
    **dict.fromkeys(("response_template", "response_schema", "chat_control_tokens"), "answers are shown as written"),
    "use_default_system_prompt": "the chat template says it",
    "return_token_type_ids": "segment ids are always there",
    **dict.fromkeys(("name_or_path", "special_tokens_map_file", "tokenizer_file", "vocab_file"), "where it once lay"),
    **dict.fromkeys(
        ("merges_file", "source_spm", "target_spm", "fast_tokenizer_files"), "files have their usual names"
    ),
    **dict.fromkeys(("processor_class", "use_fast", "backend", "is_local", "local_files_only"), "of their program"),
    **dict.fromkeys(("init_inputs", "transformers_version", "verbose", "device_map"), "of their program"),
    **dict.fromkeys(("do_basic_tokenize", "never_split", "spaces_between_special_tokens"), "none in version 5"),
    **dict.fromkeys(
        ("sp_model_kwargs", "unk_id", "offset", "mask_token_sent", "vocab_type"), "the vocabulary's file says it"
    ),
    "separate_vocabs": "of the target's texts",
    **dict.fromkeys(("task", "predict_timestamps"), "the template of tokenizer.json says it"),
    "errors": "bytes that are no text are shown as bytes",
    **dict.fromkeys(("source_lang", "target_lang", "language"), "the text begins with its language"),
}


def read_settings(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """tokenizer_config.json and config.json of a folder; empty where there is none."""
    files = folder / FILES[0], folder / "config.json"
    settings, config = (read_object(file) if file.is_file() else {} for file in files)
    return settings, config


def obey_settings(tokenizer: FastTokenizer, folder: Path) -> None:
    """Obey the settings that are the same for every class, and note those that nothing here reads."""
    settings, _ = read_settings(folder)
    tokenizer.clean_up = bool(settings.get("clean_up_tokenization_spaces")) and tokenizer.kind not in BYTEWISE
    tokenizer.fast.encode_special_tokens = bool(settings.get("split_special_tokens"))
    inputs = settings.get("model_input_names")
    tokenizer.segmented = not isinstance(inputs, list) or SEGMENTS in inputs
    notes = [
        f"{file} has {key!r:.80}, which Loupe does not read; compare the ids with transformers' where it matters."
        for file in FILES
        if (folder / file).is_file()
        for key, value in read_object(folder / file).items()
        if key not in KEYS and value is not None
    ]
    named = dict.fromkeys(name for name in read_special_names(folder) if tokenizer.fast.token_to_id(name) is None)
    if named:
        listed = ", ".join(f"{name!r:.80}" for name in list(named)[:MOST_NAMED])
        count = count_words(len(named), "special token")
        notes.append(f"The vocabulary has no place for {count}, left out here: {listed}.")
    tokenizer.notes = (*tokenizer.notes, *notes)
