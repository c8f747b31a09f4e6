"""Share & export of a chart or a table: its link, the Python that computes it, its data, and a file that works alone.

The picture of a chart is in the chart's own toolbar, as SVG or PNG.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from typing import LiteralString
from urllib.parse import urlencode

import streamlit as st

from engine.characters import keep_words
from pages.controls.prediction import PREDICT, RUN
from pages.controls.share.class_link import class_link
from pages.controls.share.hiding import hideable_names
from pages.controls.share.links import INSTRUCTION, LONGEST_INSTRUCTION, fit_address
from pages.controls.state.hidden import HIDE
from pages.controls.state.history import READABLE
from pages.controls.state.session import widget_value
from pages.controls.words import translate
from pages.controls.words import translate as _
from views.core.component import PAGE
from views.core.markdown import escape_markdown
from views.core.matrix_files import Matrix, as_file
from views.core.table_files import FORMATS, Format, Table, table_file

FORMAT_NAMES: dict[Format, str] = {"csv": "CSV", "parquet": "Parquet", "npz": "npz"}
MIME_TYPES: dict[Format, str] = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "npz": "application/zip",
}
MOST_ROWS = 2**20  # of a table; what spreadsheets open
QR_WIDTH = 240  # CSS pixels
TEACH = "pages/learn/teach.py"
THEME = "embed_options"  # Streamlit's own, which fixes light or dark

Data = Callable[[], Table | Matrix]


def share_panel(
    title: str,
    link: Mapping[str, str] | Callable[[], Mapping[str, str]],
    hideable: Sequence[str] = (),
    python: Callable[[], str] | None = None,
    tables: Mapping[str, Data | str] | None = None,
    html: Callable[[], str] | None = None,
    *,
    label: LiteralString = "",
    key: str,
    names: Sequence[str] = (),
    predicts: bool = False,
    hidden: Sequence[str] = (),
) -> None:
    """Draws the button below a chart, and its panel once it is opened; a file is made when it is downloaded.

    `link` is the query of the link, or makes it when the panel is opened (`links.address_now`); `hideable` are keys of
    `hideable_names` that a link for a class can hide, `hidden` are those that each of them hides, and `predicts` says
    that it can ask for a guess first. `tables` are by the title to choose from; a text in place of one says why there
    is no file of it. `html` is the text of the file (`views.charts.standalone.chart_file`). Files are called by `title`
    and `names`: the model, what is chosen in it. What the callables need they must hold: they run outside of the page's
    script.
    """

    @st.fragment(key=key)
    def draw() -> None:
        panel = st.popover(label or _("Share & export"), key=key, on_change="rerun", icon=":material/ios_share:")
        if not panel.open:
            return
        with panel:
            offer_link(link() if callable(link) else link, hideable, key, predicts, hidden)
            if python is not None:
                with st.container(gap="small"):
                    heading("Python", _("run it in Loupe’s folder"))
                    try:
                        st.code(python(), language="python", wrap_lines=True)
                    except ValueError as error:
                        st.caption(escape_markdown(error))
            if tables:
                offer_data(tables, [title, *names], key)
            if html is not None:
                with st.container(horizontal=True, vertical_alignment="center"):
                    heading(_("Interactive page"), _("works offline"))
                    st.download_button(
                        "HTML", html, f"{file_stem([title, *names])}.html", "text/html", key=f"{key} html",
                        on_click="ignore", width="content",
                    )  # fmt: skip

    draw()


def heading(name: LiteralString, note: LiteralString = "") -> None:
    st.markdown(f"**{name}** &nbsp;:gray[{note}]" if note else f"**{name}**")


def offer_link(
    link: Mapping[str, str], hideable: Sequence[str], key: str, predicts: bool, always: Sequence[str] = ()
) -> None:
    heading(_("Link"))
    if st.toggle(_("keep light or dark"), key=f"{key} theme"):
        link = {**link, THEME: "dark_theme" if st.context.theme.type == "dark" else "light_theme"}
    show_link(link)
    heading(_("For a class"))
    names = {name: translate(said) for name, said in hideable_names().items()}
    known = [name for name in hideable if name in names]
    hidden = known and st.pills(
        _("hide"),
        known,
        selection_mode="multi",
        key=f"{key} hide",
        format_func=lambda one: escape_markdown(names[one]),
        help=_("A control that is hidden keeps what the link gives it."),
    )
    instruction = st.text_area(
        _("question or instruction"),
        key=f"{key} instruction",
        height=68,
        max_chars=LONGEST_INSTRUCTION,
        help=_("Shown above the page."),
    ).strip()
    asks = predicts and st.toggle(
        _("ask for a guess first"), key=f"{key} predict", help=_("A guess comes before the picture.")
    )
    entries = {HIDE: ",".join([*always, *hidden]), INSTRUCTION: instruction, PREDICT: RUN if asks else ""}
    said = {name: text for name, text in entries.items() if text}
    if st.toggle(_("show to the class"), key=f"{key} class"):
        show_link({**link, **said}, outside=True)
    step = {"page": widget_value(PAGE, ""), "query": {**link, HIDE: entries[HIDE]}, "sentence": instruction}
    st.page_link(
        TEACH, label=_("Class session with it"), icon=":material/groups:", query_params={"step": json.dumps(step)}
    )


def show_link(link: Mapping[str, str], outside: bool = False) -> None:
    """Shows a link; with `outside` as another machine opens it, with its QR code."""
    address, sentence = link_address(link)
    if not sentence and outside:
        found = class_link(address)
        address = found.address
        if found.warning:
            st.warning(escape_markdown(found.warning))
        if found.code:
            draw_svg(found.code, _("the link as a QR code"), QR_WIDTH)
    if sentence:
        st.caption(escape_markdown(sentence))
    else:
        st.code(address, language=None, wrap_lines=True)


def draw_svg(svg: str, name: str, width: int) -> None:
    """Draws an SVG without a namespace as a picture: Streamlit takes it out of HTML."""
    alone = svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    coded = b64encode(alone.encode()).decode()
    st.html(f'<img alt="{escape(name)}" width="{width}" src="data:image/svg+xml;base64,{coded}">')


def link_address(said: Mapping[str, str]) -> tuple[str, str]:
    """The whole address, and a sentence in its place where it would be too long to be read."""
    kept = fit_address(said)
    if kept != dict(said):
        lost = " and ".join(sorted(set(said) - set(kept)))
        sentence = _("Too long for a link: {lost}. At most {most:,} characters are read; shorten it.")
        return "", sentence.format(lost=lost, most=READABLE)
    page = (st.context.url or "http://localhost/").partition("?")[0].partition("#")[0]
    return f"{page}?{urlencode(said, safe=',')}", ""


def offer_data(tables: Mapping[str, Data | str], names: Sequence[str], key: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        heading(_("Data"))
        chosen = next(iter(tables))
        if len(tables) > 1:
            chosen = st.selectbox(_("which table"), list(tables), key=f"{key} table", label_visibility="collapsed")
        data = tables.get(chosen, _("Choose a table."))
        if isinstance(data, str):
            st.caption(escape_markdown(data))
            return
        stem = file_stem([*names, *([chosen] if len(tables) > 1 else [])])
        for format in FORMATS:
            st.download_button(
                FORMAT_NAMES[format], partial(table_bytes, data, format), f"{stem}.{format}",
                MIME_TYPES[format], key=f"{key} {format}", on_click="ignore", width="content",
            )  # fmt: skip


def table_bytes(data: Data, format: Format) -> bytes:
    return data_file(data(), format)


def data_file(data: Table | Matrix, format: Format) -> bytes:
    """Raises ValueError for a table of more rows than a program that reads tables opens."""
    rows = data.values.size if isinstance(data, Matrix) else len(next(iter(data.columns.values())))
    if rows > MOST_ROWS and format != "npz":
        raise ValueError(f"This table has {rows:,} rows and a {format} file takes {MOST_ROWS:,}; choose npz.")
    return table_file(data, format) if isinstance(data, Table) else as_file(data, format)


def file_stem(names: Sequence[str]) -> str:
    """`loupe-weights-stories-blocks-1-attn-q-weight`: what a downloaded file is called, without its ending."""
    parts = ["loupe", *filter(None, names)]
    return "-".join(keep_words(part.lower(), ".~-", "-").strip("-") for part in parts)
