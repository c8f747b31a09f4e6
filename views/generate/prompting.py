"""What the tab Prompting asks: prompts made of a table's rows, how often a model is right as rows are added, and what
it makes of a text behind which an instruction stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints import Checkpoint, shipped_names
from engine.generation import few_shot as prompting
from engine.generation.few_shot import BEHIND, PromptTable
from engine.generation.generate import Step, generate
from engine.generation.instructions import InstructedPair, answer_behind, held_out_pairs
from engine.runtime import library
from views.core.payload import pack
from views.generate.session import STALE, UNKNOWN, Query, Writing

LEARNER = "in-context"  # what is asked first
ROWS = 8  # of the most probable tokens of a step
PATIENCE = 0.2  # seconds of one answer
LONGEST = 20_000  # characters of a person's own table
QUERY = 200  # characters of a query
TEXT = 400  # of a text to be instructed about
MOST = 200  # queries of a measurement, for each number of examples
ANSWER = 40  # tokens written behind an instruction
OWN = "your own"


def answer(writing: Writing, query: Query) -> bytes:
    """Only the models that are offered hang on what the page writes from: what is measured goes on when that changes.

    Raises ValueError with a sentence."""
    match query:
        case {"ask": "prompting"} if query.get("trace") != writing.made:
            raise ValueError(STALE)
        case {"ask": "prompting"}:
            return pack(offered(writing), {})
        case {"ask": "few_shot"}:
            return pack(*prompt_parts(checkpoint_of(writing, query), table_of(query), *shots_of(query)))
        case {"ask": "accuracy", "k": int(k), "seed": int(seed), "n": int(n), "from": int(at)} if 0 <= at < n <= MOST:
            name = model_of(writing, query)
            return pack({"answers": answers(name, table_of(query), k, seed, n, at)}, {})
        case {"ask": "instructed", "text": str(text)}:
            return pack(*instructed_parts(checkpoint_of(writing, query), text[:TEXT]))
        case {"ask": "pairs", "from": int(first)} if first >= 0:
            return pack({"answers": pair_answers(model_of(writing, query), first)}, {})
    raise ValueError(UNKNOWN)



def offered(writing: Writing) -> dict[str, Any]:
    """The models to choose from, that of the page among them, and the tables that come with Loupe."""
    tables = prompting.tables().values()
    return {
        "models": models(writing),
        "instructed": {name: list(prompting.instructions(library.checkpoint(name))) for name in instructed(writing)},
        "tables": [{"name": one.name, "about": one.about, "rows": [list(row) for row in one.rows]} for one in tables],
        "pairs": len(held_out_pairs()),
    }


def models(writing: Writing) -> list[str]:
    """Those that continue a text of words, the one that learnt to do it from examples first."""
    names = dict.fromkeys([LEARNER, writing.name, *shipped_names()])
    return [name for name in names if continues(library.checkpoint(name))]


def instructed(writing: Writing) -> list[str]:
    """Those whose vocabulary has instructions, before their bases those that were taught what they mean."""
    names = [name for name in models(writing) if prompting.instructions(library.checkpoint(name))]
    return sorted(names, key=lambda name: library.checkpoint(name).card.get("objective") != "completion")


def continues(checkpoint: Checkpoint) -> bool:
    try:
        prompting.check(checkpoint)
    except ValueError:
        return False
    return True


def model_of(writing: Writing, query: Query) -> str:
    name = query.get("model")
    if not isinstance(name, str) or name not in models(writing):
        raise ValueError(UNKNOWN)
    return name


def checkpoint_of(writing: Writing, query: Query) -> Checkpoint:
    return library.checkpoint(model_of(writing, query))


def table_of(query: Query) -> PromptTable:
    """The table that is named, or a person's own rows. Raises ValueError with a sentence."""
    match query:
        case {"rows": str(rows)} if len(rows) <= LONGEST:
            return prompting.table_of(rows, OWN)
        case {"rows": str(rows)}:
            raise ValueError(f"a table must have at most {LONGEST:,} characters, got {len(rows):,}; take fewer rows.")
        case {"table": str(name)} if name in prompting.tables():
            return prompting.tables()[name]
    raise ValueError(UNKNOWN)



def shots_of(query: Query) -> tuple[int, str, int]:
    """How many examples, what is asked, and the seed. Raises ValueError with a sentence."""
    match query:
        case {"k": int(k), "query": str(asked), "seed": int(seed)} if len(asked) <= QUERY:
            return k, asked, seed
        case {"query": str(asked)} if len(asked) > QUERY:
            raise ValueError(f"a query must have at most {QUERY} characters, got {len(asked):,}; shorten it.")
    raise ValueError(UNKNOWN)


def prompt_parts(
    checkpoint: Checkpoint, table: PromptTable, k: int, query: str, seed: int
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The prompt, what it is made of, and the model's answer, token by token."""
    prompt = prompting.few_shot(table, k, query, seed)
    written = prompting.answer(checkpoint, table, k, query, seed).written
    steps = list(behind(checkpoint, prompt, prompting.longest(checkpoint, table), (BEHIND,)))
    header, arrays = steps_parts(checkpoint, steps)
    examples = [list(row) for row in prompting.examples(table, k, query, seed)]
    expected = table.output(query)
    return {**header, "prompt": prompt, "examples": examples, "expected": expected, "written": written}, arrays


def behind(checkpoint: Checkpoint, prompt: str, most: int, stops: Sequence[str] = ()) -> Iterator[Step]:
    """The likeliest token each time."""
    return generate(checkpoint, prompt, most, greedy=True, stop_strings=stops)


def steps_parts(checkpoint: Checkpoint, steps: Sequence[Step]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """`tokens`, and of each the most probable ones at its place with their probabilities, token row."""
    tokens = [{"id": step.id, "piece": step.piece} for step in steps]
    if not steps:
        return {"tokens": tokens, "pieces": {}}, {}
    own = torch.stack([step.logits.float() for step in steps]).softmax(-1)
    top = own.topk(min(ROWS, own.shape[-1]))
    shown = torch.cat([top.indices, torch.tensor([[step.id] for step in steps])], -1).unique().tolist()
    arrays = {"top.id": top.indices, "top.probability": top.values}
    return {"tokens": tokens, "pieces": {str(id): piece_of(checkpoint, id) for id in shown}}, arrays


def piece_of(checkpoint: Checkpoint, id: int) -> str:
    assert checkpoint.tokenizer is not None
    return checkpoint.tokenizer.piece(id)


def answers(name: str, table: PromptTable, k: int, seed: int, n: int, first: int) -> list[dict[str, Any]]:
    """Of the `n` queries with `k` examples those from `first` on, as far as patience goes, and one at least."""
    asked = islice(prompting.queries(table, seed, n), first, None)
    return list(patiently(told(answered(name, table, k, query, turn)) for query, turn in asked))


def patiently(found: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    start = perf_counter()
    for one in found:
        yield one
        if perf_counter() - start > PATIENCE:
            return


@lru_cache(maxsize=4096)
def answered(name: str, table: PromptTable, k: int, query: str, seed: int) -> prompting.Answer:
    return prompting.answer(library.checkpoint(name), table, k, query, seed)


def told(one: prompting.Answer) -> dict[str, Any]:
    return {"query": one.query, "expected": one.expected, "written": one.written, "right": one.right}



def instructed_parts(checkpoint: Checkpoint, text: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The same text under none and under each of the model's instructions; the arrays of one begin with its number."""
    tasks = ("", *prompting.instructions(checkpoint))
    header: dict[str, Any] = {"tasks": []}
    arrays: dict[str, Tensor] = {}
    for number, task in enumerate(tasks):
        prompt = prompting.instructed(text, task) if task else text.strip()
        steps = list(behind(checkpoint, prompt, ANSWER))
        found, its_arrays = steps_parts(checkpoint, steps)
        written = answer_behind(checkpoint, [step.id for step in steps])
        stop = "" if not steps or steps[-1].stopped is None else steps[-1].stopped.sentence
        header["tasks"].append({**found, "task": task, "prompt": prompt, "written": written, "stop": stop})
        arrays |= {f"{number}.{key}": value for key, value in its_arrays.items()}
    return header, arrays


def pair_answers(name: str, first: int) -> list[dict[str, Any]]:
    """Of the sentences that no model was trained on those from `first` on, as many as there is patience for."""
    pairs = islice(held_out_pairs(), first, None)
    return list(patiently(pair_told(name, pair) for pair in pairs))


def pair_told(name: str, pair: InstructedPair) -> dict[str, Any]:
    written = pair_written(name, pair)
    return {
        "text": pair.text,
        "instruction": pair.instruction,
        "expected": pair.expected,
        "written": written,
        "right": written == pair.expected,
    }


@lru_cache(maxsize=1024)
def pair_written(name: str, pair: InstructedPair) -> str:
    checkpoint = library.checkpoint(name)
    steps = behind(checkpoint, prompting.instructed(pair.text, pair.instruction), ANSWER)
    return answer_behind(checkpoint, [step.id for step in steps])
