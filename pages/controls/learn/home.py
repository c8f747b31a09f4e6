"""The home page: one run of a text of the reader's in five columns, three doors, and three steps to begin with."""

from __future__ import annotations

import re
from typing import Any, LiteralString

import streamlit as st
import torch

from engine.inputs.readers import read_text
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from pages.controls.learn.course import COURSE, EVENING, address, done, lessons, read_lesson, use_keys
from pages.controls.learn.fields import read_field, read_words
from pages.controls.model_input.model_input import EXAMPLES
from pages.controls.state.session import SessionValue, event_value, set_widget, widget_value
from pages.controls.words import kept_entries, language
from pages.controls.words import translate as _
from server.settings import FIRST_MODEL
from views.core.component import view
from views.core.markdown import escape_markdown
from views.core.payload import pack

EXPLORE, OPEN = "pages/explore/walkthrough.py", "pages/inspect/checkpoint.py"
ATTENTION, GENERATE = "pages/explore/attention.py", "pages/explore/generate.py"
OWN = ("lang", "done")  # of this page's address; with anything else "/" is an older link to the Walkthrough
LONGEST, MOST = 90, 16  # characters and tokens of a text that fits the columns
SHOWN, NUMBERS = 8, 16  # next tokens, numbers of a vector
FIRST_TEXT = str(EXAMPLES[FIRST_MODEL]["text"])
SWAPS = (
    ("drank", "ate"),
    ("ate", "drank"),
    ("thirsty", "hungry"),
    ("hungry", "thirsty"),
    ("girl", "boy"),
    ("boy", "girl"),
    ("red", "blue"),
    ("blue", "red"),
)

ROW = SessionValue[int | None]("home row", lambda: None)  # the token that a step chose
OPENED = SessionValue[tuple[str, dict[str, str]] | None]("home column opened", lambda: None)

picture, older_link = view("learn/home", events=("open",)), view("learn/older_link")


def draw_home() -> None:
    if any(key not in OWN for key in st.query_params):
        older_link({}, key="older link")
        st.stop()
    language()
    opened = OPENED.get()
    if opened is not None:
        OPENED.set(None)
        page, entries = opened
        st.switch_page(page, query_params=entries | kept_entries())
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="home-head"):
        st.markdown("## " + _("Look inside a transformer"), width="content")
        st.caption(_("Type a few words: every number below is computed from them, by a real model, now."))
    start = st.container()
    text = read_field("home-text", _("text"), FIRST_TEXT, read_words(LONGEST))
    read = read_text(library.checkpoint(FIRST_MODEL), text, MOST).read
    assert isinstance(read, Encoding)
    with start:
        draw_start(text, read)
    draw_run(read)
    draw_doors(text)
    use_keys(None, None)  # the browser knows how far the reader is


def draw_run(read: Encoding) -> None:
    """One run of the first model in five columns, each of which opens the rest."""
    checkpoint, look = library.checkpoint(FIRST_MODEL), EXAMPLES[FIRST_MODEL]["look"]
    assert checkpoint.tokenizer is not None
    trace, block, head = library.traces.trace(FIRST_MODEL, read), f"blocks.{look['layer']}.", look["head"]
    stops = {
        _("x enters"): "resid_pre",
        _("attention"): "attn.out",
        _("MLP"): "mlp.out",
        _("x leaves"): "resid_post",
    }
    best = trace["logits"][0].softmax(-1).topk(SHOWN)
    next_tokens = [
        [(checkpoint.tokenizer.piece(id), share) for id, share in zip(ids, shares, strict=True)]
        for ids, shares in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
    named = {"block": look["layer"] + 1, "head": head + 1}
    columns = [
        ("tokens", _("Tokens"), _("the pieces of the text; choose one")),
        ("looks", _("What one head looks at"), _("from it: block {block}, head {head}").format(**named)),
        ("carries", _("What it carries"), _("the values it takes from there")),
        ("block", _("The block"), _("what the chosen token becomes")),
        ("next", _("The next token"), _("what the model would say after it")),
    ]
    said = _("“{last}” gives {share} of its attention to “{most}”; after it the model would say “{next}”.")
    last, chosen = len(read) - 1, ROW.get()
    row = last if chosen is None else min(chosen, last)
    header = {
        "columns": columns,
        "pieces": [piece.replace(" ", "·") for piece in read.pieces],
        "row": row,
        "stops": list(stops),
        "next": next_tokens,
        "said": said,
        "label": _("one run of the model {model}").format(model=FIRST_MODEL),
    }
    config = checkpoint.config
    shared = head * config.kv_heads // config.attention.heads  # several query heads may read one value head
    arrays = {
        "pattern": trace[f"{block}attn.pattern"][0, head],
        "values": trace[f"{block}attn.v"][0, :, shared, :NUMBERS],
        "stops": torch.stack([trace[block + hook][0, :, :NUMBERS] for hook in stops.values()], dim=1),
    }
    picture(pack(header, arrays), key="home columns", on={"open": open_column})


def open_column() -> None:
    """What a column shows, on the page that has all of it; of the text as it stands."""
    column, text = event_value("home columns", "open"), str(widget_value("home-text", FIRST_TEXT)).strip()
    run = {"model": FIRST_MODEL, "text": text}
    places: dict[Any, tuple[str, dict[str, str]]] = {
        "tokens": (COURSE, {"lesson": "tokens"}),
        "looks": (ATTENTION, run),
        "carries": (EXPLORE, run),
        "block": (COURSE, {"lesson": "block"}),
        "next": (GENERATE, run),
    }
    if column in places and len(text) <= LONGEST:
        OPENED.set(places[column])


def draw_start(text: str, read: Encoding) -> None:
    """Three steps that do something: look from another token, change a word, begin to learn."""
    last = len(read) - 1
    other = max(0, last - 1) if ROW.get() in (None, last) else last
    words = set(re.findall(r"\w+", text))
    said, instead = next((pair for pair in SWAPS if pair[0] in words), ("", ""))
    changed = re.sub(rf"\b{said}\b", instead, text) if said else FIRST_TEXT
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="home-start"):
        st.markdown(_("**Start here**"), width="content")
        look = _("1. Look from “{token}”").format(token=escape_markdown(read.pieces[other].strip()))
        st.button(look, key="home-look", on_click=ROW.set, args=(other,))
        change = (
            _("2. Say “{instead}” for “{said}”").format(said=said, instead=instead) if said else _("2. The first text")
        )
        st.button(change, key="home-change", on_click=set_widget, args=("home-text", changed))
        first = read_lesson(EVENING[0])
        st.page_link(
            COURSE,
            label=_("3. First lesson: {title}").format(title=first.title),
            icon=":material/play_circle:",
            query_params=address(first.name, "evening"),
        )


def draw_doors(text: str) -> None:
    course = lessons()
    minutes = sum(lesson.minutes for lesson in course if lesson.name in EVENING)
    following = next((name for name in EVENING if name not in done()), EVENING[0])
    learn, explore, own = st.columns(3, gap="small", border=True)
    with learn:
        st.page_link(
            COURSE,
            label=bold(_("Attention in an evening")),
            icon=":material/school:",
            width="stretch",
            query_params=address(following, "evening"),
        )
        st.caption(
            _("Lessons: {count} of {all}, about {minutes} minutes, each an experiment. Next: {title}.").format(
                count=len(EVENING), minutes=minutes, title=read_lesson(following).title, all=len(course)
            )
        )
    with explore:
        st.page_link(
            EXPLORE,
            label=bold(_("Explore")),
            icon=":material/search:",
            width="stretch",
            query_params={"model": FIRST_MODEL, "text": text},
        )
        st.caption(_("This text in full: change the mask, a head, a position, and see what follows."))
    with own:
        st.page_link(OPEN, label=bold(_("Open your model")), icon=":material/folder_open:", width="stretch")
        st.caption(_("GPT-2, BERT, T5, LLaMA and others: a folder, an upload or the hub, every weight accounted for."))


def bold(label: LiteralString) -> LiteralString:
    return f"**{label}**"
