"""A run of one text, and what it kept as safetensors."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from safetensors.torch import save

from engine import run
from engine.budget import MIB, budget
from engine.checkpoints import Checkpoint
from engine.inputs.readers import Reading, given_target, kind, require_known_ids, tokens
from engine.model.transformer import Transformer
from engine.runtime.recording import kept_names
from engine.tokenizers.encoding import Encoding
from pages.controls.model_input.model_input import EVERY_FIELD, reading
from server.http.api.fields import Field, Refused
from server.http.api.models import WRITTEN, engine_refuses, open_named, read_edits, text_of_ids, write_link
from server.settings import API_REPLY, GIVEN

MOST_CHARACTERS = 100_000  # of a text
MODEL = Field("a name that GET /v1/models lists", ("string",), required=True, most=200)
EDITS = Field("changes as `to_dict` of an edit gives them, each a table", ("objects",), [], most=GIVEN.max_edits)
FIELDS = {
    "model": MODEL,
    "text": Field("what the model reads; give text or ids", ("string",), most=MOST_CHARACTERS),
    "ids": Field("its tokens instead; give text or ids", ("integers",), least=1, most=GIVEN.max_tokens),
    "target": Field(
        "what the decoder of an encoder-decoder reads, or fills a gap; the model writes it where it is left out",
        ("string",),
        "",
        most=MOST_CHARACTERS,
    ),
    "keep": Field("hooks whose values come back, by name or pattern", ("strings",), ["logits"], least=1, most=64),
    "edits": EDITS,
}


@dataclass(frozen=True)
class Reply:
    """`body` is a file of safetensors."""

    body: bytes
    link: str | None


def trace(asked: dict[str, Any], base: str) -> Reply:
    """Raises Refused for what cannot be run, and for more bytes than a reply may have."""
    checkpoint, edits = open_named(asked["model"]), read_edits(asked["edits"])
    model, keep = checkpoint.model, tuple(asked["keep"])
    with engine_refuses("keep"):
        names = kept_names(keep, model.hook_names, model.requested)
    read = read_input(checkpoint, asked)
    assert isinstance(read.read, Encoding)
    check_size(model, names, len(read.read), len(read.target or ()))
    with engine_refuses():
        found = run(model, read.read, keep, edits.edits, target=read.target)
    text = asked["text"] if asked["ids"] is None else text_of_ids(checkpoint, read.read.ids)
    said = {"text": text or "", WRITTEN.get(kind(checkpoint), "target"): asked["target"]}
    link = None if text is None else write_link(base, asked["model"], said, edits)
    about = {
        "model": asked["model"],
        "ids": json.dumps(read.read.ids),
        "tokens": json.dumps(read.read.pieces, ensure_ascii=False),
        "dims": json.dumps({name: found.dims(name) for name in found}),
        "edits": json.dumps(edits.to_value()),
    }
    about |= {"target": json.dumps(read.target.pieces, ensure_ascii=False)} if read.target else {}
    about |= {"link": link} if link else {}
    return Reply(save({name: found[name].cpu().clone().contiguous() for name in found}, about), link)


def read_input(checkpoint: Checkpoint, asked: dict[str, Any]) -> Reading:
    """As a page reads it. Raises Refused where it is too long for one, or for this model."""
    text, ids, target, reads = asked["text"], asked["ids"], asked["target"], kind(checkpoint)
    if (text is None) == (ids is None):
        raise Refused("the request must have either text or ids, got both or neither; give one.", field="text")
    if target and reads not in WRITTEN:
        raise Refused("target is for an encoder-decoder or a gap, and this model has neither; leave it out.")
    limit = min(budget.max_tokens, checkpoint.config.context)
    with engine_refuses("text" if ids is None else "ids"):
        if ids is not None:
            if reads not in ("text", "pair") or checkpoint.config.rereads:
                raise Refused("ids are for a model that reads one text; give this one a text.", field="ids")
            pieces = [f"#{id}" if checkpoint.tokenizer is None else checkpoint.tokenizer.piece(id) for id in ids]
            read = Reading(require_known_ids(checkpoint, Encoding.from_ids(ids, pieces)))
            count = len(ids)
        else:
            count = len(tokens(checkpoint, text))
            if target and reads == "translation":
                count = max(count, len(given_target(checkpoint, target)))
        if not 0 < count <= limit:
            raise Refused(f"the input must be 1 to {limit:,} tokens, got {count:,}; give another.", field="text")
        if ids is None:
            said = dict.fromkeys(EVERY_FIELD, "") | {"text": text, WRITTEN.get(reads, "target"): target}
            read = reading(checkpoint, budget.max_tokens, said.get)
    return read


def check_size(model: Transformer, names: frozenset[str], read: int, written: int) -> None:
    """Raises Refused where values of these hooks, of so many tokens, take more bytes than a reply may have."""
    size = sum(count_bytes(model, name, read, written) for name in names)
    if size > API_REPLY:
        raise Refused(
            f"a reply must have at most {API_REPLY // MIB:,} MiB, and this one would have {size / MIB:,.1f} MiB in "
            f"{len(names):,} tensors; keep less of it, or give a shorter text.",
            413,
            "keep",
        )


def count_bytes(model: Transformer, name: str, read: int, written: int) -> int:
    """At most so many bytes a value of one text has."""
    config, axes = model.config, model.hooks[name].axes
    stacks = [config] if config.encoder is None else [config, config.encoder_stack]
    attentions = [stack.attention for stack in stacks] + ([config.cross_attention] if config.encoder else [])
    wide = max(config.d_model, config.d_embed)
    text = read if config.encoder is None or name.startswith("encoder.") else max(written, 1)
    sizes = {
        "batch": 1,
        "pos": text,
        "key": max(text, read) if ".cross_attn." in name else text,
        "head": max(attention.heads for attention in attentions),
        "d_head": max(config.head_width(attention) for attention in attentions),
        "d_mlp": max(stack.mlp.d_mlp if stack.mlp else 0 for stack in stacks),
        "vocab": config.vocab_size,
        "class": max(config.head.classes or 0, 2),  # of the next sentence there are two
    }
    size = 8 if {*axes} <= {"batch", "pos"} else 4  # ids have 64 bits
    for axis in axes:
        size *= sizes.get(axis, wide)
    return size
