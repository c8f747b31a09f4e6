"""What a page looks at: a model, and what it reads. The controls of both, which several pages share."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import streamlit as st

from engine.budget import budget
from engine.checkpoints import Checkpoint, shipped_names
from engine.checkpoints.locate import SHIPPED
from engine.checkpoints.run_steps import RUN, split_name
from engine.inputs.processors import PalettePixels
from engine.inputs.readers import (
    GAP,
    Kind,
    Reading,
    kind,
    knows_most,
    own_words,
    pictures,
    read_infill,
    read_picture,
    read_pixels,
    read_text,
    read_translation,
    readable,
    tokens,
)
from engine.inputs.readers import read_conversation as read_turns
from engine.json_text import parse_json
from engine.places import ASSETS
from engine.plurals import count_words
from engine.runtime import library
from engine.training.probe.probe import read_probe
from pages.controls.bar import bar
from pages.controls.model_input.conversation import (
    TALK,
    conversation_form,
    has_template,
    is_conversation,
    read_conversation,
    summarise,
)
from pages.controls.model_input.parameters import FIELDS as PARAMETERS
from pages.controls.model_input.picture import chosen_picture, show_ink
from pages.controls.model_input.sound import ELSEWHERE, heard_reading, sound_fields
from pages.controls.model_input.text_field import several_lines
from pages.controls.state.hidden import is_hidden
from pages.controls.state.history import is_drawn, went_back, write
from pages.controls.state.page_state import Here, PageRecord, Visits
from pages.controls.state.session import find_record
from pages.controls.visitor import recent
from server.settings import FIRST_MODEL, GIVEN
from views.core.codegen import Fields
from views.core.markdown import Markdown, escape_markdown

EXAMPLES = tomllib.loads((ASSETS / "texts" / "examples.toml").read_text())
PLAIN = "everyday"  # whose text any other model opens on
FIELDS: dict[Kind, list[str]] = {
    "text": ["text"],
    "pair": ["text", "second"],
    "question": ["text", "second"],
    "translation": ["text", "target"],
    "infill": ["text", "span"],
    "picture": ["picture"],
    "pixels": ["picture", "given"],
    "sound": ["target"],
}
EVERY_FIELD = tuple(parameter.name for parameter in PARAMETERS)
TYPED = ("text", "second", "target", "span")
LABELS = {parameter.name: parameter.label for parameter in PARAMETERS if parameter.name in TYPED}
ASKED = {"text": "question", "second": "context"}  # what they are called where a model answers
QUESTION = {"text": "Who has the red ball?", "second": "Max gave the red ball to Anna."}
# What stands in a field that no example fills, and in a control that the page does not have; a text is "".
EMPTY = {parameter.name: parameter.default for parameter in PARAMETERS if parameter.default != ""}
EMPTY |= {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
NO_TEXT = "No text. Still showing the previous one. Type a few words above."


@dataclass
class LastInput:
    """Last input of a page in this session: of which model, with the fields that one has, and the last input of a
    model that was not empty, with its name."""

    model: str = ""
    fields: Sequence[str] = ()
    last_fields: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class Subject:
    """A model by its name, and what it reads, of which at most `limit` tokens are drawn. `said` gives a field of it;
    the page shows `fields`, none where its model alone matters."""

    name: str
    checkpoint: Checkpoint
    reading: Reading
    limit: int
    said: Callable[[str], Any] = lambda name: field_value(name)
    fields: Sequence[str] = ()


def nothing_more(here: Here) -> None:
    pass


def subject(
    here: Here, more: Callable[[Here], None] = nothing_more, limit: int = GIVEN.max_tokens, hears: bool = False
) -> Subject:
    """Draws the controls in one row, `more` behind them; ends the page with a sentence where nothing can be read, and
    for a model of sounds unless the page `hears`."""
    if controls(here, more) == "sound" and not hears:
        st.info(ELSEWHERE)
        st.stop()
    name: str = here["model"]
    try:
        checkpoint = library.checkpoint(name)
        shown = reading(checkpoint, limit)
    except (ValueError, OSError) as error:
        st.warning(escape_markdown(error))
        st.stop()
    said: Callable[[str], Any] = field_value
    if len(shown.read):
        keep_read(here)
    else:
        said = read_before(name).get
        shown = reading(checkpoint, limit, said)
        st.info(NO_TEXT)
    fields = fields_read(checkpoint)
    headline(here, checkpoint, fields)
    return Subject(name, checkpoint, shown, min(limit, checkpoint.model.config.context), said, fields)


def subject_alone(here: Here) -> Subject:
    """Draws the menu of models alone, for a page that reads texts of its own; the subject reads the model's example."""
    models = known_models(here)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="controls"):
        here.menu("model", models, width=145, help=about_models())
    name: str = here["model"]
    try:
        checkpoint = library.checkpoint(name)
        if kind(checkpoint) == "sound":
            raise ValueError(ELSEWHERE)
        said = {field: EMPTY.get(field, "") for field in EVERY_FIELD} | example(name)
        shown = reading(checkpoint, budget.max_tokens, said.get)
    except (ValueError, OSError) as error:
        st.warning(escape_markdown(error))
        st.stop()
    headline(here, checkpoint, ())
    return Subject(name, checkpoint, shown, min(budget.max_tokens, checkpoint.model.config.context), said.get)


def known_models(here: Here) -> list[str]:
    """Names for the menu of models, to which the state's model is fitted."""
    asked = [st.query_params.get("model", ""), here.begin("model")]
    models = [FIRST_MODEL, *(name for name in library.names(*recent(), *asked) if name != FIRST_MODEL)]
    here.fit("model", models)
    return models


def controls(here: Here, more: Callable[[Here], None] = nothing_more, labels: Mapping[str, str] = {}) -> Kind:
    """The row of what the model reads, of which model, and of `more`; says what kind of thing that model reads."""
    models = known_models(here)
    name: str = here.begin("model")
    named: Checkpoint | None = None
    try:
        named = library.checkpoint(name)
        wanted, most = kind(named), pixels(named)
    except (ValueError, OSError):
        wanted, most = "text", 1  # the page says below why this model does not open
    begin_fields(here, name, wanted)
    talks = False
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="controls"):
        if TALK[0] in here.state.parameters:
            talks = choose_input(here, named)
        if not talks:
            show_fields(here, wanted, most, labels)
        if {"text", "target", "span"} & set(FIELDS[wanted]) and not talks:
            about = "Puts the text here that was written for this model."
            put = here.state.reset
            st.button("Example", type="tertiary", key="example text", help=about, on_click=put, args=EVERY_FIELD)
        here.menu("model", models, width=145, help=about_models())
        more(here)
    if named is not None and talks:
        conversation_form(here, named)
    several_lines(field for field in FIELDS[wanted] if field in TYPED)
    if named is not None and wanted in ("picture", "pixels") and st.session_state.get("upload"):
        show_ink(named, st.session_state.upload.getvalue())
    return wanted


def choose_input(here: Here, checkpoint: Checkpoint | None) -> bool:
    """Draws the choice between a text and a conversation where the model has a chat template; True for the latter."""
    if checkpoint is None or not has_template(checkpoint):
        here.leave_out(*TALK)
        return False
    talks = here.segments("reads", width=210) == "conversation"
    here.leave_out(*(FIELDS["text"] if talks else TALK[1:]))
    return talks


def begin_fields(here: Here, name: str, wanted: Kind) -> None:
    """Each model starts on its own example; a text the person wrote, or a link hid, stays where the new model reads
    texts too, and what stood beside it does not. A page that opens on another model, which does not know most of that
    text, has the example."""
    found, read = example(name), find_record(LastInput)
    named = "text" in st.query_params
    here.set_defaults(**{field: found.get(field, EMPTY.get(field, "")) for field in EVERY_FIELD})
    for field in FIELDS[wanted]:
        here.begin(field)
    if read.model != name:
        own = here["text"] != here.defaults["text"]
        if own and not named and read.model and not is_known(name, here["text"]):
            here.set("text", here.defaults["text"])
            own = False
        for field in EVERY_FIELD[1:]:
            if (not own or field in TYPED) and field not in st.query_params and not is_hidden(field):
                here.set(field, "" if own else here.defaults[field])
    read.model, read.fields = name, FIELDS[wanted]


def is_known(name: str, text: str) -> bool:
    """False if the model opens, and knows less than the half of a text's tokens."""
    try:
        checkpoint = library.checkpoint(name)
        return knows_most(checkpoint, tokens(checkpoint, text))
    except (ValueError, OSError):
        return True


def open_on_looked_at(here: Here, models: Sequence[str]) -> None:
    """Opens a page that reads nothing, and whose address names no model, on the model that was looked at."""
    name: str = find_carried().values.get("model", "")
    if name in models and not (is_drawn("model") or went_back() or "model" in st.query_params):
        here.set("model", name)
        write("model", name)


def look_at(name: str) -> None:
    """The other pages go on with the model that such a page shows."""
    if library.knows(name):
        find_carried().values["model"] = name


def find_carried() -> PageRecord:
    """Finds what goes along from page to page."""
    return find_record(Visits).carried


def show_fields(here: Here, wanted: Kind, most: int, labels: Mapping[str, str]) -> None:
    """The controls of what a model reads; of a picture at most `most` pixels can be given."""
    labels = {**labels, **(ASKED if wanted == "question" else {})}
    if wanted == "sound":
        sound_fields()
    for field in FIELDS[wanted]:
        if field == "picture":
            last = len(pictures()[0]) - 1
            here.number(field, last, label=f"picture, 0 to {last}", width=130)
            with st.popover("your own", width=100, key="own picture"):
                st.file_uploader("A picture (PNG, JPEG, …)", key="upload")
        elif field == "given":
            here.slider(field, most, width="stretch")
        else:
            named = {"label": escape_markdown(labels[field])} if field in labels else {}
            here.text(field, live="150ms", width="stretch", **named)


def pixels(checkpoint: Checkpoint) -> int:
    """Number of pixels that a model which draws pictures reads, as far as this page goes."""
    processor = checkpoint.processor
    size = processor.image.size if isinstance(processor, PalettePixels) else (1, 1)
    return min(size[0] * size[1], budget.max_tokens - 1)


def headline(here: Here, checkpoint: Checkpoint, fields: Sequence[str], heads: bool = True) -> None:
    said = {field: field_value(field) for field in fields}
    if TALK[1] in said:
        said["text"] = summarise(read_conversation(field_value))
    if "picture" in said and st.session_state.get("upload"):
        said["picture"] = "of your own"
    about = "\n".join(filter(None, [checkpoint.card.get("about"), sizes(checkpoint)]))
    named = " · ".join(filter(None, [here["model"], adapters_line(checkpoint)]))
    bar(named, said, about, {"layer": 0, "head": 0, **look()} if heads else None, [here["model"]])


def adapters_line(checkpoint: Checkpoint) -> str:
    """Says that the weights hold adapters, and of which base; empty where they hold none."""
    bases = dict.fromkeys(adapter.base.rstrip("/").rpartition("/")[2] or "its base" for adapter in checkpoint.adapters)
    return f"adapter on {', '.join(bases)}" if bases else ""


def sizes(checkpoint: Checkpoint) -> str:
    config = checkpoint.model.config
    blocks = count_words(config.layers, "block")
    if config.encoder:
        blocks = f"{config.encoder.layers} + {blocks}"
    heads = count_words(config.attention.heads, "head")
    count = sum(parameter.numel() for parameter in checkpoint.model.parameters())
    return f"{blocks} of {heads} · d {config.d_model} · {count:,} parameters"


def looked_at() -> tuple[str, dict[str, Any]]:
    """The model and the fields of the page that read something last; for pages that read nothing."""
    values = find_carried().values
    return values.get("model", FIRST_MODEL), {field: values[field] for field in find_record(LastInput).fields}


def field_value(field: str) -> Any:
    if field in ("model", *EVERY_FIELD, *TALK) and not is_drawn(field):
        return find_carried().values.get(field, EMPTY.get(field, ""))
    return st.session_state.get(field, EMPTY.get(field, ""))


def reading(checkpoint: Checkpoint, limit: int = GIVEN.max_tokens, said: Callable[[str], Any] = field_value) -> Reading:
    """Reads the fields above the picture for the model. Raises ValueError, with a sentence, for what it cannot read."""
    limit = min(limit, checkpoint.model.config.context)
    if is_conversation(checkpoint, said):
        return read_turns(checkpoint, read_conversation(said), limit)
    match kind(checkpoint):
        case "pair" | "question":
            return read_text(checkpoint, said("text"), limit, said("second"))
        case "translation":
            return read_translation(checkpoint, said("text"), said("target"), limit)
        case "infill":
            return read_infill(checkpoint, said("text"), said("span"), limit)
        case "sound":
            return heard_reading(checkpoint, said("target"), limit)
        case "picture":
            return read_picture(checkpoint, chosen_picture(checkpoint, said), limit)
        case "pixels":
            settings = {key: said(key) for key in ("temperature", "top_k", "top_p")}
            return read_pixels(checkpoint, chosen_picture(checkpoint, said), said("given"), limit, settings, seed())
        case _:
            return read_text(checkpoint, said("text"), limit)


def is_heard(here: Here) -> bool:
    """True if the page's model hears; False for one that does not open."""
    try:
        return kind(library.checkpoint(here["model"])) == "sound"
    except (ValueError, OSError):
        return False


def fields_read(checkpoint: Checkpoint) -> Sequence[str]:
    """Fields of what the model reads now: its kind's, or the conversation in place of a text."""
    return TALK if is_conversation(checkpoint, field_value) else FIELDS[kind(checkpoint)]


def texts_read(fields: Sequence[str]) -> list[str]:
    """Texts in the fields that the page shows; none of a picture."""
    if TALK[1] in fields:
        return [summarise(read_conversation(field_value))]
    return [str(field_value(name)) for name in fields if name not in ("picture", "given") and field_value(name)]


def keep_read(here: Here) -> None:
    find_record(LastInput).last_fields = {field: field_value(field) for field in EVERY_FIELD} | {"model": here["model"]}


def read_before(name: str) -> dict[str, Any]:
    """Fields of what the model called `name` read before its text was emptied, or of its example."""
    kept = find_record(LastInput).last_fields
    return kept if kept.get("model") == name else {field: EMPTY.get(field, "") for field in EVERY_FIELD} | example(name)


@lru_cache(maxsize=1)
def about_models() -> Markdown:
    """Description of what each shipped model reads and does, a line each, for the help of the menu."""
    cards = {name: parse_json((SHIPPED / name / "card.json").read_text()) for name in shipped_names()}
    lines = (f"- **{escape_markdown(name)}**: {escape_markdown(card['about'])}" for name, card in cards.items())
    return Markdown("\n".join(lines))


def example(name: str) -> dict[str, Any]:
    """Chooses the text to open `name` on: what was written for it, the first model's text, or a few of its own
    words."""
    found: dict[str, Any] = EXAMPLES.get(name, {"text": EXAMPLES[PLAIN]["text"]})
    try:
        checkpoint = library.checkpoint(name)
    except (ValueError, OSError):
        return found  # the page says below why this model does not open
    if name in EXAMPLES or "text" not in FIELDS[kind(checkpoint)]:
        return found
    if kind(checkpoint) == "infill":
        return {"text": f"{found['text']} {GAP}"}
    tokenizer, head = checkpoint.tokenizer, checkpoint.model.config.head.kind
    if head == "masked" and tokenizer is not None and tokenizer.mask_id is not None:
        found = {"text": f"{found['text']} {tokenizer.piece(tokenizer.mask_id)}"}
    if head == "span":
        found = QUESTION if kind(checkpoint) == "question" else {"text": " ".join(QUESTION.values())}
    found = probe_of_run(name) or found
    fits = readable(checkpoint, found["text"], found.get("second", ""), whole=True)
    return found if fits else {"text": own_words(checkpoint)}


def probe_of_run(name: str) -> dict[str, Any]:
    """The text that a training run looks at as it learns; empty for any other model."""
    if not name.startswith(RUN):
        return {}
    try:
        probe = read_probe(Path(budget.runs_folder) / split_name(name)[0])
    except (ValueError, OSError):
        return {}  # damaged
    return {} if probe is None or probe.text is None else {"text": probe.text}


def look() -> dict[str, int]:
    """The head and row to look at first: those that the example is there for, where it is shown."""
    known = find_carried()
    shown = all(known.values[field] == usual for field, usual in known.defaults.items() if field in EVERY_FIELD)
    found: dict[str, int] = EXAMPLES.get(known.values.get("model", ""), {}).get("look", {}) if shown else {}
    return found


def fields_of(subject: Subject) -> Fields:
    """Contents of the page's fields now."""
    fields = fields_said(subject.checkpoint, subject.limit, subject.said)
    if TALK[1] not in subject.fields:
        return fields
    return dataclasses.replace(fields, conversation=parse_json(field_value(TALK[1])))


def fields_said(checkpoint: Checkpoint, limit: int, said: Callable[[str], Any]) -> Fields:
    """`said` gives what stands in a field by its name."""
    asked = kind(checkpoint)
    here = FIELDS[asked]
    own = bool(said("upload"))
    return Fields(
        kind=asked,
        limit=limit,
        **{field: said(field) for field in ("text", "second", "target", "span", "given") if field in here},
        picture=None if own or "picture" not in here else int(said("picture")),
        settings={key: said(key) for key in ("temperature", "top_k", "top_p")} if asked == "pixels" else {},
        seed=seed(),
    )


def seed() -> int:
    written = st.query_params.get("seed", "0")
    return int(written) if written.isascii() and written.isdigit() and len(written) < 10 else 0
