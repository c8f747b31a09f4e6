from pathlib import Path

import pytest

from engine.cli.main import main


def test_what_is_wrong_with_a_recipe_is_one_line_and_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "wrong.toml"
    recipe.write_text("[model]\nlayers = 1\n\n[data]\n[schedule]\nsteps = 1\n[batch]\nsize = 1\ncontext = 4\n")
    assert main(["train", str(recipe)]) == 1
    said = capsys.readouterr().err
    assert said == f"loupe: {recipe}, line 1: model lacks d_model, attention.\n"


def test_a_recipe_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(tmp_path / "none.toml")]) == 1
    assert "a recipe must be a file, got" in capsys.readouterr().err
