"""From a program to weights (Lindner et al. 2023, "Tracr: Compiled Transformers as a Laboratory for Interpretability").

Each variable has a subspace of the residual stream of its own; a select with what is made of it is one head, a map some
neurons of an MLP. A line stands in the first block in which all that it reads is there.

A head's scores are SHARPNESS for the selected keys, half of it for the start token, 0 for the others: e^-20 (2e-9) of
the weight at most goes astray, which float32 rounds away beside a 1. Of a width the start token's score is SHARPNESS
too. The right token's logit is LOGIT times its share; the first of the tokens is ahead of the last by less than LOGIT
/ (longest + 1), below the smallest difference of two shares. So the margin is at least LOGIT less that where all shares
are 1 or 0, and else LOGIT / (tokens x (longest + 1)).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import TypeAlias

import torch
from tokenizers import Tokenizer, models
from tokenizers.processors import TemplateProcessing
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.compiled.answer_key import AnswerKey, Line, Variable
from engine.compiled.program import POSITIONS, START, START_TOKEN, TOKENS, Aggregate, Domain, Map, Program, Width
from engine.model.config import MLP, Attention, ModelConfig, Norm, OutputHead
from engine.model.transformer import Transformer
from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.kinds.word import JOIN, SPLIT
from engine.tokenizers.special import UNKNOWN

SHARPNESS = 40.0
LOGIT = 50.0
OF_HEAD = "q.weight", "q.bias", "k.weight", "k.bias", "v.weight", "out.weight"
OF_MLP = "pre.weight", "pre.bias", "out.weight"

Neuron: TypeAlias = tuple[Mapping[int, float], float, Mapping[int, float]]  # weights it reads by, bias, those it writes
Place: TypeAlias = tuple[int, int | None]  # block and head, None for its MLP


@dataclass(frozen=True, kw_only=True)
class CompiledCheckpoint(Checkpoint):
    """A checkpoint whose circuit is known. No family of transformers is without norms, so `save` writes Loupe's own
    format, and the key beside it."""

    key: AnswerKey

    def save(self, folder: str | Path) -> None:
        super().save(folder)
        self.key.save(Path(folder))

    def take_key_off(self, name: str, about: str) -> Checkpoint:
        """The weights and the tokenizer alone, whose card says nothing of the program."""
        return Checkpoint(self.model, self.tokenizer, {"name": name, "about": about}, name=name)


def compile_program(program: Program, spare_heads: int = 1) -> CompiledCheckpoint:
    """Build a model that computes the program, exactly for every text of its vocabulary up to its length.

    Every block has as many heads as the fullest needs, and `spare_heads` that are idle. Raises ValueError for a
    program whose lines do not fit together.
    """
    return Compiler(program).build(spare_heads)


def build_tokenizer(program: Program, predicted: Domain) -> FastTokenizer:
    """Words, behind a start token: the vocabulary, and what else is predicted. Raises ValueError for a token that does
    not read as one."""
    names = [UNKNOWN, START_TOKEN]
    answers = [str(value) for value in predicted.values if value is not None]
    tokens = dict.fromkeys([*names, *program.vocabulary, *answers])
    fast = Tokenizer(models.WordLevel({token: id for id, token in enumerate(tokens)}, unk_token=UNKNOWN))
    fast.pre_tokenizer, fast.decoder = SPLIT, JOIN
    fast.add_special_tokens(names)
    fast.post_processor = TemplateProcessing(single=f"{START_TOKEN} $A", special_tokens=[(START_TOKEN, 1)])
    tokenizer = FastTokenizer(fast, {"bos_token": START_TOKEN})
    for id, token in enumerate(tokens):
        if tokenizer.ids(token, special=False) != [id]:
            raise ValueError(f"{token!r:.80} does not read as one word; choose another token.")
    return tokenizer


def place_steps(program: Program) -> list[Place]:
    """An MLP may read the heads of its own block."""
    ready = dict.fromkeys((TOKENS, POSITIONS), -1)  # attention of block b is the stage 2 b, its MLP is 2 b + 1
    heads, places = Counter[int](), list[Place]()
    for step in program.steps:
        stage = max(ready[name] for name in step.inputs) + 1
        stage += (stage % 2 == 0) if isinstance(step, Map) else stage % 2
        ready[step.name], block = stage, stage // 2
        places.append((block, None if isinstance(step, Map) else heads[block]))
        heads[block] += not isinstance(step, Map)
    return places


class Compiler:
    """Writes the lines of one program; `weights` are the parameters of the model by their names."""

    weights: Mapping[str, Tensor]

    def __init__(self, program: Program) -> None:
        self.program, self.domains = program, {**program.find_domains(), START: Domain((START_TOKEN,))}
        self.tokenizer = build_tokenizer(program, self.domains[program.predicts])
        self.places, self.variables, self.width = place_steps(program), dict[str, Variable](), 0
        for name, domain in self.domains.items():
            labels = () if domain.codes else tuple(map(str, domain.values))
            self.variables[name] = Variable(name, self.width, domain.size, labels)
            self.width += domain.size

    @torch.no_grad()
    def build(self, spare_heads: int) -> CompiledCheckpoint:
        program, lines, used = self.program, list[Line](), Counter[int]()
        neurons = [[*self.list_neurons(step)] if isinstance(step, Map) else [] for step in program.steps]
        spans = list[tuple[int, ...]]()
        for (block, _), own in zip(self.places, neurons, strict=True):
            spans.append((used[block], used[block] + len(own)) if own else ())
            used[block] += len(own)
        config = self.make_config(spare_heads, max([1, *used.values()]))
        model = Transformer(config).requires_grad_(False).eval()
        self.weights = dict(model.named_parameters())
        for weight in self.weights.values():
            weight.zero_()
        self.write_ends()
        for step, (block, head), span, own in zip(program.steps, self.places, spans, neurons, strict=True):
            if isinstance(step, Map):
                reads = tuple(("MLP", name) for name in (*step.inputs, START))
                self.write_neurons(block, span[0], own)
            else:
                reads = self.write_head(step, block, (head or 0) * config.d_head)
            lines.append(Line(str(step), step.name, reads, block, head, span))
        card = {"name": program.name, "about": program.title, "program": [line.text for line in lines]}
        sizes = config.layers, config.attention.heads
        key = AnswerKey(program.name, program.predicts, *sizes, tuple(self.variables.values()), tuple(lines))
        return CompiledCheckpoint(model, self.tokenizer, card, name=program.name, key=key)

    def make_config(self, spare_heads: int, d_mlp: int) -> ModelConfig:
        attending = [step for step in self.program.steps if not isinstance(step, Map)]
        sizes = [(self.domains[step.select.keys].size + 1, self.domains[step.name].size) for step in attending]
        heads = max((head + 1 for _, head in self.places if head is not None), default=0) + spare_heads
        return ModelConfig(
            vocab_size=self.tokenizer.vocab_size,
            context=self.program.longest + 1,
            d_model=self.width,
            layers=1 + max((block for block, _ in self.places), default=-1),
            attention=Attention(
                heads=max(heads, 1), d_head=max([1, *chain(*sizes)]), mask=self.program.sees, scale=1.0
            ),
            mlp=MLP(d_mlp=d_mlp, activation="relu"),
            norm=Norm("none"),
            tied=False,
            head=OutputHead("language", bias=True),
        )

    def write_ends(self) -> None:
        """The code of each token and of each position, of which the start token has none, and the head."""
        ids, longest = self.tokenizer.fast.get_vocab(), self.program.longest
        tokens, table = self.weights["embed.tokens.weight"], self.weights["head.weight"]
        tokens[ids[START_TOKEN], self.variables[START].span] = 1
        for number, token in enumerate(self.program.vocabulary):
            tokens[ids[token], self.variables[TOKENS].start + number] = 1
        self.weights["embed.positions.weight"][1:, self.variables[POSITIONS].span] = torch.eye(longest)
        predicted, first = self.domains[self.program.predicts].values, self.variables[self.program.predicts].start
        for component, value in enumerate(predicted, first):
            table[ids[START_TOKEN if value is None else str(value)], component] = LOGIT
        self.weights["head.bias"].copy_(-torch.arange(len(ids)) * LOGIT / (len(ids) * (longest + 1)))

    def write_head(self, step: Aggregate | Width, block: int, first: int) -> tuple[tuple[str, str], ...]:
        """Writes into the components of a block's heads from `first` on.

        Where all keys are alike they read the mark of the start token alone, and queries that are alike are a bias. In
        an encoder the start token would ask for the same by that, and have a value like the others: there only a width
        may, since what reads one, a map, is off at the start token.
        """
        readings = dict[tuple[str, str], None]()

        def span(reader: str, name: str) -> slice:
            readings[reader, name] = None
            return self.variables[name].span

        q, q_bias, k, k_bias, v, out = (self.weights[f"blocks.{block}.attn.{name}"] for name in OF_HEAD)
        table, keys = step.select.tabulate(self.domains), self.domains[step.select.keys].size
        fallback = first + keys
        k[fallback, span("k", START)] = 1
        q_bias[fallback] = SHARPNESS if isinstance(step, Width) else SHARPNESS / 2
        if bool((table == table[:1]).all()):
            table = table[:1]
            k_bias[first], k[first, span("k", START)] = 1, -1
        else:
            k[first:fallback, span("k", step.select.keys)] = torch.eye(keys)
        asked = slice(first, first + len(table))
        if bool((table == table[:, :1]).all()) and (self.program.sees == "causal" or isinstance(step, Width)):
            q_bias[asked] = SHARPNESS * table[:, 0]
        else:
            q[asked, span("q", step.select.queries)] = SHARPNESS * table
        written = self.variables[step.name]
        out[written.span, first : first + written.size] = torch.eye(written.size)
        if isinstance(step, Width):
            v[first, span("v", START)] = 1
            return tuple(readings)
        results, start = self.domains[step.name].values, span("v", step.of).start
        for component, value in enumerate(self.domains[step.of].values, start):
            if step.number is None:
                v[first + results.index(value), component] = 1
            elif value is not None:
                v[first, component] = step.number(value)
        if step.number is None:
            v[first + results.index(None), span("v", START)] = 1
        return tuple(readings)

    def list_neurons(self, step: Map) -> Iterator[Neuron]:
        """Yields one a combination of values, or two for each step of a number; all are off at the start token."""
        results, start = step.list_results(self.domains), self.variables[START].start
        written, inputs = self.variables[step.name].start, [self.variables[name].start for name in step.inputs]
        places = [written + self.domains[step.name].values.index(result) for _, result in results]
        codes = [float(code) for code in self.domains[step.inputs[0]].codes]
        if not codes:
            for (values, _), place in zip(results, places, strict=True):
                ones = Counter({start: -len(inputs)})
                for name, first, value in zip(step.inputs, inputs, values, strict=True):
                    ones[first + self.domains[name].values.index(value)] += 1
                yield ones, 1 - len(inputs), {place: 1}
            return
        yield {start: -1}, 1, {places[0]: 1}
        for (low, before), (high, after) in pairwise(zip(codes, places, strict=True)):
            if before != after:  # a step that is 0 in the first quarter of the way from one to the other, 1 in the last
                slope, middle = 2 / (high - low), (low + high) / 2
                read = {inputs[0]: slope, start: -slope * (codes[-1] - middle) - 1}
                for sign in (1, -1):
                    yield read, sign / 2 - slope * middle, {after: sign, before: -sign}

    def write_neurons(self, block: int, first: int, neurons: list[Neuron]) -> None:
        pre, bias, out = (self.weights[f"blocks.{block}.mlp.{name}"] for name in OF_MLP)
        for number, (read, own, written) in enumerate(neurons, first):
            bias[number] = own
            pre[number, [*read]] = torch.tensor([*read.values()]).to(pre)
            out[[*written], number] = torch.tensor([*written.values()]).to(out)
