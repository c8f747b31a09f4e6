"""One file of tokens feeds every surface, and its colours can be told apart."""

import tomllib
from itertools import combinations
from pathlib import Path

import pytest

from views.core.theme import (
    SERIES,
    Shade,
    css_variables,
    diverging_scale,
    ramp,
    streamlit_theme,
    tokens,
)

CONFIG = Path(__file__).resolve().parents[2] / ".streamlit" / "config.toml"
SHADES: list[Shade] = ["light", "dark"]
WORDS = [
    "query",
    "key",
    "value",
    "attention",
    "residual",
    "mlp",
    "edited",
]  # roles that are written in their colour

# How a person without medium-wavelength cones sees linear sRGB (Machado et al. 2009, severity 1).
DEUTERANOPIA = [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.011820, 0.042940, 0.968881],
]


def linear(color: str) -> list[float]:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def oklab(rgb: list[float]) -> list[float]:
    """Ottosson's perceptual space, in which a distance of 0.02 is just noticeable side by side."""
    r, g, b = (min(max(channel, 0.0), 1.0) for channel in rgb)
    l_, m_, s_ = (
        (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3),
        (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3),
        (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3),
    )
    return [
        0.2104542553 * l_ + 0.7936177850 * m_ - 0.0040720468 * s_,
        1.9779984951 * l_ - 2.4285922050 * m_ + 0.4505937099 * s_,
        0.0259040371 * l_ + 0.7827717662 * m_ - 0.8086757660 * s_,
    ]


def distance(a: str, b: str, dichromat: bool) -> float:
    seen = []
    for color in (a, b):
        rgb = linear(color)
        seen.append(
            oklab([sum(w * c for w, c in zip(row, rgb, strict=True)) for row in DEUTERANOPIA] if dichromat else rgb)
        )
    return sum((x - y) ** 2 for x, y in zip(*seen, strict=True)) ** 0.5


def contrast(a: str, b: str) -> float:
    low, high = sorted(sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(x), strict=True)) for x in (a, b))
    return (high + 0.05) / (low + 0.05)


def test_streamlits_theme_is_made_of_the_tokens() -> None:
    assert tomllib.loads(CONFIG.read_text())["theme"] == streamlit_theme(), "run `python -m views.core.theme`"


@pytest.mark.parametrize("shade", SHADES)
def test_every_pair_of_roles_can_be_told_apart(shade: Shade) -> None:
    colors = tokens()["colors"][shade]
    for a, b in combinations(SERIES, 2):
        assert distance(colors[a], colors[b], False) > 0.04, (a, b)


@pytest.mark.parametrize("shade", SHADES)
def test_what_stands_side_by_side_can_be_told_apart_without_seeing_red_and_green(shade: Shade) -> None:
    """Attention and query, MLP and key come close to each other there: they are never told by hue alone."""
    colors = tokens()["colors"][shade]
    for a, b in [*combinations(["query", "key", "value"], 2), *(("edited", role) for role in SERIES[:-2])]:
        assert distance(colors[a], colors[b], True) > 0.06, (a, b)


@pytest.mark.parametrize("shade", SHADES)
def test_words_can_be_read_on_the_ground_and_on_panels(shade: Shade) -> None:
    colors = tokens()["colors"][shade]
    for ground in ("ground", "panel"):
        assert contrast(colors["ink"], colors[ground]) > 10
        assert contrast(colors["soft"], colors[ground]) > 4.3
        for role in WORDS:
            assert contrast(colors[role], colors[ground]) > 3, (role, ground)  # bold, and never hue alone


@pytest.mark.parametrize("shade", SHADES)
def test_ramps_run_from_zero_to_the_hue_and_diverge_around_zero(shade: Shade) -> None:
    colors = tokens()["colors"][shade]
    assert ramp(shade, "attention", 3)[0] == colors["zero"]
    assert ramp(shade, "attention", 3)[-1] == colors["attention"]
    assert diverging_scale(shade, "query", 5) == [
        colors["negative"],
        diverging_scale(shade, "query", 5)[1],
        colors["zero"],
        diverging_scale(shade, "query", 5)[3],
        colors["query"],
    ]


def test_views_get_every_token_in_both_shades() -> None:
    css = css_variables()
    for shade in SHADES:
        assert all(f"--{role}:{color};" in css for role, color in tokens()["colors"][shade].items())
    assert "--mono:" in css and "--sans:" in css
