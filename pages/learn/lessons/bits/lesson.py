"""How many bits: a group of weights in integers, a number in floats, a whole model in each, and the matrix to blame."""

import math
from collections.abc import Sequence
from functools import lru_cache

import pandas as pd
import streamlit as st
import torch
from torch import Tensor

from engine.course.bits import (
    FLOATS,
    FORMATS,
    INTEGERS,
    SCALE_BITS,
    FloatParts,
    FormatEffect,
    measure_each,
    measure_formats,
    split_float,
    store_integers,
)
from engine.model.layers.lora import list_linears
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from pages.controls.figures import cover, matrix
from pages.controls.learn.fields import choose_view, other_input, read_field, read_matrix, read_short_text
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, point, show_code
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
from views.core.markdown import code_markdown

MODEL = "everyday"
KINDS, FIRST = tuple(INTEGERS), tuple(INTEGERS).index("int4")
WEIGHTS = "0.12 -0.19 0.31 -0.08 0.26 -0.33 0.17 2.8"
OTHERS = "0.4 -0.56 0.92 -1.12 0.72 -0.32 1.4 -0.64", "0.02 -0.05 0.04 0.03 -0.02 0.05 -0.04 1.4"
FEWEST, MOST, LARGEST = 2, 16, 1000.0  # weights that are typed, and the size of each
NUMBER, FARTHEST = "0.1", 1e30
TEXT = "The old man went to the park and sat on the bench."
MOST_TOKENS = 24
GROUPS = (16, 32, 64)  # sizes that are offered for a model's matrices
TIMES = (2, 20, 300, 4000)  # of a KL, as options
MIB, MILLI = 2**20 * 8, 1000  # bits of a MiB
QUESTION, HALF, BLAME = (f"bits {part}question" for part in ("", "half ", "blame "))


def experiment() -> bool:
    weights = read_field("bits-weights", _("weights of one group"), WEIGHTS, read_weights)
    kind = st.selectbox(_("format"), KINDS, FIRST, key="bits-format", width=180, persist_state="session")
    above = st.container()
    shown = ask(weights, kind)
    with above:
        draw_stored(weights, kind, covered=not (shown and is_answered(QUESTION)))
    if not shown:
        return False
    views = {"groups": _("groups"), "floats": _("floats"), "model": _("a whole model"), "blame": _("which matrix")}
    view = choose_view("bits-view", views)
    if view == "groups":
        draw_groups(weights, kind)
    elif view == "floats":
        draw_floats()
    elif view == "model":
        draw_model()
    else:
        draw_blame()
    return is_found(QUESTION)


# --- a group in integers ---


def read_weights(said: str) -> Tensor:
    """A row of numbers. Raises ValueError, with a sentence."""
    found = read_matrix(said).flatten()
    if not FEWEST <= len(found) <= MOST:
        sentence = _("Expected {least} to {most} numbers, got {count}; change them.")
        raise ValueError(sentence.format(least=FEWEST, most=MOST, count=len(found)))
    if float(found.abs().max()) > LARGEST:
        raise ValueError(_("Expected numbers of a size up to {most:g}; make the largest smaller.").format(most=LARGEST))
    if not found.any():
        raise ValueError(_("Expected a number other than 0 among them; change one."))
    return found


def range_of(kind: str) -> int:
    return int(2 ** (INTEGERS[kind] - 1) - 1)


def ask(weights: Tensor, kind: str) -> bool:
    stored = store_integers(weights, INTEGERS[kind], len(weights))
    zeros, scale, most = int((stored.integers == 0).sum()), float(stored.scales[0]), range_of(kind)
    own = int((weights == 0).sum())
    reason = _(
        "The largest in size, {largest:.4g}, becomes {most}, so the scale is {largest:.4g} / {most} = {scale:.4g} for "
        "all of them. What is smaller than half of it, {half:.4g}, is nearest to 0: {zeros}."
    ).format(largest=float(weights.abs().max()), most=most, scale=scale, half=scale / 2, zeros=zeros)

    def why(said: float) -> str:
        if said == own < zeros:
            return join_sentences(_("So it would be if each weight had a scale of its own."), reason)
        if said == len(weights) - 1 > zeros:
            return join_sentences(_("So it would be if the largest left nothing of the others."), reason)
        return reason

    question = _("{count} weights share one scale and become {kind}. How many of them become 0?")
    return estimate(
        question.format(count=len(weights), kind=kind), zeros, 0, key=QUESTION, why=why,
        again=other_input("bits-weights", (WEIGHTS, *OTHERS)),
    )  # fmt: skip


def draw_stored(weights: Tensor, kind: str, covered: bool) -> None:
    stored = store_integers(weights, INTEGERS[kind], len(weights)).values
    rows = torch.stack([weights, stored])
    matrix(
        cover(rows, 1) if covered else rows, rows=[_("weight"), _("as {kind}").format(kind=kind)],
        columns=[str(at + 1) for at in range(len(weights))], scale="signed", role="residual", digits=2,
        key=f"{QUESTION} picture", label=_("weights, and what the format leaves of them"),
    )  # fmt: skip


def draw_groups(weights: Tensor, kind: str) -> None:
    size = st.slider(_("weights in a group"), 1, MOST, 4, key="bits-group", persist_state="session")
    size = min(int(size), len(weights))
    found = store_integers(weights, INTEGERS[kind], size)
    table = pd.DataFrame(
        {
            _("group"): [at // size + 1 for at in range(len(weights))],
            _("weight w"): [numeral(w, ".4g") for w in weights.tolist()],
            _("scale s"): [numeral(s, ".4g") for s in found.scales.tolist()],
            "w / s": [numeral(one, ".3f") for one in (weights / found.scales).nan_to_num().tolist()],
            _("integer n"): [f"{n:.0f}" for n in (found.integers + 0.0).tolist()],
            "n · s": [numeral(value, ".4g") for value in (found.values + 0.0).tolist()],
        }
    )
    st.dataframe(table, hide_index=True, width="stretch")
    whole = store_integers(weights, INTEGERS[kind], len(weights))
    errors = [float((one.values - weights).abs().mean()) for one in (whole, found)]
    bits = [INTEGERS[kind] + SCALE_BITS / at for at in (len(weights), size)]
    sentence = _(
        "With one scale for all, a weight is {whole:.4g} off on average, and takes {few:.4g} bits with its share of "
        "the scale. In these groups it is **{groups:.4g}** off, and takes **{many:.4g}** bits."
    )
    st.markdown(sentence.format(whole=errors[0], few=bits[0], groups=errors[1], many=bits[1]))
    st.caption(_("A large weight spoils the scale of its own group alone. A smaller group costs more scales."))
    show_code(store_integers, key="bits code groups", weights=weights, bits=INTEGERS[kind], group=size)


# --- a number in floats ---


def read_number(said: str) -> float:
    """Raises ValueError, with a sentence."""
    try:
        found = float(said.strip())
    except ValueError:
        found = math.nan
    if not abs(found) <= FARTHEST:
        raise ValueError(_("Expected one number such as 0.1 or -3e5, of a size up to 1e30; change it."))
    return found


def draw_floats() -> None:
    x = read_field("bits-number", _("number"), NUMBER, read_number)
    found = [split_float(x, kind) for kind in FLOATS]
    table = pd.DataFrame(
        {
            _("format"): [one.kind for one in found],
            _("sign"): [f"{one.sign}" for one in found],
            _("exponent"): [f"{one.exponent:0{one.exponent_bits}b}" for one in found],
            _("mantissa"): [f"{one.mantissa:0{one.mantissa_bits}b}" for one in found],
            _("is stored"): [numeral(one.value, ".9g") for one in found],
        }
    )
    st.dataframe(table, hide_index=True, width="stretch")
    for one in found:
        st.markdown(code_markdown(f"{one.kind}: {write_float(one)}"))
    short, half = found[1], found[2]
    if half.infinite:
        sentence = _("float16 has {few} bits of exponent, too few for it. bfloat16 has {many}, as many as float32.")
        st.caption(sentence.format(few=half.exponent_bits, many=short.exponent_bits))
    elif x:
        sentence = _("Off by, as a share of the number: bfloat16 {short:.1e}, float16 {half:.1e}.")
        off = {name: abs(one.value - x) / abs(x) for name, one in (("short", short), ("half", half))}
        st.caption(sentence.format(**off))
    show_code(split_float, key="bits code floats", x=x, kind="bfloat16")


def write_float(one: FloatParts) -> str:
    """The arithmetic of a float, from its bits."""
    sign = "-" if one.sign else ""
    if one.infinite:
        return f"{sign}∞"
    share = f"{one.mantissa} / {2**one.mantissa_bits}"
    power, factor = (f"{one.exponent} - {one.bias}", f"1 + {share}") if one.exponent else (f"1 - {one.bias}", share)
    return f"{sign}2^({power}) · ({factor}) = {one.value:.9g}"


# --- a whole model ---


def read_reader() -> tuple[Encoding, int]:
    """The text, and the size of the groups."""
    checkpoint = library.checkpoint(MODEL)
    encoding = read_field("bits-text", _("text"), TEXT, lambda said: read_short_text(checkpoint, said, MOST_TOKENS))
    group = st.segmented_control(
        _("weights in a group"), GROUPS, default=32, key="bits-size", required=True, persist_state="session"
    )
    return encoding, int(group)


@lru_cache(maxsize=64)
def measure(ids: tuple[int, ...], group: int) -> list[FormatEffect]:
    return measure_formats(MODEL, ids, FORMATS, group)


def draw_model() -> None:
    encoding, group = read_reader()
    found = measure(tuple(encoding.ids), group)
    above = st.container()
    shown = ask_half(found)
    with above:
        draw_formats(found if shown else found[:3])
    st.caption(
        _(
            "{model} with all matrices of attention and MLPs rounded to the nearest; embedding and norms stay float32. "
            "The loss of a short text may fall by chance. KL, the distance from the predictions with float32, cannot."
        ).format(model=MODEL)
    )
    show_code(
        measure_formats, key="bits code model", name=MODEL, ids=list(encoding.ids), kinds=["int8", "int4"], group=group
    )


def draw_formats(found: Sequence[FormatEffect]) -> None:
    weights = sum(one.weight.numel() for one in list_linears(library.checkpoint(MODEL).model).values())
    table = pd.DataFrame(
        {
            _("format"): [one.kind for one in found],
            _("bits a weight"): [numeral(one.bits, "g") for one in found],
            "MiB": [numeral(one.bits * weights / MIB, ".2f") for one in found],
            _("loss, nats"): [numeral(one.loss, ".4f") for one in found],
            _("KL, nats"): [numeral(one.kl, ".2e") for one in found],
            _("same likeliest token"): [numeral(one.same, ".0%") for one in found],
            _("p of the likeliest next token"): [numeral(one.p, ".3g") for one in found],
        }
    )
    st.dataframe(table, hide_index=True, width="stretch")


def ask_half(found: Sequence[FormatEffect]) -> bool:
    """Asks what half the bits cost, and tells whether that may be shown."""
    by_kind = {one.kind: one for one in found}
    kl8, kl4 = by_kind["int8"].kl, by_kind["int4"].kl
    ratio, step = kl4 / max(kl8, 1e-12), range_of("int8") / range_of("int4")
    answer = min(range(len(TIMES)), key=lambda at: abs(math.log(TIMES[at] / ratio)))
    reason = _(
        "A step of int4 is {wide} / {narrow} = {step:.3g} times as wide, and KL grows about as its square, "
        "{square:.3g}. Here it goes from {before:.2e} to {after:.2e} nats, {ratio:.3g} times as far."
    ).format(wide=range_of("int8"), narrow=range_of("int4"), step=step, square=step**2, before=kl8, after=kl4,
             ratio=ratio)  # fmt: skip

    def why(said: int) -> str:
        if TIMES[said] == 2 != TIMES[answer]:
            return join_sentences(_("Half the bits is not half as good: each bit less doubles the step."), reason)
        return reason

    question = _("int4 has half the bits of int8. How many times the KL of int8 does it have on this text, about?")
    choose(question, [f"{one}×" for one in TIMES], answer, key=HALF, why=why)
    return is_answered(HALF)


# --- which matrix ---


@lru_cache(maxsize=64)
def measure_blame(ids: tuple[int, ...], kind: str, group: int) -> dict[str, float]:
    return measure_each(MODEL, ids, kind, group)


def draw_blame() -> None:
    encoding, group = read_reader()
    kind = st.selectbox(_("format of one matrix"), KINDS, FIRST, key="bits-one", width=180, persist_state="session")
    found = measure_blame(tuple(encoding.ids), kind, group)
    maps = list(dict.fromkeys(name.split(".", 2)[2] for name in found))
    blocks = len(found) // len(maps)
    grid = torch.tensor([[found[f"blocks.{block}.{one}"] for one in maps] for block in range(blocks)])
    above = st.container()
    ask_blame(grid, maps, kind)
    covered = not is_answered(BLAME)
    with above:
        matrix(
            cover(grid, slice(None)) if covered else grid * MILLI,
            rows=[_("block {number}").format(number=at + 1) for at in range(blocks)],
            columns=maps, digits=2, role="probability", key=f"{BLAME} picture",
            label=_("KL with this matrix alone as {kind}, thousandths of a nat").format(kind=kind),
        )  # fmt: skip
    whole = next(one.kl for one in measure(tuple(encoding.ids), group) if one.kind == kind)
    if not covered:
        sentence = _("Added up they are {sum:.2e} nats, and all matrices together as {kind} {whole:.2e}.")
        st.caption(sentence.format(sum=float(grid.sum()), kind=kind, whole=whole))
    show_code(measure_each, key="bits code blame", name=MODEL, ids=list(encoding.ids), kind=kind, group=group)


def ask_blame(grid: Tensor, maps: Sequence[str], kind: str) -> bool:
    """Asks which matrix moves the predictions most."""
    linears = list_linears(library.checkpoint(MODEL).model)
    worst = divmod(int(grid.argmax()), len(maps))
    sizes = {(row, at): linears[f"blocks.{row}.{one}"].weight.numel()
             for row in range(len(grid)) for at, one in enumerate(maps)}  # fmt: skip
    alike = [float(grid[place]) for place, size in sizes.items() if size == sizes[worst]]

    def name(place: tuple[int, ...]) -> str:
        return _("block {number}, {map}").format(number=place[0] + 1, map=maps[place[1]])

    reason = _(
        "{worst} moves them by {most:.2e} nats. Of {count} matrices of its size, {size} weights, the one that does "
        "least moves them by {least:.1e}: size does not tell."
    ).format(worst=name(worst), most=float(grid[worst]), count=len(alike), size=numeral(sizes[worst], ","),
             least=min(alike))  # fmt: skip

    def why(said: tuple[int, ...]) -> str:
        place = said[0], said[1]
        if place == worst:
            return reason
        sentence = _("{said} has {size} weights and moves them by {kl:.2e} nats.")
        told = sentence.format(said=name(place), size=numeral(sizes[place], ","), kl=float(grid[place]))
        return join_sentences(told, reason)

    question = _("One matrix at a time becomes {kind}. Click the one that moves the predictions most.")
    return point(question.format(kind=kind), tuple(grid.shape), [worst], key=BLAME, name=name, why=why)
