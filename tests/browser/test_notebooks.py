"""A picture in a cell of the notebooks themselves, whose clicks another cell reads: `make notebooks`."""

import json
from ast import literal_eval
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.harness import comes_to, expect, served

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

pytestmark = pytest.mark.long
if not (find_spec("jupyterlab") and find_spec("marimo")):
    pytest.skip("requirements-notebooks.txt is not installed", allow_module_level=True)

PICTURE = """from engine import load, run
from views.notebook import show
checkpoint = load("stories")
trace = run(checkpoint.model, checkpoint.tokenizer.encode("The cat sat"))
shown = show(checkpoint, trace, layer=1, head=2)
"""
MARIMO = f"""import marimo
app = marimo.App()
with app.setup:
    import marimo as mo
{"".join(f"    {line}" for line in PICTURE.splitlines(True))}
@app.cell
def _():
    seen = mo.ui.anywidget(shown.widget)
    seen
    return (seen,)
@app.cell
def _(seen):
    mo.md(f"looks at layer {{seen.value['look'].get('layer')}}")
    return
"""
JUPYTER = [
    "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", "--ServerApp.port={port}",
    "--ServerApp.port_retries=0", "--IdentityProvider.token=", "--LabApp.expose_app_in_browser=True",
    "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
]  # fmt: skip
RUN = "(command) => jupyterapp.commands.execute(`notebook:${command}`)"
KERNEL = 120_000  # milliseconds until one must have started and imported the engine
OUTPUT = ".jp-CodeCell:last-child .jp-OutputArea-output"


@pytest.fixture
def page(context: "BrowserContext", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Iterator[Page]":
    """A tab that asks no other host, and a person without settings."""
    for name in ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    page = context.new_page()
    page.route(lambda address: "//127.0.0.1:" not in address, lambda route: route.abort())
    yield page
    page.close()


def look_elsewhere(page: "Page") -> None:
    """Goes from the picture's layer, the second, to the next."""
    frame = page.frame_locator("iframe[srcdoc]")
    frame.locator(".attention[data-ready]").wait_for(timeout=KERNEL)
    frame.get_by_role("button").filter(has_text="›").first.click()
    frame.get_by_text("block 3 of 4").wait_for()


def test_in_jupyterlab_a_click_is_what_the_next_cell_reads(page: "Page", tmp_path: Path) -> None:
    cells = [
        {"cell_type": "code", "id": f"c{at}", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
        for at, source in enumerate((f"{PICTURE}shown", "print(shown.look)"))
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python", "language": "python"}}
    notebook = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "picture.ipynb").write_text(json.dumps(notebook))
    command = [*JUPYTER, f"--ServerApp.root_dir={tmp_path / 'folder'}"]
    with served(command, "/api/status", tmp_path / "log") as address:
        page.goto(f"{address}/lab/tree/picture.ipynb")
        page.wait_for_function("window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel")
        page.evaluate(RUN, "run-all-cells")
        look_elsewhere(page)

        def read() -> Any:
            page.evaluate(RUN, "run-cell")  # the last, where running all has left the cursor
            look = literal_eval(page.locator(OUTPUT).inner_text())
            return look.get("layer"), look.get("head")

        comes_to(page, read, (2, 2))


def test_in_marimo_a_click_runs_the_cell_that_reads_it(page: "Page", tmp_path: Path) -> None:
    (tmp_path / "picture.py").write_text(MARIMO)
    command = ["marimo", "--quiet", "run", str(tmp_path / "picture.py"), "--headless", "--no-token", "--port", "{port}"]
    with served(command, "/health", tmp_path / "log") as address:
        page.goto(address)
        page.get_by_text("looks at layer 1").wait_for(timeout=KERNEL)
        look_elsewhere(page)
        expect(page.get_by_text("looks at layer 2")).to_be_visible()
