"""Find the circuit: which heads and MLPs of a compiled model an answer needs, and what each way of looking misses."""

from collections.abc import Collection, Sequence
from functools import lru_cache, partial

import altair as alt
import pandas as pd
import streamlit as st
from torch import Tensor

from engine.compiled.answer_key import Part
from engine.course.find_circuit import (
    PartEffects,
    answer_key,
    find_swap,
    list_answers,
    list_parts,
    list_places,
    measure_parts,
    read_vocabulary,
    swap,
)  # fmt: skip
from pages.controls.figures import cover, matrix
from pages.controls.learn.fields import choose_view, other_input, read_field, read_words
from pages.controls.learn.predict import TOGETHER, choose, choose_all, estimate, is_answered, is_found, show_code
from pages.controls.words import join_sentences
from pages.controls.words import translate as _
from views.charts.show import show_altair
from views.charts.template import AltairChart
from views.core.markdown import escape_markdown
from views.core.theme import Shade
from views.why.charts import signed_cells

ASKED, COUNTS = (1, 2, 3), 4  # models that are asked about, and the one in which the length of a text decides
TEXTS = {1: "a b c d a", 2: "a b a c", 3: "3 1 2 1", COUNTS: "a b c d"}
SWAPS = {1: (1, "c"), 2: (0, "b"), 3: (0, "4")}  # of which those of models 1 and 3 do not show every part
LEAST = 3  # tokens of a text
QUESTION, ADDED, ZEROED = (f"find_circuit {part}question" for part in ("", "added ", "zeroed "))

measure = lru_cache(maxsize=64)(measure_parts)
find = lru_cache(maxsize=64)(find_swap)


def experiment() -> bool:
    number = int(choose_of(_("model"), list(map(str, ASKED)), "1", "find-circuit-model"))
    label = _("text, tokens with spaces between them")
    text = read_field(f"find-circuit-text {number}", label, TEXTS[number], partial(read_text, number))
    other = choose_swap(number, text)
    places = list_places(number, text, other)
    draw_texts(number, text, other)
    effects = measure(number, text, other, places[-1]) if places else None
    if effects is None:
        st.caption(_("Both texts are answered alike everywhere, so that nothing is to be seen; swap another token."))
    else:
        draw_swapped(effects, places[-1])
    if not ask(number, text):
        return False
    if is_answered(QUESTION):
        draw_program(number)
    views = {"added": _("what it adds itself"), "zeroed": _("set to 0"), "length": _("another length")}
    view = choose_view("find-circuit-view", views)
    if view == "length":
        draw_length()
    elif effects is not None:
        (draw_added if view == "added" else draw_zeroed)(effects, places[-1])
        both = {"text": list(text), "other": list(other)}
        show_code(measure_parts, key="find circuit code", model=number, **both, place=places[-1])
    return is_found(QUESTION)


def choose_of(label: str, options: Sequence[str], default: str, key: str) -> str:
    chosen = st.segmented_control(
        escape_markdown(label), options, default=default, key=key, required=True, format_func=escape_markdown,
        persist_state="session",
    )  # fmt: skip
    return str(chosen)


def read_text(model: int, said: str) -> tuple[str, ...]:
    """Raises ValueError, with a sentence."""
    vocabulary, most = read_vocabulary(model)
    text = tuple(read_words(2 * most + 1)(said).split())
    if not LEAST <= len(text) <= most or not {*text} <= {*vocabulary}:
        sentence = _("Expected {least} to {most} tokens, each one of {tokens}, with spaces between them; change it.")
        raise ValueError(sentence.format(least=LEAST, most=most, tokens=" ".join(vocabulary)))
    return text


def choose_swap(model: int, text: Sequence[str]) -> tuple[str, ...]:
    """The text with one token swapped, by two controls."""
    at, becomes = SWAPS[model]
    left, right = st.columns(2)
    with left:
        named = [f"{place}: {token}" for place, token in enumerate(text, 1)]
        key = f"find-circuit-place {model} {' '.join(text)}"
        place = named.index(choose_of(_("swap token"), named, named[at], key))
    with right:
        options = [token for token in read_vocabulary(model)[0] if token != text[place]]
        default = becomes if becomes in options else options[0]
        token = choose_of(_("it becomes"), options, default, f"find-circuit-token {model} {text[place]}")
    return tuple(swap(text, place, token))


def draw_texts(model: int, text: Sequence[str], other: Sequence[str]) -> None:
    rows = {_("text"): text, _("answers"): list_answers(model, text)}
    rows |= {_("other text"): other, _("answers to it"): list_answers(model, other)}
    table = pd.DataFrame(list(rows.values()), columns=[str(at) for at in range(1, len(text) + 1)])
    table.insert(0, _("token"), list(rows))
    st.dataframe(table, hide_index=True, width="stretch")


def name_part(part: Part) -> str:
    kind, block, head = part
    assert block is not None
    if kind == "head" and head is not None:
        return _("block {block}, head {head}").format(block=block + 1, head=head + 1)
    return _("block {block}, MLP").format(block=block + 1)


def name_parts(parts: Collection[Part]) -> str:
    ordered = sorted(parts, key=lambda part: (part[1] or 0, part[0] == "MLP", part[2] or 0))
    return TOGETHER.join(map(name_part, ordered)) or _("none")


def draw_swapped(effects: PartEffects, place: int) -> None:
    sentence = _(
        "How far the answer at token {place}, the last place where both differ, goes to that of the other text when a "
        "part takes the value that it has there: 0 not at all, 1 all the way."
    )
    st.caption(sentence.format(place=place + 1))
    blocks = 1 + max(block or 0 for _kind, block, _head in effects.parts)
    grid = effects.swapped.view(blocks, -1)  # in each block its heads, then its MLP
    heads = [_("head {number}").format(number=at + 1) for at in range(grid.shape[1] - 1)]
    matrix(
        grid, rows=[_("block {number}").format(number=at + 1) for at in range(blocks)], columns=[*heads, "MLP"],
        scale="signed", digits=2, key=f"{QUESTION} picture", label=_("effect of each part"),
    )  # fmt: skip


def ask(model: int, text: tuple[str, ...]) -> bool:
    needed, parts = answer_key(model).nodes(), list_parts(model)

    def why(said: Sequence[int]) -> str:
        named = {parts[at] for at in said}
        missed, idle = sorted(needed - named, key=str), named - needed
        sentences = []
        if named & needed and (missed or idle):
            sentences.append(_("Needed, of what you named: {parts}.").format(parts=name_parts(named & needed)))
        if idle:
            sentences.append(_("Idle, their weights are 0: {parts}.").format(parts=name_parts(idle)))
        if missed:
            sentences.append(_("Needed too: {parts}.").format(parts=name_parts(missed)))
            if (shows := find(model, text, missed[0])) is not None:
                sentence = _("{part} is seen when token {place} of this text becomes “{token}”.")
                place, token = shows
                sentences.append(sentence.format(part=name_part(missed[0]), place=place + 1, token=token))
        return join_sentences(*sentences) if sentences else _("Each of them does a line of the program below.")

    return choose_all(
        _("Which heads and MLPs does model {number} need for its answers? Choose all of them.").format(number=model),
        [name_part(part) for part in parts],
        [at for at, part in enumerate(parts) if part in needed],
        key=QUESTION,
        why=why,
        again=other_input("find-circuit-model", list(map(str, ASKED))),
    )


def draw_program(model: int) -> None:
    """The lines of the program, each with the part that does it; it is the answer key."""
    about = {
        1: _("Answers of model {number}: what followed the same token before, or `<start>` where nothing did."),
        2: _("Answers of model {number}: how often each token occurs in the text."),
        3: _("Answers of model {number}: the tokens in order."),
        COUNTS: _("Answers of model {number}: the text backwards."),
    }
    st.caption(about[model].format(number=model))
    rows = [(name_part(line.part), line.text) for line in answer_key(model).lines]
    columns = [_("part"), _("line of the program")]
    st.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True, width="stretch")


# --- other ways to look ---


def draw_ways(effects: PartEffects, values: Tensor, title: str, key: str) -> None:
    """Swapping beside another way, which is covered until its question is answered."""
    names = [name_part(part) for part in effects.parts]
    left, right = st.columns(2)
    with left:
        name = _("swapped, share")
        st.caption(name)
        matrix(effects.swapped[:, None], rows=names, columns=[""], scale="signed", digits=2, key=f"{key} swapped",
               label=name)  # fmt: skip
    with right:
        st.caption(escape_markdown(title))
        shown = values if is_answered(key) else cover(values, slice(None))
        matrix(shown[:, None], rows=names, columns=[""], scale="signed", digits=1, key=f"{key} other", label=title)


def draw_added(effects: PartEffects, place: int) -> None:
    adding, moving = effects.list_found(effects.added), effects.list_found(effects.swapped)
    reason = _("Adding to it: {adding}. Carrying the difference: {moving}. What others read need not add anything.")
    told = reason.format(adding=name_parts(adding), moving=name_parts(moving))
    question = _("How many heads and MLPs add to the logit of the answer at token {place} themselves?")
    above = st.container()
    estimate(question.format(place=place + 1), len(adding), 0, key=ADDED, why=lambda _said: told)
    with above:
        draw_ways(effects, effects.added, _("adds to the logit itself"), ADDED)


def draw_zeroed(effects: PartEffects, place: int) -> None:
    swapped, zeroed = ({*effects.list_found(one)} for one in (effects.swapped, effects.zeroed))
    options = [_("the same parts"), _("these and others"), _("some of these"), _("others, and not all of these")]
    answer = 0 if zeroed == swapped else 1 if zeroed > swapped else 2 if zeroed < swapped else 3
    reason = _("Set to 0, these change it: {zeroed}. Swapped: {swapped}.")
    told = reason.format(zeroed=name_parts(zeroed), swapped=name_parts(swapped))
    question = _("Swapping shows parts. Which change the logit of the answer at token {place} when they are set to 0?")
    above = st.container()
    choose(question.format(place=place + 1), options, answer, key=ZEROED, why=lambda _said: told)
    with above:
        draw_ways(effects, effects.zeroed, _("set to 0, change of the logit"), ZEROED)


# --- what only the length decides ---


def read_counted(said: str) -> tuple[str, ...]:
    text = read_text(COUNTS, said)
    if text[-1] == text[-2]:
        raise ValueError(_("Expected a text whose last two tokens differ; change one."))
    return text


def draw_length() -> None:
    draw_program(COUNTS)
    text = read_field("find-circuit-counted", _("a text for model {number}").format(number=COUNTS), TEXTS[COUNTS],
                      read_counted)  # fmt: skip
    token = next(token for token in read_vocabulary(COUNTS)[0] if token != text[-1])
    as_long = tuple(swap(text, len(text) - 1, token))
    others = {_("swapped, as long"): as_long, _("swapped, one shorter"): text[:-1]}
    found = {f"{name}: {' '.join(other)}": measure(COUNTS, text, other, 0) for name, other in others.items()}
    show_altair(partial(draw_columns, found), key="find circuit length")
    sentence = _(
        "{part} counts the tokens. In texts of one length its value is the same; one of another length shows it."
    )
    st.caption(sentence.format(part=name_part(answer_key(COUNTS).lines[0].part)))
    shorter = list(text[:-1])
    show_code(measure_parts, key="find circuit code length", model=COUNTS, text=list(text), other=shorter, place=0)


def draw_columns(found: dict[str, PartEffects], shade: Shade) -> AltairChart:
    rows = [
        (name, name_part(part), value)
        for name, effects in found.items()
        for part, value in zip(effects.parts, effects.swapped.tolist(), strict=True)
    ]
    table = pd.DataFrame(rows, columns=["way", "part", "value"])
    ways, parts = (list(dict.fromkeys(table[one])) for one in ("way", "part"))
    told = [alt.Tooltip("part", title=_("part"))]
    return signed_cells(table, shade, ("way", "", ways), ("part", "", parts), told, does=_("share"))
