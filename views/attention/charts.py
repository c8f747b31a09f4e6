"""Charts of what the page Attention asks about all layers at once, by title: the question and its chart."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from views.charts.template import AltairChart
from views.core.theme import Shade

CHARTS: dict[str, tuple[str, Callable[[pd.DataFrame, Shade], AltairChart]]] = {}
