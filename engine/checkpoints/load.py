"""Opening a checkpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from engine.budget import budget
from engine.checkpoints import adapter_snapshot, nanogpt, run_steps
from engine.checkpoints.adapters.config import BASE, find_adapter_weights, is_adapter, public_base
from engine.checkpoints.adapters.config import CONFIG as ADAPTER_CONFIG
from engine.checkpoints.adapters.merge import open_adapter
from engine.checkpoints.assemble import assemble
from engine.checkpoints.checkpoint import Checkpoint
from engine.checkpoints.config_keys import describe_defaults, describe_doubles, describe_unread
from engine.checkpoints.families import FAMILIES, NATIVE
from engine.checkpoints.family import Family
from engine.checkpoints.folder_settings import FolderSettings, read_folder_settings
from engine.checkpoints.gguf.rows import TIED, gguf_rows
from engine.checkpoints.gguf.settings import describe_types, read_vector
from engine.checkpoints.gguf.settings import read_settings as read_gguf_settings
from engine.checkpoints.infer import accept_wrapper, infer
from engine.checkpoints.keys import ConfigTable
from engine.checkpoints.llama2c import is_llama2c, read_llama2c, tokenizer_beside
from engine.checkpoints.locate import CheckpointLocation, locate
from engine.checkpoints.quantised import check_not_quantised, decode_quantised
from engine.checkpoints.rename import rename_tensors
from engine.checkpoints.report import Assumption, IncompleteWeights, Report, UnknownNames
from engine.checkpoints.save import CONFIG, unpack_header
from engine.checkpoints.sentence import read_link, read_modules, read_settings, rows_of_maps, with_maps
from engine.checkpoints.towers import MARK, TOWER, TowerPair, is_pair, open_half, split_name
from engine.checkpoints.weights import Weights, open_weights, read_json, weights_of_tensors
from engine.inputs.processors import ImageProcessor, Processor, describe_unread_keys, read_processor
from engine.inputs.sound import SoundProcessor
from engine.json_text import parse_json
from engine.model.config import ModelConfig, check_config
from engine.model.transformer import Transformer
from engine.places import ROOT
from engine.tokenizers import FastTokenizer, Tokenizer, read_tokenizer

NO_ATTENTION = frozenset((  # transformers' types some of whose layers are none
    "bamba", "falcon_h1", "falcon_mamba", "granitemoehybrid", "jamba", "kimi_linear", "lfm2", "lfm2_moe", "mamba",
    "mamba2", "minimax", "nemotron_h", "olmo_hybrid", "qwen3_5", "qwen3_5_moe", "qwen3_next", "recurrent_gemma",
    "retnet", "rwkv", "xlstm", "zamba", "zamba2",
))  # fmt: skip
PADDING = 128  # rows: a table is padded to a multiple of so many at most


class OpenedModel(NamedTuple):
    """Kind of model that the weights are; `settings` None are those of the files beside them, `assumed` and `notes` are
    for the report."""

    family: Family
    config: ModelConfig
    weights: Weights
    settings: FolderSettings | None = None
    assumed: tuple[Assumption, ...] = ()
    notes: tuple[str, ...] = ()
    pair: TowerPair | None = None


def load(
    name_or_path: str | Path,
    dtype: torch.dtype | None = torch.float32,
    config: Mapping[str, Any] | None = None,
    rename: Mapping[str, str] | None = None,
) -> Checkpoint:
    """Open a checkpoint: a shipped name, a folder (a training run's too), a weights file in one (also llama2.c's `.bin`
    and nanoGPT's or minGPT's `.pt`), `run:NAME[@STEP]`, which is a training run's last step where it names none, or
    `hub:org/name[@revision]`.

    Weights are converted to `dtype`; None leaves them as most are stored, and then they stay a map of their file. Where
    they do not fit the memory they stay such a map in either case, and are converted while a layer computes with them;
    a note in the report says so, and what a forward pass is expected to take.
    Of two towers, for pictures and for texts, the first opens, and by a name that ends in "#text" the second.
    `config` are keys of config.json that count before those of the file. Where there is no such file it is inferred
    from the weights, and `report.assumed` says what was. `rename` maps names of the file's tensors to those of a
    family, for a file of a layout of its own: `{"layer{}.norm.*": "transformer.h.{}.ln_1.*"}`; commas split a tensor
    into equal parts along its first axis, `{"qkv": "q, k, v"}`, or stack several, `{"q, k, v": "qkv"}`.

    A folder with an adapter of PEFT's opens as what its owner made: the base that it names (or that `config` gives as
    "base_model_name_or_path") with the adapter in its weights, and in `adapters`. The edit
    `ApplyAdapter.of(adapter, 0)` switches it off.

    Raises FileNotFoundError where there is nothing of the kind, ValueError for what cannot be read as a whole model, or
    does not fit the memory even so, PermissionError and ConnectionError where a hub does not give it; a tokenizer or a
    processor that cannot be read is a note in the report.
    """
    plain, tower = split_name(str(name_or_path))
    place = find_place(plain if tower else name_or_path)
    config = {**(config or {}), **tower}
    if tower:
        place = replace(place, name=f"{place.name}{MARK}")
    if is_adapter(place):
        given = dict(config)
        base = load(find_base(place, given.pop(BASE, None)), dtype, given, rename)
        return replace(open_adapter(base, place.weights.parent), name=place.name)
    opened = open_model(place, dict(config), dict(rename or {}))
    if adapter_snapshot.KEY in opened.weights.metadata:
        whole = weights_of_tensors(read_state(place.weights), place.weights, mapped=False)
        opened = opened._replace(weights=replace(whole, metadata=opened.weights.metadata))
    model, report = assemble_opened(opened, dtype, place.name)
    with unpack_header(place, opened.weights.metadata, opened.weights.beside) as beside:
        reads_tokens = opened.pair is None or opened.pair.reads == "text"
        tokenizer, notes = open_tokenizer(beside, opened.config) if reads_tokens else (None, ())
        settings = open_settings(opened, beside)
        processor, more = (
            (None, ()) if opened.pair and reads_tokens else open_processor(beside, settings.config, opened.config)
        )
        writing, refused = settings.read_writing(opened.config)
        sentence, unread = read_settings(beside)
        card = beside.find("card.json")
        checkpoint = Checkpoint(
            model=model,
            tokenizer=tokenizer,
            card=read_json(card) if card else {},
            report=replace(
                report,
                notes=report.notes + opened.weights.notes + opened.notes + notes + more + refused + unread,
                assumed=opened.assumed,
            ),
            name=place.name,
            end_ids=settings.read_end_ids(opened.config),
            processor=processor,
            labels=settings.read_labels(opened.config),
            family=opened.family.name,
            files=tuple(dict.fromkeys(opened.weights.files.values())) or (place.weights,),
            writing=writing,
            settings=settings,
            sentence=sentence,
            pair=opened.pair,
        )
    return checkpoint if find_adapter_weights(place.weights.parent) is None else with_adapter(checkpoint, place)


def assemble_opened(opened: OpenedModel, dtype: torch.dtype | None, name: str) -> tuple[Transformer, Report]:
    """The model and the report of its tensors. An error says too which sizes config.json left to its class."""
    try:
        return assemble(opened.family, opened.config, opened.weights, dtype, name)
    except IncompleteWeights:
        raise
    except ValueError as error:
        left_out = describe_defaults(opened.settings.table, opened.family) if opened.settings else ""
        raise ValueError(f"{error} {left_out}".strip()) from None


def open_settings(opened: OpenedModel, beside: CheckpointLocation) -> FolderSettings:
    found = read_folder_settings(beside)
    if opened.settings is None:
        return found
    return replace(opened.settings, generation=found.generation, processor=found.processor)


def with_adapter(checkpoint: Checkpoint, place: CheckpointLocation) -> Checkpoint:
    """The checkpoint with the adapter that lies beside its weights in them, as transformers opens such a folder, or
    with a note why it cannot be read."""
    try:
        return open_adapter(checkpoint, place.weights.parent)
    except ValueError as error:
        notes = (*checkpoint.report.notes, f"No adapter: {error}")
        return replace(checkpoint, report=replace(checkpoint.report, notes=notes))


def find_base(adapter: CheckpointLocation, given: str | Path | None) -> str | Path:
    """The base that an adapter names, or that is `given`: a shipped name, a path (from here or from beside it), or a
    hub's that is on this machine. Raises ValueError where there is none, and for one that is an adapter itself."""
    config = read_json(adapter.weights.with_name(ADAPTER_CONFIG))
    named = str(given) if given else config.get(BASE)
    if isinstance(named, str) and named:
        folder = adapter.weights.parent.resolve()
        revision = config.get("revision") if named == config.get(BASE) else None
        cached = cached_base(f"{named}@{revision}" if revision else named)
        for path in (named, folder.parent / named, recorded_base(folder, named), cached):
            try:
                place = find_place(path) if path and not str(path).startswith("hub:") else None
            except FileNotFoundError:
                continue
            if path and place and not is_adapter(place):
                return path
    raise ValueError(
        f"the adapter {adapter.name} needs its base, {named!r:.200}, which is no model on this machine; fetch that "
        f"and give its path as config={{{BASE!r}: path}}, or use read_adapter(folder, checkpoint)."
    )


def recorded_base(folder: Path, named: str) -> str | None:
    """The base of the run that an adapter's folder lies in (RUN/adapter/NAME), where it has that name."""
    file = folder.parent.parent / adapter_snapshot.FILE
    source = read_json(file).get("source") if file is not None and file.is_file() else None
    return source if isinstance(source, str) and public_base(source) == named else None


def cached_base(named: str) -> Path | None:
    """Folder of a hub's model that was fetched before; nothing is asked of a network."""
    from engine.checkpoints.hub import cached_checkpoint, parse  # what speaks to a network is slow to import

    try:
        return cached_checkpoint(parse(named if named.startswith("hub:") else f"hub:{named}"))
    except ValueError:
        return None


def find_place(name_or_path: str | Path) -> CheckpointLocation:
    """Locate a checkpoint, which is downloaded first where a hub's is named."""
    if isinstance(name_or_path, str) and name_or_path.startswith(run_steps.RUN):
        folders = (budget.runs_folder, ROOT / budget.runs_folder)  # as `locate` looks for a path
        file = next(filter(None, (run_steps.weights(name_or_path, folder) for folder in folders)), None)
        if file is None:
            here = next((folder for folder in folders if os.path.isdir(folder)), budget.runs_folder)
            raise FileNotFoundError(f"{run_steps.absent(name_or_path, here)}.")
        return replace(locate(file), name=name_or_path)
    if not (isinstance(name_or_path, str) and name_or_path.startswith("hub:")):
        return locate(name_or_path)
    from engine.checkpoints.hub import download_folder  # what speaks to a network is slow to import

    return replace(locate(download_folder(name_or_path, budget.max_download)), name=name_or_path)


def open_model(place: CheckpointLocation, corrections: Mapping[str, Any], rename: Mapping[str, str]) -> OpenedModel:
    """Choose a model by what the file says of itself, by config.json, or by names and shapes of the tensors."""
    path = place.weights
    if path.suffix == ".bin" and is_llama2c(path):
        refuse_corrections({**corrections, **rename}, path)
        return OpenedModel(*read_llama2c(path))
    if path.suffix == ".gguf":
        return open_with_gguf(path, corrections, rename)
    weights = open_weights(path)
    if CONFIG not in weights.metadata:
        config = place.find("config.json")
        weights = decode_quantised(weights, {**(read_json(config) if config else {}), **corrections})
    weights = rename_tensors(weights, rename)
    if CONFIG in weights.metadata:
        refuse_corrections(corrections, path)
        return OpenedModel(NATIVE, parse_own_config(weights.metadata[CONFIG], path), weights)
    if place.find("config.json") is not None:
        return open_with_config(place, weights, corrections)
    check_not_quantised(weights)
    if weights.settings is not None:
        return open_with_settings(weights, path, corrections)
    return open_by_inference(weights, path, corrections)


def read_state(path: Path) -> dict[str, Tensor]:
    """Tensors of the model in a file that describes itself. Raises ValueError as `read_frozen`."""
    return adapter_snapshot.merge_learned(read_frozen(path), open_weights(path))


def read_frozen(path: Path) -> dict[str, Tensor]:
    """Reads the tensors that a snapshot of an adapter alone needs of its run's base; empty for a whole one. Raises
    ValueError where the base is gone, or has other weights than the run began with."""
    learned, place = open_weights(path), locate(path)
    if adapter_snapshot.KEY not in learned.metadata:
        return {}
    said, file = f"{path.name} holds an adapter alone", place.find(adapter_snapshot.FILE)
    if file is None:
        raise ValueError(
            f"{said} and must lie in the folder of its run, whose {adapter_snapshot.FILE} names its base; put it back, "
            "or export that step."
        )
    record = read_json(file)
    if lacks := [name for name in adapter_snapshot.RECORD if name not in record]:
        raise ValueError(f"{file.name} must say {', '.join(lacks)} of the base of {path.name}; restore the file.")
    named = f"{said} and needs the base of its run, {record['base']!r:.200},"
    else_open = 'or open what of the run is whole, its folder "checkpoint" or "latest".'
    try:
        base = load(record["source"], config=record["config"], rename=record["rename"])
    except (ValueError, OSError) as error:
        told = str(error).rstrip(".")
        raise ValueError(f"{named} which does not open ({told}); bring it back, {else_open}") from None
    config = parse_own_config(learned.metadata[CONFIG], path)
    theirs = adapter_snapshot.name_tensors(base.model.state_dict(), base.config.head.kind, config)
    frozen = {name: theirs[name] for name in record["taken"] if name in theirs and name not in learned}
    if adapter_snapshot.checksum(frozen) != record["checksum"]:
        raise ValueError(f"{named} with the weights that the run began with, and got others; restore them, {else_open}")
    return frozen


def refuse_corrections(corrections: Mapping[str, Any], path: Path) -> None:
    if corrections:
        raise ValueError(f"{path.name} says itself what model it is; {', '.join(corrections)} cannot be given for it.")


def parse_own_config(text: str, path: Path) -> ModelConfig:
    try:
        return check_stacks(ModelConfig.from_dict(parse_json(text)))
    except (ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path} must describe itself as a model, and does not ({error}); save it anew.") from None


def check_stacks(config: ModelConfig) -> ModelConfig:
    """Check the encoder's own sizes too, and return the config."""
    if config.encoder is not None:
        check_config(config.encoder_stack)
    return config


def read_family_config(family: Family, theirs: Mapping[str, Any]) -> ModelConfig:
    """The family's reading of config.json, with errors that name that file."""
    try:
        return check_stacks(family.read_config(theirs))
    except ValueError as error:
        told = str(error)
    except OverflowError as error:
        told = f"a number is beyond all others ({error})."
    file = "" if "config.json" in told else "config.json describes no model that Loupe can build: "
    raise ValueError(f"{file}{told}")


def open_with_config(place: CheckpointLocation, weights: Weights, corrections: Mapping[str, Any]) -> OpenedModel:
    settings = read_folder_settings(place)
    stored = settings.table
    notes = tuple(
        f"config.json's {name}, {stored.get(name)!r:.80}, was given as {value!r:.80}."
        for name, value in corrections.items()
        if stored.get(name) != value and name != TOWER
    )
    theirs = ConfigTable({**read_link(place), **stored, **corrections})
    settings = replace(settings, config={**settings.config, **corrections})
    check_not_quantised(weights)
    pair: TowerPair | None = None
    if is_pair(stored):
        half, weights, pair = open_half(dict(theirs), weights, str(corrections.get(TOWER, "picture")))
        theirs, settings = ConfigTable(half), replace(settings, config=half)
    elif TOWER in corrections:
        raise ValueError(
            f"{place.name} has one tower, and its {corrections[TOWER]!r:.80} was asked for; open it whole."
        )
    family = choose_family(theirs, weights.shapes)
    config = read_family_config(family, theirs)
    if family.interpolates:
        config = fit_pictures(config, place, theirs)
    notes += describe_left_out(theirs, family) + describe_unread(theirs, family)
    notes += describe_doubles(dict(theirs), family)
    notes += tuple(filter(None, (describe_defaults(theirs, family),)))
    wrapped = accept_wrapper(family, weights.shapes)
    return with_modules(OpenedModel(wrapped, config, weights, settings, (), notes, pair), place)


def fit_pictures(config: ModelConfig, place: CheckpointLocation, theirs: Mapping[str, Any]) -> ModelConfig:
    """The config of a model that reads pictures as large as its processor makes them, where it has patches for that."""
    try:
        processor = next(filter(None, (read_processor(folder, theirs) for folder in place.folders)), None)
    except ValueError:  # which the report says once it is opened
        return config
    patches = config.embedding.patches
    if patches is None or not isinstance(processor, ImageProcessor):
        return config
    (height, width), size = processor.size, patches.size
    if height != width or height == patches.image or height % size:
        return config
    fitted = replace(patches, image=height, trained=patches.image)
    embedding = replace(config.embedding, patches=fitted)
    return replace(config, embedding=embedding, context=fitted.before + fitted.count)


def with_modules(opened: OpenedModel, place: CheckpointLocation) -> OpenedModel:
    """The model with what the modules of a sentence encoder make of its last stream, where such lie beside it."""
    modules, notes = read_modules(place, opened.config)
    if modules is None:
        return opened._replace(notes=opened.notes + notes)
    family = replace(opened.family, rows=(*opened.family.rows, *rows_of_maps(modules)))
    config = replace(opened.config, vector=modules.vector)
    return opened._replace(family=family, config=config, weights=with_maps(opened.weights, modules))


def open_with_settings(weights: Weights, path: Path, corrections: Mapping[str, Any]) -> OpenedModel:
    """nanoGPT's file, which has its sizes beside the weights."""
    theirs = nanogpt.read_settings({**(weights.settings or {}), **corrections}, path)
    family = next(family for family in nanogpt.FAMILIES if declares_family(theirs, family))
    config, settings = family.read_config(theirs), FolderSettings(theirs, written=False)
    return OpenedModel(accept_wrapper(family, weights.shapes), config, weights, settings)


def open_with_gguf(path: Path, corrections: Mapping[str, Any], rename: Mapping[str, str]) -> OpenedModel:
    """A file that says itself what it is, in words of its own."""
    weights = open_weights(path)
    try:
        theirs = ConfigTable({**read_gguf_settings(weights), **corrections})
        family = choose_family(theirs, weights.shapes)
        config = replace(read_family_config(family, theirs), vector=read_vector(weights))
    except ValueError as error:
        told = str(error).replace("config.json", "its metadata")
        raise ValueError(f"{path} does not open: {told}") from None
    beside = {**weights.beside, "config.json": json.dumps(theirs).encode()} if weights.beside else {}
    weights = replace(rename_tensors(weights, rename), beside=beside)
    own = replace(family, rows=gguf_rows(family.name, config, weights.shapes), tied=TIED, twins={}, optional_prefix="")
    return OpenedModel(own, config, weights, FolderSettings(theirs, written=False), (), describe_types(weights))


def open_by_inference(weights: Weights, path: Path, corrections: Mapping[str, Any]) -> OpenedModel:
    try:
        found = infer(weights, corrections)
        config = read_family_config(found.family, found.theirs)
    except UnknownNames as error:
        message = f"{path} has no config.json beside it, and from its tensors alone: {error}"
        raise UnknownNames(message, error.names, error.family, error.expected) from None
    except ValueError as error:
        told = str(error).replace("config.json describes no model that Loupe can build: ", "")
        raise ValueError(f"{path} has no config.json beside it, and from its tensors alone: {told}") from None
    guessed = ", ".join(f"{one.key} {one.value}" for one in found.assumed if not one.certain)
    note = f"There is no config.json: {path.name} was read as {found.family.architecture} by its tensors"
    note += f", with {guessed} assumed." if guessed else "."
    settings = FolderSettings(found.theirs, written=False)
    return OpenedModel(found.family, config, weights, settings, found.assumed, (note,))


def choose_family(theirs: Mapping[str, Any], stored: Collection[str]) -> Family:
    """Choose a family by `model_type`, or in old files by the architecture; `stored` are the file's tensors.

    Of a type's architectures with the head that config.json names, the first of which the file has all signs; of those
    without a head where that is a masked one, of which the file has nothing.
    """
    named = theirs.get("model_type")
    of_type = FAMILIES.get(named, ()) if isinstance(named, str) else ()
    of_type = of_type or tuple(f for families in FAMILIES.values() for f in families if declares_family(theirs, f))
    if not of_type or (named is not None and named != of_type[0].name):
        raise ValueError(describe_unknown(theirs))
    heads = {family.head for family in of_type if declares_family(theirs, family)}
    if not heads and len(of_type) > 1 and theirs.get("architectures"):
        known = ", ".join(dict.fromkeys(name for f in of_type for name in (f.architecture or "", *f.also)))
        raise ValueError(f"config.json's architectures must be one of {known}, got {theirs['architectures']!r:.80}.")
    among = [family for family in of_type if not heads or family.head in heads]
    if heads == {"masked"} and not any(family.holds_head(stored) for family in among):
        among = [family for family in of_type if family.head == "none"] or among
    return next((family for family in among if family.shows(stored)), among[0])


def describe_left_out(theirs: Mapping[str, Any], family: Family) -> tuple[str, ...]:
    """Sentence about a masked head that config.json names and the file lacks, as those of sentence-transformers do."""
    masked = [one for one in FAMILIES.get(family.name, ()) if one.head == "masked" and declares_family(theirs, one)]
    if not masked or family.head == "masked":
        return ()
    return (f"config.json names {masked[0].architecture} and the file has no head: opened as {family.architecture}.",)


def describe_unknown(theirs: Mapping[str, Any]) -> str:
    """Why a model of another type is not opened, and what comes nearest."""
    named = theirs.get("model_type")
    begun = f"config.json's model_type must be one that Loupe opens, got {named!r:.80}"
    if not isinstance(named, str):
        return f"{begun}; say one, such as llama: docs/checkpoints.md lists them."
    if named in NO_ATTENTION:
        return (
            f"{begun}, whose layers are recurrences or state spaces in place of attention, which is what Loupe shows."
        )
    if isinstance(theirs.get("text_config"), Mapping):
        return f"{begun}, which reads more than texts; save its text model alone, and open that."
    near = get_close_matches(named, FAMILIES, n=3, cutoff=0.7)
    told = f" ({', '.join(near)} {'is' if len(near) == 1 else 'are'} near by name)" if near else ""
    return f"{begun}{told}; docs/checkpoints.md lists them all."


def declares_family(theirs: Mapping[str, Any], family: Family) -> bool:
    names = theirs.get("architectures")
    return isinstance(names, list) and any(name in names for name in (family.architecture, *family.also))


def open_tokenizer(place: CheckpointLocation, config: ModelConfig) -> tuple[Tokenizer | None, tuple[str, ...]]:
    tokenizer: FastTokenizer | None = None
    for folder in place.folders:
        try:
            if place.weights.suffix == ".bin" and is_llama2c(place.weights):
                tokenizer = tokenizer_beside(place.weights, config.vocab_size)
            tokenizer = tokenizer or read_tokenizer(folder)
        except ValueError as error:
            return None, (f"No tokenizer: {error}",)
    if tokenizer is None:
        return None, ()
    if config.infill is not None:
        tokenizer.take_space_before(config.infill.mask)
    if tokenizer.vocab_size > config.vocab_size:
        sizes = f"The tokenizer has {tokenizer.vocab_size} tokens and the model {config.vocab_size}"
        return tokenizer, (*tokenizer.notes, f"{sizes}; the model cannot read those beyond.")
    tokens = tokenizer.fast.get_vocab_size(with_added_tokens=True)
    if unnamed := count_unnamed(tokens, config.vocab_size):
        told = f"{unnamed:,} of the model's {config.vocab_size:,} ids have no token in its tokenizer, which has"
        fault = f"{told} {tokens:,}: it may be another model's; put the model's own beside the weights."
        return tokenizer, (*tokenizer.notes, fault)
    return tokenizer, tokenizer.notes


def count_unnamed(tokens: int, rows: int) -> int:
    """Number of ids without a token, where these are more than half of a table and more than pad it to a round size."""
    return rows - tokens if rows > 2 * tokens and rows - tokens >= PADDING else 0


def open_processor(
    place: CheckpointLocation, theirs: Mapping[str, Any], config: ModelConfig
) -> tuple[Processor | None, tuple[str, ...]]:
    processor: Processor | None = None
    notes: tuple[str, ...] = ()
    try:
        for folder in place.folders:
            processor = read_processor(folder, theirs)
            if processor is not None:
                notes = describe_unread_keys(folder, processor)
                break
    except ValueError as error:
        return None, (f"No processor of {'sounds' if config.embedding.sound else 'pictures'}: {error}",)
    patches, sound = config.embedding.patches, config.embedding.sound
    if (
        sound
        and isinstance(processor, SoundProcessor)
        and (processor.bins, processor.frames)
        != (
            sound.bins,
            sound.frames,
        )
    ):
        sizes = f"Its preprocessor_config.json makes {processor.frames} frames of {processor.bins} mel bins"
        fault = (
            f"{sizes} and the model reads {sound.frames} of {sound.bins}; correct chunk_length and feature_size there."
        )
        return processor, (*notes, fault)
    if patches and isinstance(processor, ImageProcessor) and processor.size != (patches.image, patches.image):
        sizes = f"Its preprocessor_config.json makes pictures {processor.size[1]} x {processor.size[0]} pixels large"
        fault = f"{sizes} and the model reads {patches.image} x {patches.image}; correct size there."
        return processor, (*notes, fault)
    return processor, notes
