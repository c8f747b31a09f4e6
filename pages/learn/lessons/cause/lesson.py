"""Cause and correlation: what heads add, what goes with the answer, and what the answer loses without them."""

from collections.abc import Sequence
from functools import lru_cache, partial

import altair as alt
import pandas as pd
import streamlit as st
import torch
from torch import Tensor

from engine.compiled import find_answer_key
from engine.course.cause import (
    REPEATS,
    TEXTS,
    HeadEffects,
    Takeover,
    compare_without,
    measure_heads,
    measure_texts,
    patch_heads,
    repeated_texts,
)
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from pages.controls.figures import cover, matrix
from pages.controls.learn.fields import (
    caption_known_texts,
    choose_view,
    name_apart,
    other_input,
    read_field,
    read_short_text,
)
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, point, show_code
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.markdown import escape_markdown
from views.core.theme import Shade

MODELS = (REPEATS, "everyday")
TEXT = {REPEATS: "b7Kx2qmTb7Kx2qm", "everyday": "My cat sleeps on the roof of the"}
OTHER = {REPEATS: "hGd4R9aWhGd4R9a", "everyday": "My dog sleeps on the floor of the"}
KEYED, KEYED_TEXT = "compiled-induction", "a b c d a"
MOST = 32  # tokens of a text
ALIKE = 0.1  # as a share, of logits that are about the same
SMALL = 0.01  # of a logit, which is not told from 0
QUESTION, INSTEAD, OVER = (f"cause {part}question" for part in ("", "instead ", "over "))

heads_of = lru_cache(maxsize=64)(measure_heads)
patched_of = lru_cache(maxsize=64)(patch_heads)
without_of = lru_cache(maxsize=64)(compare_without)
texts_of = lru_cache(maxsize=16)(measure_texts)


def experiment() -> bool:
    above = st.container()
    left, right = st.columns([1, 2], vertical_alignment="bottom")
    with left:
        names = {REPEATS: _("repeated symbols"), "everyday": _("everyday English")}
        model = str(
            st.segmented_control(
                _("model"), MODELS, default=REPEATS, key="cause-model", required=True, persist_state="session",
                format_func=names.__getitem__,
            )
        )  # fmt: skip
    with right:
        encoding = read_text(model, f"cause-text {model}", _("text"), TEXT[model])
    ids = tuple(encoding.ids)
    found = heads_of(model, ids)
    shown = ask(model, encoding, found)
    with above:
        draw_heads(model, found, covered=not (shown and is_answered(QUESTION)))
    if not shown:
        return False
    views = {
        "plane": _("one against the other"),
        "instead": _("what happens instead"),
        "texts": _("over many texts"),
        "key": _("a model with a key"),
    }
    view = choose_view("cause-view", views)
    if view == "plane":
        draw_plane(model, ids, found)
    elif view == "instead":
        draw_instead(model, ids, found)
    elif view == "texts":
        draw_texts()
    else:
        draw_key()
    return is_found(QUESTION)


def read_text(model: str, key: str, label: str, default: str) -> Encoding:
    checkpoint = library.checkpoint(model)
    return read_field(key, label, default, lambda said: read_short_text(checkpoint, said, MOST))


def name_head(place: Sequence[int]) -> str:
    return _("block {block}, head {head}").format(block=place[0] + 1, head=place[1] + 1)


def piece_of(model: str, id: int) -> str:
    tokenizer = library.checkpoint(model).tokenizer
    assert tokenizer is not None
    return name_apart([tokenizer.pieces[id]])[0]


# --- which head is needed ---


def ask(model: str, encoding: Encoding, found: HeadEffects) -> bool:
    needed, loudest, token = found.needed, found.loudest, piece_of(model, found.answer)
    sentence = _(
        "Without {needed}, which adds {added:.2f} itself, the logit falls by {lost:.2f}, and the likeliest token is "
        "“{then}”. What it does not add itself goes through parts that read what it wrote, and the last norm."
    )
    reason = sentence.format(
        needed=name_head(needed), added=float(found.added[needed]), lost=float(found.lost[needed]),
        then=piece_of(model, int(found.likeliest[needed])),
    )  # fmt: skip

    def why(said: tuple[int, ...]) -> str:
        place = said[0], said[1]
        if place == needed:
            return reason
        sentence = _("{said} adds {added:.2f}, and without it the logit falls by {lost:.2f}.").format(
            said=name_head(place), added=float(found.added[place]), lost=float(found.lost[place])
        )
        if place == loudest:
            sentence = join_sentences(_("What adds most need not be needed most."), sentence)
        return join_sentences(sentence, reason)

    question = _(
        "After “{text}” the model expects “{token}”. The picture shows what each head adds to the logit itself. Click "
        "the head without which that logit falls most."
    ).format(text=encoding.text, token=token)
    return point(
        question, tuple(found.added.shape), [needed], key=QUESTION, name=name_head, why=why,
        again=other_input("cause-model", MODELS),
    )  # fmt: skip


def draw_heads(model: str, found: HeadEffects, covered: bool) -> None:
    rows = [_("block {number}").format(number=at + 1) for at in range(len(found.added))]
    columns = [str(at + 1) for at in range(found.added.shape[1])]
    left, right = st.columns(2)
    with left:
        st.caption(_("added to the logit by the head itself"))
        matrix(found.added, rows=rows, columns=columns, scale="signed", digits=2, key=f"{QUESTION} picture",
               label=_("added to the logit by the head itself"))  # fmt: skip
    with right:
        st.caption(_("lost of it when the head is silenced"))
        lost = cover(found.lost, slice(None)) if covered else found.lost
        matrix(lost, rows=rows, columns=columns, scale="signed", digits=2, key="cause lost",
               label=_("lost of it when the head is silenced"))  # fmt: skip
    if model == REPEATS:
        caption_known_texts(model, TEXT[model])


# --- one against the other ---


def draw_plane(model: str, ids: tuple[int, ...], found: HeadEffects) -> None:
    other = read_text(model, f"cause-other {model}", _("another text, of as many tokens"), OTHER[model]).ids
    names, patched = {"silenced": _("set to 0"), "patched": _("as in the other text")}, None
    if len(other) == len(ids) and tuple(other) != ids:
        patched = patched_of(model, ids, tuple(other))
    else:
        sentence = _("Expected another text of {count} tokens, got one of {got} or the same; change it.")
        st.caption(f":red[:material/error:] {escape_markdown(sentence.format(count=len(ids), got=len(other)))}")
    rows = [
        (name_head((layer, head)), names[way], float(found.added[layer, head]), float(lost[layer, head]))
        for way, lost in (("silenced", found.lost), ("patched", patched))
        if lost is not None
        for layer in range(len(lost))
        for head in range(lost.shape[1])
    ]
    table = pd.DataFrame(rows, columns=["head", "way", "added", "lost"])
    show_altair(partial(draw_points, table, list(names.values())), key="cause plane")
    sentence = _(
        "On the dashed line the answer loses what the head added. Far above it: read by later heads. Far below: "
        "something else makes up for it. Over these heads the correlation of the two is {r:.2f}."
    )
    r = torch.corrcoef(torch.stack([found.added.flatten(), found.lost.flatten()]))[0, 1]
    st.caption(sentence.format(r=float(r)))
    show_code(measure_heads, key="cause code plane", name=model, ids=list(ids))


def draw_points(table: pd.DataFrame, names: Sequence[str], shade: Shade) -> alt.LayerChart | alt.FacetChart:
    ink = colors(shade)
    x = alt.X("added:Q", title=_("added to the logit by the head itself"))
    y = alt.Y("lost:Q", title=_("lost of the logit without it"))
    inks = alt.Scale(domain=list(names), range=[ink["attention"], ink["key"]])
    ends = [float(table["added"].min()), float(table["added"].max())]
    line = alt.Chart(pd.DataFrame({"added": ends, "lost": ends}))
    spots = alt.Chart(table).mark_point(size=90, filled=True, opacity=0.8)
    return alt.layer(
        line.mark_line(color=ink["soft"], strokeDash=[5, 4]).encode(x, y),
        spots.encode(
            x, y, alt.Color("way:N", title=None, scale=inks, legend=alt.Legend(orient="top")),
            tooltip=["head", "way", alt.Tooltip("added", format=".2f"), alt.Tooltip("lost", format=".2f")],
        ),
    ).properties(height=260)  # fmt: skip


# --- what happens instead ---


def draw_instead(model: str, ids: tuple[int, ...], found: HeadEffects) -> None:
    layer, head = found.loudest
    takeover, above = without_of(model, ids, layer, head), st.container()
    shown = ask_instead(found, takeover)
    rows = [
        (
            name_writer(writer.kind, writer.layer, writer.head),
            numeral(before, ".3f"),
            numeral(after, ".3f") if shown else "?",
        )
        for writer, before, after in zip(
            takeover.writers, takeover.before.tolist(), takeover.after.tolist(), strict=True
        )
    ]  # fmt: skip
    total = float(takeover.before.sum()), float(takeover.after.sum())
    rows.append((_("together: the logit"), numeral(total[0], ".3f"), numeral(total[1], ".3f") if shown else "?"))
    named = name_head((layer, head))
    columns = [_("part"), _("adds"), _("adds without {head}").format(head=named)]
    with above:
        st.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True, width="stretch", height=250)
    if shown:
        before, after = takeover.scales
        sentence = _(
            "The last norm divides by {before:.3f} with it and by {after:.3f} without: of that alone, all others count "
            "{ratio:.2f} times as much. Where they change otherwise, later parts have read something else."
        )
        st.caption(sentence.format(before=before, after=after, ratio=before / after))
    show_code(compare_without, key="cause code instead", name=model, ids=list(ids), layer=layer, head=head)


def name_writer(kind: str, layer: int | None, head: int | None) -> str:
    if layer is not None and head is not None:
        return name_head((layer, head))
    names = {"token": _("token"), "position": _("position"), "bias": _("biases"), "edit": _("the silence itself")}
    named = names.get(kind, kind)
    return named if layer is None else _("block {block}, {part}").format(block=layer + 1, part=named)


def ask_instead(found: HeadEffects, takeover: Takeover) -> bool:
    """Asks what the logit loses with the head that adds most, and tells whether that may be shown."""
    added, lost = float(found.added[found.loudest]), float(found.lost[found.loudest])
    options = [_("by about as much"), _("by less"), _("by more")]
    answer = 0 if abs(lost - added) <= ALIKE * abs(added) else 1 if lost < added else 2
    others = float(takeover.after.sum() - takeover.before.sum()) + added
    reason = _(
        "It falls by {lost:.2f}: the {added:.2f} are gone, and what all others add changes by {others:+.2f}. An "
        "attribution holds everything else still, and nothing else stands still."
    ).format(lost=lost, added=added, others=others)
    question = _("{head} adds most, {added:.2f}. By how much does the logit fall when it is silenced?")
    choose(
        question.format(head=name_head(found.loudest), added=added), options, answer, key=INSTEAD,
        why=lambda _said: reason,
    )  # fmt: skip
    return is_answered(INSTEAD)


# --- over many texts ---


def draw_texts() -> None:
    seed = int(st.number_input(_("seed"), 0, 999, 0, key="cause-seed", width=150, persist_state="session"))
    found, above = texts_of(seed), st.container()
    heads = library.checkpoint(REPEATS).config.attention.heads
    at = int(found.correlation.argmax())
    counts = found.changed.sum(0)
    shown = ask_over(found.correlation, counts, heads)
    table = pd.DataFrame(
        {
            _("head"): [name_head(divmod(one, heads)) for one in range(len(counts))],
            _("adds, on average"): [numeral(one, ".2f") for one in found.added.mean(0).tolist()],
            _("correlation with the logit"): [numeral(one, ".2f") for one in found.correlation.tolist()],
            _("answers that change without it"): [str(one) if shown else "?" for one in counts.tolist()],
        }
    )
    with above:
        show_altair(
            partial(draw_cloud, found.added[:, at], found.logits, name_head(divmod(at, heads))), key="cause cloud"
        )
        st.dataframe(table, hide_index=True, width="stretch")
    sentence = _("{count} texts of {model}, such as “{text}”.")
    st.caption(sentence.format(count=TEXTS, model=REPEATS, text=repeated_texts(seed)[0]))
    show_code(measure_texts, key="cause code texts", seed=seed)


def ask_over(correlation: Tensor, counts: Tensor, heads: int) -> bool:
    """Asks how many answers change without the head that goes with the logit most."""
    at, most = int(correlation.argmax()), int(counts.argmax())
    reason = _(
        "Without it {changed} change, and without {needed}, whose correlation is {r:.2f}, {most} do. A correlation "
        "shows what varies together: a head that does the same in every text goes with nothing."
    ).format(
        changed=int(counts[at]), needed=name_head(divmod(most, heads)), r=float(correlation[most]),
        most=int(counts[most]),
    )  # fmt: skip
    question = _(
        "What {head} adds goes with the logit of the answer more than what any other head adds: r = {r:.2f}. In how "
        "many of {count} texts does the answer change without it?"
    )
    estimate(
        question.format(head=name_head(divmod(at, heads)), r=float(correlation[at]), count=TEXTS),
        int(counts[at]), 2, key=OVER, why=lambda _said: reason,
    )  # fmt: skip
    return is_answered(OVER)


def draw_cloud(added: Tensor, logits: Tensor, head: str, shade: Shade) -> alt.Chart:
    title = _("added by {head}").format(head=head)
    return (
        alt.Chart(pd.DataFrame({"added": added.tolist(), "logit": logits.tolist()}))
        .mark_point(filled=True, size=60, color=colors(shade)["attention"])
        .encode(
            alt.X("added:Q", title=title, scale=alt.Scale(zero=False)),
            alt.Y("logit:Q", title=_("logit of the answer"), scale=alt.Scale(zero=False)),
        )
        .properties(height=180)
    )


# --- a model with a key ---


def draw_key() -> None:
    checkpoint = library.checkpoint(KEYED)
    key = find_answer_key(checkpoint)
    assert key is not None
    label = _("text, tokens with spaces between them")
    encoding = read_field("cause-keyed", label, KEYED_TEXT, read_keyed)
    found = heads_of(KEYED, tuple(encoding.ids))
    lines = {line.part: line.text for line in key.lines}
    rows = [
        (
            name_head((layer, head)),
            numeral(float(found.added[layer, head]), ".2f"),
            numeral(float(found.lost[layer, head]), ".2f"),
            lines.get(("head", layer, head), _("idle, its weights are 0")),
        )
        for layer in range(len(found.added))
        for head in range(found.added.shape[1])
    ]
    columns = [_("head"), _("adds"), _("lost without it"), _("line of the program")]
    st.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True, width="stretch")
    direct = [place for place in key.nodes() if place[0] == "head" and abs(added_by(found, place)) > SMALL]
    needed = [place for place in key.nodes() if place[0] == "head"]
    sentence = _(
        "Heads that the program needs: {needed}; of these, {direct} adds to the answer “{token}” itself. The other "
        "writes what stood before each token, and the later head reads that."
    )
    if len(needed) - len(direct) == 1:
        st.caption(sentence.format(needed=len(needed), direct=len(direct), token=piece_of(KEYED, found.answer)))
    show_code(measure_heads, key="cause code key", name=KEYED, ids=list(encoding.ids))


def added_by(found: HeadEffects, place: tuple[str, int | None, int | None]) -> float:
    _kind, layer, head = place
    return float(found.added[layer, head])


def read_keyed(said: str) -> Encoding:
    """Raises ValueError, with a sentence."""
    checkpoint = library.checkpoint(KEYED)
    key = find_answer_key(checkpoint)
    assert key is not None and checkpoint.tokenizer is not None
    labels = {variable.name: variable.labels for variable in key.variables}["tokens"]
    text = said.split()
    if not 2 <= len(text) < checkpoint.config.context or not {*text} <= {*labels}:
        sentence = _("Expected {least} to {most} tokens, each one of {tokens}, with spaces between them; change it.")
        raise ValueError(sentence.format(least=2, most=checkpoint.config.context - 1, tokens=" ".join(labels)))
    return checkpoint.tokenizer.encode(" ".join(text))
