"""A turn in a conversation: its template, the tokens that are learned, and a base model beside an instructed one."""

from collections.abc import Sequence
from functools import lru_cache

import pandas as pd
import streamlit as st
import torch

from engine.course.conversation import (
    BASE,
    INSTRUCTED,
    TEMPLATES,
    PromptReading,
    WrittenTurns,
    compare_losses,
    read_prompt,
    render_turns,
    write_turns,
)
from engine.inputs.readers import tokens
from engine.runtime import library
from pages.controls.figures import tokens as draw_tokens
from pages.controls.learn.fields import choose_view, read_field, read_short_text
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, show_code
from pages.controls.state.session import set_widget, widget_value
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
from views.core.markdown import code_markdown, escape_markdown

MARKS = ("[toFrench]", "[toEnglish]", "[toCode]")
EXAMPLES = (
    ("I see the dog.", "[toFrench]", "Je vois le chien."),
    ("my friend is tired", "[toFrench]", "mon ami est fatigué"),
    ("Le chat dort.", "[toEnglish]", "The cat sleeps."),
)
MOST = 20  # tokens of the text, and of the answer
ALIKE = 0.05  # as a share, of losses that are about the same
SHOWN = 60  # characters of a text in an option
QUESTION, OWN, UNMARKED = (f"conversation {part}question" for part in ("", "own ", "unmarked "))

losses_of = lru_cache(maxsize=64)(compare_losses)
reading_of = lru_cache(maxsize=256)(read_prompt)
written_of = lru_cache(maxsize=64)(write_turns)


def experiment() -> bool:
    asks, wants, answers = st.columns([3, 2, 3], vertical_alignment="bottom")
    user, mark, answer = EXAMPLES[0]
    with asks:
        user = read_field("conversation-user", _("the user’s text"), user, read_turn)
    with wants:
        mark = st.selectbox(_("mark of what is wanted"), MARKS, key="conversation-mark", persist_state="session")
    with answers:
        answer = read_field("conversation-answer", _("the assistant’s answer"), answer, read_turn)
    turns, above = written_of(user, mark, answer), st.container()
    shown = ask(turns)
    with above:
        covered = not (shown and is_answered(QUESTION))
        draw_tokens(
            turns.pieces, None if covered else torch.tensor(turns.learned).float(), role="key",
            key=f"{QUESTION} picture", label=_("tokens of the turns; marked are those whose loss is taken"),
        )  # fmt: skip
    if not shown:
        return False
    views = {"models": _("base and instructed"), "marks": _("without the template"), "templates": _("other templates")}
    view = choose_view("conversation-view", views)
    if view == "models":
        draw_models(user, mark, answer)
    elif view == "marks":
        draw_marks(user, mark, answer)
    else:
        draw_templates(user, mark, answer)
    return is_found(QUESTION)


def read_turn(said: str) -> str:
    """Raises ValueError, with a sentence."""
    read_short_text(library.checkpoint(INSTRUCTED), said, MOST)
    return said.strip()


def turn() -> None:
    """Sets another question with its answer."""
    said = [one for one, *_others in EXAMPLES]
    now = widget_value("conversation-user")
    user, mark, answer = EXAMPLES[(said.index(now) + 1) % len(said) if now in said else 0]
    for name, value in (("user", user), ("mark", mark), ("answer", answer)):
        set_widget(f"conversation-{name}", value)


# --- what is learned ---


def ask(turns: WrittenTurns) -> bool:
    count, every = sum(turns.learned), len(turns.ids)
    reason = _(
        "The loss is taken over the answer and the token that ends it: {answer} + 1 = {count}. The user’s tokens and "
        "the mark are read, and nobody asks the model to write them."
    ).format(answer=count - 1, count=count)

    def why(said: float) -> str:
        if said == every:
            return join_sentences(_("So it is in pretraining, where every token is learned."), reason)
        if said == count - 1:
            return join_sentences(_("Without its end learned, the model would not stop."), reason)
        return reason

    question = _(
        "The model is fine-tuned to answer such turns. Over how many of these {every} tokens is the loss taken?"
    )
    return estimate(question.format(every=every), count, 0, key=QUESTION, why=why, again=turn)


# --- base and instructed ---


def draw_models(user: str, mark: str, answer: str) -> None:
    found, above = losses_of(user, mark, answer), st.container()
    shown = ask_own(found[0].asked, found[1].asked)
    names = {BASE: _("base: {model}").format(model=BASE), INSTRUCTED: _("instructed: {model}").format(model=INSTRUCTED)}
    table = pd.DataFrame(
        {
            _("model"): [names[one.model] for one in found],
            _("loss of the user’s text, nats"): [numeral(one.asked, ".3f") if shown else "?" for one in found],
            _("loss of the answer, nats"): [numeral(one.answer, ".3f") for one in found],
            _("writes after the mark"): [one.written for one in found],
        }
    )
    with above:
        st.dataframe(table, hide_index=True, width="stretch")
    st.caption(
        _(
            "{instructed} is {base} after a training on such turns. {base} continues texts: it has read sentences, and "
            "never a mark."
        ).format(instructed=INSTRUCTED, base=BASE)
    )
    show_code(compare_losses, key="conversation code models", user=user, mark=mark, answer=answer)


def ask_own(base: float, instructed: float) -> bool:
    """Asks which model predicts the user's text better, and tells whether that may be shown."""
    options = [_("the base model"), _("the instructed model"), _("both about the same")]
    answer = 2 if abs(base - instructed) <= ALIKE * max(base, instructed) else int(instructed < base)
    reason = _(
        "A token of it costs {base} {before:.2f} nats and {instructed} {after:.2f}. What no loss holds in place may be "
        "lost while the answer is learned."
    ).format(base=BASE, before=base, instructed=INSTRUCTED, after=instructed)
    if answer == 1:
        reason = _("A token of it costs {base} {before:.2f} nats and {instructed} {after:.2f}; try a common sentence.")
        reason = reason.format(base=BASE, before=base, instructed=INSTRUCTED, after=instructed)
    question = _("The loss of the user’s text is covered. Which model predicts it better?")
    choose(question, options, answer, key=OWN, why=lambda _said: reason)
    return is_answered(OWN)


# --- without the template ---


def draw_marks(user: str, mark: str, answer: str) -> None:
    wrong = next(one for one in MARKS if one != mark)
    prompts = {
        _("as it was learned"): f"{user} {mark}",
        _("the mark left out"): user,
        _("another mark"): f"{user} {wrong}",
        _("the mark before the text"): f"{mark} {user}",
        _("the mark in letters"): f"{user} {mark.strip('[]')}",
    }
    found, above = [reading_of(prompt, answer) for prompt in prompts.values()], st.container()
    shown = ask_unmarked(found[0], found[1])
    pieces, rows = pieces_of(), list(zip(prompts, found, strict=True))
    table = pd.DataFrame(
        [
            (
                name,
                one.prompt,
                pieces[one.next],
                numeral(one.p_next, ".3g"),
                numeral(one.p_answer, ".2e"),
                numeral(one.p_end, ".2e"),
                one.written,
            )
            for name, one in (rows if shown else rows[:1])
        ],
        columns=[
            _("template"), _("prompt"), _("likeliest next"), _("its p"), _("p of the answer"), _("p of the end"),
            _("writes"),
        ],
    )  # fmt: skip
    with above:
        st.dataframe(table, hide_index=True, width="stretch")
    st.caption(
        _(
            "A mark is one token, with a vector that was learned at this place. Its letters are other tokens. After "
            "another mark the model does what that one asks for."
        )
    )
    show_code(read_prompt, key="conversation code marks", prompt=user, answer=answer)


def pieces_of() -> Sequence[str]:
    tokenizer = library.checkpoint(INSTRUCTED).tokenizer
    assert tokenizer is not None
    return [piece.replace(" ", "·") for piece in tokenizer.pieces]


def ask_unmarked(kept: PromptReading, unmarked: PromptReading) -> bool:
    """Asks what follows where the mark is left out, and tells whether that may be shown."""
    checkpoint, pieces = library.checkpoint(INSTRUCTED), pieces_of()
    end, first = checkpoint.end_ids[0], tokens(checkpoint, unmarked.prompt).ids[0]
    ids = list(dict.fromkeys([kept.next, end, first, unmarked.next]))
    names = {end: _("the end of the turn"), first: _("“{token}”, the user’s text again").format(token=pieces[first])}
    names = {kept.next: _("“{token}”, as with the mark").format(token=pieces[kept.next]), **names}
    reason = _(
        "The likeliest is “{token}” with p = {p:.3f}; p of the end is {end:.2g}, of the answer {answer:.1e}. Nothing "
        "says that an answer is wanted, and the model knows by the mark alone."
    ).format(token=pieces[unmarked.next], p=unmarked.p_next, end=unmarked.p_end, answer=unmarked.p_answer)

    def why(said: int) -> str:
        if ids[said] == kept.next != unmarked.next:
            return join_sentences(_("That the model was instructed does not make it answer everything."), reason)
        return reason

    question = _("The mark is left out: the model reads “{text}” alone. Which token is the likeliest next?")
    text = unmarked.prompt if len(unmarked.prompt) <= SHOWN else f"{unmarked.prompt[:SHOWN]}…"
    choose(
        question.format(text=text), [names.get(id, f"“{pieces[id]}”") for id in ids], ids.index(unmarked.next),
        key=UNMARKED, why=why,
    )  # fmt: skip
    return is_answered(UNMARKED)


# --- other templates ---


def draw_templates(user: str, mark: str, answer: str) -> None:
    name = st.selectbox(_("template"), list(TEMPLATES), 1, key="conversation-template", persist_state="session")
    found = render_turns(name, user, answer, mark)
    st.code(found.text, language=None, wrap_lines=True)
    learned = "".join(found.text[start:end] for start, end in found.assistant)
    st.markdown(_("Learned of it: {text}").format(text=code_markdown(learned)))
    st.caption(
        escape_markdown(
            _("The template, a program in Jinja. What stands between generation and endgeneration is learned.")
        )
    )
    st.code(TEMPLATES[name], language="jinja2", wrap_lines=True)
    show_code(render_turns, key="conversation code templates", template=name, user=user, answer=answer, mark=mark)
