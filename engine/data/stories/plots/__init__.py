"""The plots, one file a theme; each plot is a function that tells its story on a `Telling`."""

from collections.abc import Callable

from ..telling import Telling
from . import courage, errands, fables, finding, kindness, making, sky, trust, weather, wild

THEMES = (courage, errands, fables, finding, kindness, making, sky, trust, weather, wild)
PLOTS: tuple[Callable[[Telling], None], ...] = tuple(plot for theme in THEMES for plot in theme.PLOTS)
