"""The page Quantisation without a browser: what matrices are exchanged for, what is said, what cannot be shown."""

import re
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from engine.edits import QuantiseMaps
from pages.controls.what_if.experiment_link import from_link

APP = str(Path(__file__).parents[2] / "app.py")


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    for name, value in address.items():
        app.query_params[name] = value
    app.switch_page("pages/analyse/quantisation.py").run()
    assert not app.exception, app.exception
    return app


def told(app: AppTest) -> str:
    return "\n".join(one.value for kind in (app.markdown, app.caption, app.warning) for one in kind)


def test_each_matrix_and_all_are_exchanged_and_the_rest_sums_to_the_whole() -> None:
    app = opened(model="stories")
    says = told(app).replace("\\", "")
    whole, parts, rest = (float(one) for one in re.search(
        r"\(([-+][\d.]+)\), and the prediction.*sum to ([-+][\d.]+); the rest, ([-+][\d.]+)", says
    ).groups())  # type: ignore[union-attr]  # fmt: skip
    assert whole == pytest.approx(parts + rest, abs=3e-4) and "Over 16 texts of the shipped data" in says
    link = parse_qs(re.search(r"Compare both\]\(compare\?([^)]*)\)", says)[1])  # type: ignore[index]
    (edit,) = (entry.edit for entry in from_link(link["b_edits"][0])[0].entries)
    assert isinstance(edit, QuantiseMaps) and edit.scheme == "Q4_0"
    eight = opened(model="stories", scheme="Q8_0")
    distance = [float(re.search(r"moves by \*\*([^*]+)\*\*", told(one))[1]) for one in (app, eight)]  # type: ignore[index]
    assert distance[1] < distance[0] / 10


def test_what_cannot_be_exchanged_is_told() -> None:
    assert "Type the name of the other model" in opened(model="stories", scheme="other").warning[0].value
    assert "does not open" in opened(model="stories", scheme="other", sister="nothing").warning[0].value
    assert "of the same sizes" in opened(model="stories", scheme="other", sister="everyday").warning[0].value
    assert "to the last bit" in opened(model="stories", scheme="other", sister="stories").warning[0].value


@pytest.mark.parametrize("model", ["tales-bert", "t5-tasks", "digits-vit", "everyday"])
def test_every_kind_of_model_opens(model: str) -> None:
    assert "One by one they sum to" in told(opened(model=model))
