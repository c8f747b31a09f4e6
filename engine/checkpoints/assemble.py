"""A model from a config and a file of weights, with every tensor accounted for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from time import perf_counter
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch.nn import init
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode

from engine.checkpoints.family import SAME, Family, Row, invert_rows, translate
from engine.checkpoints.memory import available_memory, gigabytes
from engine.checkpoints.recomputed import RecomputedTensor
from engine.checkpoints.report import IncompleteWeights, Report, TensorRow
from engine.checkpoints.weights import Weights
from engine.model.config import ModelConfig, Positions
from engine.model.config_check import LARGEST_SIZE
from engine.model.quantised.tensor import QuantisedTensor
from engine.model.stored import StoredTensor, as_stored
from engine.model.transformer import Transformer
from engine.plurals import count_words

OWN, WIDE = "loupe", replace(SAME, rounds=True)  # the family of Loupe's own files; a tensor kept in float32
FLOATS = {str(dtype).removeprefix("torch."): dtype for dtype in (torch.float64, torch.float32, torch.float16)}
FLOATS["bfloat16"] = torch.bfloat16
MOST_LAYERS = 1000
DECODED = 2**28  # bytes of quantised weights that are decoded once and for all: a model that is so small
PACE_TOKENS, PACE_TRIES = 32, 3  # of the forward pass whose time is told of a model that stays in its file
Shapes = Mapping[str, tuple[int, ...]]


def assemble(
    family: Family, config: ModelConfig, weights: Weights, dtype: torch.dtype | None, name: str = "the model"
) -> tuple[Transformer, Report]:
    """Build a model and fill it from a file of weights; it stands on the meta device until then.

    Without a `dtype` the model has the one that most of its numbers are stored in. Where the weights do not fit the
    memory they stay in their file (`StoredTensor`). Raises ValueError for a wrong shape, numbers that are not finite or
    are quantised, and a model that does not fit even so; IncompleteWeights for tensors that did not come.
    """
    check_plausible(config, weights.shapes)
    model, rows, names = build_skeleton(family, config, weights.shapes)
    for stored in (stored for theirs, stored in names.items() if not family.drops(theirs)):
        check_kind(stored, weights)
    differing = find_differing(family, config, names, weights)
    trained = family.stores_sinusoids and bool(differing)
    if trained:
        config = replace(config, positions=Positions("learned"))
        check_plausible(config, weights.shapes)
    if config.tied and not config.head.language and not are_tied(family, weights, names):
        config = replace(config, tied=False)
    if config != model.config:
        model, rows, names = build_skeleton(family, config, weights.shapes)
        for stored in (names[source] for source in source_names(rows) if source in names):
            check_kind(stored, weights)
    notes = describe_differing(differing, trained)
    report = account_for_tensors(family, model, rows, names, weights, () if trained else differing)
    places = {source: names[source] for row in rows for source in row.source}
    native = most_common_dtype(weights, places.values())
    unasked, dtype = dtype is None, dtype or native
    free = available_memory()
    as_map = free is not None and must_stay_mapped(model, rows, weights, places, dtype, native, free, name)
    check_twins(family, rows, weights, names)
    begun = perf_counter()
    if unasked and family.name == OWN:  # Gemma's 1 + weight stands there as it was held
        rows = [replace(row, transform=WIDE) if weights.dtypes[row.source[0]] == "float32" else row for row in rows]
    kept = fill_model(model, rows, weights, places, dtype, as_map)
    seconds = perf_counter() - begun
    model.requires_grad_(False).eval()
    notes += () if weights.schemes else describe_dtypes(report, dtype)
    if as_map:
        notes += (describe_map(model, native, free or 0, seconds),)
    kept |= {name: weights[names[name]].clone() for name in family.kept if name in names.keys() - places.keys()}
    return model, replace(report, notes=report.notes + notes, stored=kept)


def build_skeleton(
    family: Family, config: ModelConfig, shapes: Shapes
) -> tuple[Transformer, Sequence[Row], dict[str, str]]:
    """A model without memory, the family's rows for it, and what they name in a file of these shapes."""
    model = build_without_memory(config)
    rows = family.bind(model.state_dict())
    return model, rows, names_in_file(family, rows, config.tied, shapes)


def build_without_memory(config: ModelConfig) -> Transformer:
    with torch.device("meta"), NoInitialisation():
        return Transformer(config)


@lru_cache(maxsize=128)
def list_parameters(config: ModelConfig) -> Mapping[str, Tensor]:
    """A model's parameters by name, without memory; kept: a form asks for those of many models at each change."""
    return MappingProxyType(dict(build_without_memory(config).named_parameters()))


class NoInitialisation(TorchFunctionMode):
    """Mode in which torch's layers leave their parameters unfilled: on the meta device that is half of the time."""

    FILLING = frozenset((init.kaiming_uniform_, init.uniform_, init.normal_, init.ones_, init.zeros_))

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in self.FILLING:
            return args[0] if args else kwargs["tensor"]
        return function(*args, **(kwargs or {}))


def check_plausible(config: ModelConfig, shapes: Shapes) -> None:
    """Raise ValueError where the file cannot hold such a model, before one of a billion layers or heads is built."""
    for path, value in iterate_leaves(config.to_dict()):
        if isinstance(value, int) and value > LARGEST_SIZE:
            raise ValueError(f"config.json describes a model whose{path} is {value}, and {LARGEST_SIZE} is the most.")
    stored = sum(map(prod, shapes.values()))
    stacks = [config] if config.encoder is None else [config, config.encoder_stack]
    layers = sum(stack.layers for stack in stacks)
    blocks = [stack.distinct or stack.layers for stack in stacks]
    wide = [(stack.attention.heads + stack.kv_heads) * stack.d_head for stack in stacks]
    columns = sum(count * heads for count, heads in zip(blocks, wide, strict=True))
    columns += sum(count_neurons(stack, count) for stack, count in zip(stacks, blocks, strict=True))
    tables = config.vocab_size + (config.context if config.positions.has_places else 0)
    columns += 2 * config.positions.span if config.positions.kind == "disentangled" else 0
    patches = config.embedding.patches
    columns += patches.channels * patches.size**2 if patches is not None else 0
    columns += config.embedding.sound.positions if config.embedding.sound is not None else 0
    least = config.d_embed * tables + config.d_model * columns
    if sum(blocks) > len(shapes) or least > stored or layers > MOST_LAYERS:
        raise ValueError(
            f"config.json describes {count_words(layers, 'layer')} and at least {least} numbers, but the weights "
            f"hold {count_words(len(shapes), 'tensor')} and {stored} numbers; they are not of one model."
        )


def count_neurons(stack: ModelConfig, blocks: int) -> int:
    """Number of neurons of `blocks` blocks, of all their experts."""
    if stack.mlp is None:
        return 0
    experts = stack.mlp.experts
    if experts is None:
        return blocks * stack.mlp.d_mlp
    return (blocks - len(set(experts.dense))) * experts.count * stack.mlp.d_mlp


def iterate_leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(tree, dict):
        yield path, tree
        return
    for name, branch in tree.items():
        yield from iterate_leaves(branch, f"{path}.{name}" if path else f" {name}")


def names_in_file(family: Family, rows: Sequence[Row], tied: bool, shapes: Shapes) -> dict[str, str]:
    """The family's name of each tensor -> its name in the file, which may lack the optional prefix.

    Of two tensors that are one, a file may hold either, or both.
    """
    equal_names = {**find_twins(family, rows), **(family.tied if tied else {})}
    known = source_names(rows) | family.tied.keys() | equal_names.keys()
    names: dict[str, str] = {}
    for name in shapes:
        theirs = next((n for n in family.spellings(name) if n in known or family.drops(n)), None)
        if theirs is not None:
            names.setdefault(theirs, name)
    for one, other in equal_names.items():
        if one in names:
            names.setdefault(other, names[one])
    return names


def source_names(rows: Iterable[Row]) -> set[str]:
    return {name for row in rows for name in row.source}


def find_twins(family: Family, rows: Iterable[Row]) -> dict[str, str]:
    """Find the family's twins, without those that are tensors of their own in this model."""
    own = source_names(rows)
    return {one: other for one, other in family.twins.items() if one not in own}


def check_twins(family: Family, rows: Iterable[Row], weights: Weights, names: Mapping[str, str]) -> None:
    for one, other in find_twins(family, rows).items():
        if one in names and other in names and not are_equal(names[one], names[other], weights):
            raise ValueError(
                f"{names[one]} and {names[other]} must be equal in a {family.name} model, and are not: "
                "Loupe has one tensor for both."
            )


def are_tied(family: Family, weights: Weights, names: Mapping[str, str]) -> bool:
    """True where the tensors that the config calls tied are equal, as far as both were stored.

    Where they are not, the file is believed and not the config, as transformers does.
    """
    both = [(names[one], names[other]) for one, other in family.tied.items() if one in names and other in names]
    return all(are_equal(one, other, weights) for one, other in both)


def are_equal(one: str, other: str, weights: Weights) -> bool:
    """Compare the numbers of two tensors of a file."""
    if one == other or weights.shapes[one] != weights.shapes[other]:
        return one == other
    return torch.equal(weights[one], weights[other].to(weights[one].dtype))


def find_differing(
    family: Family, config: ModelConfig, names: Mapping[str, str], weights: Weights
) -> dict[str, RecomputedTensor]:
    """The file's names of tensors that are not what Loupe computes in their place, and what that is."""
    differing = {}
    for theirs, stored in names.items():
        must_equal, layer = family.find_dropped(theirs) or (None, 0)
        if must_equal is None:
            continue
        if not must_equal.equals(weights[stored], config, layer):
            differing[stored] = must_equal
        weights.release(stored)
    return differing


def describe_differing(differing: Mapping[str, RecomputedTensor], trained: bool) -> tuple[str, ...]:
    """Sentence for each kind of tensor that is not what Loupe computes in its place."""
    kinds: dict[str, list[str]] = {}
    for stored, computed in differing.items():
        kinds.setdefault(computed.label, []).append(stored)
    fate = "loaded as learned positions" if trained else "left out; the logits are those of what is computed"
    return tuple(
        f"{count_words(len(stored), 'tensor')} ({', '.join(stored[:2])}{', ...' * (len(stored) > 2)}) "
        f"should equal {label}, which Loupe computes, and differ{'s' if len(stored) == 1 else ''}: {fate}."
        for label, stored in kinds.items()
    )


def account_for_tensors(
    family: Family,
    model: Transformer,
    rows: Sequence[Row],
    names: Mapping[str, str],
    weights: Weights,
    differing: Collection[str] = (),
) -> Report:
    """A row for every tensor that is expected or came. Raises ValueError where the model cannot be filled.

    Those that are `differing` from what is computed in their place are unexpected.
    """
    shapes = weights.shapes
    ours = {name: row.target for row in rows for name in row.source}
    expected = shapes_by_row(rows, family, model)
    found = []
    for name, shape in expected.items():
        stored = names.get(name, name)
        came = shapes.get(stored, shape)
        if came != shape:
            raise ValueError(
                f"{weights.label(stored)} must have shape {shape} by config.json, got {came}; "
                "they are not of one model."
            )
        found.append(TensorRow(stored, "loaded" if name in names else "missing", shape, ours[name]))
    for one, other in find_twins(family, rows).items():
        if other in expected and one in names and names[one] != names.get(other):
            found.append(TensorRow(names[one], "tied", shapes[names[one]], ours[other]))
    if model.config.tied:
        for one, other in family.tied.items():
            if names.get(one) != names.get(other):  # else the row of `other` stands for both
                found.append(TensorRow(names.get(one, one), "tied", expected[other], ours[other]))
    taken = {row.name for row in found}
    dropped = {stored for name, stored in names.items() if family.drops(name)} - set(differing)
    for name in (n for n in shapes if n not in taken):
        found.append(TensorRow(name, "dropped" if name in dropped else "unexpected", shapes[name]))
    dtypes = {**weights.dtypes, **weights.decoded}
    report = Report(tuple(replace(row, dtype=dtypes.get(row.name, "")) for row in found))
    return check_report(report, family, differing, weights.notes)


def expected_shapes(family: Family, model: Transformer) -> dict[str, tuple[int, ...]]:
    """The shapes that the family's tensors must have in a file of this model."""
    return shapes_by_row(family.bind(model.state_dict()), family, model)


def shapes_by_row(rows: Sequence[Row], family: Family, model: Transformer) -> dict[str, tuple[int, ...]]:
    state = model.state_dict()
    unfilled = state.keys() - {name for row in rows for name in row.target}
    if unfilled:
        raise ValueError(
            f"the {family.name} family must have a row for every tensor, and has none for {min(unfilled)}."
        )
    return {name: tuple(tensor.shape) for name, tensor in translate(state, invert_rows(rows), model.config)}


def check_report(report: Report, family: Family, differing: Collection[str], notes: Collection[str] = ()) -> Report:
    missing = report.rows_with("missing")
    unexpected = [row for row in report.rows_with("unexpected") if row.name not in differing]
    if missing:
        more = f" and {len(missing) - 1} more that are" if len(missing) > 1 else ", which is"
        known = next((note for note in notes if f" {missing[0].name} " in note), ask_for_names(unexpected))
        raise IncompleteWeights(
            f"the weights of {family.architecture or family.name} must hold {missing[0].name}{more} not there; {known}",
            report,
            family.architecture or family.name,
        )
    if not unexpected:
        return report
    names = ", ".join(row.name for row in unexpected[:3])
    count = "1 tensor has" if len(unexpected) == 1 else f"{len(unexpected)} tensors have"
    note = f"{count} no place in a {family.name} model, left out: {names}."
    return replace(report, notes=(note,))


def ask_for_names(unexpected: Sequence[TensorRow]) -> str:
    """Part of a sentence: what may have happened to tensors that are missing."""
    if not unexpected:
        return "is a shard absent, or the config of another model?"
    names = ", ".join(row.name for row in unexpected[:3])
    return f"if they are what has no place here ({names}, ...), map the names with rename={{old: new}}."


def check_kind(name: str, weights: Weights) -> None:
    if weights.dtypes[name] not in FLOATS and name not in weights.schemes:
        kinds = ", ".join(FLOATS)
        raise ValueError(f"{weights.label(name)} must be one of {kinds}, got {weights.dtypes[name]}; dequantise it.")


def most_common_dtype(weights: Weights, names: Iterable[str]) -> torch.dtype:
    """Dtype that most of the numbers are stored in; float32 where some are quantised."""
    if weights.schemes:
        return torch.float32
    numbers: Counter[str] = Counter()
    for name in names:
        numbers[weights.dtypes[name]] += prod(weights.shapes[name])
    return FLOATS[numbers.most_common(1)[0][0]] if numbers else torch.float32


def describe_dtypes(report: Report, dtype: torch.dtype) -> tuple[str, ...]:
    """Sentence for a file of several dtypes: the model is of one."""
    counts = Counter(row.dtype for row in report.rows_with("loaded"))
    if len(counts) < 2:
        return ()
    stored = ", ".join(f"{count} in {kind}" for kind, count in counts.most_common())
    return (f"Tensors are stored {stored}; the model holds all in {str(dtype).removeprefix('torch.')}.",)


def must_stay_mapped(
    model: Transformer,
    rows: Iterable[Row],
    weights: Weights,
    places: Mapping[str, str],
    dtype: torch.dtype,
    stored: torch.dtype,
    free: int,
    name: str,
) -> bool:
    """True where the weights fit the `free` bytes of memory as a map of their file alone. Raises ValueError where they
    fit in no way, before any of them is read."""
    if weights.schemes:
        check_room(model, rows, weights, places, dtype, free, name)
        return False
    sizes = [parameter.numel() for parameter in model.parameters()]
    numbers = sum(sizes)
    if numbers * dtype.itemsize <= free:
        return False
    room = max(sizes) * dtype.itemsize  # of what is converted at a time
    if room + sum(bytes_beside_map(row, weights, places, model.config, dtype) for row in rows) <= free:
        return True
    kept = f"{str(stored).removeprefix('torch.')} ({gigabytes(numbers * stored.itemsize)})"
    advice = f"keep them in {kept}" if numbers * stored.itemsize <= free else "open a smaller model"
    raise ValueError(
        f"{name} needs {numbers:,} numbers x {dtype.itemsize} bytes = {gigabytes(numbers * dtype.itemsize)}, "
        f"and {gigabytes(free)} are free; {advice}, or use a machine with more memory."
    )


def check_room(
    model: Transformer, rows: Iterable[Row], weights: Weights, places: Mapping[str, str], dtype: torch.dtype,
    free: int, name: str,
) -> None:  # fmt: skip
    """Raises ValueError where what is not quantised, and the largest matrix decoded, do not fit the memory."""
    apart = [
        prod(weights.shapes[places[one]]) for row in rows for one in row.source if places[one] not in weights.schemes
    ]
    needed = (sum(apart) + max(parameter.numel() for parameter in model.parameters())) * dtype.itemsize
    if needed > free:
        raise ValueError(
            f"{name} needs {gigabytes(needed)} beside its file, and {gigabytes(free)} are free; open a smaller model, "
            "or use a machine with more memory."
        )


def bytes_beside_map(
    row: Row, weights: Weights, places: Mapping[str, str], config: ModelConfig, dtype: torch.dtype
) -> int:
    """Bytes of memory that the tensors of a row take where they are no views of maps of a file."""
    names = [places[source] for source in row.source]
    read = [torch.empty(weights.shapes[name], dtype=FLOATS[weights.dtypes[name]], device="meta") for name in names]
    made = row.transform.read(read, config)
    if weights.mapped.issuperset(names) and are_views(made, read):
        return 0
    return sum(tensor.numel() for tensor in made) * dtype.itemsize


def are_views(made: Iterable[Tensor], read: Iterable[Tensor]) -> bool:
    """True where all that was made lies in the memory of what was read."""
    return {one.untyped_storage()._cdata for one in made} <= {one.untyped_storage()._cdata for one in read}


def describe_map(model: Transformer, stored: torch.dtype, free: int, reading: float) -> str:
    """Sentences for a model whose weights stay in their file, all of which were read in `reading` seconds."""
    parameters = list(model.parameters())
    numbers, dtype = sum(parameter.numel() for parameter in parameters), model.dtype
    size = sum(as_stored(parameter).nbytes for parameter in parameters)
    computing = numbers * seconds_per_number(model)
    kind, used = (str(dtype).removeprefix("torch.") for dtype in (stored, dtype))
    return (
        f"Its weights stay in their file, {gigabytes(size)} in {kind}, and each is read where a layer computes with it "
        f"in {used}: in memory they would take {gigabytes(numbers * dtype.itemsize)}, and {gigabytes(free)} are free. "
        f"A forward pass of {PACE_TOKENS} tokens is expected to take some "
        f"{count_words(max(round(reading + computing), 1), 'second')} on the CPU: {reading:.1f} s to read them, as "
        f"opening took, and {computing:.1f} s for {2 * numbers * PACE_TOKENS:.1e} operations, by how long the largest "
        "matrix of its blocks takes."
    )


def seconds_per_number(model: Transformer) -> float:
    """Time that one number of the weights takes in a forward pass of PACE_TOKENS tokens, by the largest matrix of a
    block."""
    matrices = [weight for name, weight in model.named_parameters() if "blocks." in name and weight.dim() == 2]
    matrix = max(matrices or model.parameters(), key=Tensor.numel)
    x = torch.ones(PACE_TOKENS, matrix.shape[-1], dtype=matrix.dtype)
    times = []
    for _ in range(PACE_TRIES):  # the first also sets threads up
        begun = perf_counter()
        linear(x, matrix)
        times.append(perf_counter() - begun)
    return min(times) / matrix.numel()


def fill_model(
    model: Transformer,
    rows: Iterable[Row],
    weights: Weights,
    stored: Mapping[str, str],
    dtype: torch.dtype,
    as_map: bool = False,
) -> dict[str, Tensor]:
    """Fill the model row by row: of what is not kept as it is stored, at most one row is in memory.

    `stored` is the name in the file of each of the rows' sources; `as_map` keeps all as they are stored. Returns what
    rows that lose something were made of, by the rows' names.
    """
    state: dict[str, Tensor] = {}
    kept_as_stored: dict[str, Tensor] = {}
    quantised = sum(prod(weights.shapes[name]) for name in weights.schemes) * dtype.itemsize > DECODED
    for row in rows:
        names = [stored[source] for source in row.source]
        read = [weights[name] for name in names]
        for name, tensor in zip(names, read, strict=True):
            check_finite(weights.label(name), tensor)
        if not quantised:
            read = [one.numbers() if isinstance(one, QuantisedTensor) else one for one in read]
        if quantised and any(name in weights.schemes for name in names):
            made = keep_quantised(row, read, model.config, dtype)
        elif as_map:
            made = keep_stored(row, read, model.config, dtype, weights.mapped.issuperset(names))
        else:
            made = row.read(read, model.config, dtype)
        if row.transform.loses and read[0].dtype == dtype:
            kept_as_stored |= dict(zip(row.source, (tensor.clone() for tensor in read), strict=True))
        state.update(zip(row.target, made, strict=True))
        kept = {place_of(tensor) for tensor in made}
        for name, tensor in zip(names, read, strict=True):
            if place_of(tensor) not in kept:
                weights.release(name)
    model.load_state_dict(state, assign=True)
    return kept_as_stored


def place_of(tensor: Tensor) -> int:
    """The address in memory of a tensor as it is stored."""
    return (tensor.stored if isinstance(tensor, StoredTensor) else tensor).untyped_storage().data_ptr()


def keep_quantised(row: Row, read: list[Tensor], config: ModelConfig, dtype: torch.dtype) -> list[Tensor]:
    """Tensors that a row makes of quantised ones: quantised as well where they are rows of those, else decoded."""
    given = [one.of(dtype) if isinstance(one, QuantisedTensor) else one.to(dtype) for one in read]
    return row.transform.read(given, config)


def keep_stored(row: Row, read: list[Tensor], config: ModelConfig, dtype: torch.dtype, mapped: bool) -> list[Tensor]:
    """Tensors that a row makes, as views of what was read; else, where each number of it was stored, in the stored
    dtype."""
    made = row.transform.read(read, config)
    if are_views(made, read):
        return [StoredTensor(tensor, dtype, mapped) for tensor in made]
    made = row.read(read, config, dtype)
    narrow = [tensor.to(read[0].dtype) for tensor in made]
    return [
        StoredTensor(short, dtype, mapped=False) if torch.equal(short.to(dtype), tensor) else tensor
        for short, tensor in zip(narrow, made, strict=True)
    ]


def check_finite(name: str, tensor: Tensor) -> None:
    """Raise ValueError for NaN or infinity. The sum is quick, but may overflow; then the extremes tell."""
    if isinstance(tensor, QuantisedTensor) and tensor.scheme.is_finite(tensor.stored):
        return
    if not torch.isfinite(tensor.sum()) and not all(torch.isfinite(end) for end in tensor.aminmax()):
        raise ValueError(
            f"{name} must hold finite numbers, has NaN or infinity: its training diverged, or it is damaged."
        )
