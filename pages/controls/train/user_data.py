"""A person's own data on the page about training: pasted, uploaded or from a hub, looked at, and made into a recipe."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from shutil import rmtree
from typing import Any

import pandas
import streamlit as st

from engine.budget import budget
from engine.characters import cut_characters, keep_words
from engine.data.kinds.hub import INSTALL, Hub, has_datasets, read_hub
from engine.data.kinds.rows import Rows
from engine.data.kinds.text import Text
from engine.data.own import Columns
from engine.data.stories import story
from engine.data.table import KINDS, Table, join_held_out, read_table
from engine.data.text import read_text
from engine.plurals import count_words
from engine.training import Recipe
from engine.training.run.atomic import replace_atomically
from engine.training.run.folder import size
from engine.training.run.visitor_texts import DATA
from pages.controls.state.page_state import Here, PageState
from pages.controls.state.session import find_record, set_widget, widget_value
from pages.controls.train.data_recipe import SHARE, objectives, of_table, of_text
from pages.controls.train.recipe_options import format_value
from pages.controls.train.run_state import recipe_of_run
from server import settings
from views.core.markdown import escape_markdown

# --- Files in the folder of the runs ---


DIGEST = re.compile(r"[0-9a-f]{32}")
LONGEST = 60  # characters of a name
MIB = 2**20


def store_file(name: str, data: bytes) -> Path:
    """The file, under a name that nothing can be made of but a name. Raises ValueError where it is too large."""
    if len(data) > budget.max_data:
        raise ValueError(
            f"{file_name(name)} must have at most {budget.max_data // MIB:,} MiB, got {len(data) / MIB:,.1f}; take a "
            "part of it, or raise LOUPE_MAX_DATA_MIB where Loupe is started."
        )
    file = folder() / blake2b(name.encode() + b"\0" + data, digest_size=16).hexdigest() / file_name(name)
    if not file.is_file():
        make_room(len(data))
        file.parent.mkdir(parents=True, exist_ok=True)
        with replace_atomically(file) as partial:
            partial.write_bytes(data)
    return file


def find_file(digest: str) -> Path | None:
    """The file of that digest, if it is here."""
    if not DIGEST.fullmatch(digest) or not (folder() / digest).is_dir():
        return None
    return next((path for path in (folder() / digest).iterdir() if not path.name.startswith(".")), None)


def make_room(need: int) -> None:
    """Deletes what no run learns from, the oldest first. Raises ValueError where that is not enough."""
    taken = size(folder()) if folder().is_dir() else 0
    if taken + need > settings.DATA_DISK:
        recipes = [path.read_text(errors="replace") for path in folder().parent.glob("*/recipe.toml")]
        for old in sorted(folder().iterdir(), key=lambda path: path.stat().st_mtime):
            if taken + need > settings.DATA_DISK and not any(old.name in recipe for recipe in recipes):
                taken -= size(old)
                rmtree(old, ignore_errors=True)
    if taken + need > settings.DATA_DISK:
        raise ValueError(
            f"all data that was brought here may take {settings.DATA_DISK // MIB:,} MiB, which the runs' own data "
            "fills; delete runs, or raise LOUPE_DATA_DISK_MIB where Loupe is started."
        )


def folder() -> Path:
    return Path(budget.runs_folder).resolve() / DATA


def file_name(name: str) -> str:
    """The last part of a path, letters, digits, spaces, and - _ . in it."""
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    last = keep_words(last, " .-", " ").strip(" .")
    stem, dot, suffix = last.rpartition(".")
    short = cut_characters(last, LONGEST)
    if dot and len(suffix) < 10:
        short = f"{cut_characters(stem, LONGEST - len(suffix))}.{suffix}"
    return short or "data"


# --- Columns of a table ---


FORM = {
    ("text",): "texts",
    ("messages",): "conversations",
    ("text", "label"): "texts with a label",
    ("source", "target"): "pairs of texts",
    ("tokens", "tags"): "words with tags",
    ("text", "pair", "label"): "two texts with a label",
    ("question", "context", "answer", "start"): "questions answered in a text",
}
GUESSES = {  # names that columns often have
    "text": (
        "text",
        "sentence",
        "content",
        "review",
        "body",
        "question",
        "sentence1",
        "premise",
        "question1",
        "text1",
        "text_a",
        "query",
    ),
    "pair": (
        "pair",
        "sentence2",
        "hypothesis",
        "question2",
        "text2",
        "text_b",
        "second",
        "sentence",
        "passage",
        "document",
    ),
    "label": ("label", "labels", "class", "category", "sentiment", "answer", "gold_label"),
    "source": ("source", "src", "input", "en", "english", "question", "prompt"),
    "target": ("target", "tgt", "output", "fr", "french", "answer", "completion"),
    "tokens": ("tokens", "words", "sentence"),
    "tags": ("tags", "ner_tags", "pos_tags", "labels"),
    "question": ("question", "query"),
    "context": ("context", "passage", "paragraph", "document", "text"),
    "answer": ("answer", "answers", "answer_text", "answers.text"),
    "messages": ("messages", "conversations", "conversation"),
    "start": ("start", "answer_start", "answer_starts", "answers.answer_start", "offset"),
}
ROWS = 6  # that are shown
WIDE = 176  # CSS pixels


def first_rows(name: str, table: Table) -> None:
    said = f"{escape_markdown(name)} · {count_words(table.count - table.held_out, 'row')}"
    said += f", {count_words(len(table.columns), 'column')}"
    said += f" · {count_words(table.held_out, 'row')} held out" if table.held_out else ""
    st.caption(f"{said} · {escape_markdown(table.format)}" if table.format else said)
    rows = table.first(ROWS)
    with st.container(key="first rows"):
        st.dataframe(pandas.DataFrame(rows, range(1, len(rows) + 1), table.columns), height="content")


def columns_of(table: Table, turn: str, learned: Recipe | None) -> dict[str, str]:
    """Column of the table by the name that a recipe has for it: at first as one `learned` of it."""
    forms, named = [form for form in FORM if len(form) <= len(table.columns)], dict[str, str]()
    if learned is not None:
        own = learned.data.table
        named = {name: getattr(own, name) for name in own.names} if isinstance(own, Columns) else {}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="columns"):
        at = forms.index(tuple(named) if tuple(named) in forms else guess_form(table, forms))
        form = st.selectbox("learn from", forms, at, FORM.__getitem__, key=f"{turn} form", width=WIDE)
        guessed, chosen = guess_columns(table, form) | (named if tuple(named) == form else {}), dict[str, str]()
        for key in form:
            left = [name for name in table.columns if name not in chosen.values()]
            at = left.index(guessed[key]) if guessed.get(key) in left else 0
            chosen[key] = st.selectbox(
                f"column of the {escape_markdown(key)}", left, at, key=f"{turn} {form} {key}", width=WIDE
            )
    return chosen


def guess_form(table: Table, forms: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The form that the names of the columns tell, else texts alone, or pairs where there are two columns."""
    told = (form for form in sorted(forms, key=len, reverse=True) if len(guess_columns(table, form)) == len(form))
    return next(told, forms[0])


def guess_columns(table: Table, form: tuple[str, ...]) -> dict[str, str]:
    """Column of each part of a form that its name tells, none for two."""
    found: dict[str, str] = {}
    for key in form:
        left = (name for name in table.columns if name not in found.values() and name.casefold() in GUESSES[key])
        if (name := next(left, None)) is not None:
            found[key] = name
    return found


def objective_of(offered: list[str], turn: str, learned: Recipe | None) -> str:
    at = offered.index(learned.objective.kind) if learned and learned.objective.kind in offered else 0
    return st.selectbox("to be learned", offered, at, format_value, key=f"{turn} objective", width=220)


# --- The data of the page ---


LEAST = 200  # characters that something can be learned from
SHOWN = 8  # lines
WIDTH = 400  # characters of a line that is shown
EXAMPLES, EXAMPLE_SEED = 60, 0  # stories to paste


@dataclass
class Brought:
    """State of the form: what is wrong with what was brought, how often its boxes were emptied, and what was asked of
    a hub; what the run had `learned` of each file that the page showed when the file was first seen."""

    problem: str = ""
    turn: int = 0
    hub: dict[str, Any] | None = None
    learned: dict[str, Recipe | None] = field(default_factory=dict)

    def keep(self, state: PageState, name: str, data: bytes, parameter: str = "data") -> None:
        """Keeps a file, whose digest the parameter is."""
        try:
            file = store_file(name, data)
        except (ValueError, OSError) as error:
            self.problem = str(error).replace(f"{folder()}/", "")
            return
        state.choose(parameter, file.parent.name)
        if parameter == "data":
            state.choose("held_out_data", "")
            self.hub = None
        self.turn += 1  # an empty box: the server need not keep the file twice
        self.problem = ""


@dataclass(frozen=True)
class Own:
    """`task` names the file, and what is learned from it, for the controls of its recipe."""

    task: str
    title: str
    recipe: Recipe


def own_data(here: Here) -> Own | None:
    """Draws the controls; None as long as there is nothing to learn from."""
    digest, brought = here.begin("data"), find_record(Brought)
    file = find_file(digest)
    with st.container(key="own data"):
        bring(here.state, brought, file is None and brought.hub is None)
        if brought.problem:
            st.warning(escape_markdown(brought.problem))
        try:
            if file is not None:
                return of_file(here, file)
            return None if brought.hub is None else of_hub(brought.hub)
        except ValueError as error:
            st.warning(escape_markdown(str(error).replace(f"{folder()}/{digest}/", "")))
            return None


def bring(state: PageState, brought: Brought, first: bool) -> None:
    """Offers the form at once where there is nothing yet, and behind a button where there is."""
    pasted, uploaded = f"pasted {brought.turn}", f"data file {brought.turn}"

    def read_pasted() -> None:
        text = widget_value(pasted, "")
        if (size := len(text.strip())) >= LEAST:
            return brought.keep(state, "pasted.txt", text.encode())
        brought.problem = f"A text must have at least {LEAST} characters to learn from, got {size}; paste more."

    def paste_example() -> None:
        set_widget(pasted, "\n\n".join(story(EXAMPLE_SEED, index) for index in range(EXAMPLES)))

    def read_uploaded() -> None:
        if (file := widget_value(uploaded)) is not None:
            brought.keep(state, file.name, file.getvalue())

    with st.container(key="bring data") if first else st.popover("Other data", key="bring data"):
        left, right = st.columns(2, gap="medium")
        with left:
            st.text_area("paste a text", key=pasted, height=136, placeholder="Any text, in any language.")
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.button("Learn from this text", on_click=read_pasted, key="use pasted")
                about = f"Puts {EXAMPLES} children's stories there."
                st.button("Example", on_click=paste_example, key="example of pasted", type="tertiary", help=about)
        with right:
            st.file_uploader(
                f"or upload a file: {', '.join(KINDS)}, up to {budget.max_data // MIB:,} MiB",
                [k[1:] for k in KINDS],
                key=uploaded,
                on_change=read_uploaded,
                max_upload_size=max(1, budget.max_data // MIB),
            )
            from_a_hub(state, brought)


def from_a_hub(state: PageState, brought: Brought) -> None:
    if not has_datasets():
        st.caption(f"A data set by its name on the hub needs the package datasets where Loupe runs; {INSTALL}.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input("or a data set of the hub", key="hub name", placeholder="stanfordnlp/imdb", width=190)
        st.text_input("subset", key="hub subset", width=90)
        st.text_input("split", "train", key="hub split", width=90)
        st.number_input("rows", 2, 1_000_000, 10_000, 1_000, key="hub rows", width=120)
        st.button("Fetch", key="fetch", on_click=fetch, args=(state, brought))


def fetch(state: PageState, brought: Brought) -> None:
    fields = {key: widget_value(f"hub {key}") for key in ("name", "subset", "split", "rows")}
    asked: dict[str, Any] = {key: one.strip() if isinstance(one, str) else one for key, one in fields.items()}
    try:
        Hub(text="text", **asked)  # says what is no name
        with st.spinner("Asking the hub …"):
            read_hub(**asked)
    except ValueError as error:
        brought.problem = str(error)
        return
    state.choose("data", "")
    brought.hub, brought.problem = asked, ""


def of_file(here: Here, file: Path) -> Own:
    turn, learned = f"own {file.parent.name}", learned_of(here, file)
    if file.suffix.lower() == ".txt":
        text = text_in(str(file))
        if len(text) < LEAST:
            raise ValueError(f"{file.name} must have at least {LEAST} characters to learn from, got {len(text)}.")
        first_lines(file.name, text)
        data = Text(str(file), SHARE)
        objective = objective_of(objectives(data), turn, learned)
        return Own(f"{turn} {objective}", file.name, of_text(data, objective, file.name, text))
    header = True
    if file.suffix.lower() in (".csv", ".tsv"):
        named = learned is None or learned.data.expect(Rows).header
        header = st.toggle("the first line names the columns", named, key=f"{turn} header")
    other = held_out_file(here, turn)
    table = table_in(str(file), header)
    if other is not None:
        table = join_held_out(table, table_in(str(other), header), other.name)
    return of_rows(turn, file.name, table, lambda columns: rows_of(file, other, header, columns), learned)


def learned_of(here: Here, file: Path) -> Recipe | None:
    """The recipe of the run that is shown, where that learned from the file."""
    known = find_record(Brought).learned
    if file.parent.name not in known:
        run = recipe_of_run(here.begin("run"))
        known[file.parent.name] = run if run and getattr(run.data.table, "path", "") == str(file) else None
    return known[file.parent.name]


def held_out_file(here: Here, turn: str) -> Path | None:
    """The file whose rows are measured on, for those whose data comes split; None: a share of the rows is."""
    file, brought = find_file(here.begin("held_out_data")), find_record(Brought)
    if file is not None:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(f"{escape_markdown(file.name)} is measured on, and never learned from", width="content")
            st.button("Hold out a share instead", key=f"{turn} no held out", on_click=here.state.choose,
                      args=("held_out_data", ""), type="tertiary")  # fmt: skip
        return file
    key = f"{turn} held-out file {brought.turn}"

    def read_held_out() -> None:
        if (file := widget_value(key)) is not None:
            brought.keep(here.state, file.name, file.getvalue(), "held_out_data")

    with st.popover("Held-out file", type="tertiary", help=f"Without one, {SHARE:.0%} of the rows are held out."):
        st.file_uploader(
            "a file with the same columns, to measure on",
            [kind[1:] for kind in KINDS if kind != ".txt"],
            key=key,
            on_change=read_held_out,
            max_upload_size=max(1, budget.max_data // MIB),
        )
    return None


def of_hub(asked: dict[str, Any]) -> Own:
    turn, title = f"own {' '.join(map(str, asked.values()))}", asked["name"].replace("/", "-")
    return of_rows(turn, title, read_hub(**asked), lambda columns: Hub(**columns, **asked, held_out=SHARE))


def rows_of(file: Path, held_out: Path | None, header: bool, columns: dict[str, Any]) -> Rows:
    other = "" if held_out is None else str(held_out)
    return Rows(path=str(file), held_out_path=other, header=header, held_out=SHARE, **columns)


def of_rows(
    turn: str, title: str, table: Table, make: Callable[[dict[str, Any]], Rows | Hub], learned: Recipe | None = None
) -> Own:
    """`make` is given the names of the columns that are learned from."""
    first_rows(title, table)
    data = make(columns_of(table, turn, learned))
    objective = objective_of(objectives(data), f"{turn} {data.form}", learned)
    task = f"{turn} {objective} {sorted(asdict(data).items())}"
    return Own(task, title, of_table(data, objective, title, table))


@st.cache_resource(max_entries=4, show_spinner=False)
def text_in(path: str) -> str:
    return read_text(path)


@st.cache_resource(max_entries=4, show_spinner=False)
def table_in(path: str, header: bool) -> Table:
    return read_table(path, header)


def first_lines(name: str, text: str) -> None:
    lines = text.removesuffix("\n").split("\n")
    st.caption(
        f"{escape_markdown(name)} · {len(text):,} characters, {len(set(text)):,} different ones · "
        f"{count_words(len(lines), 'line')} · the last {SHARE:.0%} are held out"
    )
    shown = [line if len(line) <= WIDTH else f"{line[:WIDTH]} …" for line in lines[:SHOWN]]
    with st.expander("The first lines", key="first lines"):
        st.code("\n".join(shown), language=None, line_numbers=True, wrap_lines=True)
