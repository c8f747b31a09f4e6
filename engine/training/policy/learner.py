"""What objectives that learn from preferences have in common: which answers an update learns from.

    PairLearner:    pairs of the source ──▶ policy and reference ──▶ scores
    PolicyLearner:  prompts ──▶ answers drawn by the policy ──▶ rewards ──▶ scores, `updates` times

The reference is the base: with an adapter the model without it, else, and in a fork, a copy that does not learn. No
dropout acts on either. `weight` of such a learner is beta.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from itertools import pairwise
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from engine.data.seeds import seed_for
from engine.scoring.examples import UNASKED, Counts, Examples
from engine.training.base.base import begin_with
from engine.training.examples.padding import pad_rows, real
from engine.training.learner import Learner, LearnerContext, evaluation
from engine.training.policy.judge import Judge, open_judge
from engine.training.policy.kl import k1, log_probs_of, masked_sum
from engine.training.policy.rollouts import Prompt, SampledAnswers, draw_answers, read_drawn
from engine.training.recipe.recipe import Recipe
from engine.training.run.failures import Diverged
from engine.training.sources.preferences import AnsweredPairs, PreferredAnswers

KEPT = ("ids", "padding", "answer")  # of the inputs of a batch
SILENT = 3  # steps


def next_of(values: Tensor) -> Tensor:
    """Values (row pos) of each position's next one."""
    return values[:, 1:]


class PreferenceLearner(Learner):
    refers = True  # to the base, which the policy is compared with

    def __init__(self, learning: LearnerContext) -> None:
        super().__init__(learning)
        assert isinstance(learning.source, PreferredAnswers)
        self.source, self.settings = learning.source, learning.recipe.preference
        self.sampled: tuple[int, list[dict[str, Any]]] | None = None  # at which step, and what
        learning.model.eval()  # no dropout, in training either
        self.frozen = None
        if self.refers and not learning.holds_base:
            model, _ = begin_with(learning.model.config, learning.recipe.base, 0)
            self.frozen = model.to(learning.device).eval().requires_grad_(False)

    @property
    def usual_weight(self) -> float:
        return self.recipe.preference.beta

    def policy(self, ids: Tensor, **inputs: Any) -> Tensor:
        """The logits of the model that learns."""
        return self.learning.eager(ids=ids, **inputs)[0]

    @torch.no_grad()
    def reference(self, ids: Tensor, **inputs: Any) -> Tensor:
        """Logits of the base."""
        logits: Tensor = (self.frozen or self.learning.model)(ids, **inputs)
        return logits

    def log_probs(self, logits_of: Callable[..., Tensor], ids: Tensor, real: Tensor, drawn: bool = False) -> Tensor:
        """row pos-1: those of each token behind the first, in nats. Of answers that were `drawn` they are those of the
        distribution that these were drawn from, whichever model gives them."""
        temperature = self.settings.temperature if drawn else 1.0
        return log_probs_of(logits_of(ids, padding=real)[:, :-1], next_of(ids), temperature)

    def draw(self, prompts: list[Prompt], seed: int) -> SampledAnswers:
        tokenizer = self.source.corpus.tokenizer
        most, ends = self.settings.answer_tokens, self.source.end_ids
        drawn = draw_answers(self.learning.model, prompts, most, seed, self.settings.temperature, ends, self.policy)
        rows = [torch.tensor((*prompt, *answer)) for prompt, answer in zip(prompts, drawn, strict=True)]
        ids, stands = pad_rows(rows, self.source.fill), real(rows)
        answer = stands & (torch.arange(ids.shape[1]) >= torch.tensor([len(prompt) for prompt in prompts])[:, None])
        texts = [read_drawn(tokenizer, *each) for each in zip(prompts, drawn, strict=True)]
        where = self.learning.device
        return SampledAnswers(ids.to(where), stands.to(where), answer.to(where), texts)

    def examine(self, answers: SampledAnswers) -> dict[str, Tensor]:
        """Measures of the answers, one by one (answer,): "kl" in nats over all tokens by k1, "length" in tokens, and
        "reward" and "watched" from the judges that there are."""
        models, texts = (self.policy, self.reference), (answers.ids, answers.real)
        log_probs, reference = (self.log_probs(of, *texts, drawn=True) for of in models)
        found = {"kl": masked_sum(k1(log_probs, reference), next_of(answers.answer), 1), "length": answers.lengths}
        judges = {"reward": self.judge, "watched": self.watched}
        return found | {name: judge(answers) for name, judge in judges.items() if judge is not None}

    @cached_property
    def judge(self) -> Judge | None:
        return None

    @cached_property
    def watched(self) -> Judge | None:
        """An independent measure, which nothing learns from."""
        name, tokenizer = self.settings.watch, self.source.corpus.tokenizer
        return open_judge(name, tokenizer, self.learning.device) if name else None

    @torch.no_grad()
    def samples(self, step: int) -> list[dict[str, Any]]:
        if self.sampled is None or self.sampled[0] != step:
            with evaluation(self.learning.model), self.learning.precision():
                self.sampled = step, self.answer_shown()
        return self.sampled[1]

    def answer_shown(self) -> list[dict[str, Any]]:
        prompts = self.source.shown_prompts
        if not prompts:
            return []
        seed = seed_for(self.recipe.seed, "shown")  # always the same draws
        answers = self.draw(prompts, seed)
        scores = {name: values.tolist() for name, values in self.examine(answers).items()}
        texts = enumerate(answers.texts)
        return [
            {"prompt": prompt, "answer": text, **{name: values[row] for name, values in scores.items()}}
            for row, (prompt, text) in texts
        ]

    def measure(self, batches: int, step: int) -> dict[str, float]:
        """The scores on what is held out, by policies how well preferred answers are foretold, and the means of what is
        seen of the answers to the prompts that are shown; "distinct" is the share of different ones among their pairs
        of words (Li et al. 2016, section 3.1)."""
        return super().measure(batches, step) | means_of(self.samples(step))


def means_of(samples: list[dict[str, Any]]) -> dict[str, float]:
    if not samples:
        return {}
    names = [name for name, value in samples[0].items() if not isinstance(value, str)]
    words = [sample["answer"].split() for sample in samples]
    pairs = [pair for row in words for pair in pairwise(row)]
    distinct = len(set(pairs)) / max(len(pairs), 1)
    return {name: fmean(sample[name] for sample in samples) for name in names} | {"distinct": distinct}


# --- From pairs ---


def as_examples(pairs: AnsweredPairs) -> Examples:
    """Each pair is a row, whose one answer is that the first text is the better one."""
    inputs = {"ids": pairs.ids, "padding": pairs.real, "answer": pairs.answer}
    return Examples(inputs, torch.zeros(len(pairs.ids), dtype=torch.long))


def texts_of(pairs: Examples) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, where a token stands, and where it is one of the answer (row pos): chosen and rejected texts in turn."""
    ids, real, answer = (pairs.inputs[name].flatten(0, 1) for name in KEPT)
    return ids, real, answer


class PairLearner(PreferenceLearner, ABC):
    def batch(self, step: int) -> Examples:
        return as_examples(self.source.draw_pairs(step))

    def score(self, part: Examples, whole: Counts) -> dict[str, Tensor]:
        share = part.counts.rows / max(whole.rows, 1)
        return {name: value * share for name, value in self.compare(part).items()}

    @abstractmethod
    def compare(self, part: Examples) -> dict[str, Tensor]:
        """The scores of pairs."""

    def answer_log_probs(self, ids: Tensor, real: Tensor, answer: Tensor) -> tuple[Tensor, Tensor]:
        """row: those of each answer in nats, under the policy and under the reference."""
        models, asked = (self.policy, self.reference), next_of(answer)
        policy, reference = (masked_sum(self.log_probs(logits_of, ids, real), asked, 1) for logits_of in models)
        return policy, reference

    def held_out(self, batches: int) -> list[Examples]:
        fit, size = self.source.shelves["held_out"].fit.tolist(), self.recipe.batch.size
        begins = range(0, min(len(fit), batches * size), size)
        return [as_examples(self.source.answered_pairs("held_out", fit[begin : begin + size])) for begin in begins]

    def evaluate(self, part: Examples, whole: Counts) -> dict[str, Tensor]:
        return self.score(part, whole)


# --- From answers of its own ---


class PolicyLearner(PreferenceLearner, ABC):
    """Answers that the policy draws at each step, and what they are worth."""

    def __init__(self, learning: LearnerContext) -> None:
        super().__init__(learning)
        self.turns = self.settings.updates
        self.seen: dict[str, Tensor] = {}  # of the answers of this step
        self.silent = 0  # steps in a row whose answers were all worth the same

    @cached_property
    def judge(self) -> Judge | None:
        return open_judge(self.settings.reward, self.source.corpus.tokenizer, self.learning.device)

    def batch(self, step: int) -> Examples:
        prompts = self.source.draw_prompts(self.recipe.batch.size // self.settings.answers, step)
        prompts = [prompt for prompt in prompts for _ in range(self.settings.answers)]
        with torch.no_grad(), evaluation(self.learning.model):
            seed = seed_for(self.recipe.seed, "rollout", step)
            answers = self.draw(prompts, seed)
            assert self.judge is not None
            rewards = self.judge(answers)
            reference = self.log_probs(self.reference, answers.ids, answers.real, drawn=True)
            return self.prepare(answers, rewards, reference, step)

    @abstractmethod
    def prepare(self, answers: SampledAnswers, rewards: Tensor, reference: Tensor, step: int) -> Examples:
        """Examples that all turns learn from."""

    def see(self, answers: SampledAnswers, rewards: Tensor, log_probs: Tensor, reference: Tensor, step: int) -> None:
        """Notes what the answers of a step are like. Raises Diverged where they have left the reference too far."""
        mask = next_of(answers.answer)
        kl = masked_sum(k1(log_probs, reference), mask, 1).mean()
        self.seen = {"reward": rewards.mean(), "kl": kl, "length": answers.lengths.mean()}
        if not abs(float(kl)) <= self.settings.most_kl:
            raise Diverged(
                f"the policy must stay within preference.most_kl = {self.settings.most_kl:g} nats of its reference, "
                f"and is {float(kl):.3g} away at step {step:,}; raise preference.beta from {self.weight:g}, or lower "
                f"optimiser.lr from {self.recipe.optimiser.lr:g}."
            )
        self.silent = self.silent + 1 if bool((rewards == rewards[0]).all()) else 0
        if self.silent == SILENT:
            self.notes.append(
                f"All answers of {SILENT} steps up to step {step:,} were worth the same, {float(rewards[0]):g}: there "
                "is nothing to learn from them. Take another reward, longer answers or a higher temperature."
            )

    def examples(self, answers: SampledAnswers, **more: Tensor) -> Examples:
        """Examples that ask for each token of an answer; `Counts` then counts these."""
        inputs = {"ids": answers.ids, "padding": answers.real, "answer": answers.answer, **more}
        return Examples(inputs, answers.ids.masked_fill(~answers.answer, UNASKED))

    def shared(
        self, scores: Mapping[str, Tensor], part: Counts, whole: Counts, by_answer: Collection[str] = ()
    ) -> dict[str, Tensor]:
        """The share of a part of the answers in the scores of the whole: by its tokens, of whose scores they are means,
        or by its answers."""
        tokens, answers = part.first / max(whole.first, 1), part.rows / max(whole.rows, 1)
        shares = {name: value * (answers if name in by_answer else tokens) for name, value in scores.items()}
        return shares | {name: value * answers for name, value in self.seen.items()}


def check_answers(recipe: Recipe) -> None:
    """Raises ValueError for a recipe whose batch is no whole number of prompts, or is read in parts."""
    answers, batch = recipe.preference.answers, recipe.batch
    if batch.size % answers or batch.accumulate > 1:
        raise ValueError(
            f"batch.size must be a multiple of preference.answers ({answers}) and batch.accumulate 1, got {batch.size} "
            f"and {batch.accumulate}."
        )
