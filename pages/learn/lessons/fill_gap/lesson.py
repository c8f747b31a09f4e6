"""Fill in the gap: the same hidden words asked for by masks, by sentinels, and as a span with two positions."""

import pandas as pd
import streamlit as st

from engine.course.fill_gap import GapTask, ask_masks, ask_sentinels, ask_span, words_of
from pages.controls.figures import cover, matrix
from pages.controls.learn.fields import choose_view, name_apart, other_input, read_field
from pages.controls.learn.predict import estimate, is_answered, is_found, point, show_code
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
from views.core.markdown import escape_markdown

BERT, T5, GLM = "tales-bert", "t5-spans", "infill"
WAYS = {"glm": (ask_span, GLM), "t5": (ask_sentinels, T5), "bert": (ask_masks, BERT)}
TEXT, FIRST, LAST = "The little girl was very tired and went to bed.", 6, 7
OTHERS = "My mother gave the old dog a bone to eat.", "Tom likes to play in the park with Anna."
LEAST, MOST, LONGEST = 3, 14, 12  # words of the text; characters of one
MOST_HIDDEN = 4  # words
SPACE = "·"  # as it is drawn
QUESTION, PLACE, MASKS = (f"gap {part}question" for part in ("", "place ", "masks "))


def experiment() -> bool:
    text = read_field("gap-text", _("text"), TEXT, read_words)
    words = text.split()
    numbers = list(range(len(words)))
    usual = (FIRST, LAST) if len(words) > LAST + 1 else (len(words) // 2, len(words) // 2)
    first, last = st.select_slider(
        _("what is hidden"),
        numbers,
        usual,
        key=f"gap-hidden {len(words)}",
        format_func=lambda at: escape_markdown(words[at]),
    )
    last = min(last, first + MOST_HIDDEN - 1, first + len(words) - 2)  # something is left
    parts = words_of(text, first, last)
    span = ask_span(GLM, *parts)
    above = st.container()
    found = ask(span)
    with above:
        draw_sight(span, covered=not (found and is_answered(QUESTION)))
    if not found:
        return False
    titles = {"glm": _("as GLM: a span"), "t5": _("as T5: sentinels"), "bert": _("as BERT: masks")}
    way = choose_view("gap-view", titles)
    make, name = WAYS[way]
    asked = span if way == "glm" else make(name, *parts)
    draw_asked(asked, way, name, parts)
    before, hidden, behind = parts
    show_code(make, key=f"gap code {way}", name=name, before=before, hidden=hidden, behind=behind)
    return is_found(QUESTION)


def read_words(said: str) -> str:
    """Raises ValueError, with a sentence."""
    words = said.split()
    if not LEAST <= len(words) <= MOST:
        sentence = _("Expected {least} to {most} words, and here are {count}; change the text.")
        raise ValueError(sentence.format(least=LEAST, most=MOST, count=len(words)))
    if long := next((word for word in words if len(word) > LONGEST or word.startswith(("[", "<"))), None):
        sentence = _("Expected plain words of at most {most} characters, got “{word}”; change it.")
        raise ValueError(sentence.format(most=LONGEST, word=long[:40]))
    return " ".join(words)


def start_of(span: GapTask) -> int:
    """Row of the mark behind which the gap's words are written."""
    return len(span.reads) - len(span.asked) - 1


def ask(span: GapTask) -> bool:
    row, names = start_of(span), name_apart(span.reads)
    hidden = (~span.sees[row]).nonzero().flatten().tolist()
    reason = _(
        "{mark} sees the whole text around the gap, before and behind it, and itself. What will be written after it "
        "it does not see."
    ).format(mark=names[row])
    question = _(
        "The words of the gap are written behind the text, from {mark} on. Click a token that {mark} may not look at."
    ).format(mark=names[row])
    return point(
        question,
        tuple(span.sees.shape),
        [(row, at) for at in hidden],
        key=QUESTION,
        why=lambda _said: reason,
        again=other_input("gap-text", (TEXT, *OTHERS)),
        name=lambda at: f"{names[at[0]]} → {names[at[1]]}",
    )


def draw_sight(span: GapTask, covered: bool) -> None:
    """Draws who may look at whom in GLM; the row that is asked for is covered."""
    names = name_apart(span.reads)
    matrix(
        cover(span.sees, start_of(span)) if covered else span.sees,
        rows=names,
        columns=names,
        digits=0,
        key=f"{QUESTION} picture",
        label=_("1: may look"),
    )


def ask_place(span: GapTask) -> bool:
    """Asks for the position in the text of a word of the gap, and tells whether that may be shown."""
    names, place = name_apart(span.reads), int(span.positions[0, -1])
    reason = _("{mark} stands in the text for what is missing, at position {place}, and lends it to each of its words.")
    told, last = reason.format(mark=names[place], place=place), len(span.reads) - 1

    def why(said: float) -> str:
        if said == last:
            return join_sentences(_("That is its place in what is read."), told)
        return told

    question = _("Positions are counted from 0. Which has “{word}”, the last token of the gap, in the text?")
    estimate(question.format(word=names[-1]), place, 0, key=PLACE, why=why)
    return is_answered(PLACE)


def ask_number(asked: GapTask, hidden: str) -> bool:
    """Asks how many masks there are, and tells whether that may be shown."""
    count = len(asked.asked)
    reason = _("“{hidden}” is cut into {pieces}: a mask for each token, here {count}.").format(
        hidden=hidden, pieces=" ".join(asked.asked), count=count
    )

    def why(said: float) -> str:
        if said == len(hidden.split()) != count:
            return join_sentences(_("That is how many words are hidden."), reason)
        return reason

    estimate(_("The masks are covered. How many stand in place of “{hidden}”?").format(hidden=hidden), count, 0,
             key=MASKS, why=why)  # fmt: skip
    return is_answered(MASKS)


def write_positions(span: GapTask, covered: bool) -> str:
    """Both rows of positions; of the words of the gap that in the text may be covered."""
    rows = [[str(at) for at in row] for row in span.positions.tolist()]
    begun = start_of(span)
    if covered:
        rows[0][begun:] = ["?"] * (len(rows[0]) - begun)
    return "\n".join(" ".join(row) for row in rows)


def draw_asked(asked: GapTask, way: str, name: str, parts: tuple[str, str, str]) -> None:
    """Draws what the model reads and is asked; what the question of the view asks for is covered."""
    (before, hidden, behind), above = parts, st.container()
    shown = ask_place(asked) if way == "glm" else ask_number(asked, hidden) if way == "bert" else True
    with above:
        if way == "bert" and not shown:
            st.code(f"{before} ? {behind}".strip(), language=None, wrap_lines=True)
        else:
            draw_read(asked, way, name, covered=not shown)


def draw_read(asked: GapTask, way: str, name: str, covered: bool) -> None:
    left, right = st.columns([3, 2])
    with left:
        st.code(" ".join(asked.reads), language=None, wrap_lines=True)
        if asked.target:
            st.caption(_("The decoder reads:"))
            st.code(" ".join(asked.target), language=None, wrap_lines=True)
        if way != "glm":
            names = name_apart(asked.target or asked.reads)
            label = _("1: may look")
            matrix(asked.sees.float(), rows=names, columns=names, digits=0, key=f"gap sees {way}", label=label)
        else:
            st.caption(_("positions: in the text, and in the gap"))
            st.code(write_positions(asked, covered), language=None)
    with right:
        rows = [
            (token.replace(" ", "·"), numeral(p, ".3f"))
            for token, p in zip(asked.asked, asked.probabilities, strict=True)
        ]
        st.dataframe(pd.DataFrame(rows, columns=[_("asked"), _("p")]), hide_index=True, width="stretch")
    said = {
        "glm": _("{model}: one mark for any number of words. Each is written knowing the ones before."),
        "t5": _("{model}: the decoder says which gap it fills, then what was there. It too knows the words before."),
        "bert": _("{model}: one mask a token, so their number is told. All are guessed at once, none knows another."),
    }[way]
    st.caption(said.format(model=name))
    if way == "t5" and SPACE in asked.reads:
        st.caption(_("“{space}” alone is the space before a sentinel, which is a token here.").format(space=SPACE))
