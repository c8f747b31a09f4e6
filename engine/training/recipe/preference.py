"""[preference] of a recipe: one table, of which each objective has some groups of options."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.data.bounds import at_least
from engine.model.option import Option
from engine.training.policy.rules import happy_words


@dataclass(frozen=True)
class PolicySettings:
    """Options of every policy: `beta` is the price of leaving the reference, a number that `control.set_weight` changes
    while a training runs. `watch` is a rule (engine/training/policy/rules/) or a reward model that is only looked
    at."""

    beta: float = field(default=0.1, metadata=Option(help="The price of leaving the base."))
    watch: str = field(default="", metadata=Option(help="Another rule or reward model, which is only looked at."))
    answer_tokens: int = field(default=32, metadata=Option(help="Tokens of an answer at most."))
    temperature: float = field(default=1.0, metadata=Option(help="Of the answers that the policy draws."))


@dataclass(frozen=True)
class DrawnSettings:
    """Options of those that learn from answers of their own: `reward` is a rule or a reward model. `answers` are drawn
    to each prompt and learned from `updates` times; a ratio counts within `clip` of 1."""

    reward: str = field(
        default=happy_words.RULE.name, metadata=Option(help="What an answer is paid by: a rule, or a reward model.")
    )
    answers: int = field(default=4, metadata=Option(help="Answers that are drawn to each prompt."))
    updates: int = field(default=1, metadata=Option(help="How many times the answers of a step are learned from."))
    clip: float = field(
        default=0.2, metadata=Option(help="How far the probability of a token may move within a step and still count.")
    )
    most_kl: float = field(default=100.0, metadata=Option(help="Nats from the base beyond which a training stops."))


@dataclass(frozen=True)
class PpoSettings:
    """Options of PPO: `gamma` and `lam` are those of generalised advantage estimation, `value_weight` and `value_clip`
    the value head's; with `target_kl` above 0 beta goes after it, over `horizon` answers (Ziegler et al. 2019, section
    2.2)."""

    gamma: float = field(default=1.0, metadata=Option(help="What a reward counts one token earlier."))
    lam: float = field(
        default=0.95, metadata=Option(help="Advantages by the values alone (0) to the rewards alone (1).")
    )
    value_weight: float = field(default=0.1, metadata=Option(help="What the loss of the values counts."))
    value_clip: float = field(
        default=0.2, metadata=Option(help="How far a value may move within a step and still count.")
    )
    target_kl: float = field(default=0.0, metadata=Option(help="The KL that β goes after; 0 leaves β as it is."))
    horizon: int = field(default=10_000, metadata=Option(help="Answers over which β goes after its target."))


@dataclass(frozen=True)
class GrpoSettings:
    """Options of GRPO; `weighted_kl` is of `score_grpo`."""

    by_deviation: bool = field(
        default=True, metadata=Option(help="The rewards of a group are divided by their deviation.")
    )
    weighted_kl: bool = field(
        default=True, metadata=Option(help="The gradient of the KL is that of KL(policy || base).")
    )


@dataclass(frozen=True)
class KtoSettings:
    """Options of KTO."""

    desirable_weight: float = field(default=1.0, metadata=Option(help="What a good answer counts."))
    undesirable_weight: float = field(default=1.0, metadata=Option(help="What a bad answer counts."))


@dataclass(frozen=True)
class Preference(KtoSettings, GrpoSettings, PpoSettings, DrawnSettings, PolicySettings):
    """The whole table, which names no group: its options stand side by side, those of the last group first."""

    def __post_init__(self) -> None:
        for name in ("beta", "value_weight", "value_clip", "target_kl", "desirable_weight", "undesirable_weight"):
            at_least(f"preference.{name}", getattr(self, name), 0)
        for name in ("answers", "answer_tokens", "updates", "horizon"):
            at_least(f"preference.{name}", getattr(self, name), 1)
        for name in ("temperature", "clip", "most_kl"):
            if not getattr(self, name) > 0:
                raise ValueError(f"preference.{name} must be above 0, got {getattr(self, name)}.")
        for name in ("gamma", "lam"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"preference.{name} must lie in [0, 1], got {getattr(self, name)}.")
