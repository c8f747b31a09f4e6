"""The same weights and the same input through transformers, and how far its numbers are from Loupe's.

transformers is no requirement of Loupe: it is imported only here, and only when it is asked.
"""

from __future__ import annotations

import gc
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.checkpoints.adapters.config import CONFIG as ADAPTER_CONFIG
from engine.checkpoints.adapters.config import AdapterConfig, find_adapter_weights
from engine.checkpoints.adapters.merge import split_adapters
from engine.checkpoints.families import NATIVE
from engine.checkpoints.family import Family
from engine.checkpoints.load import choose_family
from engine.checkpoints.locate import WEIGHTS, locate
from engine.checkpoints.quantised import decode_quantised
from engine.checkpoints.save import CONFIG, family_for, save
from engine.checkpoints.weights import open_weights, read_json, shards
from engine.inputs.readers import Reading
from engine.model.stored import StoredTensor
from engine.runtime.run import run, stream
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding

Through = Literal["its own files", "our export", "PEFT on our export of the base"]
FAILURES = (OSError, ValueError, RuntimeError, TypeError, LookupError, AttributeError, ImportError)
MOST_SINUSOIDS = 2**14
VECTOR, OF_TOWERS = "vector.out", ("image_embeds", "text_embeds", "pooler_output")
ADAPTER = "adapter"  # folder for PEFT, in that for transformers
KEPT_OF_ADAPTER = ("peft_type", "task_type", "modules_to_save", "fan_in_fan_out")  # beside what A and B do
UNSAFE = (  # keys of config.json by which transformers would load code, other files or other numbers than the weights'
    *("auto_map", "custom_pipelines", "quantization_config", "compression_config", "transformers_weights"),
    *("_attn_implementation", "_attn_implementation_internal", "attn_implementation", "_name_or_path"),
    *("dtype", "torch_dtype", "use_cache", "pruned_heads", "base_model_tp_plan", "base_model_pp_plan"),
)
OF_TOKENIZER = re.compile(
    r"tokenizer\.json|special_tokens_map\.json|added_tokens\.json|vocab\.(json|txt)|merges\.txt|\w+\.(model|spm)"
)
TELLING = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "vocab.txt")  # a .model alone does not say whose


@dataclass(frozen=True)
class Layer:
    """`difference` is the largest of one attention pattern, `hook` its name."""

    hook: str
    difference: float


@dataclass(frozen=True)
class Parity:
    """The largest absolute differences of one run, in the model's own dtype.

    `logits` is that of what the model says: its logits, a second head's too, or the last hidden state of a model
    without a head; `compared` names them. `patterns` is the largest of `layers`, NaN where transformers gave no
    attention. `ids` says whether transformers' tokenizer makes the same tokens of the text; None where there is no
    text, or no tokenizer that it knows. `through` is what transformers opened. Both times are of one forward pass.
    """

    logits: float
    patterns: float
    layers: tuple[Layer, ...]
    compared: tuple[str, ...]
    ids: bool | None
    through: Through
    architecture: str
    dtype: str
    positions: int
    seconds: float
    seconds_theirs: float
    versions: Mapping[str, str]


def available() -> bool:
    return find_spec("transformers") is not None


def parity(checkpoint: Checkpoint, source: Path | None, reading: Reading) -> Parity:
    """`source` is the folder or file that `checkpoint` was opened from, None where it was changed since.

    Files in transformers' own format are opened by transformers itself, so that nothing of Loupe's reading is shared;
    anything else is saved for it first. Where the weights hold an adapter, PEFT puts its own files on an export of the
    base. Both models are in memory at once. Nothing that the files name is executed or
    fetched. Raises ValueError for a model that transformers has no like of, that it cannot open or run, or that is
    larger than memory.
    """
    check_room(checkpoint)
    check_positions(checkpoint)
    start = time.perf_counter()
    trace = run(checkpoint.model, reading.read, compared_hooks(checkpoint), target=reading.target)
    seconds = time.perf_counter() - start
    with TemporaryDirectory(prefix="loupe-parity-") as made, quiet():
        family, through = prepare(checkpoint, source, Path(made))
        theirs, seconds_theirs = answer(Path(made), family, checkpoint, trace)
        ids = same_ids(Path(made), checkpoint, reading)
    said = {name: largest_difference(name, ours, other) for name, ours, other in outputs(trace, theirs, checkpoint)}
    layers = tuple(Layer(name, largest_difference(name, trace[name], other)) for name, other in patterns(theirs))
    return Parity(
        logits=max(said.values()),
        patterns=max((layer.difference for layer in layers), default=float("nan")),
        layers=layers,
        compared=tuple(said),
        ids=ids,
        through=through,
        architecture=str(family.architecture),
        dtype=str(checkpoint.model.dtype).removeprefix("torch."),
        positions=trace.ids.shape[1] if trace.ids.dim() == 2 else checkpoint.config.context,
        seconds=seconds,
        seconds_theirs=seconds_theirs,
        versions={name: import_module(name).__version__ for name in ("transformers", "torch")},
    )


def check_room(checkpoint: Checkpoint) -> None:
    if any(isinstance(parameter, StoredTensor) for parameter in checkpoint.model.parameters()):
        raise ValueError(
            "transformers must hold all weights in memory, and those of this model stay in their file as they do not "
            "fit; compare on a machine with more memory."
        )


def check_positions(checkpoint: Checkpoint) -> None:
    """transformers works out the sinusoids of every position one by one, in Python."""
    context = checkpoint.config.context
    if checkpoint.config.positions.kind == "sinusoidal" and context > MOST_SINUSOIDS:
        raise ValueError(f"transformers can be asked about at most {MOST_SINUSOIDS:,} positions, got {context:,}.")


def compared_hooks(checkpoint: Checkpoint) -> list[str]:
    """The hooks to compare, of those that the model has."""
    names = checkpoint.model.hook_names
    wanted = {"logits", "next_sentence", "pooler.out", VECTOR, last_hook(checkpoint)}
    return [name for name in names if name in wanted or name.endswith("attn.pattern")]


def last_hook(checkpoint: Checkpoint) -> str:
    """Output of a model without a head: its last residual stream, or that mapped back."""
    model, side = checkpoint.model, "decoder." if checkpoint.config.encoder else ""
    if checkpoint.config.narrows:
        return "head.narrow"
    final = f"{side}final_norm.out"
    return final if final in model.hooks else stream(model, f"{side}blocks.{checkpoint.config.layers - 1}.")


def prepare(checkpoint: Checkpoint, source: Path | None, folder: Path) -> tuple[Family, Through]:
    """Put into `folder` what transformers is to open, and nothing else."""
    adapted = bool(checkpoint.adapters)
    own = None if source is None or adapted else link_own_files(source, folder, bool(checkpoint.config.head.classes))
    if own is not None:
        return own, "its own files"
    family, _ = family_for(checkpoint.config, checkpoint.family)
    if family is NATIVE:
        raise ValueError("transformers has no model like this one, so there is nothing to compare it with.")
    if adapted and source is not None and find_spec("peft") is not None:
        save(split_adapters(checkpoint), folder)
        link_adapter(source if source.is_dir() else source.parent, folder / ADAPTER)
        return family, "PEFT on our export of the base"
    save(checkpoint, folder)
    return family, "our export"


def link_adapter(source: Path, folder: Path) -> None:
    """Links to the weights of an adapter, and its config without what does not say what A and B do."""
    weights = find_adapter_weights(source)
    if weights is None:
        raise ValueError(f"the adapter's files must lie in {source}, and do not any more; open it again.")
    folder.mkdir()
    (folder / weights.name).symlink_to(weights.resolve())
    known = {*(each.name for each in fields(AdapterConfig)), *KEPT_OF_ADAPTER}
    theirs = {key: value for key, value in read_json(weights.with_name(ADAPTER_CONFIG)).items() if key in known}
    (folder / ADAPTER_CONFIG).write_text(json.dumps(theirs), encoding="utf-8")


def link_own_files(source: Path, folder: Path, classifies: bool) -> Family | None:
    """Links to the weights and the tokenizer, and config.json without what is unsafe. None for another format."""
    place = locate(source)
    beside = place.folders[0] / "config.json"
    if place.weights.name not in WEIGHTS or not beside.is_file():
        return None
    weights, config = open_weights(place.weights), read_json(beside)
    family = choose_family(config, weights.shapes)
    if family is NATIVE or CONFIG in weights.metadata or decode_quantised(weights, config).decoded:
        return None
    indexed = place.weights.name.endswith(".index.json")
    files = [place.weights, *(shards(place.weights) if indexed else ())]
    files += [file for file in place.folders[0].iterdir() if OF_TOKENIZER.fullmatch(file.name)]
    for file in files:
        (folder / file.name).symlink_to(file.resolve())
    unsafe = UNSAFE if classifies else (*UNSAFE, "num_labels")  # of which transformers makes a table, however many
    for name in ("config.json", "tokenizer_config.json"):
        if (place.folders[0] / name).is_file():
            fields = read_json(place.folders[0] / name)
            safe = {key: value for key, value in fields.items() if key not in unsafe}
            (folder / name).write_text(json.dumps(safe), encoding="utf-8")
    return family


@torch.no_grad()
def answer(folder: Path, family: Family, checkpoint: Checkpoint, trace: Trace) -> tuple[Mapping[str, Any], float]:
    """Runs transformers' model, with PEFT's adapter where one was put beside it: what it gives, by its names, and the
    seconds its forward pass took; the model is dropped."""
    architecture = getattr(import_module("transformers"), str(family.architecture))
    with transformers_errors(family):
        model, loading = architecture.from_pretrained(
            folder,
            local_files_only=True,
            weights_only=True,
            use_safetensors=any(file.name.startswith("model.safetensors") for file in folder.iterdir()),
            attn_implementation="eager",
            dtype=checkpoint.model.dtype,
            output_loading_info=True,
        )
    check_whole(loading["missing_keys"], family, checkpoint)
    given = transformers_inputs(checkpoint, trace)
    with transformers_errors(family):
        if (folder / ADAPTER).is_dir():
            model = import_module("peft").PeftModel.from_pretrained(model, folder / ADAPTER).get_base_model()
        start = time.perf_counter()
        theirs = model.eval()(**given, output_attentions=True, return_dict=True)
        seconds = time.perf_counter() - start
    model = None
    gc.collect()
    return theirs, seconds


@contextmanager
def transformers_errors(family: Family) -> Iterator[None]:
    """Whatever transformers stumbles over becomes one sentence."""
    try:
        yield
    except FAILURES as error:
        reason = " ".join(str(error).split())[:300]
        raise ValueError(f"transformers' {family.architecture} cannot open or run this checkpoint: {reason}") from error


def check_whole(missing: Iterable[str], family: Family, checkpoint: Checkpoint) -> None:
    """transformers fills what it does not find with random numbers."""
    needed = {name for row in family.bind(checkpoint.model.state_dict()) for name in row.source}.intersection(missing)
    if needed:
        raise ValueError(f"transformers does not find {min(needed)} in the files, nor {len(needed) - 1} more.")


def transformers_inputs(checkpoint: Checkpoint, trace: Trace) -> dict[str, Tensor]:
    """The input of `trace` in transformers' words."""
    ids = trace.ids
    if ids.is_floating_point():
        given = {"input_features" if trace.sounds else "pixel_values": ids.to(checkpoint.model.dtype)}
    else:
        given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if checkpoint.config.embedding.segments > 1:
        kinds = [encoding.segments for encoding in trace.encodings]
        given["token_type_ids"] = torch.tensor(kinds) if kinds else torch.zeros_like(ids)
    if trace.target is not None:
        given["decoder_input_ids"] = trace.target
    return given


def outputs(trace: Trace, theirs: Mapping[str, Any], checkpoint: Checkpoint) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Each of the model's results, ours and theirs."""
    second = theirs.get("seq_relationship_logits", theirs.get("sop_logits"))
    first = theirs.get("prediction_logits", theirs.get("logits"))
    if "start_logits" in theirs:
        first = torch.stack([theirs["start_logits"], theirs["end_logits"]], dim=-1)
    if "logits" not in trace:
        first, second = None, first if "next_sentence" in trace else None
    if first is not None:
        yield "logits", trace["logits"], first
    if second is not None:
        yield "next_sentence", trace["next_sentence"], second
    if first is None and second is None:
        yield "last hidden state", trace[last_hook(checkpoint)], theirs["last_hidden_state"]
        if "pooler.out" in trace and theirs.get("pooler_output") is not None:
            yield "pooler", trace["pooler.out"], theirs["pooler_output"]
        elif VECTOR in trace and (found := [theirs[name] for name in OF_TOWERS if theirs.get(name) is not None]):
            yield "vector", trace[VECTOR], found[0]


def patterns(theirs: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """Our name of each attention pattern that transformers gave, in the order of the layers."""
    kinds = {
        "attentions": "blocks.{}.attn.pattern",
        "encoder_attentions": "encoder.blocks.{}.attn.pattern",
        "decoder_attentions": "decoder.blocks.{}.attn.pattern",
        "cross_attentions": "decoder.blocks.{}.cross_attn.pattern",
    }
    for kind, name in kinds.items():
        for layer, pattern in enumerate(theirs.get(kind) or ()):
            if pattern is not None:
                yield name.format(layer), pattern


def largest_difference(name: str, ours: Tensor, theirs: Tensor) -> float:
    """max |ours - theirs|."""
    if ours.numel() != theirs.numel():
        shapes = " and ".join(" x ".join(map(str, tensor.shape)) for tensor in (ours, theirs))
        raise ValueError(f"{name} must have one shape here and in transformers, got {shapes}.")
    return (ours.double().reshape(theirs.shape) - theirs.double()).abs().max().item()


def same_ids(folder: Path, checkpoint: Checkpoint, reading: Reading) -> bool | None:
    texts = source_texts(checkpoint, reading.whole)
    if texts is None or not any((folder / name).is_file() for name in TELLING):
        return None
    kinds = import_module("transformers").AutoTokenizer
    try:
        ids = kinds.from_pretrained(folder, local_files_only=True, trust_remote_code=False)(*texts)["input_ids"]
    except FAILURES:
        return None
    return reading.whole is not None and list(reading.whole.ids) == list(ids)


def source_texts(checkpoint: Checkpoint, encoding: Encoding | None) -> tuple[str, ...] | None:
    """The text or the two that `encoding` was made of; None where the model wrote a part of it."""
    if checkpoint.tokenizer is None or encoding is None or not encoding.text:
        return None
    lines = encoding.text.split("\n")
    pairs = [("\n".join(lines[:cut]), "\n".join(lines[cut:])) for cut in range(1, len(lines))]
    possible: list[tuple[str, ...]] = [(encoding.text,), *pairs]
    return next((texts for texts in possible if checkpoint.tokenizer.encode(*texts).ids == encoding.ids), None)


@contextmanager
def quiet() -> Iterator[None]:
    """Without transformers' progress bars and reports, which go to the terminal."""
    logging = import_module("transformers.utils.logging")
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
