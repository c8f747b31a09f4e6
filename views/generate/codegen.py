"""The lines of Python that write a text as the page Generate does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from views.core.codegen import Imports, import_lines, quoted, source_of
from views.generate.availability import unfollowed
from views.generate.session import Query, Settings, Writing

PRINTED = ("for step in steps:", '    print(step.piece, f"{step.probability:.3f}", step.rank)')


def opening(writing: Writing) -> tuple[Imports, list[str]]:
    """What to import, and the lines that load the checkpoint and bind what the prompt is made of."""
    source, note = source_of(writing.name)
    imports: Imports = {"engine": {"load"}}
    for name in writing.call.imports:
        imports.setdefault("engine.inputs.pictures" if name == "opened" else "engine.inputs.readers", set()).add(name)
    return imports, [f"checkpoint = load({source}){note}", *writing.call.lines]


def called(writing: Writing, more: Mapping[str, object], most: int | None = None) -> str:
    """The arguments of `generate` or `beam` from this prompt; of text `more` is quoted as a person would."""
    parts = ["checkpoint", writing.call.prompt]
    parts += [] if most is None else [f"max_tokens={most}"]
    parts += [f"target={writing.call.target}"] if writing.call.target else []
    parts += [f"{name}={quoted(value) if isinstance(value, str) else repr(value)}" for name, value in more.items()]
    return ", ".join(parts)


def written_lines(writing: Writing, query: Query) -> str:
    """They bind `steps` to those of the branch that is looked at, from its last fork on. `query` has its ids as
    `branch`, how many of them were `begun`, and the `settings` of the others."""
    ids = writing.ids(query.get("branch", []))
    begun = query.get("begun")
    count = begun if type(begun) is int and 0 <= begun <= len(ids) else 0
    settings = Settings.of(query.get("settings", {}))
    most = len(ids) if count < len(ids) else len(ids) + settings.most
    more = settings.options | ({"begun": list(ids[:count])} if count else {})
    imports, lines = opening(writing)
    imports["engine"] |= {"generate"}
    lines += [f"steps = list(generate({called(writing, more, most)}))", *PRINTED]
    lines += ["print(steps[-1].text)", "print(steps[-1].stopped)"]
    return joined(imports, lines)


def temperature_lines(writing: Writing, place: tuple[int, ...], temperature: float) -> str:
    """They bind `found` to the distribution at a temperature, after the ids of `place`."""
    if unfollowed(writing.prompt):
        raise ValueError(unfollowed(writing.prompt))
    imports, lines = opening(writing)
    imports["engine.generation.sampling"] = {"Sampling", "distribution", "effective_choices", "entropy"}
    if writing.prompt.fits:
        imports["engine"] |= {"generate"}
        more: dict[str, object] = {"begun": list(place)} if place else {}
        lines += [f"step = next(generate({called(writing, more, len(place) + 1)}))", "logits = step.logits"]
    else:
        imports["engine.generation.prompt"] = {"begin", "follows"}
        lines += [f"logits = follows(begin({called(writing, {'longer': True})}))"]
    lines += [
        f"found = distribution(logits, Sampling(temperature={temperature:g}))",
        "top = found.probabilities.topk(8)",
        "for probability, id in zip(top.values.tolist(), top.indices.tolist()):",
        '    print(id, f"{probability:.6f}")',
        "print(entropy(found.probabilities) / math.log(2), effective_choices(found.probabilities))",
    ]
    return "import math\n\n" + joined(imports, lines)


def joined(imports: Imports, lines: Iterable[str]) -> str:
    return "\n".join([*import_lines(imports), "", *lines]) + "\n"
