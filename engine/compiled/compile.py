"""From a program to weights (Lindner et al. 2023, "Tracr: Compiled Transformers as a Laboratory for Interpretability").

Each variable has a subspace of the residual stream of its own; a select with what is made of it is one head, a map some
neurons of an MLP. A line stands in the first block in which all that it reads is there.

A head's scores are SHARPNESS for the selected keys, half of it for the start token, 0 for the others: e^-20 (2e-9) of
the weight at most goes astray, which float32 rounds away beside a 1. Of a `Width` the start token's score is SHARPNESS
too. The right token's logit is LOGIT times its share, and 0 for the others; the first of the vocabulary is ahead of the
last by less than the smallest difference of two shares, 1 / longest. So the margin is LOGIT, less that, where
all shares are 1 or 0, and else at least LOGIT / (tokens x (longest + 1)).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
from tokenizers import Tokenizer, models
from tokenizers.processors import TemplateProcessing

from engine.checkpoints import Checkpoint
from engine.compiled.answer_key import AnswerKey, Line, Reader, Reading, Variable
from engine.compiled.program import (
    POSITIONS,
    START,
    START_TOKEN,
    TOKENS,
    Aggregate,
    Domain,
    Map,
    Program,
    Select,
    Step,
    Width,
)
from engine.model.config import MLP, Attention, ModelConfig, Norm, OutputHead, Positions
from engine.model.layers.block import Block
from engine.model.layers.mlp import MLP as Neurons
from engine.model.transformer import Transformer
from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.kinds.word import JOIN, SPLIT
from engine.tokenizers.special import UNKNOWN

SHARPNESS = 40.0
LOGIT = 50.0


@dataclass(frozen=True, kw_only=True)
class CompiledCheckpoint(Checkpoint):
    """A checkpoint whose circuit is known. No family of transformers is without norms, so `save` writes Loupe's own
    format, and the key beside it."""

    key: AnswerKey

    def save(self, folder: str | Path) -> None:
        super().save(folder)
        self.key.save(Path(folder))


def compile_program(program: Program, spare_heads: int = 1) -> CompiledCheckpoint:
    """Build a model that computes the program, exactly for every text of its vocabulary up to its length.

    Every block has as many heads as the fullest needs, and `spare_heads` that are idle. Raises ValueError for a
    program whose lines do not fit together.
    """
    domains = program.find_domains()
    places = place_steps(program.steps)
    tokenizer = build_tokenizer(program, domains[program.predicts])
    variables = lay_out(domains)
    config = make_config(program, domains, places, spare_heads, tokenizer.vocab_size)
    model = Transformer(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        write_ends(model, program, domains, variables, tokenizer)
        lines, used = [], [0] * config.layers  # neurons of each block
        for step, (block, head) in zip(program.steps, places, strict=True):
            layer = model.blocks[block]
            assert isinstance(layer, Block)
            writer, neurons = Writer(layer, variables, domains, used[block]), tuple[int, ...]()
            if isinstance(step, Map):
                writer.write_map(step)
                neurons = (used[block], writer.neuron)
                used[block] = writer.neuron
            else:
                writer.write_head(step, head or 0, program.sees == "causal")
            lines.append(Line(str(step), step.name, tuple(writer.read), block, head, neurons))
    key = AnswerKey(
        program.name, program.predicts, config.layers, config.attention.heads, tuple(variables.values()), tuple(lines)
    )
    card = {"name": program.name, "about": program.title, "program": [line.text for line in lines]}
    return CompiledCheckpoint(model.requires_grad_(False).eval(), tokenizer, card, name=program.name, key=key)


def place_steps(steps: tuple[Step, ...]) -> list[tuple[int, int | None]]:
    """Block and head of each line, None for a map: its MLP, which may read the heads of the same block."""
    ready = dict.fromkeys((TOKENS, POSITIONS), -1)  # attention of block b is the stage 2 b, its MLP is 2 b + 1
    heads = Counter[int]()
    places = list[tuple[int, int | None]]()
    for step in steps:
        stage = max(ready[name] for name in step.inputs) + 1
        stage += (stage % 2 == 0) if isinstance(step, Map) else stage % 2
        ready[step.name], block = stage, stage // 2
        places.append((block, None if isinstance(step, Map) else heads[block]))
        heads[block] += not isinstance(step, Map)
    return places


def lay_out(domains: Mapping[str, Domain]) -> dict[str, Variable]:
    found, start = dict[str, Variable](), 0
    for name, domain in domains.items():
        labels = () if domain.codes else tuple(map(str, domain.values))
        found[name] = Variable(name, start, domain.size, labels)
        start += domain.size
    return found


def make_config(
    program: Program,
    domains: Mapping[str, Domain],
    places: list[tuple[int, int | None]],
    spare_heads: int,
    vocab_size: int,
) -> ModelConfig:
    d_head, neurons = 1, Counter[int]()
    for step, (block, _) in zip(program.steps, places, strict=True):
        if isinstance(step, Map):
            neurons[block] += count_neurons(step, domains)
        else:
            d_head = max(d_head, domains[step.select.keys].size + 1, domains[step.name].size)
    heads = max((head + 1 for _, head in places if head is not None), default=0) + spare_heads
    return ModelConfig(
        vocab_size=vocab_size,
        context=program.longest + 1,
        d_model=sum(domain.size for domain in domains.values()),
        layers=1 + max((block for block, _ in places), default=-1),
        attention=Attention(heads=max(heads, 1), d_head=d_head, mask=program.sees, scale=1.0),
        mlp=MLP(d_mlp=max(neurons.values(), default=1), activation="relu"),
        positions=Positions("learned"),
        norm=Norm("none"),
        tied=False,
        head=OutputHead("language", bias=True),
    )


def build_tokenizer(program: Program, predicted: Domain) -> FastTokenizer:
    """Words, behind a start token: the vocabulary, and what else is predicted. Raises ValueError for a token that does
    not read as one."""
    names = [UNKNOWN, START_TOKEN]
    tokens = dict.fromkeys([*names, *program.vocabulary, *(name_token(value) for value in predicted.values)])
    fast = Tokenizer(models.WordLevel({token: id for id, token in enumerate(tokens)}, unk_token=UNKNOWN))
    fast.pre_tokenizer, fast.decoder = SPLIT, JOIN
    fast.add_special_tokens(names)
    fast.post_processor = TemplateProcessing(single=f"{START_TOKEN} $A", special_tokens=[(START_TOKEN, 1)])
    tokenizer = FastTokenizer(fast, {"bos_token": START_TOKEN})
    for id, token in enumerate(tokens):
        if (found := tokenizer.ids(token, special=False)) != [id]:
            raise ValueError(f"{token!r:.80} must read as one word, got {len(found)}; choose another token.")
    return tokenizer


def name_token(value: object) -> str:
    return START_TOKEN if value is None else str(value)


def write_ends(
    model: Transformer,
    program: Program,
    domains: Mapping[str, Domain],
    variables: Mapping[str, Variable],
    tokenizer: FastTokenizer,
) -> None:
    """The code of each token and of each position, of which the start token has none, and the head."""
    ids = {piece: id for id, piece in enumerate(tokenizer.pieces)}
    tokens, places, table = model.embed.tokens, model.embed.positions, model.head
    assert tokens is not None and places is not None and table is not None
    tokens.weight[ids[START_TOKEN], variables[START].span] = 1
    for number, token in enumerate(program.vocabulary):
        tokens.weight[ids[token], variables[TOKENS].start + number] = 1
    places.weight[1:, variables[POSITIONS].span] = torch.eye(program.longest)
    first = variables[program.predicts].start
    for number, value in enumerate(domains[program.predicts].values):
        table.weight[ids[name_token(value)], first + number] = LOGIT
    table.bias.copy_(-torch.arange(len(ids)) * LOGIT / (len(ids) * (program.longest + 1)))


def count_neurons(step: Map, domains: Mapping[str, Domain]) -> int:
    results = step.list_results(domains)
    if not domains[step.of[0]].codes:
        return len(results)
    return 1 + 2 * sum(before != after for (_, before), (_, after) in pairwise(results))


class Writer:
    """Writes one line into the weights of a `block`, its neurons from the number `neuron` on; `read` is what the line
    reads."""

    def __init__(
        self, block: Block, variables: Mapping[str, Variable], domains: Mapping[str, Domain], neuron: int
    ) -> None:
        self.block, self.variables, self.domains, self.neuron = block, variables, domains, neuron
        self.read = list[Reading]()

    def find_span(self, reader: Reader, name: str) -> slice:
        """The components of a variable, which the line is noted to read."""
        if (reading := Reading(reader, name)) not in self.read:
            self.read.append(reading)
        return self.variables[name].span

    def write_head(self, step: Aggregate | Width, head: int, causal: bool) -> None:
        attention = self.block.attn
        rows = slice(head * attention.d_head, (head + 1) * attention.d_head)
        counts = isinstance(step, Width)
        # What a bias asks for, the start token of an encoder asks for too, and would then have a value like the others:
        # of a width that does no harm, since only a map reads it, which is off there.
        self.write_scores(step.select, rows, counts, by_bias=causal or counts)
        v, written = attention.v.weight[rows], self.variables[step.name]
        attention.out.weight[written.span, rows.start : rows.start + written.size] = torch.eye(written.size)
        if isinstance(step, Width):
            v[0, self.find_span("v", START)] = 1
            return
        values, span = self.domains[step.of].values, self.find_span("v", step.of)
        if step.number is not None:
            numbers = [0 if value is None else step.number(value) for value in values]
            v[0, span] = torch.tensor(numbers, dtype=v.dtype)
            return
        results = self.domains[step.name].values
        for number, value in enumerate(values):
            v[results.index(value), span.start + number] = 1
        v[results.index(None), self.find_span("v", START)] = 1

    def write_scores(self, select: Select, rows: slice, counts: bool, by_bias: bool) -> None:
        """Queries and keys of a head, its components `rows`. Where all keys are alike they read the mark of the start
        token alone, and with `by_bias` queries that are alike read nothing."""
        keys, queries = self.domains[select.keys].values, self.domains[select.queries].values
        table = torch.tensor(
            [[None not in (key, query) and select.where(key, query) for query in queries] for key in keys]
        ).float()  # key query
        q, k = self.block.attn.q, self.block.attn.k
        assert q.bias is not None and k.bias is not None
        fallback = rows.start + len(keys)
        k.weight[fallback, self.find_span("k", START)] = 1
        q.bias[fallback] = SHARPNESS if counts else SHARPNESS / 2
        if bool((table == table[:1]).all()):
            table = table[:1]
            k.bias[rows.start] = 1
            k.weight[rows.start, self.find_span("k", START)] = -1
        else:
            k.weight[rows.start : fallback, self.find_span("k", select.keys)] = torch.eye(len(keys))
        asked = slice(rows.start, rows.start + len(table))
        if by_bias and bool((table == table[:, :1]).all()):
            q.bias[asked] = SHARPNESS * table[:, 0]
        else:
            q.weight[asked, self.find_span("q", select.queries)] = SHARPNESS * table

    def write_map(self, step: Map) -> None:
        """A neuron for each combination of values, or two for each step of a number. All are off at the start token."""
        results, spans = step.list_results(self.domains), [self.find_span("MLP", name) for name in step.of]
        start, first = self.find_span("MLP", START).start, self.variables[step.name].start
        places = {value: first + number for number, value in enumerate(self.domains[step.name].values)}
        if self.domains[step.of[0]].codes:
            self.write_steps(step, spans[0].start, start, [places[result] for _, result in results])
            return
        for values, result in results:
            read = {start: -float(len(spans))}
            for name, span, value in zip(step.of, spans, values, strict=True):
                read[span.start + self.domains[name].values.index(value)] = 1
            self.write_neuron(read, 1 - len(spans), {places[result]: 1})

    def write_steps(self, step: Map, number: int, start: int, places: list[int]) -> None:
        """The first result, and where it changes between two codes a step, which is 0 in the first quarter of the way
        from one to the other and 1 in the last."""
        codes = [float(code) for code in self.domains[step.of[0]].codes]
        self.write_neuron({start: -1}, 1, {places[0]: 1})
        for (low, before), (high, after) in pairwise(zip(codes, places, strict=True)):
            if before == after:
                continue
            slope, middle = 2 / (high - low), (low + high) / 2
            read = {number: slope, start: -slope * (codes[-1] - middle) - 1}
            for sign in (1, -1):
                self.write_neuron(read, sign / 2 - slope * middle, {after: sign, before: -sign})

    def write_neuron(self, read: Mapping[int, float], bias: float, written: Mapping[int, float]) -> None:
        """`read` and `written` are weights by components of the stream."""
        mlp = self.block.mlp
        assert isinstance(mlp, Neurons) and mlp.pre.bias is not None
        for component, weight in read.items():
            mlp.pre.weight[self.neuron, component] = weight
        mlp.pre.bias[self.neuron] = bias
        for component, weight in written.items():
            mlp.out.weight[component, self.neuron] = weight
        self.neuron += 1
