"""Special tokens: their names here, and what checkpoints say of them in files beside the vocabulary."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken

from engine.tokenizers.jsonfile import check_ids, read_object
from engine.tokenizers.pipeline_limits import refuse_failure

END = "<|endoftext|>"
UNKNOWN = "<unk>"

USUAL = {
    "eos_token": (END, "</s>", "<eos>", "<EOS>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>"),
    "unk_token": (UNKNOWN, "[UNK]"),
    "mask_token": ("[MASK]", "<mask>"),
    "cls_token": ("[CLS]",),
    "sep_token": ("[SEP]",),
    "pad_token": ("[PAD]", "<pad>"),
}
ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
LISTS = ("additional_special_tokens", "extra_special_tokens")
ADDED_FIELDS = ("lstrip", "rstrip", "single_word", "normalized", "special")


def unique_names(names: Iterable[str]) -> list[str]:
    """Special tokens in the order of their ids."""
    ordered = list(dict.fromkeys(names))
    if "" in ordered:
        raise ValueError("Expected special tokens with a name, got an empty one; write it like '<name>'.")
    return ordered


def guess_roles(special_tokens: Collection[str]) -> dict[str, str]:
    """Guess roles that no file gives by the names that checkpoints use; the first name that is there wins."""
    found = {role: [name for name in names if name in special_tokens] for role, names in USUAL.items()}
    return {role: names[0] for role, names in found.items() if names}


def read_roles(folder: Path) -> dict[str, str]:
    """Read roles, {"eos_token": "</s>", ...}.

    `special_tokens_map.json` wins, unless tokenizer_config.json is of the kind that says which tokens were added.
    """
    declared = _read_declared_tokens(folder)
    return {role: name for role in ROLES if (name := _read_content(declared.get(role))) is not None}


def read_special_names(folder: Path) -> list[str]:
    """Every special token that the files name for a role or in a list."""
    declared = _read_declared_tokens(folder)
    listed = (_read_content(token) for key in LISTS for token in _list_tokens(declared.get(key)))
    return [*read_roles(folder).values(), *filter(None, listed)]


def register_special_tokens(fast: tokenizers.Tokenizer, folder: Path, usual: Mapping[str, str] | None = None) -> None:
    """Make `fast` know every special token that the files in `folder` name, and which side of a text they cut.

    `usual` are those of its class, which count where the files name no other for their role.

    A role's token that is neither in the vocabulary nor given an id is left out: it has no row in the model.
    """
    declared = _read_declared_tokens(folder)
    if (side := declared.get("truncation_side")) in ("left", "right"):
        fast.enable_truncation(2**20, direction=side)  # to which length, the model decides
    for id, token in sorted(_read_added_tokens(folder, declared).items(), key=lambda item: item[0]):
        with refuse_failure(f"Expected an added token in {folder}, got what fails", "fetch its files again"):
            fast.add_tokens([token])
        if (got := fast.token_to_id(token.content)) != id:
            raise ValueError(
                f"Expected the added token {token.content!r:.80} in {folder} to have id {id}, got {got}, the "
                "next free one; number the added tokens from the end of the vocabulary, without gaps."
            )
    registered = {token.content for token in fast.get_added_tokens_decoder().values()}
    named = {**(usual or {}), **{role: declared[role] for role in ROLES if _read_content(declared.get(role))}}
    lists = (token for key in LISTS for token in _list_tokens(declared.get(key)))
    tokens = {token.content: token for token in map(_make_token, [*named.values(), *lists]) if token.content}
    fast.add_special_tokens(
        [token for name, token in tokens.items() if name not in registered and fast.token_to_id(name) is not None]
    )


def _make_token(token: Any) -> AddedToken:
    """A special token, with what its object says of the spaces beside it."""
    fields = token if isinstance(token, dict) else {}
    chosen = {key: bool(fields[key]) for key in ADDED_FIELDS if key in fields}
    return AddedToken(_read_content(token) or "", **{**chosen, "special": True})


def _read_declared_tokens(folder: Path) -> dict[str, Any]:
    said, older = (
        read_object(file) if (file := folder / name).is_file() else {}
        for name in ("tokenizer_config.json", "special_tokens_map.json")
    )
    return {**older, **said} if "added_tokens_decoder" in said else {**said, **older}


def _read_added_tokens(folder: Path, declared: dict[str, Any]) -> dict[int, AddedToken]:
    """Added tokens by id, from the old `added_tokens.json` and the newer `added_tokens_decoder`."""
    tokens: dict[int, AddedToken] = {}
    old = folder / "added_tokens.json"
    if old.is_file():
        special = {_read_content(declared.get(role)) for role in ROLES}
        special |= {_read_content(token) for key in LISTS for token in _list_tokens(declared.get(key))}
        for name, id in check_ids(read_object(old), old).items():
            tokens[id] = AddedToken(name, special=name in special, normalized=name not in special)
    newer = declared.get("added_tokens_decoder", {})
    if not isinstance(newer, dict) or not all(id.isdecimal() and _read_content(token) for id, token in newer.items()):
        raise ValueError(
            f"Expected added_tokens_decoder in {folder / 'tokenizer_config.json'} to map ids to tokens, "
            "got something else; fetch the file again."
        )
    for id, token in newer.items():
        fields = token if isinstance(token, dict) else {"special": True}
        chosen = {key: bool(fields[key]) for key in ADDED_FIELDS if key in fields}
        tokens[int(id)] = AddedToken(_read_content(token) or "", **chosen)
    return tokens


def _read_content(token: Any) -> str | None:
    """Read a token, written as its text, or as an object with a "content"."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) and content else None


def _list_tokens(tokens: Any) -> list[Any]:
    """Read a list of tokens; transformers 5 also writes a dictionary from role to token."""
    return list(tokens.values()) if isinstance(tokens, dict) else tokens if isinstance(tokens, list) else []
