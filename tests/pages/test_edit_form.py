"""The form of an edit: every kind makes what the engine reads, and shows an edit that was made so as it was."""

import ast
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.edits import (
    AddDirection,
    AddNoise,
    AttentionTemperature,
    ChangeToken,
    DrawMask,
    DrawPattern,
    DropPositions,
    Edit,
    KeepParts,
    PaintMask,
    PaintPattern,
    Patch,
    PresetMask,
    ProjectOut,
    QuantiseMaps,
    Replace,
    Scale,
    SetPattern,
    ShiftPositions,
    SilenceHeads,
    Source,
    Steer,
    SwapPositions,
)
from engine.runtime import library
from pages.controls.what_if.edit_form import distinct, ranges, read_numbers, read_ranges
from pages.controls.what_if.edit_panel import Panels
from pages.controls.what_if.experiment import EditTrial
from pages.controls.what_if.kind import kinds
from tests.pages.mounted import field, record, try_edits
from tests.pages.test_experiment import made, opened

ROOT = Path(__file__).parents[2]
OTHER = "Anna gave the red ball to Max."
ROWS = [[key <= row for key in range(14)] for row in range(14)]
FORMS = ("Add", "Change")


def ids(text: str) -> list[int]:
    return list(library.checkpoint("stories").tokenizer.encode(text).ids)


def new(kind: str, app: AppTest | None = None, **address: Any) -> AppTest:
    app = app or opened()
    record(app, Panels).states["what if"].opening = {"do": "open", "kind": kind, "address": address}
    return app.run()


def press(app: AppTest) -> AppTest:
    (button,) = [one for one in app.button if one.label in FORMS]
    app = button.click().run()
    assert not app.exception, app.exception
    return app


def edits(app: AppTest) -> list[Edit]:
    return list(record(app, EditTrial).experiment.edits)


@pytest.mark.parametrize(
    ("kind", "edit"),
    [
        ("temperature", AttentionTemperature(2.0, 3)),
        ("silence", SilenceHeads(3, [3])),
        ("pattern", SetPattern(3, "previous", [3])),
        ("parts", Scale("blocks.3.mlp.out", 0.0)),
        ("positions", SwapPositions(0, 1)),
        ("value", Replace("blocks.3.resid_post", 0.0)),
        ("direction", ProjectOut("blocks.3.resid_pre", [1.0, *[0.0] * 127])),
        ("quantise", QuantiseMaps("Q4_0", ["attn.q", "attn.k", "attn.v", "attn.out"])),
        ("noise", AddNoise("blocks.3.resid_pre", 1.0, 0, {"pos": [13]})),
    ],
)
def test_a_form_that_is_not_touched_makes_the_edit_of_what_is_looked_at(kind: str, edit: Edit) -> None:
    app = press(new(kind, layer=3, head=3))
    assert edits(app) == [edit] and not [one for one in app.button if one.label in FORMS]
    far = press(new(kind, layer=99, head=-1, query="x"))  # an address that a person wrote
    assert len(edits(far)) == 1 and not far.error


def test_a_form_that_lacks_a_text_says_so_and_keeps_what_was_typed() -> None:
    app = new("patch")
    field(app.selectbox, "block").set_value(1).run()
    app = press(app)
    assert "Expected a text to take values from" in app.error[0].value and edits(app) == []
    field(app.text_input, "the other text").set_value(OTHER).run()
    assert edits(press(app)) == [Patch("blocks.1.resid_post", Source(ids(OTHER)), {"pos": [13]})]  # of the same token
    app = new("silence", layer=0, head=0)
    field(app.button_group, "heads").set_value([]).run()
    assert "one head or more" in press(app).error[0].value
    app = new("value")
    field(app.text_input, "d_model").set_value("0 to 3").run()
    assert "write numbers from 0 to 127" in press(app).error[0].value.replace("\\", "")


@pytest.mark.parametrize(
    "edit",
    [
        PresetMask("prefix", 4, layer=0),
        PresetMask("causal window", 3, heads=[1, 2]),
        PaintMask(cells=[[5, 2]], rows=[4], columns=[1], to="forbid", layer=0),
        DrawMask(0, ROWS),
        AttentionTemperature(0.5, 1, [3]),
        SilenceHeads(2, [0, 1, 2], "uniform"),
        SetPattern(1, "position", [0], position=4),
        SetPattern(None, "uniform"),
        PaintPattern(1, [[4, 2]], [0.25], [0]),
        DrawPattern(1, [[float(key == row) for key in range(14)] for row in range(14)]),
        Patch("blocks.3.attn.pattern", None, {"head": 1}, "blocks.0.attn.pattern", {"head": 2}),
        Scale("blocks.1.skip1", 0.5),
        Scale("blocks.*.mlp.out", 0.5, {"d_model": [0, 1, 2]}),
        ProjectOut("blocks.1.resid_pre", [1.0, 0.123456789, *[0.0] * 126], {"pos": [2]}, 0.5),
        AddDirection("blocks.*.attn.z", [1.0, *[0.0] * 31], amount=-2.0),
        Replace("logits", 1.0, {"vocab": [3, 4, 5], "pos": 4}),
        Replace("blocks.0.attn.z", [1, 2.5], {"head": 2}),
        SwapPositions(0, 7),
        DropPositions(),
        ShiftPositions(2, [4]),
        ChangeToken(4, 300, 0.5),
        Patch("blocks.1.resid_post", Source(ids(OTHER)), {"pos": [4]}, source_at={"pos": 5}),
        Patch("blocks.1.resid_mid", Source(ids(OTHER)), {"pos": [4]}, "blocks.0.resid_mid"),
        Patch("final_norm.out", None, {"pos": [13]}),
        Steer("blocks.1.resid_pre", Source(ids("happy")), Source(ids("sad")), 4.0, "mean", {"pos": [2]}),
        KeepParts({"blocks.1.attn.z": [0, 2], "blocks.2.mlp.out": []}, "mean", Source(ids(OTHER)), [Source([1, 2])]),
    ],
    ids=lambda edit: f"{type(edit).__name__} {getattr(edit, 'hook', '')}",
)
def test_an_edit_that_was_made_is_shown_as_it_was(edit: Edit) -> None:
    app = opened(experiment=made(SilenceHeads(0, [0]), edit))
    record(app, Panels).states["what if"].opening = {"do": "edit", "number": 1}
    app.run()
    assert any(one.label == "Change" for one in app.button), "the form opens"
    assert edits(press(app)) == [SilenceHeads(0, [0]), edit]


def test_every_choice_changes_what_the_edit_says() -> None:
    app = new("mask", layer=1, head=2)
    field(app.selectbox, "mask").set_value("window").run()
    field(app.number_input, "reach").set_value(5).run()
    field(app.selectbox, "block").set_value("every block").run()
    field(app.button_group, "heads").set_value([0, 2]).run()
    app = new("pattern", press(app), layer=3, head=3)
    field(app.selectbox, "attend").set_value("other").run()
    field(app.selectbox, "as in block").set_value(1).run()
    field(app.selectbox, "its head").set_value(2).run()
    app = new("positions", press(app))
    field(app.selectbox, "do").set_value("ShiftPositions").run()
    field(app.number_input, "by").set_value(-2).run()
    field(app.button_group, "tokens").set_value([3, 4]).run()
    app = new("token", press(app))
    field(app.text_input, "becomes").set_value("Anna").run()
    field(app.number_input, "mix").set_value(0.5).run()
    field(app.button_group, "token").set_value(4).run()
    app = new("steer", press(app), layer=1)
    field(app.text_input, "toward").set_value("happy").run()
    field(app.text_input, "away from").set_value("sad").run()
    field(app.selectbox, "read").set_value("mean").run()
    app = new("circuit", press(app), layer=2, head=1)
    kept = "parts that keep theirs: block.head, MLP block"
    field(app.text_input, kept).set_value("3.9, MLP 1").run()
    app = press(app)
    assert any("“3.9”: the heads of a block go from 1 to 4" in one.value for one in (*app.error, *app.caption))
    field(app.text_input, "parts that keep theirs: block.head, MLP block").set_value(
        "1.*, 2.*, 3.2-3, 4.*, MLP 1"
    ).run()
    field(app.selectbox, "all others").set_value("patch").run()
    field(app.selectbox, "taken from").set_value("another").run()
    field(app.text_input, "the other text").set_value(OTHER).run()
    app = new("value", press(app))
    field(app.selectbox, "do").set_value("numbers").run()
    field(app.selectbox, "block").set_value("*").run()
    field(app.selectbox, "value").set_value("attn.z").run()
    field(app.text_input, "numbers, along d_head").set_value("1, 2.5").run()
    field(app.text_input, "d_head").set_value("3-4").run()
    anna = library.checkpoint("stories").tokenizer.encode("to Anna").ids[-1]
    assert edits(press(app)) == [
        PresetMask("window", 5, heads=[0, 2]),
        Patch("blocks.3.attn.pattern", None, {"head": 3}, "blocks.1.attn.pattern", {"head": 2}),
        ShiftPositions(-2, [3, 4]),
        ChangeToken(4, anna, 0.5),
        Steer("blocks.1.resid_pre", Source(ids("happy")), Source(ids("sad")), 4.0, "mean"),
        KeepParts(
            {"blocks.2.attn.z": [1, 2], **{f"blocks.{layer}.mlp.out": [] for layer in (1, 2, 3)}},
            "patch",
            Source(ids(OTHER)),
        ),
        Replace("blocks.*.attn.z", [1, 2.5], {"d_head": [3, 4]}),
    ]


def test_another_attention_of_two_stacks_begins_with_all_its_heads_and_nothing_painted() -> None:
    app = new("mask", opened(address={"model": "translate-en-fr"}), focus="cross_attn", layer=1)
    record(app, Panels).states["what if"].draft.values["cells"] = [[0, 1]]
    field(app.selectbox, "attention").set_value(0).run()
    (add,) = [one for one in app.button if one.label == "Add"]
    assert add.disabled and add.help == "Paint a cell first."
    field(app.selectbox, "mask").set_value("full").run()
    assert edits(press(app)) == [PresetMask("full", layer=1, stack="encoder")]


def test_a_model_of_pictures_takes_values_from_a_picture_by_its_number() -> None:
    app = new("patch", opened(address={"model": "digits-vit"}))
    (number,) = [one for one in app.number_input if one.label.startswith("number, 0 to")]
    number.set_value(7).run()
    app = press(app)
    (edit,) = edits(app)
    assert isinstance(edit, Patch) and edit.source is not None and edit.source.name == "picture 7"
    record(app, Panels).states["what if"].opening = {"do": "edit", "number": 0}
    app.run()
    (number,) = [one for one in app.number_input if one.label.startswith("number, 0 to")]
    assert number.value == 7
    record(app, Panels).states["what if"].opening = {"do": "open", "kind": "token"}  # which this model lacks
    assert not [one for one in app.run().button if one.label in FORMS]


def test_a_form_follows_its_edit_and_goes_with_its_model() -> None:
    app = opened(experiment=made(SilenceHeads(0, [0]), AttentionTemperature(2.0)))
    record(app, Panels).states["what if"].opening = {"do": "edit", "number": 1}
    app.run()
    try_edits(app, record(app, EditTrial).experiment.remove(0))
    app.run()
    field(app.number_input, "temperature").set_value(3.0).run()
    app = press(app)
    assert edits(app) == [AttentionTemperature(3.0)]
    app = new("temperature", app)
    app.selectbox(key="model").set_value("digits-vit").run()
    assert not [one for one in app.button if one.label in FORMS]


@pytest.mark.parametrize(
    "asked", [{"do": "edit", "number": 9}, {"do": "edit", "number": "0"}, {"do": "open", "kind": "x"}, {"do": "open"}]
)
def test_what_a_browser_asks_for_that_is_not_there_opens_nothing(asked: dict) -> None:
    app = opened()
    record(app, Panels).states["what if"].opening = asked | {"address": [1]}
    app.run()
    assert not app.exception and not [one for one in app.button if one.label in FORMS]


def test_positions_and_numbers_are_written_as_they_are_read() -> None:
    assert ranges([0, 1, 2, 7]) == "0-2, 7" and read_ranges("0-2, 7 99-200", 8) == [0, 1, 2, 7]
    assert read_ranges("", 8) == [] and read_ranges("5-2", 8) == []
    for wrong in ("x", "1-", "-1", "1-x", "1.5"):
        with pytest.raises(ValueError, match="from 0 to 7"):
            read_ranges(wrong, 8)
    assert read_numbers("0, 0.5") == [0, 0.5] and read_numbers("[[1], [2]]") == [[1], [2]]
    for wrong in ("", "x", "1,,2", "[" * 100_000):
        with pytest.raises(ValueError, match="write numbers"):
            read_numbers(wrong)
    assert distinct(["a", "b", "a", " "]) == ["a (0)", "b", "a (2)", "  (3)"]


def test_who_adds_a_kind_of_edit_adds_one_file() -> None:
    """No page, picture or script asks what an edit is: but for the button of Compare, which shows what it silenced."""
    classes = {edit for kind in kinds().values() for edit in kind.edits}
    assert classes == {edit for edit in Edit.kinds.values() if edit.__module__.startswith("engine.edits.")}
    names = {edit.__name__ for edit in classes}
    rooms = [path for room in ("pages", "views") for path in (ROOT / room).rglob("*.py") if path.parent.name != "kinds"]
    asking = {path.name for path in rooms for node in ast.walk(ast.parse(path.read_text())) if names & asked(node)}
    assert asking == {"compare.py"}
    own = kinds().keys() - {"mask", "pattern", "value"}  # which attention holds, and a request
    for path in (path for path in rooms if path.parent.name == "what_if"):
        assert not own & set().union(*map(asked, ast.walk(ast.parse(path.read_text())))), path
    for path in (ROOT / "assets" / "views").rglob("*.js"):
        assert not [name for name in names if f'"{name}"' in path.read_text()], path


def asked(node: ast.AST) -> set[str]:
    """Names of classes and literals by which code tells one edit from another."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
        return {one.id for one in ast.walk(node.args[1]) if isinstance(one, ast.Name)}
    return {node.cls.id} if isinstance(node, ast.MatchClass) and isinstance(node.cls, ast.Name) else set()
