"""generation_config.json, and the same keys in an old config.json: how a checkpoint wants to be let write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from engine.checkpoints.generation_defaults import GenerationDefaults
from engine.checkpoints.kinds import (
    FLAG,
    ID,
    IDS,
    NOT_NEGATIVE,
    POSITIVE,
    SHARE,
    Kind,
    demand,
    integer,
    is_whole,
    number,
    read_id,
    read_ids,
)

NAME = "generation_config.json"
Table = Mapping[str, Any]


def read_words(value: Any, size: int) -> tuple[tuple[int, ...], ...]:
    demand(isinstance(value, list) and all(value), value)
    return tuple(read_ids(word, size) for word in value)


def read_biases(value: Any, size: int) -> tuple[tuple[tuple[int, ...], float], ...]:
    demand(isinstance(value, list), value)
    demand(all(ids and type(bias) in (int, float) for ids, bias in value), value)
    return tuple((read_ids(ids, size), float(bias)) for ids, bias in value)


def read_decay(value: Any, size: int) -> tuple[int, float]:
    start, factor = value
    return int(demand(is_whole(start) and start >= 0, start)), float(factor)


def read_strings(value: Any, size: int) -> tuple[str, ...]:
    strings = [value] if isinstance(value, str) else value
    demand(isinstance(strings, list) and all(isinstance(one, str) and one for one in strings), value)
    return tuple(strings)


def read_places(value: Any, size: int) -> tuple[tuple[int, int | None], ...]:
    demand(isinstance(value, list) and all(is_whole(place) and place > 0 for place, _ in value), value)
    return tuple((place, None if id is None else read_id(id, size)) for place, id in value)


def read_names(value: Any, size: int) -> dict[str, int]:
    demand(isinstance(value, dict), value)
    return {str(name): read_id(id, size) for name, id in value.items()}


def read_language(value: Any, size: int) -> str:
    code = isinstance(value, str) and re.fullmatch(r"<\|[a-z]{2,3}\|>|[a-z]{2,3}", value)
    return str(demand(bool(code), value))


OF_TRANSCRIPT: Mapping[str, Kind] = {
    "forced_decoder_ids": Kind("a list of [a position, a token id or null]", read_places),
    "lang_to_id": Kind("a table of token ids", read_names),
    "task_to_id": Kind("a table of token ids", read_names),
    "no_timestamps_token_id": ID,
    "language": Kind("a code such as en", read_language),
    "task": Kind("transcribe or translate", lambda value, _: demand(value in ("transcribe", "translate"), value)),
}
READ: Mapping[str, Kind] = {
    "forced_bos_token_id": ID,
    "forced_eos_token_id": IDS,
    "bad_words_ids": Kind("a list of lists of token ids", read_words),
    "suppress_tokens": Kind("a list of token ids", read_ids),
    "begin_suppress_tokens": Kind("a list of token ids", read_ids),
    "sequence_bias": Kind("a list of [token ids, number]", read_biases),
    "no_repeat_ngram_size": integer(0),
    "encoder_no_repeat_ngram_size": integer(0),
    "encoder_repetition_penalty": POSITIVE,
    "exponential_decay_length_penalty": Kind("[a whole number, a number]", read_decay),
    "min_length": integer(0),
    "min_new_tokens": integer(0),
    "max_length": integer(1),
    "max_new_tokens": integer(1),
    "do_sample": FLAG,
    "temperature": NOT_NEGATIVE,
    "top_k": integer(0),
    "top_p": SHARE,
    "min_p": number("a number from 0 to 1", lambda value: 0 <= value <= 1),
    "typical_p": SHARE,
    "repetition_penalty": POSITIVE,
    "num_beams": integer(1),
    "length_penalty": number("a number", lambda value: True),
    "early_stopping": Kind(
        'true, false or "never"', lambda value, size: demand(value in (True, False, "never"), value)
    ),
    "renormalize_logits": FLAG,
    "stop_strings": Kind("a text, or a list of them", read_strings),
    **OF_TRANSCRIPT,
}  # keys that are obeyed, those of `GenerationDefaults.table`
ELSEWHERE = ("eos_token_id", "decoder_start_token_id")  # read by load.py
WITHOUT_EFFECT = (
    "bos_token_id", "pad_token_id",  # a prompt has its start token, and one text at a time has no padding
    "use_cache", "cache_implementation", "cache_config", "max_cache_len", "return_legacy_cache", "prefill_chunk_size",
    "low_memory", "compile_config", "disable_compile", "continuous_batching_config",  # the same tokens, sooner or later
    "is_assistant", "num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold",
    "assistant_early_exit", "assistant_lookbehind", "target_lookbehind", "assistant_ensemble_weight",
    "speculation_type", "use_mtp", "prompt_lookup_num_tokens", "max_matching_ngram_size",  # only beside another model
    "output_attentions", "output_hidden_states", "output_scores", "output_logits", "return_dict_in_generate",
    "remove_invalid_values",  # Loupe opens no weights that are not finite
    "alignment_heads", "median_filter_width", "is_multilingual", "max_initial_timestamp_index", "prev_sot_token_id",
    "transformers_version", "_from_model_config", "_commit_hash", "trust_remote_code",
)  # fmt: skip
NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "guidance_scale": (1,), "top_h": (1,), "epsilon_cutoff": (0,), "eta_cutoff": (0,), "diversity_penalty": (0,),
    "num_beam_groups": (1,), "num_return_sequences": (1,), "penalty_alpha": (0,), "token_healing": (False,),
    "watermarking_config": (), "max_time": (), "constraints": ([],), "force_words_ids": ([],), "dola_layers": (),
    "return_timestamps": (False,),
}  # fmt: skip
# keys of transformers that Loupe does not obey, with the values besides null at which they ask for nothing
GIVEN = {"penalty_alpha": "generate(penalty_alpha=)", "num_return_sequences": "beam(n_best=)"}
# those of them that Loupe does where a person asks for it
BY_CLASS: Mapping[str, Table] = {
    "bart": {"forced_eos_token_id": 2},
    "marian": {"forced_eos_token_id": 0},
    "pegasus": {"forced_eos_token_id": 1},
}
# what transformers' class of a model type says where its config.json does not


def read_generation(
    own: Table | None, theirs: Table, size: int, source: str = NAME
) -> tuple[GenerationDefaults, tuple[str, ...]]:
    """Settings, and a sentence for each key that is not obeyed. `own` is generation_config.json; only where there is
    none, those keys of `theirs`, config.json, count. `size` is that of the vocabulary."""
    if own is None:
        defaults = BY_CLASS.get(str(theirs.get("model_type")), {})
        keys = {*READ, *NEUTRAL} - {*OF_TRANSCRIPT} | {"forced_decoder_ids"}
        own = {name: value for name, value in {**defaults, **theirs}.items() if name in keys}
        source = "config.json"
    found: dict[str, Any] = {}
    notes = []
    for name, value in own.items():
        if value is None or name in WITHOUT_EFFECT or name in ELSEWHERE or value in NEUTRAL.get(name, ()):
            continue
        if name not in READ:
            why = "which Loupe does not do" if name in NEUTRAL else "a key that Loupe does not know"
            why = f"which Loupe does where it is given to {GIVEN[name]}" if name in GIVEN else why
            notes.append(f"{source}'s {name} asks for {value!r:.80}, {why}: it is not obeyed.")
            continue
        try:
            found[name] = READ[name].read(value, size)
        except (ValueError, TypeError, LookupError, OverflowError):
            notes.append(f"{source}'s {name} must be {READ[name].words}, got {value!r:.80}: it is not obeyed.")
    for name in ("forced_bos_token_id", "forced_eos_token_id"):
        forced = found.get(name, ())
        ids = forced if isinstance(forced, tuple) else (forced,)
        if ids and {*ids} <= {*found.get("suppress_tokens", ())}:
            del found[name]
            notes.append(f"{source}'s {name} forces what suppress_tokens forbids, {own[name]!r:.80}: it is not obeyed.")
    if found.get("do_sample") and found.get("num_beams", 1) > 1:
        notes.append(f"{source} asks for beams that are drawn (do_sample); Loupe's search draws nothing.")
    return GenerationDefaults.from_table(found), tuple(notes)


def write_generation(asked: GenerationDefaults) -> dict[str, Any]:
    """Entries of generation_config.json for the settings that differ from the defaults."""
    usual = GenerationDefaults().table
    return {name: value for name, value in asked.table.items() if value != usual[name]}
