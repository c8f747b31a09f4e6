"""Encoder, decoder, both: one sentence through three models, attention across, and a target given or written."""

import pandas as pd
import streamlit as st
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.course.encoder_decoder import (
    LONGEST,
    attend_across,
    gap_to_forced,
    guess_each,
    guess_from_before,
    mean_pattern,
    shifted_right,
    teacher_forced,
    write_words,
)
from engine.data.kinds.answering import ANSWER, CONTEXT, SUMMARISE
from engine.data.kinds.text_to_text import JUDGE, SORT, TRANSLATE
from engine.inputs.readers import given_target, read_translation, tokens
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from pages.controls.figures import cover, matrix
from pages.controls.learn.fields import choose_view, name_apart, other_input, read_field, read_short_text, read_words
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, point, show_code
from pages.controls.words import join_sentences
from pages.controls.words import translate as _
from views.core.markdown import escape_markdown

ENCODER, DECODER, BOTH = "tales-bert", "everyday", "translate-en-fr"
TEXT, TARGET = "My father has a red car.", "Mon père veut une voiture rouge."
OTHERS = "The girl has a green dog.", "She wants a red dress."  # a word of each is at another place in French
MOST, CHARACTERS = 16, 60  # of the text: tokens, characters
ANSWERS, TASKS = "t5-answers", "t5-tasks"
ASKED = "Who sees a small cat?"
SENTENCES = "My old father often sees a small cat. He sleeps in the garden."
SENTENCE = "My father sees a small cat in the garden."
TASK_MOST, TASK_CHARACTERS = 48, 120  # of a text with its task: tokens, characters
TALL = 250  # pixels of a table
COVERED = 2  # place of the shifted target
QUESTION, KEYS, SHIFT = (f"encoder_decoder {part}question" for part in ("", "keys ", "shift "))


def experiment() -> bool:
    checkpoint, above = library.checkpoint(BOTH), st.container()
    label = _("an English sentence of simple words")
    text = read_field("encoder_decoder-text", label, TEXT, lambda said: read_source(checkpoint, said))
    reading = read_translation(checkpoint, text, "", LONGEST)
    source, target = reading.read, reading.target
    assert isinstance(source, Encoding) and target is not None
    layer, head = aligning_head(checkpoint)
    look = attend_across(BOTH, source.ids, target.ids, layer, head).pattern
    row = farthest(target, look.argmax(-1).tolist())
    rows, columns = name_apart(written_pieces(checkpoint, target)), name_apart(source.pieces)
    shown = ask(row, rows, columns, look)
    with above:
        st.caption(
            _("The model {model} writes: {words}").format(model=BOTH, words=escape_markdown(written_text(target)))
        )
        matrix(
            look if shown and is_answered(QUESTION) else cover(look, row),
            rows=rows,
            columns=columns,
            digits=2,
            key=f"{QUESTION} picture",
            label=_("attention across, pos key"),
        )
    if not shown:
        return False
    views = {
        "three": _("three models"),
        "across": _("cross-attention"),
        "shifted": _("shifted right"),
        "written": _("given or written"),
        "tasks": _("summed up, asked"),
    }
    view = choose_view("encoder_decoder-view", views)
    if view == "three":
        draw_three(text, source, target)
    elif view == "across":
        draw_across(checkpoint, source, target)
    elif view == "shifted":
        draw_shifted(checkpoint, source, target)
    elif view == "written":
        draw_written(checkpoint, source)
    else:
        draw_tasks()
    return is_found(QUESTION)


def read_source(checkpoint: Checkpoint, said: str) -> str:
    read_short_text(checkpoint, read_words(CHARACTERS)(said), MOST)
    return said.strip()


def aligning_head(checkpoint: Checkpoint) -> tuple[int, int]:
    """Layer and head that look from a word at the one it translates, as its card says."""
    found = checkpoint.card["measured"]["alignment"]
    return found["layer"], found["head"]


def written_pieces(checkpoint: Checkpoint, target: Encoding) -> list[str]:
    """The token that is written at each place of the decoder."""
    assert checkpoint.tokenizer is not None
    return [*target.pieces[1:], checkpoint.tokenizer.piece(checkpoint.end_ids[0])]


def written_text(target: Encoding) -> str:
    """The French text that the decoder wrote."""
    tokenizer = library.checkpoint(BOTH).tokenizer
    assert tokenizer is not None
    return tokenizer.decode(target.ids[1:], special=False)


def farthest(target: Encoding, looked: list[int]) -> int:
    """Place of the token with letters that looks farthest from its own place."""
    words = target.pieces[1:] or [""]
    lettered = [pos for pos, word in enumerate(words) if any(map(str.isalpha, word))]
    return max(lettered or range(len(words)), key=lambda pos: (abs(looked[pos] - pos), pos))


def find_crossing_row(rows: list[str], looked: list[int], row: int) -> int | None:
    """The nearest row with letters, not the end token's, that looks at what is on the other side of what `row` looks
    at than it is of `row`."""
    lettered = [other for other, word in enumerate(rows[:-1]) if any(map(str.isalpha, word))]
    crossed = [other for other in lettered if (other - row) * (looked[other] - looked[row]) < 0]
    return min(crossed, key=lambda other: abs(other - row), default=None)


def give_reason(row: int, rows: list[str], columns: list[str], look: Tensor) -> str:
    looked = look.argmax(-1).tolist()
    most, other = looked[row], find_crossing_row(rows, looked, row)
    if most == row:
        reason = _("Its cross-attention puts {share:.0%} on “{word}”: the same place in both sentences.")
    elif other is None:
        reason = _(
            "Its cross-attention puts {share:.0%} on “{word}”, which is token {there} and not token {place}: both "
            "sentences have the same order here, but not as many tokens before it."
        )
    else:
        reason = _(
            "Its cross-attention puts {share:.0%} on “{word}”, which is token {there} and not token {place}: row "
            "{row}, “{other}”, looks at token {at}, so this head follows another order than that of the places."
        )
    place = {"there": most + 1, "place": row + 1, "share": float(look[row, most]), "word": columns[most]}
    crossed = {} if other is None else {"row": other + 1, "other": rows[other], "at": looked[other] + 1}
    return reason.format(**place, **crossed)


def ask(row: int, rows: list[str], columns: list[str], look: Tensor) -> bool:
    most, because = int(look[row].argmax()), give_reason(row, rows, columns, look)

    def why(said: tuple[int, int]) -> str:
        if said[0] != row:
            other = _("Who looks is a row: that is the row of “{token}”.")
            return join_sentences(other.format(token=rows[said[0]]), because)
        return because

    question = _("Row {place}, “{word}”, is covered. Click in it the English token that the decoder looks at most.")
    return point(
        question.format(place=row + 1, word=rows[row]),
        look.shape,
        [(row, most)],
        key=QUESTION,
        name=lambda at: f"{rows[at[0]]} → {columns[at[1]]}",
        why=why,
        again=other_input("encoder_decoder-text", (TEXT, *OTHERS)),
    )


# --- one sentence through each ---


def draw_three(text: str, source: Encoding, target: Encoding) -> None:
    places = st.columns(3)
    for name, place in ((ENCODER, places[0]), (DECODER, places[1])):
        with place:
            draw_one(name, text)
    with places[2]:
        st.markdown(_("**both**: {model}").format(model=BOTH))
        trace = library.traces.trace(BOTH, source, target=target)
        checkpoint = library.checkpoint(BOTH)
        pattern = mean_pattern(trace[f"decoder.blocks.{checkpoint.config.layers - 1}.cross_attn.pattern"])
        matrix(
            pattern,
            rows=written_pieces(checkpoint, target),
            columns=source.pieces,
            key="encoder_decoder both",
            label=_("attention across, pos key"),
        )
        st.caption(
            _("Reads both ways, then writes another text and looks back at the first: {text}").format(
                text=escape_markdown(written_text(target))
            )
        )
    st.caption(_("Attention of the last layer, mean over heads: rows look at columns."))
    sentence = _(
        "Of texts of their own kind that they were not trained on, {encoder} guesses {masked:.1%} of the hidden tokens "
        "and {decoder} {following:.1%} of the next ones. These are other texts in other tokens: that does not tell "
        "which way is better."
    )
    masked = library.checkpoint(ENCODER).card["measured"]["masked_accuracy"]
    following = library.checkpoint(DECODER).card["accuracy"]["held_out"]
    st.caption(sentence.format(encoder=ENCODER, masked=masked, decoder=DECODER, following=following))


def draw_one(name: str, text: str) -> None:
    checkpoint = library.checkpoint(name)
    encoding = tokens(checkpoint, text).truncate(LONGEST)
    both_ways = name == ENCODER
    title = _("**encoder**: {model}") if both_ways else _("**decoder**: {model}")
    st.markdown(title.format(model=name))
    trace = library.traces.trace(name, encoding)
    last = f"blocks.{checkpoint.config.layers - 1}.attn.pattern"
    matrix(
        mean_pattern(trace[last]),
        rows=encoding.pieces,
        columns=encoding.pieces,
        key=f"encoder_decoder {name}",
        label=_("attention, pos key"),
    )
    try:
        guessed = guess_each(checkpoint, encoding)
    except ValueError:  # special tokens alone
        st.caption(_("Nothing in this text can be guessed."))
        return
    right, count = int((guessed.ranks == 1).sum()), len(guessed.ids)
    if both_ways:
        sentence = _("Sees both sides. Hide each token in turn: {right} of {count} guessed. It writes nothing.")
    else:
        sentence = _(
            "Sees itself and what is before. The next token each time: {right} of {count} guessed. So it can go on "
            "writing."
        )
    st.caption(sentence.format(right=right, count=count))
    if both_ways:
        before = guess_from_before(checkpoint, encoding)
        sentence = _("With all that is after the hidden token cut away: {right} of {count} guessed.")
        st.caption(sentence.format(right=sum(before), count=len(before)))


# --- cross-attention ---


def draw_across(checkpoint: Checkpoint, source: Encoding, target: Encoding) -> None:
    config = checkpoint.config
    best, (left, right) = aligning_head(checkpoint), st.columns([2, 5])
    with left:
        layer, head = (
            st.selectbox(
                escape_markdown(label), range(count), at, key=f"encoder_decoder-{name}", persist_state="session"
            )
            for name, label, count, at in (
                ("layer", _("layer"), config.layers, best[0]),
                ("head", _("head"), config.attention.heads, best[1]),
            )
        )
    found = attend_across(BOTH, source.ids, target.ids, layer, head)
    kept = library.traces.trace(BOTH, source, target=target)[f"decoder.blocks.{layer}.cross_attn.pattern"][0, head]
    shapes = left.container()
    with right:
        matrix(
            found.pattern,
            rows=written_pieces(checkpoint, target),
            columns=source.pieces,
            digits=2,
            key=f"encoder_decoder across {layer} {head}",
            label=_("attention across, pos key"),
        )
        gap = float((found.pattern - kept).abs().max())
        st.caption(
            _("A row is the token that is written there. Largest difference from the model: {gap:.0e}.").format(gap=gap)
        )
        ask_keys(len(found.q), len(found.k))
        show_code(
            attend_across, key="encoder_decoder code across", name=BOTH, source=list(source.ids),
            target=list(target.ids), layer=layer, head=head,
        )  # fmt: skip
    with shapes:
        for name, value, said in (
            ("q", found.q, _("decoder: a row a token it reads")),
            ("k", found.k, _("encoder: a row a token of the source")),
            ("v", found.v, _("encoder: as many")),
        ):
            seen = name == "q" or is_answered(KEYS)
            shape, told = (list(value.shape), said) if seen else (f"[?, {value.shape[1]}]", "")
            st.caption(f"**{escape_markdown(name)}** {escape_markdown(shape)}  \n{escape_markdown(told)}")


def ask_keys(queries: int, keys: int) -> None:
    reason = _("k and v are made of what the encoder has read: tokens of the source, and so rows: {keys}.")

    def why(said: float) -> str:
        because = reason.format(keys=keys)
        if said == queries and queries != keys:
            return join_sentences(_("That is as many as q has: the decoder asks, it does not answer."), because)
        return because

    question = _("q has a row for each token that the decoder reads, {queries} in all. How many rows has k?")
    estimate(question.format(queries=queries), keys, 0, key=KEYS, why=why)


# --- the target ---


def draw_shifted(checkpoint: Checkpoint, source: Encoding, target: Encoding) -> None:
    read, asked = shifted_right(checkpoint, source, target)
    reads, asks, above = pieces_of(checkpoint, read), pieces_of(checkpoint, asked), st.container()
    at = min(COVERED, len(reads) - 1)
    ask_shift(at, reads, asks)
    answered = is_answered(SHIFT)
    table = {
        _("place"): list(range(len(reads))),
        _("the decoder reads"): reads if answered else [*reads[:at], "?", *reads[at + 1 :]],
        _("it is asked for"): asks,
    }
    above.dataframe(pd.DataFrame(table), hide_index=True, width="stretch", height=TALL)
    if not answered:
        return
    sentence = _(
        "The same tokens, one place apart: a start token before, an end token after. A place sees itself and what is "
        "before it, so without the shift it would read the very token it is asked for."
    )
    st.caption(sentence)


def ask_shift(at: int, reads: list[str], asks: list[str]) -> None:
    options = sorted({reads[at], *asks[at : at + 2], asks[-1]})
    reason = _("It reads what it was asked for one place before.")

    def why(said: int) -> str:
        if options[said] == asks[at] != reads[at]:
            return join_sentences(_("Then it would read the very token that it is asked for there."), reason)
        return reason

    question = _("One token is covered. Which one does the decoder read at place {place}?").format(place=at)
    choose(question, [one.replace(" ", "·") for one in options], options.index(reads[at]), key=SHIFT, why=why)


def draw_written(checkpoint: Checkpoint, source: Encoding) -> None:
    label = _("a French sentence that a teacher gives as the right one")
    target = read_field("encoder_decoder-target", label, TARGET, lambda said: read_target(checkpoint, said))
    forced, written = teacher_forced(checkpoint, source, target), write_words(checkpoint, source)
    rows = {
        _("reads, given"): pieces_of(checkpoint, forced.read),
        _("asked"): pieces_of(checkpoint, forced.asked),
        _("says"): pieces_of(checkpoint, forced.says),
        _("p of asked"): [f"{share:.3f}" for share in forced.shares.tolist()],
        _("reads, its own"): pieces_of(checkpoint, written.read),
        _("writes"): pieces_of(checkpoint, written.ids),
    }
    table = pd.DataFrame({name: pd.Series(column, dtype="object") for name, column in rows.items()}).fillna("")
    st.dataframe(table, hide_index=True, width="stretch", height=TALL)
    wrong = sum(says != asked for says, asked in zip(forced.says, forced.asked, strict=True))
    sentence = _(
        "Given: 1 pass for {count} tokens; {wrong} of them it would have said otherwise, and it reads the given one "
        "even so. Written: {passes} passes, each reads the token before; a mistake would be read too. Given its own "
        "tokens, one pass gives the same logits, to {gap:.0e}."
    )
    gap = gap_to_forced(checkpoint, source, written)
    st.caption(sentence.format(count=len(forced.asked), wrong=wrong, passes=len(written.ids), gap=gap))


def read_target(checkpoint: Checkpoint, said: str) -> Encoding:
    read = given_target(checkpoint, read_words(CHARACTERS)(said))
    if not 2 <= len(read) < LONGEST:
        sentence = _("Expected 1 to {most} tokens, and this text has {count}; change it.")
        raise ValueError(sentence.format(most=LONGEST - 2, count=len(read) - 1))
    return read


# --- several tasks, each a text that becomes another ---


def draw_tasks() -> None:
    tasks = {
        SUMMARISE: _("summed up"),
        ANSWER: _("asked about"),
        TRANSLATE: _("translated"),
        JUDGE: _("judged"),
        SORT: _("sorted"),
    }
    task = choose_view("encoder_decoder-task", tasks)
    name = ANSWERS if task in (ANSWER, SUMMARISE) else TASKS
    checkpoint = library.checkpoint(name)
    asked = ""
    if task == ANSWER:
        asked = read_field("encoder_decoder-asked", _("a question about the text"), ASKED, read_words(CHARACTERS))

    def read_task(said: str) -> Encoding:
        return read_short_text(checkpoint, put_task(task, read_words(TASK_CHARACTERS)(said), asked), TASK_MOST)

    two = task == SUMMARISE
    label = _("two short sentences about the same one") if two else _("a short sentence")
    key = f"encoder_decoder-task-{'sentences' if two else 'sentence'}"
    source = read_field(key, label, SENTENCES if two else SENTENCE, read_task)
    written = write_words(checkpoint, source)
    assert checkpoint.tokenizer is not None
    words = checkpoint.tokenizer.decode(written.ids, special=False)
    read = checkpoint.tokenizer.decode(source.ids, special=False)
    sentence = _("The model {model} reads “{text}” and writes: **{words}**")
    st.markdown(sentence.format(model=name, text=escape_markdown(read), words=escape_markdown(words)))
    pattern = across_mean(name, source, written.read)
    matrix(
        pattern,
        rows=pieces_of(checkpoint, written.ids),
        columns=source.pieces,
        key=f"encoder_decoder task {task}",
        label=_("attention across, pos key"),
    )
    st.caption(_("Attention of the last layer, mean over heads: rows look at columns."))
    known = _(
        "The words before the text say which task it is. The model knows short sentences about people, animals and "
        "things; of other texts it writes nonsense."
    )
    st.caption(known)


def across_mean(name: str, source: Encoding, target: list[int]) -> Tensor:
    """Cross-attention, pos key, mean over the heads of the last layer."""
    last = library.checkpoint(name).config.layers - 1
    trace = library.traces.trace(name, source, target=Encoding.from_ids(target))
    return mean_pattern(trace[f"decoder.blocks.{last}.cross_attn.pattern"])


def put_task(task: str, text: str, asked: str) -> str:
    """The text that the model reads: its task, then what the task is about."""
    return f"{task}{asked}{CONTEXT}{text}" if task == ANSWER else task + text


def pieces_of(checkpoint: Checkpoint, ids: list[int]) -> list[str]:
    assert checkpoint.tokenizer is not None
    return [checkpoint.tokenizer.piece(id) for id in ids]
