"""Adapting: LoRA opened up, L2 + lambda L1, a separator, and a reward that is optimised too far."""

from functools import lru_cache, partial
from typing import LiteralString

import altair as alt
import pandas as pd
import streamlit as st

from engine.course.adapting import (
    Losses,
    LowRankChange,
    PromptAnswer,
    answer_prompt,
    continue_text,
    count_lora,
    fine_tune,
    merge_gap,
    open_lora,
    recorded_answers,
    recorded_reward,
)
from engine.generation.few_shot import instructions
from engine.inputs.readers import tokens as read_tokens
from engine.model.layers.lora import Adapter
from engine.runtime import library
from engine.training.policy.rules.happy_words import happy_words
from pages.controls.figures import strip, tokens
from pages.controls.learn.fields import (
    LONGEST,
    caption_known_texts,
    choose_view,
    other_input,
    read_field,
    read_short_text,
    read_words,
)
from pages.controls.learn.predict import choose, is_answered, is_found, show_code
from pages.controls.words import join_sentences, numeral, numerals
from pages.controls.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.markdown import escape_markdown
from views.core.theme import Shade

MODEL, CLASSIFIED, INSTRUCTED = "everyday", "stories", "instruct"
ADAPT = "pages/train/adapt.py"
MATRICES = "blocks.0.mlp.pre", "blocks.0.attn.q"
PROMPT = "Once upon a time"
STORY = "Finn loved his kite very much. A dog ran off with the kite. The dog chewed the kite to pieces."
WATCHED = "Max gave the red ball to Anna. She was very happy."
SENTENCE = "Le chat dort."
ENDING = "Anna was happy. They hugged and laughed."
MOST, MOST_STORY, MOST_SENTENCE, WRITTEN = 60, 60, 22, 24  # tokens
STEPS = 5
RUNS = ("ppo-free", "ppo")
GAP, SIDE = 0.1, 220  # between the rectangles, as a share of the longest side; pixels of that
ALIKE = 0.05  # a change of a share that is none
QUESTION, SEPARATOR, REWARD = (f"adapting {part}question" for part in ("", "separator ", "reward "))


def experiment() -> bool:
    above = st.container()
    adapter, name = choose_matrix()
    found = open_lora(library.checkpoint(MODEL), adapter, name)
    shown = ask(found)
    with above:
        covered = not (shown and is_answered(QUESTION))
        show_altair(partial(draw_sizes, found, covered), key=f"{QUESTION} picture", width="content")
    if not shown:
        return False
    views = {
        "matrices": _("two thin matrices"),
        "text": _("before and after"),
        "loss": _("L2 + λ L1"),
        "separator": _("separators"),
        "reward": _("a reward"),
    }
    view = choose_view("adapting-view", views)
    if view == "matrices":
        draw_matrices(adapter, name)
    elif view == "text":
        draw_text(adapter)
    elif view == "loss":
        draw_loss()
    elif view == "separator":
        draw_separator()
    else:
        draw_reward()
    return is_found(QUESTION)


def choose_matrix() -> tuple[Adapter, str]:
    """An adapter that is shipped, and one of the matrices that it changes."""
    adapters = {one.name: one for one in library.adapters_for(MODEL) if one.name.startswith("style-")}
    usual = "style-pirate"
    with st.container(horizontal=True):
        called = st.selectbox(
            _("adapter of {model}").format(model=MODEL),
            list(adapters),
            list(adapters).index(usual),
            key="adapting-adapter",
            width=180,
            persist_state="session",
        )
        adapter = adapters[called]
        changed = changed_matrices(adapter.key, called)
        name = st.selectbox(
            _("matrix"),
            changed,
            changed.index(MATRICES[0]),
            key="adapting-matrix",
            width=200,
            persist_state="session",
        )
    return adapter, name


@lru_cache(maxsize=16)
def changed_matrices(_key: str, called: str) -> list[str]:
    checkpoint = library.checkpoint(MODEL)
    adapter = next(one for one in library.adapters_for(MODEL) if one.name == called)
    return [name for name in adapter.matrices if open_lora(checkpoint, adapter, name).used]


def ask(found: LowRankChange) -> bool:
    (out, into), rank = found.w.shape, found.used
    answer = rank * (out + into)
    options = sorted({answer, out * into, rank * into, rank * rank, out + into})
    reason = _("A is {r} × {into} and B is {out} × {r}: {first} + {second} numbers, in place of {whole}.").format(
        r=rank,
        into=into,
        out=out,
        first=numeral(rank * into, ","),
        second=numeral(out * rank, ","),
        whole=numeral(out * into, ","),
    )
    mistakes = {
        out * into: _("That is W itself, which stays as it is."),
        rank * into: _("That is A alone."),
        rank * rank: _("A and B have one short side each, and one as long as a side of W."),
        out + into: _("That is so at rank 1."),
    }

    def why(said: int) -> str:
        return reason if options[said] == answer else join_sentences(mistakes[options[said]], reason)

    question = _("W is {out} × {into}. LoRA of rank {r} leaves W as it is. How many numbers does it train for it?")
    return choose(
        question.format(out=out, into=into, r=rank),
        [numeral(one, ",") for one in options],
        options.index(answer),
        key=QUESTION,
        why=why,
        again=other_input("adapting-matrix", MATRICES),
    )


def draw_sizes(found: LowRankChange, covered: bool, shade: Shade) -> alt.Chart:
    """W, and A above and B beside it, to scale; how many numbers the two have is covered while it is asked for."""
    (out, into), rank, ink = found.w.shape, found.used, colors(shade)
    longest = max(out, into)
    gap, sizes = GAP * longest, {"W": (out, into), "A": (rank, into), "B": (out, rank)}
    left, top = {"W": gap, "A": gap, "B": 0}, {"W": gap, "A": 0, "B": gap}
    rows = []
    for name, (high, wide) in sizes.items():
        count = "?" if covered and name != "W" else numeral(high * wide, ",")
        label = f"{name}: {high} × {wide} = {count}"
        rows.append((label, left[name], left[name] + wide, top[name], top[name] + high))
    table = pd.DataFrame(rows, columns=["label", "left", "right", "top", "bottom"])
    labels = table["label"].tolist()
    across, down = (alt.Scale(domain=domain, nice=False) for domain in ([0, longest + gap], [longest + gap, 0]))
    inks = alt.Scale(domain=labels, range=[ink["residual"], ink["key"], ink["value"]])
    legend = alt.Legend(orient="bottom", columns=1, labelLimit=SIDE)
    shown = alt.Chart(table).encode(
        alt.X("left:Q", scale=across, axis=None),
        alt.X2("right:Q"),
        alt.Y("top:Q", scale=down, axis=None),
        alt.Y2("bottom:Q"),
        alt.Color("label:N", title=None, sort=labels, scale=inks, legend=legend),
    )
    return shown.mark_rect().properties(width=SIDE, height=SIDE)


def link(label: LiteralString, **address: str) -> None:
    st.page_link(ADAPT, label=label, icon=":material/tune:", query_params=address)


# --- LoRA ---


def draw_matrices(adapter: Adapter, name: str) -> None:
    checkpoint = library.checkpoint(MODEL)
    found = open_lora(checkpoint, adapter, name)
    a, b = found.thin
    strip(a, key="adapting a", role="key", label="A")
    st.caption(_("A, {r} × {into}: a row is what it looks for in the input").format(r=len(a), into=a.shape[1]))
    strip(b.T, key="adapting b", role="value", label="B")
    st.caption(_("B transposed, {r} × {out}: a row is what it adds to the output").format(out=len(b), r=len(a)))
    counted = count_lora(checkpoint, adapter)
    sentence = _(
        "W + {scale:g} · B A. The product has {size} numbers and rank {rank}; A and B have {few}, {share:.1%} of them."
    )
    few = len(a) * sum(found.w.shape)
    st.markdown(
        sentence.format(
            scale=found.scale,
            size=numeral(found.w.numel(), ","),
            rank=found.rank,
            few=numeral(few, ","),
            share=few / found.w.numel(),
        )
    )
    whole = _("The whole adapter: {few} numbers for {matrices} in the matrices it changes, of {all} in the model.")
    own, matrices, all_of_it = (numeral(one, ",") for one in (counted.adapter, counted.matrices, counted.model))
    st.caption(whole.format(few=own, matrices=matrices, all=all_of_it))
    values = numerals(found.singular[: len(found.a) + 1].tolist(), ".2g")
    st.caption(_("Singular values of the product: {values}. Those near 0 are rounding.").format(values=values))
    with st.container(horizontal=True, vertical_alignment="center"):
        link(_("Train a LoRA adapter"), adapt=adapter.name)
        show_code(open_lora, key="adapting code matrices", checkpoint=checkpoint, adapter=adapter, name=name)


@lru_cache(maxsize=256)
def write_continuation(key: str, called: str, prompt: str, strength: float) -> str:
    """`key` is that of the adapter, of which `called` is the name."""
    adapter = next(one for one in library.adapters_for(MODEL) if one.name == called and one.key == key)
    return continue_text(library.checkpoint(MODEL), prompt, adapter, strength, WRITTEN)


@lru_cache(maxsize=64)
def gap(key: str, called: str, prompt: str, strength: float) -> float:
    adapter = next(one for one in library.adapters_for(MODEL) if one.name == called and one.key == key)
    checkpoint = library.checkpoint(MODEL)
    return merge_gap(checkpoint, read_tokens(checkpoint, prompt), adapter, strength)


def draw_text(adapter: Adapter) -> None:
    checkpoint = library.checkpoint(MODEL)
    encoding = read_field(
        "adapting-prompt", _("beginning of a text"), PROMPT, lambda said: read_short_text(checkpoint, said, MOST)
    )
    prompt = encoding.text
    strength = st.slider(_("strength"), 0.0, 2.0, 1.0, 0.1, key="adapting-strength", persist_state="session")
    told = {_("before"): 0.0, _("with {name}").format(name=escape_markdown(adapter.name)): float(strength)}
    for place, (title, value) in zip(st.columns(2), told.items(), strict=True):
        with place:
            st.caption(title)
            st.text(write_continuation(adapter.key, adapter.name, prompt, value))
    off = gap(adapter.key, adapter.name, prompt, float(strength))
    sentence = _("Added beside W or merged into it, W + {strength:g} (α/r) B A: logits differ by at most {gap:.0e}.")
    st.caption(sentence.format(strength=strength, gap=off))
    with st.container(horizontal=True, vertical_alignment="center"):
        link(_("Train a LoRA adapter"), adapt=adapter.name)
        show_code(
            continue_text, key="adapting code text", checkpoint=checkpoint, prompt=prompt, adapter=adapter,
            strength=float(strength), most=WRITTEN,
        )  # fmt: skip


# --- L2 + lambda L1 ---


@lru_cache(maxsize=64)
def run_fine_tuning(ids: tuple[int, ...], label: int, weight: float) -> list[tuple[Losses, float]]:
    watched = read_tokens(library.checkpoint(CLASSIFIED), WATCHED).ids
    return fine_tune(CLASSIFIED, ids, label, weight, STEPS, watched)


def draw_loss() -> None:
    checkpoint = library.checkpoint(CLASSIFIED)
    encoding = read_field(
        "adapting-story", _("text"), STORY, lambda said: read_short_text(checkpoint, said, MOST_STORY)
    )
    caption_known_texts(CLASSIFIED, STORY)
    labels = {0: _("ends badly"), 1: _("ends well")}
    left, right = st.columns(2)
    with left:
        label = st.segmented_control(
            _("label"), list(labels), default=0, key="adapting-label", required=True, format_func=labels.__getitem__,
            persist_state="session",
        )  # fmt: skip
    with right:
        weight = st.slider("λ", 0.0, 2.0, 0.5, 0.1, key="adapting-weight", persist_state="session")
    found = run_fine_tuning(tuple(encoding.ids), int(label), float(weight))
    names = {
        "label": _("L2: the label"),
        "text": _("L1: the text’s next tokens"),
        "apart": _("next tokens of another text"),
    }
    rows = [
        (step, names[which], value)
        for step, (losses, apart) in enumerate(found)
        for which, value in (("label", losses.label), ("text", losses.language), ("apart", apart))
    ]
    table = pd.DataFrame(rows, columns=["step", "of", "loss"])
    show_altair(partial(draw_losses, table, list(names.values())), key="adapting losses")
    (before, apart), (after, later) = found[0], found[-1]
    sentence = _(
        "After {steps} steps: L2 {l2:.2f} → {l2_after:.2f}, L1 {l1:.2f} → {l1_after:.2f}, L2 + λ L1 {sum:.2f} → "
        "{sum_after:.2f}; another text {other:.2f} → {other_after:.2f}."
    )
    st.markdown(
        sentence.format(
            steps=STEPS, l2=before.label, l2_after=after.label, l1=before.language, l1_after=after.language,
            sum=before.total, sum_after=after.total, other=apart, other_after=later,
        )
    )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center"):
        link(_("Fine-tune a model"), adapt="supervised", way="Fine-tune")
        show_code(
            fine_tune, key="adapting code loss", name=CLASSIFIED, ids=list(encoding.ids), label=int(label),
            weight=float(weight), steps=STEPS, watched=list(read_tokens(checkpoint, WATCHED).ids),
        )  # fmt: skip


def draw_losses(table: pd.DataFrame, names: list[str], shade: Shade) -> alt.Chart:
    ink = colors(shade)
    return (
        alt.Chart(table)
        .mark_line(point=True)
        .encode(
            alt.X("step:O", title=_("step")),
            alt.Y("loss:Q", title=_("nats")),
            alt.Color(
                "of:N",
                title=None,
                sort=names,
                legend=alt.Legend(orient="top", columns=1),
                scale=alt.Scale(domain=names, range=[ink["probability"], ink["attention"], ink["residual"]]),
            ),
        )
        .properties(height=270)
    )


# --- separators ---


@lru_cache(maxsize=128)
def compute_answer(text: str, separator: str) -> PromptAnswer:
    return answer_prompt(library.checkpoint(INSTRUCTED), text, separator)


def read_sentence(said: str) -> str:
    text = read_words(LONGEST)(said)
    count = len(read_tokens(library.checkpoint(INSTRUCTED), text).ids)
    if count > MOST_SENTENCE:
        sentence = _("Expected at most {most} tokens, and this text has {count}; change it.")
        raise ValueError(sentence.format(most=MOST_SENTENCE, count=count))
    return text


def draw_separator() -> None:
    checkpoint = library.checkpoint(INSTRUCTED)
    label = _("a sentence, English or French, or a line of Python")
    text = read_field("adapting-sentence", label, SENTENCE, read_sentence)
    separators, above = instructions(checkpoint), st.container()
    covered = not ask_separator({separator: compute_answer(text, separator).written for separator in separators})
    with above:
        for separator in (*separators, ""):
            found = compute_answer(text, separator)
            title = _("{separator}, token {id}").format(separator=separator, id=found.separator)
            named = "?" if covered else f"`{title}`"
            st.caption(named if separator else _("without a separator"))
            shown = ["?" if covered and piece == separator else piece.replace(" ", "·") for piece in found.pieces]
            tokens(shown, key=f"adapting prompt {separator}")
            nothing = _("(it writes nothing)")
            st.text(f"→ {found.written or nothing}")
    if covered:
        return
    sentence = _(
        "All that tells the tasks apart is one token, a row of {width} numbers in the embedding, learned with the rest."
    )
    st.caption(sentence.format(width=checkpoint.config.d_model))
    with st.container(horizontal=True, vertical_alignment="center"):
        link(_("Fine-tune a model"), way="Fine-tune")
        show_code(
            answer_prompt,
            key="adapting code separator",
            checkpoint=checkpoint,
            text=text,
            separator=instructions(checkpoint)[0],
        )


def ask_separator(written: dict[str, str]) -> bool:
    """Asks before which text a separator stands; where no text is written by one of them alone, nothing is asked.
    Tells whether they may be seen."""
    texts = list(written.values())
    alone = [separator for separator, text in written.items() if text and texts.count(text) == 1]
    if not alone:
        return True
    asked, options = alone[0], sorted(written)
    reason = _("Behind {separator} it writes “{text}”.")
    choose(
        _("The separators are covered. Behind which one is “{text}” written?").format(text=written[asked]),
        options,
        options.index(asked),
        key=SEPARATOR,
        why=lambda said: reason.format(separator=options[said], text=written[options[said]]),
    )
    return is_answered(SEPARATOR)


# --- a reward ---


def draw_reward() -> None:
    names = {"ppo-free": _("no price"), "ppo": _("KL has a price")}
    ending = read_field("adapting-ending", _("an ending of yours"), ENDING, read_words(LONGEST))
    score = int(happy_words("", ending))
    st.caption(_("The reward counts happy words, and gives yours {score}. That is all it knows.").format(score=score))
    rows = [(one.step, names[run], one.reward, one.distinct) for run in RUNS for one in recorded_reward(run)]
    table = pd.DataFrame(rows, columns=["step", "run", "reward", "distinct"])
    titles = {"reward": _("reward"), "distinct": _("share of distinct word pairs")}
    above, free = st.container(), recorded_reward("ppo-free")
    ask_reward(free[0].distinct, free[-1].distinct)
    answered = is_answered(REWARD)
    with above:
        for place, (column, title) in zip(st.columns(2), titles.items(), strict=True):
            covered = column == "distinct" and not answered
            curve = partial(draw_curve, table, column, title, list(names.values()), covered)
            with place:
                show_altair(curve, key=f"adapting {column}")
    if not answered:
        return
    sentence = _(
        "Without a price the reward goes from {first:.1f} to {last:.1f}, and pairs of words that differ from "
        "{many:.0%} to {few:.0%}; KL ends at {kl:.0f} nats an answer."
    )
    first, last = free[0], free[-1]
    st.markdown(
        sentence.format(first=first.reward, last=last.reward, many=first.distinct, few=last.distinct, kl=last.kl)
    )
    answers = recorded_answers("ppo-free")
    step = st.select_slider(
        _("step"),
        list(answers),
        max(answers),
        format_func=lambda at: f"{at:d}",
        key="adapting-step",
        persist_state="session",
    )
    one = max(answers[step], key=lambda answer: float(str(answer["reward"])))
    told = _("Its best answer there, {reward:g} by the reward: “{answer}”")
    st.markdown(told.format(reward=float(str(one["reward"])), answer=escape_markdown(str(one["answer"]).strip())))
    with st.container(horizontal=True, vertical_alignment="center"):
        link(_("Learn from preferences"), way="Preferences", stage="Policy", learner="ppo-free")
        show_code(happy_words, key="adapting code reward", prompt="", answer=ending)


def ask_reward(first: float, last: float) -> None:
    """Asks what becomes of the share of distinct word pairs, of which the first and the last are told."""
    change = last - first
    answer = 1 if abs(change) < ALIKE else 0 if change > 0 else 2
    reason = _("It goes from {first:.0%} to {last:.0%}: happy words again and again are what the reward counts.")
    choose(
        _("Without a price the reward rises. What becomes of the share of distinct word pairs?"),
        [_("it rises"), _("it stays about the same"), _("it falls")],
        answer,
        key=REWARD,
        why=lambda _said: reason.format(first=first, last=last),
    )


def draw_curve(table: pd.DataFrame, column: str, title: str, runs: list[str], covered: bool, shade: Shade) -> alt.Chart:
    """Draws a curve for each run; of one that is covered its beginning."""
    ink = colors(shade)
    x, y = (alt.Scale(domain=[0, float(table[name].max())]) for name in ("step", column))
    return (
        alt.Chart(table[table["step"] == table["step"].min()] if covered else table)
        .mark_line(point=covered)
        .encode(
            alt.X("step:Q", title=_("step"), scale=x),
            alt.Y(f"{column}:Q", title=title, scale=y),
            alt.Color(
                "run:N",
                title=None,
                sort=runs,
                legend=alt.Legend(orient="top"),
                scale=alt.Scale(domain=runs, range=[ink["attention"], ink["key"]]),
            ),
        )
        .properties(height=250)
    )
