"""From vector to word: the last vector against a table, a softmax with a temperature, sampling, beams, and two
words after two contexts."""

import math
from functools import lru_cache

import pandas as pd
import streamlit as st
import torch
from torch import Tensor

from engine.course.vector_to_word import (
    Path,
    at_temperature,
    compare_continuations,
    list_candidates,
    measure_path,
    next_logits,
    sample_text,
    search_beams,
    softmax_terms,
    unembed,
)
from engine.generation.beam import Hypothesis
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from pages.controls.figures import bars, cover, matrix, strip, tokens
from pages.controls.learn.fields import (
    choose_view,
    name_apart,
    other_input,
    read_field,
    read_matrix,
    read_short_text,
    read_words,
)
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, show_code
from pages.controls.words import join_sentences, numeral, numerals
from pages.controls.words import translate as _
from pages.controls.words import translate_count as _n
from views.core.markdown import code_markdown, escape_markdown

MODEL, TEXT, LOGITS = "bilingual", "The red book is", "[2, 4, 5]"
OTHERS = "[3, 3, 1, 0]", "[0, 0.5]"
MOST, MOST_LOGITS, LARGEST = 16, 8, 1000  # tokens of the text; typed logits, and the size of one
TOLERANCE = 0.05
SHOWN, VECTORS = 6, 3  # entries of the vocabulary; rows of the table that are drawn
WRITTEN, SEARCHED = 30, 10  # tokens at most
COLD, HOT = 0.5, 2.0  # temperatures of the question
ADDED, WIDEST = 10.0, 5  # to every logit; beams at most
EVERYDAY, CONTEXTS, WORDS = "everyday", ("She saw the red", "They began to"), ("house", "shout")
LONGEST = 20  # characters of a word
EQUAL, NATS, MOST_NATS = 0.05, 1.0, 50  # differences: one that is none, one that is accepted, the largest power of e
QUESTION, HEAT, ADD, PAIR = (f"vector_to_word {part}question" for part in ("", "temperature ", "added ", "pair "))

sample = lru_cache(maxsize=64)(sample_text)
search = lru_cache(maxsize=64)(search_beams)


def experiment() -> bool:
    checkpoint, above = library.checkpoint(MODEL), st.container()
    left, right = st.columns(2)
    with left:
        logits = read_field("vector_to_word-logits", _("logits"), LOGITS, read_logits)
    with right:
        label = _("a text to go on from")
        encoding = read_field("vector_to_word-text", label, TEXT, lambda said: read_short_text(checkpoint, said, MOST))
    shown = ask(logits)
    with above:
        draw_softmax(logits, covered=not (shown and is_answered(QUESTION)))
    if not shown:
        return False
    views = {
        "temperature": _("temperature"),
        "table": _("unembedding"),
        "sample": _("sampling"),
        "beams": _("beam search"),
        "pair": _("two words"),
    }
    view = choose_view("vector_to_word-view", views)
    if view == "temperature":
        draw_temperature(logits, encoding)
    elif view == "table":
        draw_table(encoding)
    elif view == "sample":
        draw_sample(encoding)
    elif view == "beams":
        draw_beams(encoding)
    else:
        draw_pair()
    return is_found(QUESTION)


def read_logits(said: str) -> Tensor:
    text = said.strip()
    rows = read_matrix(f"[{text}]" if text.startswith("[") and not text.startswith("[[") else text)
    if len(rows) != 1 or not 2 <= rows.shape[1] <= MOST_LOGITS or bool(rows.abs().max() > LARGEST):
        sentence = _("Expected one row of 2 to {most} numbers from -{largest} to {largest}, as {example}; correct it.")
        raise ValueError(sentence.format(most=MOST_LOGITS, largest=LARGEST, example=LOGITS))
    return rows[0]


def pieces_of(ids: list[int]) -> list[str]:
    tokenizer = library.checkpoint(MODEL).tokenizer
    assert tokenizer is not None
    return [tokenizer.piece(id) for id in ids]


def write_row(values: Tensor, digits: int = 4) -> str:
    return f"[{', '.join(f'{value:.{digits}f}' for value in values.tolist())}]"


def ask(logits: Tensor) -> bool:
    terms, total = softmax_terms(logits)
    reason = _("e to each logit less the largest: {terms}, together {total:.4f}. The largest gets 1 / {total:.4f}.")
    because = reason.format(terms=numerals(terms, ".4f"), total=total)
    answer, added = float(at_temperature(logits, 1).max()), float(logits.sum())
    mistakes = [
        (float(logits.max()) / (added or 1), _("That is its share of the sum of the logits; e to each comes first.")),
        (1 / len(logits), _("Equal logits would give this: the same share for each.")),
        (1.0, _("So it would be at temperature 0; at 1 the others get something too.")),
    ]

    def why(said: float) -> str:
        if abs(said - answer) <= TOLERANCE:
            return because
        named = next((name for value, name in mistakes if abs(said - value) <= TOLERANCE), "")
        return join_sentences(named, because)

    question = _("A softmax makes probabilities of these {count} logits. Which does the largest logit get?")
    again = other_input("vector_to_word-logits", (LOGITS, *OTHERS))
    return estimate(question.format(count=len(logits)), answer, TOLERANCE, key=QUESTION, why=why, again=again)


def draw_softmax(logits: Tensor, covered: bool) -> None:
    """The logits, and below them e to each and their probabilities, which are covered while they are asked for."""
    steps = torch.stack([logits, (logits - logits.max()).exp(), at_temperature(logits, 1)])
    matrix(
        cover(steps, slice(1, None)) if covered else steps,
        scale="signed",
        role="probability",
        digits=3,
        rows=[_("logit"), _("e to logit − largest"), _("probability")],
        columns=[str(at + 1) for at in range(len(logits))],
        key=f"{QUESTION} picture",
        label=_("logits, and the softmax of them"),
    )


# --- temperature ---


def draw_temperature(logits: Tensor, encoding: Encoding) -> None:
    temperature = st.slider(
        _("temperature"), 0.0, 3.0, 1.0, 0.05, key="vector_to_word-temperature", persist_state="session"
    )
    left, right = st.columns(2)
    found = at_temperature(logits, temperature)
    with left:
        st.caption(_("your logits"))
        bars(found, [f"{value:g}" for value in logits.tolist()], key="vector_to_word own", label=_("probabilities"))
        st.markdown(code_markdown(write_row(found)))
    with right:
        st.caption(_("what the model {model} puts next").format(model=MODEL))
        model = at_temperature(next_logits(MODEL, encoding.ids), temperature)
        top = model.topk(SHOWN)
        bars(top.values, pieces_of(top.indices.tolist()), key="vector_to_word model", label=_("probabilities"))
        st.caption(
            _("{rest:.1%} for the other {count} words").format(
                rest=1 - float(top.values.sum()), count=len(model) - SHOWN
            )
        )
    st.caption(
        _("Logits are divided by it before the softmax: below 1 the largest gains, above 1 the rest does, 0 is greedy.")
    )
    ask_temperature(logits)
    show_code(at_temperature, key="vector_to_word code", logits=logits, temperature=temperature)


def ask_temperature(logits: Tensor) -> None:
    """Asks which of two rows has the higher temperature, where they differ."""
    cold, hot = (at_temperature(logits, one) for one in (COLD, HOT))
    if torch.allclose(cold, hot, atol=TOLERANCE):
        return
    above = st.container()
    reason = _("The higher one makes shares more alike: the largest gets {cold:.3f} at {low:g}, {hot:.3f} at {high:g}.")
    question = _("A and B are softmaxes of your logits, at temperatures {low:g} and {high:g}. Which is at {high:g}?")
    choose(
        question.format(low=COLD, high=HOT),
        ["A", "B"],
        1,
        key=HEAT,
        why=lambda _said: reason.format(cold=float(cold.max()), low=COLD, hot=float(hot.max()), high=HOT),
    )
    ends = [f" (T = {one:g})" if is_answered(HEAT) else "" for one in (COLD, HOT)]
    with above:
        matrix(
            torch.stack([cold, hot]), rows=[f"A{ends[0]}", f"B{ends[1]}"], digits=3, role="probability",
            columns=[f"{value:g}" for value in logits.tolist()], key=f"{HEAT} picture", label=_("probabilities"),
        )  # fmt: skip


# --- unembedding ---


def draw_table(encoding: Encoding) -> None:
    found = unembed(MODEL, encoding.ids)
    top = found.logits.topk(SHOWN)
    names = name_apart(pieces_of(top.indices.tolist()))
    st.caption(
        _("x, the last vector, and the rows of the {count} likeliest words: a logit is their dot product.").format(
            count=VECTORS
        )
    )
    rows = [found.x, *(found.table[id] for id in top.indices.tolist()[:VECTORS])]
    for at, (row, name) in enumerate(zip(rows, ["x", *names], strict=False)):
        strip(row[None], rows=[name], key=f"vector_to_word vector {at}", label=_("vector, d_model"))
    model = next_logits(MODEL, encoding.ids)
    table = {
        _("word"): names,
        _("x · its row"): [f"{value:.4f}" for value in top.values.tolist()],
        _("logit of the model"): [f"{value:.4f}" for value in model[top.indices].tolist()],
    }
    st.dataframe(pd.DataFrame(table), hide_index=True, width="stretch")
    if found.tied:
        sentence = _(
            "Tied: this table of {rows} × {width} is the embedding too, so {saved:,} numbers are not stored again. "
            "It is transposed, not inverted."
        )
        st.caption(sentence.format(rows=len(found.table), width=len(found.x), saved=found.saved))
    show_code(unembed, key="vector_to_word code table", name=MODEL, ids=list(encoding.ids))


# --- sampling ---


def draw_sample(encoding: Encoding) -> None:
    places = st.columns([3, 3, 2, 3], vertical_alignment="center")
    with places[0]:
        temperature = st.slider(
            _("temperature"), 0.0, 3.0, 1.0, 0.05, key="vector_to_word-temperature", persist_state="session"
        )
    with places[1]:
        most = st.slider(_("maximum length"), 1, WRITTEN, 16, key="vector_to_word-most", persist_state="session")
    with places[2]:
        seed = st.number_input(_("seed"), 0, 999, 0, key="vector_to_word-seed", persist_state="session")
    with places[3]:
        ends = st.toggle(_("end token ends it"), value=True, key="vector_to_word-ends", persist_state="session")
    settings = {"temperature": float(temperature), "most": int(most), "seed": int(seed), "stop_at_end": ends}
    steps = sample(MODEL, encoding.text, **settings)
    st.code(steps[-1].text, language=None, wrap_lines=True)
    shares = [at_temperature(step.logits, float(temperature)) for step in steps]
    drawn = [float(share[step.id]) for share, step in zip(shares, steps, strict=True)]
    tokens(
        [step.piece for step in steps],
        shares[0].new_tensor(drawn),
        key="vector_to_word written",
        label=_("tokens written"),
        role="probability",
    )
    stopped = steps[-1].stopped
    st.caption(_("Each token is drawn, then read: a pass for every one, marked by the probability it was drawn with."))
    if stopped is not None and stopped.kind == "end":
        sentence = _("The end token {piece} was drawn as token {count}, like any other, and ends the text.")
        st.markdown(sentence.format(piece=escape_markdown(stopped.text), count=len(steps)))
    else:
        sentence = _n(
            "No end: the maximum length of {count} token cuts it off.",
            "No end: the maximum length of {count} tokens cuts it off.",
            len(steps),
        )
        st.markdown(sentence.format(count=len(steps)))
    show_code(sample_text, key="vector_to_word code sample", name=MODEL, text=encoding.text, **settings)


# --- beam search ---


def draw_beams(encoding: Encoding) -> None:
    left, middle, right = st.columns([2, 2, 3], vertical_alignment="center")
    with left:
        beams = st.slider(_("beams"), 1, WIDEST, 3, key="vector_to_word-beams", persist_state="session")
    steps = search(MODEL, encoding.text, int(beams), SEARCHED)
    with middle:
        if len(steps) > 1:
            at = st.slider(_("step"), 1, len(steps), 1, key=f"vector_to_word-step {len(steps)}") - 1
        else:
            at = 0
    fates = {"kept": _("goes on"), "ended": _("has ended"), "dropped": _("given up")}
    rows = [
        (as_line(one.text), *(numeral(x, ".3f") for x in (one.before, one.added, one.total)), fates[one.fate])
        for one in list_candidates(steps, at)
    ]
    columns = [_("candidates"), _("ln p so far"), _("+ ln p of the last"), _("= sum"), ""]
    st.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True, width="stretch", height=180)
    (greedy, *_others) = search(MODEL, encoding.text, 1, SEARCHED)[-1].best
    named = [(_("beam {place}").format(place=at + 1), one) for at, one in enumerate(steps[-1].best[:2])]
    compared = [(_("greedy"), greedy), *named]
    above = st.container()
    ask_added(*(measure(encoding, greedy, added) for added in (0.0, ADDED)))
    answered = is_answered(ADD)
    label = _("add 10 to every logit")
    more = answered and right.toggle(label, key="vector_to_word-added", persist_state="session")
    with above:
        draw_paths([(name, one, measure(encoding, one, ADDED if more else 0.0)) for name, one in compared], answered)
    if answered:
        found = [search(MODEL, encoding.text, width, SEARCHED)[-1].best[0] for width in range(1, WIDEST + 1)]
        sums = numerals([one.log_probability for one in found], ".3f")
        st.caption(_("The best sum of ln p with 1, 2, … beams: {sums}.").format(sums=sums))
    show_code(
        search_beams, key="vector_to_word code beams", name=MODEL, text=encoding.text, beams=int(beams), tokens=SEARCHED
    )


def as_line(text: str) -> str:
    return " ".join(text.split())


def measure(encoding: Encoding, one: Hypothesis, added: float) -> Path:
    return measure_path(MODEL, list(one.prompt.ids), list(one.ids), added)


def measure_names() -> list[str]:
    return [_("sum of ln p"), _("p of the text"), _("logits multiplied")]


def ask_added(before: Path, after: Path) -> None:
    reason = _(
        "The logits of the first text multiply to {before:.3g}, and then to {after:.3g}. The other two stay: the "
        "softmax takes away what all logits share."
    )
    choose(
        _("10 is added to every logit of every word. Which of the last three columns changes?"),
        measure_names(),
        2,
        key=ADD,
        why=lambda _said: reason.format(before=before.product, after=after.product),
    )


def draw_paths(paths: list[tuple[str, Hypothesis, Path]], answered: bool) -> None:
    total, probability, product = measure_names()
    table = {
        "": [name for name, _one, _path in paths],
        _("text"): [as_line(one.text) for _name, one, _path in paths],
        total: [f"{path.total:.3f}" for _name, _one, path in paths],
        probability: [f"{path.probability:.2g}" for _name, _one, path in paths],
        product: [f"{path.product:.3g}" for _name, _one, path in paths],
    }
    st.dataframe(pd.DataFrame(table), hide_index=True, width="stretch")
    if not answered:
        return
    st.caption(
        _(
            "Adding ln p multiplies probabilities. Multiplied logits are no measure: add 10 to every logit, and no "
            "probability changes, but the products do."
        )
    )


# --- two words after two contexts ---


def draw_pair() -> None:
    checkpoint, fields = library.checkpoint(EVERYDAY), st.columns(4)
    labels = (_("a context"), _("another context")), (_("a word"), _("another word"))
    contexts, words = list[str](), list[str]()
    for at in range(2):
        with fields[at]:
            read = read_field(
                f"vector_to_word-context-{at}",
                labels[0][at],
                CONTEXTS[at],
                lambda said: read_short_text(checkpoint, said, MOST),
            )
            contexts.append(read.text)
        with fields[2 + at]:
            key = f"vector_to_word-word-{at}"
            words.append(read_field(key, labels[1][at], WORDS[at], read_words(LONGEST)))
    found = compare_continuations(EVERYDAY, contexts, words)
    ask_pair(contexts[0], words, found[0])
    if is_answered(PAIR):
        draw_differences(contexts, words, found)
    show_code(compare_continuations, key="vector_to_word code pair", name=EVERYDAY, contexts=contexts, words=words)


def ask_pair(context: str, words: list[str], found: Tensor) -> None:
    difference = float(found[0] - found[1])
    reason = _("ln p: “{word}” {first:.2f}, “{other}” {second:.2f}.").format(
        word=words[0], first=float(found[0]), other=words[1], second=float(found[1])
    )

    def why(said: float) -> str:
        turned = abs(said + difference) <= NATS < abs(said - difference)
        mistake = _("That is the other way round: below 0 the second is the likelier.") if turned else ""
        return join_sentences(mistake, reason, say_times(difference))

    question = _(
        "By how many nats is “{word}” likelier after “{context}” than “{other}”: ln p of the one less ln p of the "
        "other? Below 0 where it is less likely."
    )
    asked = question.format(word=words[0], other=words[1], context=context)
    estimate(asked, difference, NATS, key=PAIR, unit="nats", why=why)


def say_times(nats: float) -> str:
    if abs(nats) > MOST_NATS:
        return ""
    sentence = _("e to {nats:.2f} is {times:.3g}: so many times as likely is the likelier of the two.")
    return sentence.format(nats=abs(nats), times=math.exp(abs(nats)))


def draw_differences(contexts: list[str], words: list[str], found: Tensor) -> None:
    across, down = (found[:, 0] - found[:, 1]).tolist(), (found[0] - found[1]).tolist()
    both = across[0] - across[1]
    less = _("first less second")
    rows = [*zip(contexts, *found.T.tolist(), across, strict=True), (less, *down, both)]
    columns = [_("after"), *(f"ln p, {word}" for word in name_apart(words)), less]
    table = [(name, *(numeral(value, "+.2f" if name == less else ".2f") for value in rest)) for name, *rest in rows]
    st.dataframe(pd.DataFrame(table, columns=columns), hide_index=True, width="stretch")
    for context, nats in zip(contexts, across, strict=True):
        likelier, other = words if nats > 0 else words[::-1]
        sentence = _("After “{context}”, “{word}” is likelier than “{other}”, by {nats:.1f} nats.")
        if abs(nats) < EQUAL:
            sentence = _("After “{context}”, “{word}” and “{other}” are as likely.")
        st.caption(sentence.format(context=context, word=likelier, other=other, nats=abs(nats)))
    for word, nats in zip(words, down, strict=True):
        likelier, other = contexts if nats > 0 else contexts[::-1]
        sentence = _(
            "The other way round, “{word}” is likelier after “{context}” than after “{other}”, by {nats:.1f} nats."
        )
        if abs(nats) < EQUAL:
            sentence = _("The other way round, “{word}” is as likely after “{context}” as after “{other}”.")
        st.caption(sentence.format(context=likelier, word=word, other=other, nats=abs(nats)))
    sentence = _(
        "Either way, the two differences differ by the same {nats:.1f} nats: so much the words and the contexts have "
        "to do with each other, however frequent each is."
    )
    st.caption(sentence.format(nats=abs(both)))
