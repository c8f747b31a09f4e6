"""Links: what stands in one, and what of a link could not be restored.

A page says by `rules` what its controls may stand at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isinf
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from engine.runtime import library
from pages.controls.model_input.model_input import field_value, find_carried, seed
from pages.controls.prediction import PREDICT, PREDICTION, RUN
from pages.controls.share.hiding import hideable_names, hiding_css
from pages.controls.state.hidden import HIDDEN, HIDE, TEACHERS
from pages.controls.state.history import READABLE, drop, write
from pages.controls.state.parameter import Rule, whole_number, within
from pages.controls.state.session import find_record, widget_value
from pages.controls.what_if.experiment_link import BROKEN, from_link
from views.core.component import PAGE
from views.core.markdown import escape_markdown

VERSION = 1
VERSIONED = "v"
INSTRUCTION, LONGEST_INSTRUCTION = "instruction", 500  # characters of what a teacher asks
FOR_A_CLASS = (HIDE, INSTRUCTION, *PREDICTION)  # what is in a link for a class alone
NAMED = 5  # of what is lost; the others are counted


@dataclass
class FollowedLink:
    """The link that the session followed last: its page, what of it could not be restored, and what the page was at
    once it was drawn."""

    page: str | None = None
    lost: Sequence[str] = ()
    since: list[Any] | None = None


def address_of(model: str, fields: Sequence[str]) -> dict[str, str]:
    """The query of a link to what is shown now: version, model, fields, edits."""
    found: dict[str, Any] = {VERSIONED: VERSION, "model": model, **{field: field_value(field) for field in fields}}
    for kept in ("edits", "seed"):
        if kept in st.query_params:
            found[kept] = st.query_params[kept]
    return {key: str(value) for key, value in found.items() if key == "model" or value != ""}


def fit_address(said: Mapping[str, str]) -> dict[str, str]:
    """Part of a query that an address can hold: all, or what is left without its longest entries."""
    lengths = {name: len(urlencode({name: text})) + 1 for name, text in said.items()}
    found = dict(said)
    for name in sorted(lengths, key=lambda name: -lengths[name]):
        if sum(lengths[kept] for kept in found) - 1 <= READABLE:
            break
        del found[name]
    return found


def address_now(**said: str) -> dict[str, str]:
    """The query of a link to a page whose controls all stand in its address; what is `said` counts more."""
    found = {key: value for key, value in st.query_params.to_dict().items() if key not in FOR_A_CLASS}
    return {VERSIONED: str(VERSION), **found, **said} | {VERSIONED: str(VERSION)}


def honour_link(
    rules: Mapping[str, Rule],
    models: Collection[str] | None = None,
    refusal: Callable[[str], str] = lambda _: "cannot be shown on this page",
) -> None:
    """Says above the page what a teacher asks in its link and what of that could not be restored, and hides what it
    hides. Call it before the controls are drawn: they drop from the address what they cannot use. `models` are those
    that the page knows, where that is not what the library knows; `refusal` says of another why the page does not show
    it."""
    followed = find_record(FollowedLink)
    now = [dict(find_carried().values), *map(widget_value, ("model", *rules))]
    here = widget_value(PAGE, "")
    if followed.page != here:
        followed.page, followed.since = here, None
        followed.lost = lost(dict(st.query_params), HIDDEN.get(), rules, models, refusal)
    elif followed.since is None:
        followed.since = now
    elif followed.since != now:
        followed.lost = ()  # the person looks at something else now
    drop_infinite(rules)
    if followed.lost:
        more = len(followed.lost) - NAMED
        named = [escape_markdown(part) for part in followed.lost[:NAMED]]
        parts = "; ".join([*named, *([f"and {more} more"] if more > 0 else [])])
        st.info(f"Not all of this link could be restored: {parts}. Everything else is as it was saved.")
    if style := hiding_css(name for name in HIDDEN.get() if name != TEACHERS):  # which no page draws
        st.html(f"<style>{style}</style>")
    if instruction := st.query_params.get(INSTRUCTION, "").strip():
        with st.container(border=True, key="instruction"):
            st.markdown(escape_markdown(instruction[:LONGEST_INSTRUCTION]))


def remember_hidden() -> None:
    """Remembers what the address hides; one for a class hides from then on what is for teachers too, and every page
    says so in its address, by which a reload knows it. Call it before any page runs."""
    said = st.query_params
    named = said[HIDE].split(",") if HIDE in said else HIDDEN.get()
    if HIDE in said or INSTRUCTION in said or said.get(PREDICT) == RUN:
        HIDDEN.set(list(dict.fromkeys([*filter(None, named), TEACHERS])))
    if HIDDEN.get() and HIDE not in said:
        write(HIDE, TEACHERS)


def drop_infinite(rules: Mapping[str, Rule]) -> None:
    """Takes numbers out of the address that Streamlit would fail on: of 1e999 it makes an int. Other numbers that do
    not fit it drops itself."""
    for name in (*rules, "seed"):
        said = st.query_params.get(name, "")
        if said and isinf(float(said) if within(said, -inf, inf) else 0) and rules.get(name, whole_number())(said):
            drop(name)


def lost(
    said: Mapping[str, str],
    hidden: Sequence[str],
    rules: Mapping[str, Rule],
    models: Collection[str] | None = None,
    refusal: Callable[[str], str] = lambda _: "cannot be shown on this page",
) -> list[str]:
    """Finds what makes no sense in an address: a part of a sentence for each."""
    found: list[str] = []
    version = said.get(VERSIONED, str(VERSION))
    if version != str(VERSION):
        found.append(f"it is of version {version[:20]!r} and this Loupe reads version {VERSION}")
    model = said.get("model")
    if model is not None and not (library.knows(model) if models is None else model in models):
        known = library.knows(model)
        found.append(f"the model {model[:80]!r} {refusal(model)}" if known else library.absent(model))
    for key, rule in rules.items():
        if key in said and (must := rule(said[key])):
            found.append(f"{key} is {said[key][:20]!r} and must be {must}")
    hideable = hideable_names()
    found += [f"there is no control {name[:40]!r} to hide" for name in hidden if name not in (*hideable, TEACHERS)]
    if "edits" in said and BROKEN in from_link(said["edits"])[1]:
        found.append(f"edits is {said['edits'][:20]!r} and must be what a link of Loupe says of edits")
    if "seed" in said and "seed" not in rules and str(seed()) != said["seed"]:
        found.append(f"the seed {said['seed'][:20]!r} is no whole number")
    return found
