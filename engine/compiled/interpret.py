"""What a program predicts, line by line from its functions and in whole numbers: no weight of a model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from engine.compiled.compile import CompiledCheckpoint
from engine.compiled.program import POSITIONS, START_TOKEN, TOKENS, Aggregate, Domain, Map, Program, Width
from engine.work_limit import check_work

SEVERAL = -1  # in place of the number of a value where selected positions have different ones
TOGETHER = 1_024  # texts


def interpret(program: Program, texts: Sequence[Sequence[str]]) -> list[list[str]]:
    """The prediction, which a line makes, at each position of texts of one length; of several values at once that are
    predicted it is the commonest, and of those the first token. Raises ValueError for a line that reads such a
    variable."""
    domains, length = program.find_domains(), len(texts[0])
    read = torch.tensor([[program.vocabulary.index(token) for token in text] for text in texts])
    at = {TOKENS: read, POSITIONS: torch.arange(length).expand_as(read)}  # numbers of values: text pos
    seen = torch.ones(length, length)
    seen = seen.tril() if program.sees == "causal" else seen
    shares = dict[str, Tensor]()  # how many selected positions have each value: text pos value
    for step in program.steps:
        for name in step.inputs:
            if bool((at[name] == SEVERAL).any()):
                text = " ".join(texts[int((at[name] == SEVERAL).any(1).nonzero()[0])])
                raise ValueError(f"{step} reads {name}, which has several values at once in {text!r}; select fewer.")
        values = domains[step.name].values
        if isinstance(step, Map):
            table = torch.tensor([values.index(result) for _, result in step.list_results(domains)])
            table = table.reshape([len(domains[name].values) for name in step.inputs])
            at[step.name] = table[tuple(at[name] for name in step.inputs)]
            shares[step.name] = one_hot(at[step.name], len(values))
        else:
            table = step.select.tabulate(domains)
            selected = table[at[step.select.keys][:, None], at[step.select.queries][..., None]] * seen
            if isinstance(step, Width):
                at[step.name] = program.longest - selected.sum(-1).long()
                continue
            if step.number is not None:
                at[step.name] = find_means(step, domains, selected, at[step.of])
                continue
            places = torch.tensor([values.index(value) for value in domains[step.of].values])
            counts = (selected @ one_hot(places[at[step.of]], len(values)).float()).long()
            counts[..., values.index(None)] += counts.sum(-1) == 0
            at[step.name] = counts.argmax(-1).masked_fill((counts > 0).sum(-1) > 1, SEVERAL)
            shares[step.name] = counts
    said = [START_TOKEN if value is None else str(value) for value in domains[program.predicts].values]
    names = [*dict.fromkeys((START_TOKEN, *program.vocabulary, *said))]
    together = torch.zeros(*read.shape, len(names), dtype=torch.long)
    together.index_add_(2, torch.tensor([names.index(one) for one in said]), shares[program.predicts])
    best = (together * len(names) - torch.arange(len(names))).argmax(-1)
    return [[names[one] for one in row] for row in best.tolist()]


def find_means(step: Aggregate, domains: dict[str, Domain], selected: Tensor, of: Tensor) -> Tensor:
    """Numbers of the means among the values of a line: text pos. `selected` is text query key."""
    assert step.number is not None
    numbers = torch.tensor([step.number(value) for value in domains[step.of].values])
    sums = (selected * numbers[of][:, None]).sum(-1).long()
    counts = selected.sum(-1).long().clamp(min=1)
    values = {value: place for place, value in enumerate(domains[step.name].values)}
    pairs, places = torch.stack((sums, counts), -1).flatten(0, 1).unique(dim=0, return_inverse=True)
    table = torch.tensor([values[Fraction(*pair)] for pair in pairs.tolist()])
    return table[places].reshape(sums.shape)


@torch.no_grad()
def check_compiled(made: CompiledCheckpoint, program: Program) -> tuple[int, float]:
    """The number of texts that the program reads, and by how many logits the model is sure of what it predicts, at
    least. Raises ValueError where on any of them the two differ, and as `interpret` does."""
    assert made.tokenizer is not None
    ids, count, least = {piece: id for id, piece in enumerate(made.tokenizer.pieces)}, 0, float("inf")
    for _, group in groupby(program.list_texts(), key=len):
        texts = [*group]
        for first in range(0, len(texts), TOGETHER):
            check_work()
            some = texts[first : first + TOGETHER]
            logits = made.model(torch.tensor([[ids[token] for token in (START_TOKEN, *text)] for text in some]))[:, 1:]
            right = torch.tensor([[ids[token] for token in row] for row in interpret(program, some)])[..., None]
            ahead = logits.gather(2, right)[..., 0] - logits.scatter(2, right, float("-inf")).amax(2)
            if not bool((ahead > 0).all()):
                text = " ".join(some[int((ahead <= 0).any(1).nonzero()[0])])
                raise ValueError(f"the weights do not predict what the program does in {text!r}; make it simpler.")
            count, least = count + len(some), min(least, float(ahead.min()))
    return count, least
