"""Learning a vocabulary: BPE, WordPiece and Unigram on one text, every step forward and back."""

from collections.abc import Sequence
from fractions import Fraction
from typing import LiteralString

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.course.vocabulary import (
    Merge,
    Pair,
    Removal,
    bpe_of_library,
    learn_merges,
    learn_unigram,
    split_letters,
    unigram_of_library,
    wordpiece_of_library,
)
from engine.tokenizers import draw_piece
from pages.controls.figures import tokens
from pages.controls.learn.fields import other_input, read_field, read_words
from pages.controls.learn.predict import Again, is_answered, is_found, point, show_code
from pages.controls.state.session import set_widget, widget_value
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
from pages.controls.words import translate_count as _n
from views.core.markdown import escape_markdown

TEXT = "the thin thief thinks this thing is thicker than the other thing"
OTHERS = "banana bandana", "low low low lower lowest"
COSTS = 5e-4  # loss of a removal that is no zero in the table: those before it are of pieces that no cut needs
MOST, ROWS, CHIPS, NAMED = 200, 5, 36, 6  # characters; rows, chips, entries in a sentence
QUESTION, SCORED, REMOVED = (f"vocabulary {part}question" for part in ("", "wordpiece ", "unigram "))


def experiment() -> bool:
    above = st.container()
    text = read_field("vocabulary-text", _("text to learn from"), TEXT, read_learnable)
    question = _(
        "BPE merges the pair of neighbours that is most frequent in your text. Click the first of the two, wherever "
        "they stand."
    )
    shown = ask_merge(text, "bpe", QUESTION, question, above, other_input("vocabulary-text", (TEXT, *OTHERS)))
    if not shown:
        return False
    ways = {"bpe": "BPE", "wordpiece": "WordPiece", "unigram": "Unigram"}
    way = st.segmented_control(
        _("learned by"), list(ways), default="bpe", key="vocabulary-view", required=True, format_func=ways.__getitem__,
        label_visibility="collapsed", persist_state="session",
    )  # fmt: skip
    if way == "unigram":
        draw_unigram(text)
    else:
        draw_merges(text, str(way))
    return is_found(QUESTION)


def ask_merge(
    text: str, way: str, key: str, question: LiteralString, above: DeltaGenerator, again: Again | None = None
) -> bool:
    """Asks for the first merge in the symbols of the text, which are drawn `above`; then its pairs are marked there."""
    symbols, pairs = symbols_of(text, way), learn_merges(text, way).steps[0].pairs
    score: dict[tuple[str, ...], Fraction] = {(pair.first, pair.second): pair.score for pair in pairs}
    right = [at for at in range(len(symbols)) if score.get(pair_at(symbols, at)) == pairs[0].score]
    shown = point(
        question,
        (len(symbols),),
        right,
        key=key,
        again=again,
        name=lambda at: " + ".join(map(draw_piece, pair_at(symbols, at))),
        why=lambda at: compare_pairs(pairs, pair_at(symbols, at), way),
    )
    marks = np.zeros(len(symbols))
    marks[[at + part for at in right for part in (0, 1)]] = 1
    with above:
        tokens(
            list(map(draw_piece, symbols)),
            marks if shown and is_answered(key) else None,
            key=f"{key} picture",
            role="residual",
            label=_("symbols of the text"),
        )
    return shown


def symbols_of(text: str, way: str) -> list[str]:
    """Symbols that the merges begin with, a space between words."""
    return [symbol for word in text.split() for symbol in [" ", *split_letters(word, way)]][1:]


def pair_at(symbols: Sequence[str], at: int) -> tuple[str, ...]:
    """The symbol at a place and the one that follows it in its word, if one does."""
    pair = tuple(symbols[at : at + 2])
    return pair[:1] if " " in pair else pair


def compare_pairs(pairs: Sequence[Pair], said: tuple[str, ...], way: str) -> str:
    """Why the first of `pairs` is merged and not what was said, or, if that was right, not the next one."""
    best, found = pairs[0], next((pair for pair in pairs if (pair.first, pair.second) == said), None)
    lost = "" if found else _("Nothing follows it in its word.")
    tied = _("Both have the same; the one whose parts are first in the vocabulary is merged.")
    if found is None or found == best:
        found = next((pair for pair in pairs if pair.score < best.score), pairs[-1])
    tied = tied if found.score == best.score and found != best else ""
    named = {"best": name_pair(best), "other": name_pair(found)}
    if way == "bpe":
        sentence = _("{best} occurs {count} ×, {other} {less} ×.")
        return join_sentences(lost, sentence.format(**named, count=best.count, less=found.count), tied)
    sentence = _("{best} has the score {score}, {other} {less}: parts that are rare elsewhere count more.")
    scores = {"score": numeral(float(best.score), ".3g"), "less": numeral(float(found.score), ".3g")}
    return join_sentences(lost, sentence.format(**named, **scores), tied)


def name_pair(pair: Pair) -> str:
    return f"{draw_piece(pair.first)} + {draw_piece(pair.second)}"


def read_learnable(said: str) -> str:
    text = read_words(MOST)(said)
    if all(len(word) < 2 for word in text.split()):
        raise ValueError(_("Expected a word of at least two characters, got none; type one."))
    return text


def choose_step(way: str, most: int, start: int = 1) -> int:
    """1 to `most`, by a slider and a button on either side; `start` at first."""
    key = f"vocabulary-step {way}"
    now: int = min(max(1, widget_value(key, start)), most)
    set_widget(key, now)
    if most == 1:
        return 1
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.button(
            "", icon=":material/skip_previous:", key=f"{key} back", disabled=now == 1, help=_("One step back"),
            on_click=set_widget, args=(key, now - 1),
        )  # fmt: skip
        step = st.slider(_("step"), 1, most, key=key, label_visibility="collapsed", persist_state="session")
        st.button(
            "", icon=":material/skip_next:", key=f"{key} forward", disabled=now == most, help=_("One step forward"),
            on_click=set_widget, args=(key, now + 1),
        )  # fmt: skip
    return step


def draw_merges(text: str, way: str) -> None:
    if way == "wordpiece":
        above = st.container()
        question = _("WordPiece merges the pair of the highest score. Click the first of the two.")
        ask_merge(text, way, SCORED, question, above)
        if not is_answered(SCORED):
            return
    learned = learn_merges(text, way)
    count = len(learned.steps)
    at = choose_step(way, count)
    step = learned.steps[at - 1]
    best = step.pairs[0]
    said = {"step": at, "count": count, "first": shown_as(best.first), "second": shown_as(best.second)}
    said |= {"entry": shown_as(best.entry), "times": best.count}
    sentence = _n(
        "Step {step} of {count}: **{first}** + **{second}** → **{entry}**, {times} time.",
        "Step {step} of {count}: **{first}** + **{second}** → **{entry}**, {times} times.",
        best.count,
    )
    st.markdown(sentence.format(**said))
    decided, words = st.columns([5, 4])
    with decided:
        rows = [row_of(pair_at, step, way) for pair_at in range(min(ROWS, len(step.pairs)))]
        st.dataframe(rows, hide_index=True, height="content", key=f"vocabulary table {way}")
    with words:
        before = learned.words if at == 1 else learned.steps[at - 2].words
        changed = [float(one != other) for one, other in zip(step.words, before, strict=True)][:CHIPS]
        chips = [
            "|".join(map(draw_piece, word)) + (f" ×{times}" if times > 1 else "")
            for word, times in zip(step.words, learned.counts, strict=True)
        ]
        tokens(
            chips[:CHIPS],
            np.array(changed),
            key=f"vocabulary words {way}",
            role="residual",
            label=_("words as they are cut after the step"),
        )
    new = learned.entries(at)[len(learned.alphabet) :]
    letters = len(learned.alphabet)
    sentence = _n(
        "Vocabulary: {letters} letter, and what was merged.",
        "Vocabulary: {letters} letters, and what was merged.",
        letters,
    )
    st.caption(sentence.format(letters=letters))
    marks = np.array([float(entry == best.entry) for entry in new[-CHIPS:]])
    tokens(list(map(draw_piece, new[-CHIPS:])), marks, key=f"vocabulary entries {way}", label=_("merged entries"))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(escape_markdown(compare_bpe(text) if way == "bpe" else compare_wordpiece(text, at)))
        show_code(learn_merges, key=f"vocabulary code {way}", text=text, kind=way, steps=at)


def row_of(at: int, step: Merge, way: str) -> dict[str, str | int]:
    """Row of the table for the pair of rank `at`: the numbers that decided."""
    pair = step.pairs[at]
    row: dict[str, str | int] = {_("pair"): name_pair(pair)}
    if way == "bpe":
        return {**row, _("count"): pair.count, "a": pair.firsts, "b": pair.seconds}
    shares = {"p(ab)": f"{pair.count}/{step.total}", "p(a)": f"{pair.firsts}/{step.symbols}"}
    return {**row, **shares, "p(b)": f"{pair.seconds}/{step.symbols}", _("score"): f"{float(pair.score):.3f}"}


def compare_bpe(text: str) -> str:
    """Over all steps, whichever is shown."""
    learned = learn_merges(text, "bpe")
    ours, theirs = learned.entries(len(learned.steps)), bpe_of_library(text, len(learned.steps))
    same = sum(one == other for one, other in zip(ours[len(learned.alphabet) :], theirs, strict=False))
    sentence = _("The tokenizers library has the same rule: of all {count} merged entries {same} are equal, in order.")
    return sentence.format(same=same, count=len(ours) - len(learned.alphabet))


def compare_wordpiece(text: str, steps: int) -> str:
    learned = learn_merges(text, "wordpiece")
    ours = learned.entries(steps)[len(learned.alphabet) :]
    theirs = wordpiece_of_library(text, len(ours))
    return _(
        "The tokenizers library’s WordPiece trainer has another rule: it merges by frequency, as BPE does. So it "
        "learns {theirs}. Entries that both have after as many merges: {same} of {count}."
    ).format(theirs=some(theirs), same=len(set(ours) & set(theirs)), count=len(ours))


def draw_unigram(text: str) -> None:
    learned = learn_unigram(text)
    count = len(learned.steps)
    if not count:
        st.info(_("No piece of two or more letters occurs twice: there is nothing to remove. Repeat something."))
        return
    costly = (at for at, step in enumerate(learned.steps, 1) if step.pieces[0].loss >= COSTS)
    start = next(costly, 1)
    ask_removal(learned.steps[start - 1])
    if not is_answered(REMOVED):
        return
    at = choose_step("unigram", count, start)
    step = learned.steps[at - 1]
    gone = step.pieces[0]
    said = {"step": at, "count": count, "entry": shown_as(gone.entry), "loss": numeral(gone.loss, ".3f")}
    said["total"] = numeral(step.likelihood, ".2f")
    st.markdown(
        _("Step {step} of {count} removes **{entry}**: without it log L, {total}, falls by {loss}.").format(**said)
    )
    rows = [
        {
            _("piece"): draw_piece(piece.entry),
            _("probability"): f"{piece.probability:.4f}",
            _("expected uses"): f"{piece.uses:.2f}",
            _("loss without it"): f"{piece.loss:.3f}",
        }
        for piece in step.pieces[:ROWS]
    ]
    st.dataframe(rows, hide_index=True, height="content", key="vocabulary table unigram")
    kept = sorted((p, entry) for entry, p in step.probabilities.items() if len(entry) > 1)[::-1][:CHIPS]
    said = {"letters": len(learned.letters), "kept": len(step.probabilities) - len(learned.letters)}
    st.caption(_("Vocabulary: its letters, {letters}, which always stay, and {kept} more.").format(**said))
    if kept:
        shares = np.array([p / kept[0][0] for p, _entry in kept])
        tokens(
            [draw_piece(entry) for _p, entry in kept],
            shares,
            key="vocabulary entries unigram",
            role="probability",
            label=_("pieces that stay, marked by their probability"),
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(escape_markdown(compare_unigram(text, at)))
        show_code(learn_unigram, key="vocabulary code unigram", text=text)


def ask_removal(step: Removal) -> None:
    """Asks which piece a step removes; any of those whose loss is the same in the table is right."""
    above, pieces = st.container(), sorted(step.pieces, key=lambda piece: piece.entry)
    least = step.pieces[0].loss
    right = [at for at, piece in enumerate(pieces) if piece.loss <= least + COSTS]

    def why(said: int) -> str:
        more = (piece for piece in step.pieces if piece.loss > least + COSTS)
        other = next(more, step.pieces[-1]) if said in right else pieces[said]
        return _("Without {best} log L falls by {least}, without {other} by {more}.").format(
            best=draw_piece(step.pieces[0].entry),
            least=numeral(least, ".3f"),
            other=draw_piece(other.entry),
            more=numeral(other.loss, ".3f"),
        )

    point(
        _("The pieces, marked by their probability. What the text needs least is removed next. Click it."),
        (len(pieces),),
        right,
        key=REMOVED,
        name=lambda at: draw_piece(pieces[at].entry),
        why=why,
    )
    most = max(piece.probability for piece in pieces)
    probable = np.array([piece.probability / most for piece in pieces])
    gone = np.array([float(at in right) for at in range(len(pieces))])
    with above:
        tokens(
            [draw_piece(piece.entry) for piece in pieces],
            gone if is_answered(REMOVED) else probable,
            key=f"{REMOVED} picture",
            role="probability",
            label=_("pieces that may be removed"),
        )


def compare_unigram(text: str, steps: int) -> str:
    learned = learn_unigram(text)
    entries = learned.entries(steps)
    theirs = unigram_of_library(text, len(entries))
    return _(
        "The tokenizers library has another rule, SentencePiece’s: other pieces to begin with, and a loss from the "
        "best cut alone. Asked for {size} entries it keeps {theirs}; {same} of them are here too."
    ).format(size=len(entries), theirs=some(theirs), same=len(set(theirs) & set(entries)))


def shown_as(entry: str) -> str:
    return escape_markdown(draw_piece(entry))


def some(entries: list[str]) -> str:
    """The first of them, for a sentence."""
    if not entries:
        return _("none of several letters")
    return ", ".join(map(shown_as, entries[:NAMED])) + (" …" if len(entries) > NAMED else "")
