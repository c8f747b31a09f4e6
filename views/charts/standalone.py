"""Charts as one HTML file that needs no network: the library's own JavaScript, each figure in both shades."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, get_args

import plotly.graph_objects as go

from engine.json_text import parse_json
from views.charts.template import AltairChart, apply_altair_theme, least_width, plotly_config, plotly_template
from views.core.export import page_style, script_json
from views.core.theme import Shade

Figure = Callable[[Shade], AltairChart | go.Figure]
Columns = Mapping[str, Sequence[Any]]

WITH_EMBED = "window.vegaEmbed = vegaEmbed;"  # what the bundle ends with
VEGA_LITE = "6.1"  # as 6.4 reads "undefined" in the tooltip of the nearest point
SHADES: tuple[Shade, ...] = get_args(Shade)
POLICY = (  # both libraries compile expressions and shaders at run time
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'"
)


def chart_file(
    title: str,
    figures: Sequence[Figure],
    *,
    caption: Iterable[str] = (),
    tables: Mapping[str, Columns] | None = None,
    name: str = "loupe",
) -> str:
    """Text of the file. `tables` are drawn below the figures; a picture that is saved from one is called `name`."""
    drawn = [figure_json(figure, name) for figure in figures]
    libraries = [bundle() for library, bundle in BUNDLES.items() if any(one["library"] == library for one in drawn)]
    lines = "".join(f"<p>{html.escape(line)}</p>" for line in caption if line)
    return PAGE % {
        "title": html.escape(title),
        "policy": html.escape(POLICY),
        "style": page_style() + STYLE,
        "caption": lines,
        "tables": "".join(table_html(name, columns) for name, columns in (tables or {}).items()),
        "libraries": "".join(f'<script type="{kind}">{source}</script>' for kind, source in libraries),
        "given": script_json(drawn),
    }


def figure_json(figure: Figure, name: str) -> dict[str, Any]:
    """{library, light, dark, config} of a figure, as JSON."""
    made = {shade: figure(shade) for shade in SHADES}
    if isinstance(made["light"], go.Figure):
        plots = {str(shade): one.update_layout(template=plotly_template(shade)) for shade, one in made.items()}
        texts = {shade: parse_json(one.to_json()) for shade, one in plots.items()}
        return {"library": "plotly", **texts, "config": plotly_config(name)}
    return {"library": "vega", **{str(shade): vega_spec(one, shade) for shade, one in made.items()}}


def vega_spec(chart: AltairChart, shade: Shade) -> dict[str, Any]:
    """Specification of a chart as wide as its cells need; a page gives it all the room there is instead."""
    spec: dict[str, Any] = apply_altair_theme(chart, shade).to_dict()
    if least := least_width(chart):
        spec["config"].setdefault("view", {})["discreteWidth"] = least
    return spec


def table_html(title: str, columns: Columns) -> str:
    def row(cells: Iterable[Any], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(str(cell))}</{tag}>' for cell in cells)}</tr>"

    rows = "".join(row(cells, "td") for cells in zip(*columns.values(), strict=True))
    return f"<h2>{html.escape(title)}</h2><table><thead>{row(columns, 'th')}</thead><tbody>{rows}</tbody></table>"


@cache
def vega_bundle() -> tuple[str, str]:
    import vl_convert  # 30 MB of native code, which only this needs

    return "module", vl_convert.javascript_bundle(WITH_EMBED, vl_version=VEGA_LITE)


@cache
def plotly_bundle() -> tuple[str, str]:
    from plotly.offline import get_plotlyjs

    return "text/javascript", get_plotlyjs()


BUNDLES = {"vega": vega_bundle, "plotly": plotly_bundle}

STYLE = """
#view { display: grid; gap: 24px; }
h2 { font-size: 15px; margin: 24px 0 6px; }
table { border-collapse: collapse; }
th, td { padding: 3px 16px 3px 0; text-align: left; font-variant-numeric: tabular-nums; white-space: pre; }
th { opacity: 0.72; font-weight: normal; }
"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%(policy)s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%(title)s</title>
<style>%(style)s</style>
%(libraries)s
</head>
<body>
<header><div><h1>%(title)s</h1>%(caption)s</div><button id="shade" type="button">light or dark</button></header>
<main id="view"></main>
%(tables)s
<script type="application/json" id="given">%(given)s</script>
<script type="module">
const figures = JSON.parse(document.getElementById("given").textContent);
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
const places = figures.map(() => document.getElementById("view").appendChild(document.createElement("div")));
const shade = () => root.dataset.shade ?? (system.matches ? "dark" : "light");
const draw = () => figures.forEach((figure, i) => {
  const shown = figure[shade()];
  if (figure.library === "vega") window.vegaEmbed(places[i], shown, { ast: false });
  else window.Plotly.react(places[i], shown.data, shown.layout, { ...figure.config, responsive: true });
});
system.addEventListener("change", draw);
document.getElementById("shade").addEventListener("click", () => {
  root.dataset.shade = shade() === "dark" ? "light" : "dark";
  draw();
});
draw();
</script>
</body>
</html>
"""
