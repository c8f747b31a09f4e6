"""A picture as a text: patches and [CLS] as ViT has them, and pixels one after the other as ImageGPT has them."""

from functools import partial

import altair as alt
import pandas as pd
import streamlit as st
import torch

from engine.course.picture import look_at_patches, next_pixel, patch_tokens, position_likeness
from engine.data.digits import LEVELS
from engine.inputs.readers import pictures
from pages.controls.figures import bars, cover, matrix
from pages.controls.learn.fields import choose_view, other_input
from pages.controls.learn.predict import estimate, is_answered, is_found, point, show_code
from pages.controls.model_input.picture import open_upload
from pages.controls.state.session import SessionValue
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.markdown import escape_markdown
from views.core.theme import Shade

READER, WRITER = "digits-vit", "digits-imagegpt"
SIDE, PATCH, ASKED = 8, 2, 7  # pixels of a side, of a patch's side; the token that is asked for at first
OTHERS = 10, 4  # that are asked for in a second try
PICTURES = 0, 1, 2
ACROSS = SIDE // PATCH
SQUARE = 260  # CSS pixels of a side of the picture under a look
GIVEN, SHOWN = 20, 6  # pixels at first; levels of a distribution
MOST_LIKE = 3  # places that are most like another
QUESTION, NEAR, NEXT = (f"picture {part}question" for part in ("", "near ", "next "))
TOKEN = SessionValue("picture token", lambda: ASKED)  # that is asked for


def experiment() -> bool:
    picture = choose_picture()
    levels = torch.tensor(picture) * (LEVELS - 1)
    above = st.container()
    found = ask()
    with above:
        numbers = [str(at + 1) for at in range(SIDE)]
        matrix(
            levels, rows=numbers, columns=numbers, role="residual", digits=0, lines=PATCH, key=f"{QUESTION} picture",
            label=_("the picture, levels 0 to 16"),
        )  # fmt: skip
    if not found:
        return False
    views = {
        "patches": _("patches"),
        "looks": _("where [CLS] looks"),
        "positions": _("positions"),
        "next": _("next pixel"),
    }
    view = choose_view("picture-view", views)
    if view == "patches":
        draw_patches(picture)
    elif view == "looks":
        draw_looks(picture)
    elif view == "positions":
        draw_positions()
    else:
        draw_next(picture)
    return is_found(QUESTION)


Levels = list[list[float]]


def choose_picture() -> Levels:
    """A digit by its number, or a person's own."""
    images, _labels = pictures()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        at = st.number_input(
            _("picture, 0 to {last}").format(last=len(images) - 1), 0, len(images) - 1, 0, key="picture-number",
            width=160, persist_state="session",
        )  # fmt: skip
        with st.popover(_("your own")):
            file = st.file_uploader(_("A digit (PNG, JPEG, …)"), key="picture-own")
    if file is not None:
        try:
            found = open_upload(file.getvalue(), True)[1]
        except ValueError as error:
            st.caption(f":red[:material/error:] {escape_markdown(str(error))}")
            found = None
        if found is not None:
            own: Levels = (found.levels / (LEVELS - 1)).tolist()
            return own
    shipped: Levels = images[int(at)].tolist()
    return shipped


def patch_name(token: int) -> str:
    return place_name(divmod(token - 1, ACROSS))


def place_name(at: tuple[int, int]) -> str:
    return _("row {row}, column {column}").format(row=at[0] + 1, column=at[1] + 1)


def ask() -> bool:
    asked = TOKEN.get()
    row, column = divmod(asked - 1, ACROSS)
    inside = [(row * PATCH + down, column * PATCH + right) for down in range(PATCH) for right in range(PATCH)]
    reason = _(
        "Patches are {size} × {size} pixels, {across} in a row, counted row by row: token {token} is in {place}."
    ).format(size=PATCH, across=ACROSS, token=asked, place=patch_name(asked))

    def why(said: tuple[int, int]) -> str:
        token = said[0] // PATCH * ACROSS + said[1] // PATCH + 1
        if token == asked:
            return reason
        return join_sentences(reason, _("That pixel is in token {token}.").format(token=token))

    def turn() -> None:
        tokens = ASKED, *OTHERS
        TOKEN.set(tokens[(tokens.index(asked) + 1) % len(tokens)])
        other_input("picture-number", PICTURES)()

    question = _(
        "The picture is cut into patches of {size} × {size} pixels, read row by row behind [CLS], which is token 0. "
        "Click a pixel of token {token}."
    ).format(size=PATCH, token=asked)
    return point(
        question, (SIDE, SIDE), inside, key=QUESTION, why=why, again=turn,
        name=lambda at: _("pixel {row}, {column}").format(row=at[0] + 1, column=at[1] + 1),
    )  # fmt: skip


# --- ViT ---


def draw_patches(picture: Levels) -> None:
    pixels, vectors = patch_tokens(READER, picture)
    names = [str(token) for token in range(1, len(pixels) + 1)]
    left, right = st.columns([2, 3])
    with left:
        columns = [str(at + 1) for at in range(pixels.shape[1])]
        matrix(
            pixels, rows=names, columns=columns, scale="signed", role="residual", digits=2, key="picture patches",
            label=_("pixels of each patch, −1 to 1"),
        )  # fmt: skip
    with right:
        matrix(
            vectors,
            rows=names,
            scale="signed",
            role="residual",
            key="picture vectors",
            label=_("what a linear map makes of them"),
        )
    sentence = _(
        "{count} patches of {size} numbers, each mapped to {width} by one matrix: a patch is a word, and this is its "
        "embedding. [CLS] stands in front, and positions are added."
    )
    st.caption(sentence.format(count=len(pixels), size=pixels.shape[1], width=vectors.shape[1]))
    show_code(patch_tokens, key="picture code patches", name=READER, picture=picture)


def draw_looks(picture: Levels) -> None:
    found = look_at_patches(READER, picture)
    heads = len(found.weights)
    head = int(
        st.select_slider(
            _("head"),
            range(heads + 1),
            0,
            key="picture-look",
            persist_state="session",
            format_func=lambda one: f"{one:d}" if one else _("the mean of all"),
        )
    )
    weights = found.weights[head - 1] if head else found.weights.mean(0)
    left, right = st.columns(2)
    with left:
        show_altair(partial(draw_look, picture, weights.view(ACROSS, ACROSS)), key="picture looks", width="content")
    with right:
        order = found.probabilities.topk(SHOWN).indices
        bars(found.probabilities[order], [str(int(at)) for at in order], key="picture classes", label=_("the digit is"))
    sentence = _(
        "The weights of [CLS] on the patches, laid over the picture: in the last block, head: {head}. [CLS] keeps "
        "{own:.0%} for itself. What says the digit reads [CLS] alone: {digit}, p = {p:.3f}."
    )
    own, (p, digit) = 1 - float(weights.sum()), found.probabilities.max(-1)
    named = str(head) if head else _("the mean of all")
    st.caption(sentence.format(head=named, own=own, digit=int(digit), p=float(p)))
    show_code(look_at_patches, key="picture code looks", name=READER, picture=picture)


def draw_look(picture: Levels, weights: torch.Tensor, shade: Shade) -> alt.LayerChart | alt.FacetChart:
    """The picture, the patches drawn on it, and over each how much of the look it gets."""
    ink, named = colors(shade), _("pixels")
    pixels = [(row, column, 1, level) for row, levels in enumerate(picture) for column, level in enumerate(levels)]
    looks = [
        (row * PATCH, column * PATCH, PATCH, weight)
        for row, found in enumerate(weights.tolist())
        for column, weight in enumerate(found)
    ]
    across, down = alt.Scale(domain=[0, SIDE], nice=False), alt.Scale(domain=[SIDE, 0], nice=False)
    axis = alt.Axis(values=[*range(0, SIDE + 1, PATCH)], format="d")

    def base(rows: list[tuple[int, int, int, float]], value: str) -> alt.Chart:
        table = pd.DataFrame(rows, columns=["row", "column", "side", value])
        for start, end, middle in (("row", "below", "centre"), ("column", "right", "middle")):
            table[end], table[middle] = table[start] + table["side"], table[start] + table["side"] / 2
        return alt.Chart(table).encode(
            alt.X("column:Q", title=named, scale=across, axis=axis),
            alt.Y("row:Q", title=named, scale=down, axis=axis),
            tooltip=[alt.Tooltip(value, format=".4f")],
        )

    most = max(float(weights.max()), 1e-6)
    grey = alt.Fill("level:Q", legend=None, scale=alt.Scale(domain=[0, 1], range=[ink["zero"], ink["soft"]]))
    laid = alt.FillOpacity("weight:Q", legend=None, scale=alt.Scale(domain=[0, most], range=[0, 0.65]))
    written = base(looks, "weight").encode(
        alt.X("middle:Q", title=named, scale=across),
        alt.Y("centre:Q", title=named, scale=down),
        text=alt.Text("weight:Q", format=".2f"),
    )
    return alt.layer(
        base(pixels, "level").mark_rect().encode(x2="right:Q", y2="below:Q", fill=grey),
        base(looks, "weight")
        .mark_rect(fill=ink["attention"], stroke=ink["ink"], strokeWidth=1.5)
        .encode(x2="right:Q", y2="below:Q", fillOpacity=laid),
        written.mark_text(stroke=ink["ground"], strokeWidth=3, strokeOpacity=0.8),  # read on light and dark pixels
        written.mark_text(color=ink["ink"]),
    ).properties(width=SQUARE, height=SQUARE, autosize="pad")


def draw_positions() -> None:
    numbers = [str(at + 1) for at in range(ACROSS)]
    token = int(st.slider(_("token"), 1, ACROSS * ACROSS, ASKED, key="picture-token", persist_state="session"))
    likeness, above = position_likeness(READER, token - 1).view(ACROSS, ACROSS), st.container()
    own = divmod(token - 1, ACROSS)
    ask_near(likeness, own)
    others = torch.ones(ACROSS, ACROSS, dtype=torch.bool)
    others[own] = False
    with above:
        matrix(
            likeness if is_answered(NEAR) else cover(likeness, others), rows=numbers, columns=numbers, scale="signed",
            role="residual", digits=2, key=f"{NEAR} picture", label=_("cosine of the positions’ vectors"),
        )  # fmt: skip
    near, far = neighbours()
    sentence = _(
        "A picture has two directions, and the model is told of none. Each place has a vector that began at random: "
        "by now those of neighbours have a mean cosine of {near:+.2f}, all others {far:+.2f}."
    )
    if is_answered(NEAR):
        st.caption(sentence.format(near=near, far=far))
    show_code(position_likeness, key="picture code positions", name=READER, patch=token - 1)


def ask_near(likeness: torch.Tensor, own: tuple[int, int]) -> None:
    """Asks for one of the places whose vectors are most like that of a token."""
    order = [divmod(at, ACROSS) for at in likeness.flatten().argsort(descending=True).tolist()]
    order.remove(own)
    best = order[0]
    most = _("Most like it is {place}, with {cosine:+.2f}.")
    reason = most.format(place=place_name(best), cosine=float(likeness[best]))

    def why(said: tuple[int, int]) -> str:
        if said == own:
            return join_sentences(_("That is the token itself."), reason)
        if said == best:
            return reason
        sentence = _("{place}: {cosine:+.2f}.").format(place=place_name(said), cosine=float(likeness[said]))
        return join_sentences(sentence, reason)

    question = _(
        "The cosines are covered. Click a place whose vector is much like that of {own}: the first {count} are right."
    )
    point(
        question.format(count=MOST_LIKE, own=place_name(own)),
        (ACROSS, ACROSS),
        order[:MOST_LIKE],
        key=NEAR,
        name=place_name,
        why=why,
    )


def neighbours() -> tuple[float, float]:
    """Mean cosine of the positions' vectors of patches that touch at a side, and of all other pairs."""
    count = ACROSS * ACROSS
    table = torch.stack([position_likeness(READER, patch) for patch in range(count)])
    places = torch.tensor([divmod(patch, ACROSS) for patch in range(count)])
    steps = (places[:, None] - places[None]).abs().sum(-1)
    return float(table[steps == 1].mean()), float(table[steps > 1].mean())


# --- ImageGPT ---


def draw_next(picture: Levels) -> None:
    given = int(st.slider(_("pixels given"), 0, SIDE * SIDE - 1, GIVEN, key="picture-given", persist_state="session"))
    ids, probabilities = next_pixel(WRITER, picture, given)
    st.code(" ".join(["start", *map(str, ids[1:])]), language=None, wrap_lines=True)
    order = probabilities.topk(SHOWN).indices
    bars(probabilities[order], [str(int(at)) for at in order], key="picture next", label=_("level of the next pixel"))
    row, column = divmod(given, SIDE)
    true = round(picture[row][column] * (LEVELS - 1))
    reason = _("It is the pixel behind the first {given}: row {row}, column {column}.").format(
        given=given, row=row + 1, column=column + 1
    )
    question = _("Pixels given: {given}. Find the next in the picture above: which level has it?")
    estimate(question.format(given=given), true, 0, key=NEXT, why=lambda _said: reason)
    sentence = _(
        "A picture as a text of {count} words, row by row; the words are {levels} levels of grey. Next comes {true} in "
        "the picture; the model {model} gave it p = {p}."
    )
    if is_answered(NEXT):
        st.caption(
            sentence.format(
                count=SIDE * SIDE, levels=LEVELS, true=true, model=WRITER, p=numeral(float(probabilities[true]), ".3f")
            )
        )
    show_code(next_pixel, key="picture code next", name=WRITER, picture=picture, given=given)
