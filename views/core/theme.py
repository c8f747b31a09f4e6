"""The design tokens of assets/theme/tokens.json as CSS variables, colour ramps, and Streamlit's theme.

`python -m views.core.theme` prints the theme section of .streamlit/config.toml; a test holds the file equal to it.
"""

from functools import cache
from typing import Any, Literal

from engine.json_text import parse_json
from engine.places import ASSETS

TOKENS = ASSETS / "theme" / "tokens.json"
SERIES = [
    "attention",
    "probability",
    "residual",
    "key",
    "query",
    "value",
    "edited",
    "mlp",
]  # neighbours told apart
STEPS = 10  # Streamlit wants ramps of exactly ten colours

Shade = Literal["light", "dark"]


@cache
def tokens() -> dict[str, Any]:
    """`colors` (shade -> role -> hex) and `fonts` (sans, mono -> CSS stack)."""
    return parse_json(TOKENS.read_text(encoding="utf-8"))


@cache
def css_variables() -> str:
    """The tokens as CSS variables of `.loupe-view`; its attribute data-theme chooses light or dark."""
    fonts = _declarations(tokens()["fonts"])
    light, dark = _declarations(tokens()["colors"]["light"]), _declarations(tokens()["colors"]["dark"])
    return (
        f".loupe-view{{{fonts}{light}color-scheme:light;color:var(--ink);font-family:var(--sans)}}\n"
        f'.loupe-view[data-theme="dark"]{{{dark}color-scheme:dark}}\n'
    )


def ramp(shade: Shade, role: str, steps: int = STEPS) -> list[str]:
    """Colours for quantities in [0, 1]: from the shade's zero to the role's full hue."""
    colors = tokens()["colors"][shade]
    return [_mix(colors["zero"], colors[role], step / (steps - 1)) for step in range(steps)]


def diverging_scale(shade: Shade, role: str, steps: int = STEPS) -> list[str]:
    """Colours for signed quantities, centred at zero: from the negative grey over zero to the role's hue."""
    colors = tokens()["colors"][shade]
    places = [2 * step / (steps - 1) - 1 for step in range(steps)]
    return [_mix(colors["zero"], colors["negative" if place < 0 else role], abs(place)) for place in places]


def streamlit_theme() -> dict[str, Any]:
    """Contents that `[theme]` in .streamlit/config.toml must have."""
    fonts = tokens()["fonts"]
    shared = {
        "font": fonts["sans"],
        "headingFont": fonts["sans"],
        "codeFont": fonts["mono"],
        "baseFontSize": 14,
        "baseRadius": "6px",
        "showWidgetBorder": True,
        "linkUnderline": False,
        "paddingTop": "16px",
        "paddingBottom": "48px",
    }
    return {**shared, "light": _streamlit_colors("light"), "dark": _streamlit_colors("dark")}


def _streamlit_colors(shade: Shade) -> dict[str, Any]:
    colors = tokens()["colors"][shade]
    return {
        "primaryColor": colors["attention"],
        "backgroundColor": colors["ground"],
        "secondaryBackgroundColor": colors["panel"],
        "textColor": colors["ink"],
        "borderColor": colors["hairline"],
        "linkColor": colors["attention"],
        "codeTextColor": colors["ink"],
        "codeBackgroundColor": colors["panel"],
        "redColor": colors["key"],
        "orangeColor": colors["mlp"],
        "yellowColor": colors["probability"],
        "blueColor": colors["query"],
        "greenColor": colors["value"],
        "violetColor": colors["attention"],
        "grayColor": colors["soft"],
        "chartCategoricalColors": [colors[role] for role in SERIES],
        "chartSequentialColors": ramp(shade, "attention"),
        "chartDivergingColors": diverging_scale(shade, "attention"),
    }


def _declarations(values: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in values.items())


def _mix(start: str, end: str, share: float) -> str:
    """Between two #rrggbb colours, channel by channel in sRGB, as the views do on their canvases."""
    pairs = [(int(start[i : i + 2], 16), int(end[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(low + (high - low) * share):02x}" for low, high in pairs)


if __name__ == "__main__":
    import tomli_w

    print(tomli_w.dumps({"theme": streamlit_theme()}))
