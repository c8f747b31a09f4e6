"""The family: one block with switches, where the parameters are, and tasks as heads and as sentences."""

import re
from collections.abc import Callable, Mapping, Sequence

import altair as alt
import pandas as pd
import streamlit as st
import torch

from engine.analysis.sizes import Formula, count, envelope
from engine.analysis.sizes.envelope import Step
from engine.analysis.switches import SWITCHES, differing_switches, option_label
from engine.course.family import (
    FAMILY,
    calibrate,
    count_by_group,
    head_parameters,
    rank_continuations,
    relatives,
    resize,
)
from engine.inputs.readers import tokens
from engine.model.config import ModelConfig
from engine.model.presets import NAMED
from engine.runtime import library
from pages.controls.figures import cover, matrix
from pages.controls.learn.fields import LONGEST, READ_LAST, choose_view, other_input, read_field, read_words
from pages.controls.learn.predict import choose, is_answered, is_found, point, show_code
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.markdown import escape_markdown
from views.core.theme import Shade

READER = "everyday"  # the model that goes on with sentences
SHOWN = ("stacks", "input", "mask", "positions", "norm", "place", "activation", "biases", "head")
OPTIONS, MOST_ANSWERS = 4, 8
OTHER = "t5-base"  # another of which the largest part is another
QUESTION, LARGEST, NEAREST = (f"family {part}question" for part in ("", "largest ", "nearest "))
MOST_TEXT, MOST_SENTENCE, MOST_ANSWER = 100, 40, 40  # tokens
DEEPEST, WIDEST = 200, 20_000


def titles() -> dict[str, str]:
    """The members in the reader's words; their names are their own."""
    return {
        "bert-base": "BERT base", "gpt": "GPT", "gpt2": "GPT-2", "gpt3-175b": "GPT-3 175B", "t5-base": "T5 base",
        "glm-large": "GLM large", "vit-b-16": "ViT-B/16", "imagegpt-s": "ImageGPT S",
    }  # fmt: skip


def part_names() -> dict[str, str]:
    return {
        "estimate": _("estimate"), "W_O": "W_O", "widths of the heads": _("widths of the heads"),
        "cross-attention": _("cross-attention"), "width of the MLP": _("width of the MLP"),
        "patches and [CLS]": _("patches and [CLS]"), "map of the tokens": _("map of the tokens"),
        "positions": _("positions"), "relative positions": _("relative positions"), "segments": _("segments"),
        "biases": _("biases"), "norms": _("norms"), "pooler": _("pooler"), "next sentence": _("next sentence"),
        "head": _("head"), "input": _("tokens, positions, segments"), "MLP": _("MLP"),
        "queries, keys, values": _("queries, keys, values"), "pooler and head": _("pooler and head"),
    }  # fmt: skip


def experiment() -> bool:
    above = st.container()
    name, config = choose_model()
    estimate, *rest = envelope(config)
    largest = sorted(rest, key=lambda step: step.count, reverse=True)[:OPTIONS]
    steps = [estimate, *sorted(largest, key=lambda step: step.name)]
    shown = ask(name, config, steps)
    with above:
        draw_missing(steps, covered=not (shown and is_answered(QUESTION)))
    if not shown:
        return False
    views = {"parts": _("parts"), "estimate": _("estimate"), "switches": _("switches"), "tasks": _("tasks")}
    view = choose_view("family-view", views)
    if view == "parts":
        draw_parts(config)
    elif view == "estimate":
        draw_estimate(config)
    elif view == "switches":
        draw_switches(name)
    else:
        draw_tasks(name, config)
    return is_found(QUESTION)


def choose_model() -> tuple[str, ModelConfig]:
    """A member of the family, as deep and as wide as the reader wants it."""
    said = titles()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(
            _("model"), FAMILY, key="family-model", format_func=said.__getitem__, width=160, persist_state="session"
        )
        own = NAMED[name].config
        layers = st.number_input(_("layers"), 1, DEEPEST, own.layers, key=f"family-layers {name}", width=130)
        width = st.number_input(_("width, d"), 1, WIDEST, own.d_model, key=f"family-width {name}", width=150)
    widths = READ_LAST.get()
    try:
        config = resize(own, int(layers), int(width))
    except ValueError:
        heads = own.attention.heads
        sentence = _("Expected a width that {heads} heads divide, got {width}; try {near}.")
        near = max(1, round(width / heads)) * heads
        st.caption(f":red[:material/error:] {sentence.format(heads=heads, width=width, near=near)}")
        return name, resize(own, int(layers), widths.get(f"family-width {name}", own.d_model))
    widths[f"family-width {name}"] = int(width)
    return name, config


def ask(name: str, config: ModelConfig, steps: Sequence[Step]) -> bool:
    """Asks for the largest of the steps but the first, which is the estimate."""
    names, said = part_names(), _("{part} {count}")
    largest = sorted(range(1, len(steps)), key=lambda at: steps[at].count, reverse=True)
    counts = ", ".join(said.format(part=names[steps[at].name], count=numeral(steps[at].count, ",")) for at in largest)
    reason = _("What it leaves out: {counts}.").format(counts=counts)

    def why(place: tuple[int, int]) -> str:
        return reason if place[0] else join_sentences(_("That is the estimate itself."), reason)

    question = _(
        "{model} has {total} parameters. Queries, keys, values, an MLP of width 4d and the table of tokens are about "
        "{estimate} of them. Click the largest part of the rest."
    ).format(model=titles()[name], total=numeral(count(config), ","), estimate=millions(steps[0].count))
    return point(
        question,
        (len(steps), 1),
        [(largest[0], 0)],
        key=QUESTION,
        why=why,
        name=lambda place: names[steps[place[0]].name],
        again=other_input("family-model", (FAMILY[0], OTHER)),
    )


def draw_missing(steps: Sequence[Step], covered: bool) -> None:
    """The estimate and the parts that it leaves out, which are covered while the largest is asked for."""
    names = part_names()
    counts = torch.tensor([[step.count / 1e6] for step in steps])
    matrix(
        cover(counts, slice(1, None)) if covered else counts, rows=[names[step.name] for step in steps],
        columns=[_("million")], digits=2, scale="signed", role="residual", key=f"{QUESTION} picture",
        label=_("parameters, million"),
    )  # fmt: skip


def millions(number: int) -> str:
    return _("{count} million").format(count=f"{number / 1e6:,.0f}")


# --- parameters ---


def draw_parts(config: ModelConfig) -> None:
    names, groups = part_names(), count_by_group(config)
    whole, above = count(config), st.container()
    ask_largest(groups)
    answered = is_answered(LARGEST)
    rows = [
        (
            names[group],
            formula.text,
            formula.text_numbers,
            numeral(formula.value, ","),
            numeral(formula.value / whole, ".1%"),
        )
        for group, formula in groups.items()
    ]
    if not answered:
        rows = [(part, formula, "?", "?", "?") for part, formula, *_numbers in rows]
    with above:
        draw_table(rows, (_("part"), _("formula"), _("in numbers"), _("parameters"), _("share")))
    st.markdown(_("Together exactly **{total}**.").format(total=f"{whole:,}"))
    show_code(count_by_group, key="family code parts", config=config)


def ask_largest(groups: Mapping[str, Formula]) -> None:
    names, order = part_names(), sorted(groups, key=lambda group: groups[group].value, reverse=True)
    first, second = order[:2]
    reason = _("{first} has {most}, {second} follows with {next}.").format(
        first=names[first],
        second=names[second],
        most=numeral(groups[first].value, ","),
        next=numeral(groups[second].value, ","),
    )
    choose(
        _("The numbers are covered. Which part of the whole model has the most?"),
        [names[group] for group in groups],
        list(groups).index(first),
        key=LARGEST,
        why=lambda _said: reason,
    )


def draw_estimate(config: ModelConfig) -> None:
    names, running, rows = part_names(), 0, []
    for step in envelope(config):
        running += step.count
        rows.append((names[step.name], step.formula.text, numeral(step.count, "+,"), numeral(running, ",")))
    draw_table(rows, (_("part"), _("formula"), _("parameters"), _("so far")))
    missing = 1 - envelope(config)[0].count / count(config)
    st.caption(_("The estimate misses {share:.1%} of the model.").format(share=missing))
    show_code(envelope, key="family code estimate", config=config)


def draw_table(rows: Sequence[tuple[str, ...]], columns: tuple[str, ...]) -> None:
    st.dataframe(pd.DataFrame(rows, columns=list(columns)), hide_index=True, width="stretch")


# --- switches ---


def switch_titles() -> dict[str, str]:
    return {
        "stacks": _("stacks"), "input": _("reads"), "mask": _("mask"), "positions": _("positions"), "norm": _("norm"),
        "place": _("norm stands"), "activation": _("activation"), "biases": _("biases"), "head": _("head"),
    }  # fmt: skip


def draw_switches(name: str) -> None:
    named, said = switch_titles(), titles()
    shown = [switch for switch in SWITCHES if switch.name in SHOWN]
    order = [name, *(other for _count, other in relatives(name))]
    rows = [{named[one.name]: option_label(one.get(NAMED[other].config)) for one in shown} for other in order]
    st.dataframe(pd.DataFrame(rows, index=[said[other] for other in order]), width="stretch", height=320)
    if not ask_nearest(name):
        return
    apart, nearest = relatives(name)[0]
    sentence = _("Nearest to {model}: {other}. Switches that differ: {apart} of {all}.")
    st.markdown(sentence.format(model=said[name], other=said[nearest], apart=apart, all=len(SWITCHES)))
    if not apart and "gpt3-175b" in (name, nearest):
        sentence = _(
            "Beside their sizes one thing that no switch shows sets the two apart: every other layer of the released "
            "GPT-3 sees only a band of the text, of unpublished width. Here all its layers are dense."
        )
        st.caption(sentence)
    elif not apart:
        st.caption(_("The two differ in their sizes alone."))
    show_code(differing_switches, key="family code switches", one=NAMED[name].config, other=NAMED[nearest].config)


def ask_nearest(name: str) -> bool:
    """Asks for the nearest member, among it and the two farthest."""
    said, found = titles(), relatives(name)
    options = sorted([found[0], *found[-2:]], key=lambda one: said[one[1]])
    reason = _("Switches that differ, of all {all}: {counts}.").format(
        all=len(SWITCHES), counts=", ".join(f"{said[other]} {apart}" for apart, other in options)
    )
    return choose(
        _("Count in the columns: which of these differs from {model} in the fewest switches?").format(model=said[name]),
        [said[other] for _apart, other in options],
        options.index(found[0]),
        key=NEAREST,
        why=lambda _said: reason,
    )


# --- tasks ---


def draw_tasks(name: str, config: ModelConfig) -> None:
    tasks = {"answer": _("question answering"), "short": _("summarization"), "zero": _("zero-shot")}
    task = str(
        st.segmented_control(
            _("task"), list(tasks), default="answer", key="family-task", required=True, format_func=tasks.__getitem__,
            label_visibility="collapsed", persist_state="session",
        )
    )  # fmt: skip
    st.caption(escape_markdown(say_head(task, name, config)))
    texts = {
        "answer": "Max gave the red ball to Anna.",
        "short": "Tom lost his dog in the park. He looked for it all day. At night the dog came home.",
        "zero": "Mia fell and hurt her knee.",
    }
    sentences = {"answer": "The one who has the ball is", "short": "In short:", "zero": "She was very"}
    left, right = st.columns([3, 2])
    with left:
        text = read_field(f"family-text {task}", _("text"), texts[task], read_most(MOST_TEXT))
    with right:
        sentence = read_field(
            f"family-sentence {task}", _("sentence to go on with"), sentences[task], read_most(MOST_SENTENCE)
        )
    if task == "short":
        candidates = split_sentences(text)
        if len(candidates) < 2:
            st.caption(_("A text of one sentence is its own summary; add another."))
            return
    else:
        usual = "Max, Anna" if task == "answer" else "happy, sad"
        candidates = read_field(f"family-answers {task}", _("answers, with commas"), usual, read_answers)
    draw_choice(text, sentence, candidates)


def say_head(task: str, name: str, config: ModelConfig) -> str:
    """Sentence on how the chosen model would do a task with a head, and with a prompt."""
    model, added = titles()[name], head_parameters(config, 2)
    if reads_pictures(name):
        sentence = _(
            "{model} reads pictures and no text: it answers no question and writes no summary. A head over two classes "
            "of pictures is 2 (d + 1) = {added} parameters more, trained. Below, the model {reader} reads the text."
        )
        return sentence.format(model=model, added=numeral(added, ","), reader=READER)
    if task == "short":
        if config.attention.mask == "full":
            return _("{model} writes nothing: a summary needs a decoder, as T5 has, or a causal mask.").format(
                model=model
            )
        return _("{model} can write: what is after the text and “In short:” is its summary.").format(model=model)
    if task == "answer":
        sentence = _(
            "As a head on {model}: at each token, does the answer start or end here? 2 (d + 1) = {added} parameters "
            "more, trained. As a prompt: a sentence to go on with, nothing trained."
        )
    else:
        sentence = _(
            "As a head on {model}: 2 classes are 2 (d + 1) = {added} parameters more, trained. As a prompt: a sentence "
            "to go on with, nothing trained."
        )
    return sentence.format(model=model, added=numeral(added, ","))


def reads_pictures(name: str) -> bool:
    """Tells whether a member reads patches, or the colours of pixels as its tokens."""
    return NAMED[name].config.embedding.patches is not None or name.startswith("imagegpt")


def read_most(most: int) -> Callable[[str], str]:
    """A text of 1 to `most` tokens of the reader's model."""

    def read(said: str) -> str:
        text = read_words(LONGEST)(said)
        count = len(tokens(library.checkpoint(READER), text).ids)
        if count > most:
            raise ValueError(
                _("Expected at most {most} tokens, and this text has {count}; change it.").format(
                    most=most, count=count
                )
            )
        return text

    return read


def read_answers(said: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(part.strip() for part in said.split(",") if part.strip()))
    if not 2 <= len(found) <= MOST_ANSWERS:
        raise ValueError(_("Expected 2 to {most} answers, with commas between them.").format(most=MOST_ANSWERS))
    return tuple(map(read_most(MOST_ANSWER), found))


def split_sentences(text: str) -> tuple[str, ...]:
    found = dict.fromkeys(part.strip() for part in re.split(r"(?<=[.!?。])\s*", text) if part.strip())
    return tuple(one for one in found if len(one) < LONGEST)[:MOST_ANSWERS]


def draw_choice(text: str, sentence: str, candidates: tuple[str, ...]) -> None:
    checkpoint = library.checkpoint(READER)
    with_text = rank_continuations(checkpoint, f"{text} {sentence}", candidates)
    without = rank_continuations(checkpoint, sentence, candidates)
    added = calibrate(with_text, without)
    named = {_("after the text"): with_text, _("sentence alone"): without, _("what the text adds"): added}
    table = pd.concat(
        pd.DataFrame({"answer": candidates, "share": shares.tolist(), "of": label}) for label, shares in named.items()
    )

    def chart(shade: Shade) -> alt.Chart:
        ink = colors(shade)
        return (
            alt.Chart(table)
            .mark_bar()
            .encode(
                alt.X("share:Q", title=_("share"), scale=alt.Scale(domain=[0, 1])),
                alt.Y("answer:N", title=None, sort=None),
                alt.YOffset("of:N", sort=list(named)),
                alt.Color(
                    "of:N",
                    title=None,
                    sort=list(named),
                    legend=alt.Legend(orient="top"),
                    scale=alt.Scale(range=[ink["probability"], ink["residual"], ink["attention"]]),
                ),
            )
            .properties(height=110 + max(80, 45 * len(candidates)))
        )

    show_altair(chart, key="family choice")
    best, raw = candidates[int(added.argmax())], candidates[int(with_text.argmax())]
    if best == raw:
        said = _("The model {model} chooses “{raw}”, and still does with what it would say anyway taken out.")
    else:
        said = _("The model {model} chooses “{raw}”; with what it would say anyway taken out, “{best}”.")
    st.markdown(said.format(model=READER, raw=escape_markdown(raw), best=escape_markdown(best)))
    show_code(
        rank_continuations,
        key="family code tasks",
        checkpoint=checkpoint,
        prompt=f"{text} {sentence}",
        candidates=candidates,
    )
