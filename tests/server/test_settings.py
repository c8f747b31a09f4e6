"""Settings: a file, the environment that counts more, what is refused, and the page that lists them."""

from pathlib import Path

import pytest

from server.settings import Settings, read_settings_file, settings

ROOT = Path(__file__).resolve().parents[2]


def test_a_file_sets_and_the_environment_counts_more(tmp_path: Path) -> None:
    (tmp_path / "loupe.toml").write_text('max_tokens = 512\nmax_edits = 8\nruns = "elsewhere"\n')
    place, values = read_settings_file({}, tmp_path)
    assert place == tmp_path.resolve() / "loupe.toml"
    of_both = Settings(values, {"LOUPE_MAX_EDITS": "9"})
    numbers = [of_both.read_number(name, 1, "pieces", "") for name in ("max_tokens", "max_edits", "max_steps")]
    assert numbers == [512, 9, 1]
    assert of_both.read_text("runs", "runs", "") == "elsewhere"
    of_both.refuse_unknown()
    assert read_settings_file({}, tmp_path / "empty") == (None, {})
    (tmp_path / "other.toml").write_text("trace_memory_mib = 2\n")
    _, values = read_settings_file({"LOUPE_SETTINGS": "other.toml"}, tmp_path)
    assert Settings(values, {}).read_mib("trace_memory_mib", 2**20, "") == 2 * 2**20


@pytest.mark.parametrize("value", ["64", 6.5, True, -1, [64], {"most": 64}])
def test_a_number_of_another_kind_is_refused(value: object) -> None:
    with pytest.raises(SystemExit, match=r"^max_edits must be a whole number of edits, such as 64, got "):
        Settings({"max_edits": value}, {}).read_number("max_edits", 64, "edits", "")


def test_what_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"^LOUPE_MAX_EDITS must be a whole number of edits, such as 64, got 'many'"):
        Settings({}, {"LOUPE_MAX_EDITS": "many"}).read_number("max_edits", 64, "edits", "")
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match=r"^LOUPE_RUNS must be a folder, got the file '.*file'; "):
        Settings({}, {"LOUPE_RUNS": str(tmp_path / "file")}).read_folder("runs", "runs", "")
    assert Settings({"runs": str(tmp_path)}, {}).read_folder("runs", "runs", "") == str(tmp_path)
    with pytest.raises(SystemExit, match=r"^runs must be a text in quotation marks, got 3; "):
        Settings({"runs": 3}, {}).read_text("runs", "runs", "")
    with pytest.raises(SystemExit, match=r"^'max_token' is no setting"):
        Settings({"max_token": 3}, {}).refuse_unknown()
    with pytest.raises(SystemExit, match=r"absent\.toml must be a TOML file: .*No such file"):
        read_settings_file({"LOUPE_SETTINGS": "absent.toml"}, tmp_path)
    (tmp_path / "loupe.toml").write_text("max_edits = \n")
    with pytest.raises(SystemExit, match=r"loupe\.toml must be a TOML file: "):
        read_settings_file({}, tmp_path)


def test_the_page_of_operation_lists_all() -> None:
    lines = (ROOT / "docs" / "operation.md").read_text(encoding="utf-8").splitlines()
    rows = [setting.row for setting in settings.declared.values()]
    assert [line for line in lines if line.startswith("| `") and "`LOUPE_" in line] == rows
