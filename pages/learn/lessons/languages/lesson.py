"""Two ways to cut a language: one sentence in six languages under two vocabularies, spaces, and the best cut."""

from math import exp

import altair as alt
import pandas as pd
import streamlit as st

from engine.course.languages import (
    ALL,
    ENTRIES,
    LANGUAGES,
    Cut,
    best_cuts,
    count_tokens,
    cut,
    learn_vocabulary,
    mark_spaces,
    measured,
    piece_scores,
)
from engine.tokenizers import draw_piece
from pages.controls.figures import tokens
from pages.controls.learn.fields import choose_view, other_input, read_field, read_words
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, show_code
from pages.controls.words import join_sentences
from pages.controls.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.markdown import escape_markdown
from views.core.theme import Shade

OWN, LONGEST, WORD = "The cat reads a letter by the train.", 200, 24  # a text of one's own; characters of it, of a word
ASKED, OTHERS = "zh", ("fi", "ja")
WAYS, TIED = 4, 0.01  # cuts of a word that are compared; scores that are told apart
NEAR = 0.15  # share of the number of tokens by which a prediction may be off
QUESTION, SHARED, BEST = (f"languages {part}question" for part in ("", "shared ", "best "))


def experiment() -> bool:
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        main = choose_language(_("the vocabulary is learned mostly from"), "languages-main", "en")
        language = choose_language(_("the same sentence in"), "languages-asked", ASKED)
    number = right.number_input(_("sentence"), 1, len(measured("en")), 1, key="languages-sentence") - 1
    text, first = measured(language)[number], measured(main)[number]
    above = st.container()
    shown = ask(main, language, first, text)
    with above:
        draw_sentences(main, number)
    if not shown:
        return False
    if is_answered(QUESTION):
        pieces = cut("bpe", main, text)
        tokens(pieces, key="languages pieces", label=_("tokens of the sentence"))
    views = {"two": _("two vocabularies"), "spaces": _("where no spaces are"), "cuts": _("the best cut")}
    view = choose_view("languages-view", views)
    if view == "two":
        draw_two(main, number)
    elif view == "spaces":
        draw_spaces(language, number)
    else:
        draw_cuts(language, number)
    return is_found(QUESTION)


def name_languages() -> dict[str, str]:
    named = _("English"), _("French"), _("German"), _("Finnish"), _("Chinese"), _("Japanese")
    return dict(zip(LANGUAGES, named, strict=True))


def choose_language(label: str, key: str, default: str) -> str:
    names = name_languages()
    return st.segmented_control(
        escape_markdown(label), LANGUAGES, default=default, key=key, required=True,
        format_func=lambda one: escape_markdown(names[one]), persist_state="session",
    )  # fmt: skip


# --- one sentence ---


def ask(main: str, language: str, first: str, text: str) -> bool:
    names, own, other = name_languages(), count_tokens("bpe", main, first), count_tokens("bpe", main, text)
    tolerance = max(2, round(NEAR * other.tokens))
    reason = _("It has {bytes} bytes, and a pair of them is merged only where the texts had it: {tokens} are left.")
    told = reason.format(bytes=other.bytes, tokens=other.tokens)
    mistakes = [
        (own.tokens, _("That is as many as in the other language: the same meaning need not cost the same.")),
        (other.characters, _("That is one a character; a character of another script may be several bytes.")),
        (len(text.split()), _("That is one a word, which only frequent words of the texts are.")),
        (other.bytes, _("That is one a byte, as if nothing had been merged.")),
    ]

    def why(said: float) -> str:
        if abs(said - other.tokens) <= tolerance:
            return told
        return join_sentences(next((named for value, named in mistakes if abs(said - value) <= 1), ""), told)

    st.caption(
        _(
            "A BPE on bytes has just learned {entries} entries: from twelve sentences in {main}, and one in each other "
            "language."
        ).format(entries=learn_vocabulary("bpe", main).vocab_size, main=names[main])
    )
    question = _(
        "A vocabulary learned mostly from sentences in {main} cuts this one into {tokens} tokens, of {characters} "
        "characters in {main}. In {language} it has {others} characters. How many tokens are they?"
    ).format(
        tokens=own.tokens,
        characters=own.characters,
        main=names[main],
        others=other.characters,
        language=names[language],
    )
    return estimate(
        question, other.tokens, tolerance, key=QUESTION, why=why,
        again=other_input("languages-asked", (ASKED, *OTHERS)),
    )  # fmt: skip


def draw_sentences(main: str, number: int) -> None:
    """The sentence in each language, with its tokens once they were asked for."""
    rows = []
    for one, name in name_languages().items():
        count = count_tokens("bpe", main, measured(one)[number])
        covered = one != main and not is_answered(QUESTION)
        rows.append((name, measured(one)[number], count.characters, "?" if covered else str(count.tokens)))
    columns = [_("language"), _("sentence"), _("characters"), _("tokens")]
    st.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True, height="content", key="languages sentences")


# --- two vocabularies ---


def draw_two(main: str, number: int) -> None:
    names, first = name_languages(), measured(main)[number]
    own = read_field("languages-own", _("a text of your own, in any language"), OWN, read_words(LONGEST))
    before, after = (count_tokens("bpe", one, first).tokens for one in (main, ALL))
    reason = _("{before} before and {after} after: the {entries} entries are shared among six languages now.")
    choose(
        _(
            "A second vocabulary has about as many entries and is learned from twelve sentences in each of the six. "
            "What does the sentence in {main} cost now?"
        ).format(main=names[main]),
        [_("fewer tokens"), _("as many"), _("more tokens")],
        1 + (after > before) - (after < before),
        key=SHARED,
        why=lambda _said: reason.format(before=before, after=after, entries=ENTRIES),
    )
    if not is_answered(SHARED):
        return
    kinds = {"bpe": _("BPE on bytes"), "unigram": "Unigram"}
    kind = str(
        st.segmented_control(
            _("learned by"), list(kinds), default="bpe", key="languages-kind", required=True,
            format_func=kinds.__getitem__, label_visibility="collapsed", persist_state="session",
        )
    )  # fmt: skip
    texts = {names[one]: measured(one)[number] for one in LANGUAGES} | {_("your text"): own}
    table = count_all(kind, main, texts)
    show_altair(lambda shade: draw_tokens(table, shade), key=f"languages bars {kind}")
    st.dataframe(table, hide_index=True, height="content", key=f"languages table {kind}")
    if table[_("unknown")].any():
        sentence = _(
            "An unknown token stands for characters that the texts did not have. It is one token, and what stood there "
            "is lost."
        )
        st.caption(sentence)
    show_code(count_tokens, key="languages code two", kind=kind, main=main, text=own)


def count_all(kind: str, main: str, texts: dict[str, str]) -> pd.DataFrame:
    """Tokens of each text under the vocabulary of one language and under that of all, also by character and against
    the text of that language."""
    rows = []
    first = count_tokens(kind, main, texts[name_languages()[main]]).tokens
    for name, text in texts.items():
        one, every = (count_tokens(kind, learned, text) for learned in (main, ALL))
        compared = f"{one.tokens / first:.2f}" if name != _("your text") else "–"
        shares = f"{one.tokens / one.characters:.2f}", f"{every.tokens / every.characters:.2f}"
        rows.append((name, one.characters, one.tokens, every.tokens, *shares, compared, one.unknown))
    mostly, from_all = column_names(main)
    by_character = _("{vocabulary}, by character")
    return pd.DataFrame(
        rows,
        columns=[
            _("text"), _("characters"), mostly, from_all, by_character.format(vocabulary=mostly),
            by_character.format(vocabulary=from_all), f"÷ {name_languages()[main]}",
            _("unknown"),
        ],
    )  # fmt: skip


def column_names(main: str) -> tuple[str, str]:
    return _("mostly {main}").format(main=name_languages()[main]), _("all six")


def draw_tokens(table: pd.DataFrame, shade: Shade) -> alt.Chart:
    name, _characters, mostly, every, *_others = table.columns
    rows = table[[name, mostly, every]].melt(name, var_name="vocabulary", value_name="tokens")
    ink = colors(shade)
    inks = alt.Scale(domain=[mostly, every], range=[ink["key"], ink["attention"]])
    return (
        alt.Chart(rows.rename(columns={name: "text"}))
        .mark_bar()
        .encode(
            alt.X("tokens:Q", title=_("tokens")),
            alt.Y("text:N", title=None, sort=list(table[name])),
            alt.YOffset("vocabulary:N", sort=[mostly, every]),
            alt.Color("vocabulary:N", title=_("learned from"), scale=inks),
        )
        .properties(height=260)
    )


# --- spaces ---


def draw_spaces(language: str, number: int) -> None:
    names = name_languages()
    rows = [
        (names[one], len(parts), max(map(len, parts)), count_tokens("unigram", ALL, text).tokens)
        for one in LANGUAGES
        for text in [measured(one)[number]]
        for parts in [text.split()]
    ]
    columns = [_("text"), _("parts between spaces"), _("characters of the longest"), _("tokens of Unigram")]
    st.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True, height="content")
    text = measured(language)[number]
    st.caption(_("Cut at spaces, as for a vocabulary of words: a part that no text had is unknown as a whole."))
    tokens(text.split(), key="languages parts", label=_("parts between spaces"))
    st.caption(_("As SentencePiece reads it: a space is the letter ▁, and one stands before the text."))
    tokens(list(mark_spaces(text)), key="languages letters", role="residual", label=_("characters, spaces marked"))
    st.caption(_("The most probable pieces of the Unigram that was learned from all six."))
    pieces = [piece.replace("·", "▁") for piece in cut("unigram", ALL, text)]
    tokens(pieces, key="languages unigram", role="probability", label=_("pieces"))
    st.caption(_("To decode: join the pieces, and write a space for each ▁. No rule of the language is needed."))


# --- the best cut ---


def read_cuttable(said: str) -> str:
    text = read_words(WORD, 2)(said)
    strange = [one for one in text if one not in piece_scores(ALL) and one != " "]
    if strange:
        sentence = _("Expected characters of the texts that were learned from, and “{character}” is none; change it.")
        raise ValueError(sentence.format(character=draw_piece(strange[0])))
    return text


def draw_cuts(language: str, number: int) -> None:
    default = max(measured(language)[number].split(), key=len)
    key = f"languages-cut {language} {number}"
    text = mark_spaces(read_field(key, _("a word to cut"), default, read_cuttable))
    best, *rest = best_cuts(text, ALL, WAYS)
    ways = sorted([best, *(way for way in rest if way.score < best.score - TIED)])
    if len(ways) == 1:
        st.caption(_("Its pieces can be put together in one way alone; try another word."))
        return
    used = sorted({piece for way in ways for piece in way.pieces}, key=lambda piece: -piece_scores(ALL)[piece])
    shown = [(piece, piece_scores(ALL)[piece]) for piece in used]
    second = max((way for way in ways if way is not best), key=lambda way: way.score)
    st.caption(_("Pieces of the Unigram learned from all six, each with its score, log p."))
    table = pd.DataFrame(shown, columns=[_("piece"), _("score")]).set_index(_("piece")).T
    st.dataframe(table, width="stretch", key="languages scores")

    def why(said: int) -> str:
        other = second if ways[said] == best else ways[said]
        fewer = len(other.pieces) < len(best.pieces)
        few = _("The fewest pieces need not be the most probable.") if fewer else ""
        sentence = _("{best} adds up to {score:.2f}, {other} to {less:.2f}.")
        named = {"best": write_cut(best), "other": write_cut(other)}
        return join_sentences(few, sentence.format(**named, score=best.score, less=other.score))

    choose(
        _("The probability of a cut is the product of those of its pieces, so their scores add up. Which is the best?"),
        list(map(write_cut, ways)),
        ways.index(best),
        key=BEST,
        why=why,
    )
    if is_answered(BEST):
        ranked = sorted(ways, key=lambda way: -way.score)
        rows = [(write_cut(way), len(way.pieces), f"{way.score:.2f}") for way in ranked]
        st.dataframe(pd.DataFrame(rows, columns=[_("cut"), _("pieces"), _("sum of scores")]), hide_index=True)
        times = _("The best cut is {times:.3g} times as probable as the second.")
        st.caption(times.format(times=exp(best.score - second.score)))
    show_code(best_cuts, key="languages code cuts", text=text, main=ALL, count=WAYS)


def write_cut(way: Cut) -> str:
    return " | ".join(way.pieces)
