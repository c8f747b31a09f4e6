"""The lines of Python that write a text as the page Generate does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from views.core.codegen import Imports, import_lines, quote, source_of
from views.generate.availability import unwritten, why_no_logits, why_no_surprise
from views.generate.session import GenerationContext, Settings
from views.generate.surprise_cache import STRIDES

SUMS = (
    "print(found.log_probabilities, found.ranks)",
    "print(found.total, found.mean, found.perplexity, found.training)",
)
WINDOWS = "print([(one.begin, one.asked, one.end) for one in found.windows])"
IMPORTED = {"own_picture": "engine.inputs.ink", "Conversation": "engine.conversations"}
PRINTED = ("for step in steps:", '    print(step.piece, f"{step.probability:.3f}", step.rank)')


def prompt_lines(writing: GenerationContext) -> tuple[Imports, list[str]]:
    """Writes the imports, and the lines that load the checkpoint and bind what the prompt is made of."""
    source, note = source_of(writing.name)
    imports: Imports = {"engine": {"load"}}
    for name in writing.call.imports:
        module = IMPORTED.get(name, "engine.inputs.readers")
        imports.setdefault(module, set()).add(name)
    return imports, [f"checkpoint = load({source}){note}", *writing.call.lines]


def call_arguments(writing: GenerationContext, more: Mapping[str, object], most: int | None = None) -> str:
    """The arguments of `generate` or `beam` from this prompt; of text `more` is quoted as a person would."""
    parts = ["checkpoint", writing.call.prompt]
    parts += [] if most is None else [f"max_tokens={most}"]
    parts += [f"target={writing.call.target}"] if writing.call.target else []
    parts += [f"{name}={quote(value) if isinstance(value, str) else repr(value)}" for name, value in more.items()]
    return ", ".join(parts)


def written_lines(writing: GenerationContext, said: list[int], begun: int, settings: dict[str, Any] | None) -> str:
    """Writes the lines that bind `steps` to those of a branch from its last fork on: of its ids, so many were `begun`,
    and the others were written with `settings`."""
    if why := unwritten(writing.prompt):
        raise ValueError(why)
    ids, how = writing.ids(said), Settings.from_browser(settings or {})
    count = begun if 0 <= begun <= len(ids) else 0
    most = len(ids) if count < len(ids) else len(ids) + how.most
    more = how.options(writing.checkpoint) | ({"begun": list(ids[:count])} if count else {})
    imports, lines = prompt_lines(writing)
    imports["engine"] |= {"generate"}
    lines += [f"steps = list(generate({call_arguments(writing, more, most)}))", *PRINTED]
    lines += ["print(steps[-1].text)", "print(steps[-1].stopped)"]
    return join_lines(imports, lines)


def temperature_lines(writing: GenerationContext, place: tuple[int, ...], temperature: float) -> str:
    """Writes the lines that bind `found` to the distribution at a temperature, after the ids of `place`."""
    if why_no_logits(writing.prompt):
        raise ValueError(why_no_logits(writing.prompt))
    imports, lines = prompt_lines(writing)
    imports["engine.generation.sampling"] = {"Sampling", "distribution", "effective_choices", "entropy"}
    if writing.prompt.fits:
        imports["engine"] |= {"generate"}
        more: dict[str, object] = {"begun": list(place)} if place else {}
        lines += [f"step = next(generate({call_arguments(writing, more, len(place) + 1)}))", "logits = step.logits"]
    else:
        imports["engine.generation.prompt"] = {"begin", "follows"}
        lines += [f"logits = follows(begin({call_arguments(writing, {'longer': True})}))"]
    lines += [
        f"found = distribution(logits, Sampling(temperature={temperature:g}))",
        "top = found.probabilities.topk(8)",
        "for probability, id in zip(top.values.tolist(), top.indices.tolist()):",
        '    print(id, f"{probability:.6f}")',
        "print(entropy(found.probabilities) / math.log(2), effective_choices(found.probabilities))",
    ]
    return "import math\n\n" + join_lines(imports, lines)


def cache_lines(writing: GenerationContext, ids: tuple[int, ...]) -> str:
    """Writes the lines that bind `cache` to the KV cache after the prompt and `ids`, `k` and `v` to the lengths of its
    vectors."""
    imports, lines = prompt_lines(writing)
    imports |= {
        "engine.generation.prompt": {"Reader", "begin"},
        "engine.analysis.caching": {"cache_bytes", "multiply_adds_again", "multiply_adds_cached"},
        "torch": {"inference_mode"},
    }
    target = f", target={writing.call.target}" if writing.call.target else ""
    lines += [
        f"prompt = begin(checkpoint, {writing.call.prompt}{target})",
        f"ids = (*prompt.ids, *{list(ids)!r})[: checkpoint.config.context]" if ids else "ids = prompt.ids",
        f"reader = Reader(prompt, {len(ids) + 1})",
        "with inference_mode():",
        "    reader.read([ids])",
        "cache = reader.cache",
        'k, v = ([getattr(layer, name)[0, :, : len(ids)].norm(dim=-1) for layer in cache.layers] for name in "kv")',
        'print(len(ids), "positions,", cache.bytes, "bytes, |k| of block 1, head 1:", k[0][0])',
        "length, source = len(ids), len(prompt.source)",
        'print("multiply-adds:", multiply_adds_cached(checkpoint.config, length, source), "with the cache,",',
        '      multiply_adds_again(checkpoint.config, length, source), "without")',
        "dtype = next(checkpoint.model.parameters()).dtype",
        'print(cache_bytes(checkpoint.config, checkpoint.config.context, dtype, source), "bytes when it is full")',
    ]
    return join_lines(imports, lines)


def surprise_lines(writing: GenerationContext, written: tuple[int, ...], stride: str) -> str:
    """Writes the lines that bind `found` to the Surprise of the prompt and of what was `written` after it."""
    why = why_no_surprise(writing.prompt)
    if why:
        raise ValueError(why)
    imports, lines = prompt_lines(writing)
    arguments = ", ".join(filter(None, (writing.call.prompt, writing.call.target)))
    if not writing.checkpoint.config.generates:
        imports["engine.analysis.pseudo"] = {"pseudo_surprise"}
        lines += [
            f"read = checkpoint.tokenizer.encode({arguments})",
            "found = pseudo_surprise(checkpoint, read.ids, read.segments)",
        ]
    else:
        imports.setdefault("engine.generation.prompt", set()).add("begin")
        imports["engine.analysis.surprise"] = {"surprise"}
        ids = f"(*begun.ids, {', '.join(map(str, written))})" if written else "begun.ids"
        longer, apart = "", ""
        if not writing.prompt.fits:
            longer = ", longer=True"
            apart = f", stride={STRIDES[stride](writing.checkpoint.config.context)}"
        lines += [
            f"begun = begin(checkpoint, {arguments}{longer})",
            f"found = surprise(checkpoint, {ids}, begun.source{apart})",
        ]
    return join_lines(imports, [*lines, *SUMS, *([] if writing.prompt.fits else [WINDOWS])])


def join_lines(imports: Imports, lines: Iterable[str]) -> str:
    return "\n".join([*import_lines(imports), "", *lines]) + "\n"
