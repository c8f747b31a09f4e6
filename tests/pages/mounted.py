"""Views of our own on a page, as AppTest has them."""

import re
from typing import Any

from streamlit.testing.v1 import AppTest

from views.core.markdown import JOINER


def mounted(app: AppTest, name: str) -> list[Any]:
    """Messages of the views called `name`, the last parts of their module's path with dots."""
    protos = [element.proto for element in app.get("bidi_component")]
    return [one for one in protos if one.component_name.rsplit(".", 1)[0].endswith(f".{name}")]


def read_markdown(markdown: str) -> str:
    """The text that is read of Markdown in which nothing is markup."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown).replace(JOINER, "")


def field(fields: Any, label: str) -> Any:
    """The one widget among `fields`, such as app.selectbox, whose label begins so."""
    (found,) = [one for one in fields if one.label == label or one.label.startswith(f"{label} (")]
    return found
