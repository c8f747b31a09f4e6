"""What the page Generate writes from: a model with a prompt, and the settings that a browser asks with."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, get_args

from engine.checkpoints import Checkpoint
from engine.checkpoints.generation_defaults import choose_setting
from engine.generation.generate import Step
from engine.generation.generate import generate as generate_steps
from engine.generation.prompt import Prompt
from views.core.questions import UNKNOWN
from views.generate.streaming import Live
from views.generate.surprise_cache import SurpriseCache

Method = Literal["sample", "greedy", "contrastive"]
METHODS: tuple[Method, ...] = get_args(Method)
MOST = 2000  # tokens of one writing
LONGEST = 200  # characters of what stops it
BAR = "|"  # between several strings

Query = Mapping[str, Any]


@dataclass(frozen=True)
class Settings:
    """Settings of writing. `stop_at` holds strings with a bar between them, \\n for the end of a line; `most` is how
    many tokens are written in one go; `candidates` and `penalty_alpha` are those of contrastive search."""

    method: Method = "sample"
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0
    repetition_penalty: float = 1.0
    penalty_alpha: float = 0.6
    candidates: int = 4
    most: int = 50
    stop_at: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"the method must be one of {', '.join(METHODS)}, got {str(self.method)[:20]!r}.")
        if not 1 <= self.most <= MOST:
            raise ValueError(f"maximum tokens must lie in 1..{MOST:,}, got {self.most}.")
        if len(self.stop_at) > LONGEST:
            raise ValueError(f"what stops a text must have at most {LONGEST} characters, got {len(self.stop_at)}.")
        if not 0 <= self.seed < 2**31:
            raise ValueError(f"the seed must lie in 0..{2**31 - 1:,}, got {self.seed}.")

    @classmethod
    def from_browser(cls, said: object) -> Settings:
        """Reads the settings that a browser sends. Raises ValueError for entries that are not there, and for what makes
        no number."""
        if not isinstance(said, Mapping) or not said.keys() <= {one.name for one in fields(cls)}:
            raise ValueError(UNKNOWN)
        return cls(**{name: check_value(name, value) for name, value in said.items()})

    @property
    def strings(self) -> tuple[str, ...]:
        return tuple(one.replace("\\n", "\n") for one in self.stop_at.split(BAR) if one)

    def options(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """Arguments for `engine.generation.generate`, without those that its method does not use and those at which it
        writes from `checkpoint` anyway."""
        usual = usual_settings(checkpoint)
        own = {
            "greedy": ("repetition_penalty",),
            "sample": ("temperature", "top_k", "top_p", "min_p", "typical_p", "repetition_penalty", "seed"),
            "contrastive": ("repetition_penalty",),
        }[self.method]
        found = {name: getattr(self, name) for name in own if getattr(self, name) != getattr(usual, name)}
        if self.method == "greedy":
            found["greedy"] = True
        if self.method == "sample" and usual.method == "greedy":
            found["greedy"] = False
        if self.method == "contrastive":
            found |= {"penalty_alpha": self.penalty_alpha, "top_k": self.candidates}
        return found | ({"stop_strings": list(self.strings)} if self.strings != usual.strings else {})


def usual_settings(checkpoint: Checkpoint) -> Settings:
    """Settings that the checkpoint asks for, and those of Loupe where it does not say."""
    asked, usual = checkpoint.writing, Settings()
    names = ("temperature", "top_k", "top_p", "min_p", "typical_p", "repetition_penalty")
    return replace(
        usual,
        method="greedy" if asked.sampling.do_sample is False else usual.method,
        most=min(asked.end.max_new_tokens or usual.most, MOST),
        stop_at=BAR.join(one.replace("\n", "\\n") for one in asked.end.stop_strings)[:LONGEST],
        **{name: choose_setting(None, getattr(asked.sampling, name), getattr(usual, name)) for name in names},
    )


def check_value(name: str, value: object) -> Any:
    """Raises ValueError for a value of another kind than its setting's."""
    kind = type(getattr(Settings(), name))
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not kind or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"{name.replace('_', ' ')} must be {kind.__name__}, got {str(value)[:20]!r}.")
    return value


@dataclass(frozen=True)
class Call:
    """The prompt as lines of Python: what binds names that stand in it, with what they import from the readers, and
    the expressions for `prompt` and `target` (empty: none) of `engine.generation.generate`."""

    prompt: str
    target: str = ""
    lines: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()


@dataclass(frozen=True)
class GenerationContext:
    """Context of questions: a prompt, of which `digest` is the name. `settings` are those of the page's controls;
    `live` are the generators that wait to be asked for more, `call` is the prompt in Python, `measured` what was
    measured of texts. `fields` are what an address says of the prompt, none where it cannot say it."""

    name: str
    checkpoint: Checkpoint
    prompt: Prompt
    call: Call
    settings: Settings = field(default_factory=Settings)
    live: Live = field(default_factory=Live)
    measured: SurpriseCache = field(default_factory=SurpriseCache)
    fields: Mapping[str, str] = field(default_factory=dict)

    no_script = ""

    @property
    def digest(self) -> str:
        content = (self.name, self.prompt.ids, self.prompt.source, *self.prompt.ends)
        return hashlib.sha256(repr(content).encode()).hexdigest()[:16]

    @property
    def model_name(self) -> str:
        return self.name

    @property
    def attributes(self) -> Mapping[str, str]:
        return {}

    def choices(self, axis: str, query: Query) -> range:
        raise ValueError(UNKNOWN)  # no question of this page counts along an axis

    def labels(self, axis: str, query: Query) -> None:
        return None

    def script(self, imports: Mapping[str, set[str]], lines: Sequence[str]) -> str:
        raise ValueError(UNKNOWN)  # every question of this page writes its own

    def generate(self, settings: Settings, most: int, begun: Sequence[int] = ()) -> Iterator[Step]:
        """Generates as `engine.generation.generate` from this prompt; `most` counts what is `begun` too."""
        options = settings.options(self.checkpoint)
        return generate_steps(self.checkpoint, self.prompt, most, begun=begun, **options)

    def ids(self, said: object) -> tuple[int, ...]:
        """Tokens that a browser names. Raises ValueError where they are none of this model's, or too many."""
        size = self.checkpoint.config.outputs
        if not isinstance(said, list) or len(said) > max(self.prompt.tokens_left, 0):
            raise ValueError(UNKNOWN)
        if not all(type(id) is int and 0 <= id < size for id in said):
            raise ValueError(f"Unknown request: token ids must be 0 to {size - 1}. Reload and try again.")
        return tuple(said)

    def piece(self, id: int) -> str:
        tokenizer = self.checkpoint.tokenizer
        return f"#{id}" if tokenizer is None else tokenizer.piece(id)


def settings_header(settings: Settings) -> dict[str, Any]:
    return asdict(settings)
