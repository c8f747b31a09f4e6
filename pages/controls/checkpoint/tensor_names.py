"""The form in which names of a file's tensors are mapped to those of the family that comes nearest."""

import streamlit as st

from engine.checkpoints.infer import NUMBER
from engine.checkpoints.rename import compile_pattern, parse_lines, rename_tensors, split_names
from engine.checkpoints.report import IncompleteWeights, UnknownNames
from engine.checkpoints.weights import open_weights
from engine.runtime import library
from pages.controls.checkpoint.load_errors import load_sentence, warn
from pages.controls.checkpoint.parameters import CHECKPOINT
from pages.controls.state.session import widget_value
from views.core.markdown import escape_markdown


def list_names(error: UnknownNames | IncompleteWeights) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The file's names that have no place, and the family's that are missing; {} stands for a layer's number."""
    if isinstance(error, UnknownNames):
        return error.names, error.expected
    unplaced, missing = (error.report.rows_with(status) for status in ("unexpected", "missing"))
    first, second = (dict.fromkeys(NUMBER.sub("{}", row.name) for row in rows) for rows in (unplaced, missing))
    return tuple(first), tuple(second)


def edit_names(name: str, error: UnknownNames | IncompleteWeights) -> None:
    """Shows both lists of names side by side, the file's with room for new ones. Nothing where no name is open."""
    own, expected = list_names(error)
    known = library.parse_name(name).rename
    mapped = [compile_pattern(new) for names in known.values() for new in split_names(names)]
    own = tuple(old for old in own if not any(pattern.fullmatch(old.replace("{}", "0")) for pattern in mapped))
    if not (own or known) or not expected:
        return
    lines = [*(f"{old} -> {new}" for old, new in known.items()), *(f"{old} ->" for old in own)]
    with st.form("names of tensors"):
        left, right = st.columns(2)
        left.text_area(
            "Name in the file -> new name",
            "\n".join(lines),
            height=360,
            key=f"names {name}",
            help="One a line. {} stands for the number of a layer, * for any part of a name; a line without a new "
            "name changes nothing. Commas split and stack equal parts along the first side: `qkv -> q, k, v` and "
            "`q, k, v -> qkv`.",
        )
        with right:
            st.caption(escape_markdown(f"Names that {error.family} still needs"))
            st.code("\n".join(expected), language=None, height=340)
        if not st.form_submit_button("Open with these names"):
            return
    rename = parse_lines(widget_value(f"names {name}"))
    try:
        rename_tensors(open_weights(library.checkpoint_place(name).weights), rename)
    except ValueError as wrong:
        return warn(load_sentence(name, wrong))
    if rename != dict(known):
        CHECKPOINT.rerun_with("model", library.rename_with(name, rename=rename))
