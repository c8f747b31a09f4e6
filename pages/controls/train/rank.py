"""Rank: a model answers each prompt twice, and a person or a rule says which answer is better."""

from __future__ import annotations

import inspect
import json
import random
import secrets
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, LiteralString

import streamlit as st

from engine.budget import budget
from engine.plurals import count_words
from engine.runtime import library
from engine.training.policy.pairs import PreferencePair, format_csv, format_jsonl, parse_pairs, read_pairs
from engine.training.policy.rule import rank_by_score, rules
from engine.training.policy.sample import sample_answers
from engine.training.run.atomic import read_json, write_json
from engine.training.run.visitor_texts import PREFERENCES
from pages.controls.state.session import find_record, widget_value
from pages.controls.visitor import owner_name
from views.core.markdown import Markdown, escape_markdown

PROMPTS = 20  # that are answered at once
FEWEST = 4  # pairs that something can be learned from
MIB = 2**20

Question = tuple[str, str, str]  # a prompt and two different answers


# --- What a visitor has ranked ---


@dataclass
class Ranked:
    """State of the form: what is wrong with what was asked last, how often the box of files was emptied, and a name
    for a visitor without a cookie."""

    problem: str = ""
    turn: int = 0
    nobody: str = field(default_factory=partial(secrets.token_hex, 16))


@dataclass(frozen=True)
class Ranking:
    """`pairs` were uploaded or made before; `choices` are of the first `questions`: which answer is better, 0 or 1, or
    None where neither is. `drawn` is how many prompts were answered."""

    pairs: tuple[PreferencePair, ...] = ()
    questions: tuple[Question, ...] = ()
    choices: tuple[int | None, ...] = ()
    drawn: int = 0

    @property
    def rest(self) -> tuple[Question, ...]:
        return self.questions[len(self.choices) :]

    @property
    def all_pairs(self) -> tuple[PreferencePair, ...]:
        chosen = zip(self.questions, self.choices, strict=False)
        return self.pairs + tuple(pair_of(question, choice) for question, choice in chosen if choice is not None)

    def ask(self, prompts: Sequence[str], answers: Sequence[tuple[str, str]]) -> Ranking:
        """Asks of new answers, but those that are equal or empty."""
        asked = ((prompt, *two) for prompt, two in zip(prompts, answers, strict=True))
        questions = tuple(one for one in asked if one[1] != one[2] and one[1].strip() and one[2].strip())
        return Ranking(self.all_pairs, questions, (), len(prompts))

    def choose(self, *choices: int | None) -> Ranking:
        return replace(self, choices=(*self.choices, *choices)[: len(self.questions)])

    def choose_by(self, rule: str) -> Ranking:
        """The rest as that rule has it."""
        return self.choose(*(prefer(rule, question) for question in self.rest))

    def undo(self) -> Ranking:
        return replace(self, choices=self.choices[:-1])


def pair_of(question: Question, choice: int) -> PreferencePair:
    prompt, *answers = question
    return PreferencePair(prompt, answers[choice], answers[1 - choice])


def pair_of_row(row: Sequence[Any]) -> PreferencePair:
    prompt, chosen, rejected, *form = map(str, row)
    return PreferencePair(prompt, chosen, rejected, "messages" if form == ["messages"] else "text")


def prefer(rule: str, question: Question) -> int | None:
    prompt, first, second = question
    ranked = rank_by_score(rules()[rule].score, first, second, prompt)
    return None if ranked is None else int(ranked[0] == second)


def ranking_file() -> Path:
    """Path of the visitor's ranking; without a cookie it lasts as long as the session."""
    whose = owner_name() or find_record(Ranked).nobody
    return Path(budget.runs_folder) / PREFERENCES / f"{whose.replace(' ', '-')}.json"


def read_ranking() -> Ranking:
    """An empty one where none is, or its file is damaged."""
    try:
        found = read_json(ranking_file()) or {}
        return Ranking(
            tuple(pair_of_row(row) for row in found["pairs"]),
            tuple((str(prompt), str(first), str(second)) for prompt, first, second in found["questions"]),
            tuple(None if choice is None else int(bool(choice)) for choice in found["choices"]),
            int(found["drawn"]),
        )
    except (ValueError, TypeError, KeyError):
        return Ranking()


def keep_ranking(ranking: Ranking) -> None:
    """Raises ValueError where it is larger than a person's data may be."""
    said = asdict(ranking) | {"pairs": [astuple(pair) for pair in ranking.pairs]}
    if (size := len(json.dumps(said))) > budget.max_data:
        raise ValueError(
            f"pairs may take {budget.max_data // MIB:,} MiB, got {size / MIB:,.1f}; download and clear these first."
        )
    file = ranking_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, said)


# --- The step of the page ---


def draw_rank(base: str, shipped: Path) -> None:
    """`shipped` is the file of pairs whose prompts are answered where a person pastes none."""
    draw_question_form(base, shipped)
    if problem := find_record(Ranked).problem:
        st.warning(escape_markdown(problem))
    ranking = read_ranking()
    if ranking.rest:
        draw_question(ranking)
        draw_rule(ranking)
    elif ranking.drawn:
        st.caption(
            f"All of these are ranked. Draw others with another seed, or go on to Reward. {describe_skipped(ranking)}"
        )
        st.button("Undo", key="undo", shortcut="u", on_click=undo, disabled=not ranking.choices)
    else:
        st.caption("Draw answers, then choose the better of each two: key 1 or 2, 3 to skip, u to undo.")
    draw_pairs(ranking)


def draw_question_form(base: str, shipped: Path) -> None:
    with st.expander("Prompts"):
        pasted = st.text_area("prompts of your own, one a line", key="prompts", placeholder="Tom lost his red ball.")
    given = list(dict.fromkeys(line.strip() for line in pasted.split("\n") if line.strip()))
    prompts = given or shipped_prompts(shipped)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        temperature = st.number_input("temperature", 0.1, 3.0, 1.0, 0.1, key="rank temperature", width=130)
        tokens = st.number_input("answer tokens", 1, 256, 32, key="rank tokens", width=130)
        seed = st.number_input(
            "seed", 0, 2**31 - 1, 0, key="rank seed", width=110, help="Chooses the prompts and draws the answers."
        )
        asked = tuple(random.Random(int(seed)).sample(prompts, min(PROMPTS, len(prompts))))
        if st.button("Draw answers", key="draw answers", type="primary"):
            ask(base, asked, int(tokens), temperature, int(seed))


def ask(base: str, prompts: tuple[str, ...], tokens: int, temperature: float, seed: int) -> None:
    try:
        answers = sample(base, library.version(base), prompts, tokens, temperature, seed)
        keep_ranking(read_ranking().ask(prompts, answers))
    except (ValueError, OSError) as error:
        say(str(error))
    else:
        say("")


@st.cache_data(max_entries=64, show_spinner="Drawing answers …")
def sample(
    base: str, version: tuple[object, ...], prompts: tuple[str, ...], tokens: int, temperature: float, seed: int
) -> list[tuple[str, str]]:
    """Answers of a base, which is another one at another `version`. Raises as `sample_answers`."""
    checkpoint = library.checkpoint(base)
    if checkpoint.config.head.kind != "language" or checkpoint.config.attention.mask != "causal":
        raise ValueError(f"answers are drawn by a model that writes, and {base} cannot; choose a decoder as the base.")
    return sample_answers(checkpoint, prompts, tokens, temperature, seed)


@st.cache_data(show_spinner=False)
def shipped_prompts(file: Path) -> list[str]:
    return list(dict.fromkeys(pair.prompt for pair in read_pairs(file)))


def draw_question(ranking: Ranking) -> None:
    prompt, *answers = ranking.rest[0]
    st.progress(
        len(ranking.choices) / len(ranking.questions),
        f"{len(ranking.choices) + 1} of {len(ranking.questions)}. {describe_skipped(ranking)}",
    )
    st.markdown(f"**{lines(prompt)}**")
    for place, (column, answer) in enumerate(zip(st.columns(2, gap="medium"), answers, strict=True)):
        name = ("first", "second")[place]
        with column.container(border=True, height="stretch", key=f"answer {place + 1}"):
            st.markdown(lines(answer))
            st.button(f"The {name} is better", key=f"choose {place + 1}", shortcut=str(place + 1), width="stretch",
                on_click=choose, args=(place, len(ranking.choices)),
            )  # fmt: skip
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Skip",
            key="skip",
            shortcut="3",
            on_click=choose,
            args=(None, len(ranking.choices)),
            help="Neither is better.",
        )
        st.button("Undo", key="undo", shortcut="u", on_click=undo, disabled=not ranking.choices)


def describe_skipped(ranking: Ranking) -> LiteralString:
    left_out = ranking.drawn - len(ranking.questions)
    if not left_out:
        return ""
    skip = "is" if left_out == 1 else "are"
    return f"{left_out:d} of {count_words(ranking.drawn, 'prompt')} got equal or empty answers and {skip} skipped."


def lines(text: str) -> Markdown:
    """Markdown of a text that keeps its lines."""
    return Markdown(escape_markdown(text.strip()).replace("\n", "  \n"))


def choose(choice: int | None, asked: int) -> None:
    """Answers the question that was on the screen, the `asked` one from 0; another one nobody has read yet."""
    ranking = read_ranking()
    if len(ranking.choices) == asked:
        change(ranking.choose(choice))


def undo() -> None:
    change(read_ranking().undo())


def change(ranking: Ranking) -> None:
    try:
        keep_ranking(ranking)
    except ValueError as error:
        say(str(error))
    else:
        say("")


def draw_rule(ranking: Ranking) -> None:
    with st.expander(f"Rank the {len(ranking.rest)} that are left by a rule"):
        rule = st.selectbox("rule", list(rules()), format_func=title_of_rule, key="rule", width=260)
        st.code(inspect.getsource(rules()[rule].score), language="python")
        st.button("Rank by this rule", key="rank by rule", on_click=choose_by, args=(rule,))


def title_of_rule(rule: str) -> str:
    return rules()[rule].title


def choose_by(rule: str) -> None:
    change(read_ranking().choose_by(rule))


def draw_pairs(ranking: Ranking) -> None:
    pairs = ranking.all_pairs
    st.markdown(f"**Your pairs** :gray[{len(pairs)}]")
    if pairs:
        st.dataframe([asdict(pair) for pair in reversed(pairs)], hide_index=True, key="pairs table", height=220)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if pairs:
            for name, write in (("JSONL", format_jsonl), ("CSV", format_csv)):
                kind = name.lower()
                st.download_button(
                    escape_markdown(name),
                    partial(write, pairs),
                    f"pairs.{kind}",
                    key=f"pairs {kind}",
                    on_click="ignore",
                )
            with st.popover("Clear"):
                st.markdown(f"This deletes {count_words(len(pairs), 'pair')} and the ranking in progress.")
                st.button("Delete them", key="clear pairs", on_click=change, args=(Ranking(),))
        with st.popover("Upload"):
            key = f"pairs file {find_record(Ranked).turn}"
            st.file_uploader("pairs: columns prompt, chosen, rejected", ["csv", "jsonl"], key=key,
                on_change=read_uploaded, args=(key,), max_upload_size=max(1, budget.max_data // MIB),
            )  # fmt: skip


def read_uploaded(key: str) -> None:
    file = widget_value(key)
    if file is None:
        return
    try:
        ranking = read_ranking()
        more = parse_pairs(file.getvalue(), file.name)
        kept = tuple(dict.fromkeys((*ranking.pairs, *more)))
        keep_ranking(replace(ranking, pairs=kept))
    except ValueError as error:
        return say(str(error))
    find_record(Ranked).turn += 1  # an empty box: the server need not keep the file twice
    equal = len(ranking.pairs) + len(more) - len(kept)
    say(
        f"{equal:,} of the {count_words(len(more), 'pair')} of {file.name} stood there already: each counts once."
        if equal
        else ""
    )


def say(sentence: str) -> None:
    find_record(Ranked).problem = sentence
