"""A picture in the cell of a notebook whose clicks come back as values: its file in a frame, by anywidget."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from engine.places import ASSETS


class Widget(anywidget.AnyWidget):
    """`look` is what is looked at, the layer, head, row and cell as the address of a page names them; what is assigned
    to it is looked at."""

    _esm = (ASSETS / "notebook" / "widget.js").read_text(encoding="utf-8")

    html = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int().tag(sync=True)
    look: Any = traitlets.Dict().tag(sync=True)
