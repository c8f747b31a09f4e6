"""The lines of Python are run: they make the numbers that they were made of."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine import load
from engine.attention_variants.measure import Setup
from engine.budget import budget
from engine.checkpoints import write_adapter
from engine.edits import ApplyAdapter, AttentionTemperature, Edit, Patch, PresetMask, SilenceHeads, Source
from engine.inputs.readers import (
    GAP,
    Reading,
    kind,
    pictures,
    read_infill,
    read_picture,
    read_pixels,
    read_text,
    read_translation,
)
from engine.places import ROOT
from engine.runtime import library
from engine.runtime.run import run
from engine.runtime.trace import Trace
from tests.engine.model.layers.test_lora import random_adapter
from tests.shipped import LARGER
from views.core.codegen import (
    OWN_ADAPTER,
    OWN_MODEL,
    OWN_PATH,
    Fields,
    Imports,
    SelectedValue,
    import_lines,
    lines,
    source_of,
)
from views.long_sequences.codegen import opening_lines

TEXT = 'She said "no", and\\or went.'
SETTINGS = {"temperature": 0.7, "top_k": 5, "top_p": 0.9}


def given(name: str) -> Fields:
    """Fields as a page may have them; `limit` cuts a text."""
    asked = kind(library.checkpoint(name))
    match asked:
        case "translation":
            return Fields(asked, 64, text="the dog sleeps .", target="")
        case "infill":
            return Fields(asked, 64, text=f"Max gave the red {GAP} to Anna.", span="ball")
        case "picture":
            return Fields(asked, 64, picture=7)
        case "pixels":
            return Fields(asked, 40, picture=3, given=20, settings=SETTINGS, seed=5)
    if name == "induction":
        return Fields(asked, 64, text=library.checkpoint(name).tokenizer.decode([3, 7, 9, 3]))
    return Fields(asked, 9, text=TEXT, second="who is it ?" if asked == "pair" else "")


def read(name: str, fields: Fields) -> Reading:
    checkpoint = library.checkpoint(name)
    match fields.kind:
        case "translation":
            return read_translation(checkpoint, fields.text, fields.target, fields.limit)
        case "infill":
            return read_infill(checkpoint, fields.text, fields.span, fields.limit)
        case "picture":
            return read_picture(checkpoint, pictures()[0][fields.picture], fields.limit)
        case "pixels":
            image = pictures()[0][fields.picture]
            return read_pixels(checkpoint, image, fields.given, fields.limit, SETTINGS, fields.seed)
    return read_text(checkpoint, fields.text, fields.limit, fields.second)


def ran(script: str) -> dict:
    """What the script binds; `printed` is what it printed."""
    bound: dict = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(script, "lines", "exec"), bound)
    return bound | {"printed": printed.getvalue()}


def traced(name: str, fields: Fields, edits: list[Edit] | None = None) -> Trace:
    reading = read(name, fields)
    return run(library.checkpoint(name).model, reading.read, edits=edits or [], target=reading.target)


def test_the_lines_run_from_another_folder_once_the_engine_is_installed(tmp_path: Path) -> None:
    """Installed from links to it, so that nothing is written into Loupe's folder, and found as site-packages are."""
    pytest.importorskip("setuptools")
    source, place, elsewhere = (tmp_path / name for name in ("loupe", "installed", "elsewhere"))
    for folder in (source, elsewhere):
        folder.mkdir()
    for name in ("pyproject.toml", "setup.py", "loupe", "engine", "views", "assets", "corpora"):
        (source / name).symlink_to(ROOT / name)
    install = ["install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--prefix", str(place)]
    subprocess.run([sys.executable, "-m", "pip", *install, "--editable", str(source)], check=True, timeout=120)
    (packages,) = place.glob("lib/*/site-packages")
    assert [file.name for file in packages.iterdir() if file.name in ("views", "pages", "tests", "assets")] == []
    fields = given("stories")
    trace = traced("stories", fields)
    hook = "blocks.0.attn.pattern"
    script = elsewhere / "lines.py"
    script.write_text(lines("stories", library.checkpoint("stories"), fields, trace, SelectedValue(hook, 1, 3, 2)))
    begin = f"import site; site.addsitedir({str(packages)!r}); import runpy; runpy.run_path({str(script)!r})"
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", begin], cwd=elsewhere, env=clean, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[-1]) == pytest.approx(trace[hook][0, 1, 3, 2].item(), abs=1e-4)


def test_a_model_in_loupes_folder_is_found_from_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load("assets/checkpoints/stories").report.ok


@pytest.mark.parametrize("name", LARGER)
def test_the_lines_of_every_shipped_model_give_the_same_tensor_and_the_number_that_is_looked_at(name: str) -> None:
    fields = given(name)
    trace = traced(name, fields)
    hook = [hook for hook in trace if hook.endswith("attn.pattern")][-1]
    found = ran(lines(name, library.checkpoint(name), fields, trace, SelectedValue(hook, 1, 2, 1)))
    assert torch.equal(found["values"], trace[hook][0, 1])
    assert float(found["printed"]) == trace[hook][0, 1, 2, 1].item()
    assert {hook: tuple(value.shape) for hook, value in found["trace"].items()} == {
        hook: tuple(value.shape) for hook, value in trace.items()
    }


@pytest.mark.parametrize(
    ("hook", "head", "row", "col", "element"),
    [
        ("blocks.1.attn.q", 2, 3, 5, lambda v: v[0, 3, 2, 5]),
        ("blocks.1.attn.q", None, 3, 37, lambda v: v[0, 3].flatten()[37]),
        ("blocks.1.attn.scores", 0, 4, 1, lambda v: v[0, 0, 4, 1]),
        ("blocks.2.resid_post", 3, 1, 100, lambda v: v[0, 1, 100]),
        ("logits", None, 2, 17, lambda v: v[0, 2, 17]),
    ],
)
def test_any_element_of_any_hook_is_found(hook: str, head: int | None, row: int, col: int, element) -> None:
    fields = given("stories")
    trace = traced("stories", fields)
    found = ran(lines("stories", library.checkpoint("stories"), fields, trace, SelectedValue(hook, head, row, col)))
    assert torch.equal(found["values"][row, col], element(trace[hook]))


def test_edits_are_written_as_the_calls_that_make_them() -> None:
    fields = given("stories")
    edits: list[Edit] = [
        AttentionTemperature(0.5),
        SilenceHeads(1, [0, 2], how="mean"),
        PresetMask("window", 3),
        Patch("blocks.0.resid_post", Source([5, 6, 7, 8, 9, 10, 11, 12, 13])),
    ]
    trace = traced("stories", fields, edits)
    script = lines("stories", library.checkpoint("stories"), fields, trace)
    assert "    SilenceHeads(layer=1, heads=[0, 2], how='mean'),\n" in script
    found = ran(script)
    assert found["edits"] == edits
    assert torch.equal(found["trace"]["logits"], trace["logits"])
    assert not torch.equal(found["trace"]["logits"], traced("stories", fields)["logits"])


def test_a_text_is_cut_only_where_the_page_cuts_it() -> None:
    checkpoint = library.checkpoint("stories")
    short = Fields("text", 64, text="the dog")
    assert ".truncated" not in lines("stories", checkpoint, short, traced("stories", short))
    assert ".truncate(9)" in lines("stories", checkpoint, given("stories"), traced("stories", given("stories")))


def test_a_model_of_the_library_is_loaded_by_its_name_and_one_that_is_gone_by_a_path_to_fill_in() -> None:
    assert source_of("stories") == ('"stories"', "") and source_of("hub:a/b") == ('"hub:a/b"', "")
    assert source_of("mine~0123456789") == (f'"{OWN_MODEL}"', OWN_PATH)
    assert source_of("own")[0] == '"models/own"'


def test_the_lines_of_a_folder_that_somebody_opened_run_as_they_stand(tmp_path: Path) -> None:
    """With everything that the checkpoint was opened with."""
    folder = tmp_path / 'a "folder"'
    library.checkpoint("stories").save(folder)
    weights = load_file(folder / "model.safetensors")
    save_file({name.replace("ln_f", "last"): tensor for name, tensor in weights.items()}, folder / "model.safetensors")
    rename = {"transformer.last.*": "transformer.ln_f.*"}
    opening = library.LoadOptions(folder, None, {"layer_norm_epsilon": 0.5}, rename, title="stories")
    name = library.offer(opening)
    fields = given("stories")
    trace = traced(name, fields)
    script = lines(name, library.checkpoint(name), fields, trace)
    assert OWN_MODEL not in script and "dtype=None, config={'layer_norm_epsilon': 0.5}, rename={" in script
    assert torch.equal(ran(script)["trace"]["logits"], trace["logits"])
    assert not torch.equal(trace["logits"], traced("stories", fields)["logits"])


def test_the_lines_of_an_upload_run_once_its_path_is_filled_in(tmp_path: Path) -> None:
    folder = TemporaryDirectory()
    library.checkpoint("induction").save(folder.name)
    library.checkpoint("induction").save(tmp_path)
    name = library.offer(library.LoadOptions(Path(folder.name), title="mine", folder=folder))
    fields = given("induction")
    trace = traced(name, fields)
    script = lines(name, library.checkpoint(name), fields, trace)
    assert f'load("{OWN_MODEL}"){OWN_PATH}\n' in script and folder.name not in script
    assert torch.equal(ran(script.replace(OWN_MODEL, str(tmp_path)))["trace"]["logits"], trace["logits"])
    imports: Imports = {}
    opening = opening_lines(name, Setup(), imports)
    script = "\n".join([*import_lines(imports), *opening]).replace(OWN_MODEL, str(tmp_path))
    assert library.checkpoint_place(ran(script)["model"]).weights == tmp_path / "model.safetensors"


def test_the_lines_of_a_run_open_the_weights_of_its_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "runs_folder", str(tmp_path))
    folder = tmp_path / "tried"
    library.checkpoint("induction").save(folder)
    file = folder / "snapshots" / "step-0000020.safetensors"
    file.parent.mkdir()
    (folder / "model.safetensors").rename(file)
    assert source_of("run:tried@20") == (f'"{file.as_posix()}"', "")
    assert source_of("run:tried@21")[0] == '"models/run:tried@21"'
    fields = given("induction")
    trace = traced("run:tried@20", fields)
    script = lines("run:tried@20", library.checkpoint("run:tried@20"), fields, trace)
    assert torch.equal(ran(script)["trace"]["logits"], trace["logits"])


def test_a_hook_or_a_head_that_is_not_there_is_refused() -> None:
    fields = given("stories")
    trace = traced("stories", fields)
    for looked in (SelectedValue("blocks.9.attn.pattern", 0, 0, 0), SelectedValue("blocks.0.attn.pattern", 4, 0, 0)):
        with pytest.raises(ValueError, match="ask for one that it has|must be in"):
            lines("stories", library.checkpoint("stories"), fields, trace, looked)


def test_adapters_are_read_from_their_folders_before_the_edits(tmp_path: Path) -> None:
    base, fields = library.checkpoint("stories"), given("stories")
    for seed, title in enumerate(("pirate", "polite")):
        write_adapter(random_adapter(base.model, "attn.q", seed=seed), base, tmp_path / title)
    names = [library.offer(library.LoadOptions(tmp_path / title, title=title)) for title in ("pirate", "polite")]
    pirate, polite = (library.checkpoint(name).adapters[0] for name in names)
    unknown = random_adapter(base.model, "mlp.out", seed=9, name="unknown")

    def again(name: str, *edits: Edit, put: str = "") -> str:
        trace = traced(name, fields, list(edits))
        script = lines(name, library.checkpoint(name), fields, trace)
        assert torch.equal(ran(script.replace(OWN_ADAPTER, put))["trace"]["logits"], trace["logits"])
        return script

    both = again(names[0], ApplyAdapter.of(pirate, 1.5), SilenceHeads(1, [0]), ApplyAdapter.of(polite))
    assert "adapter_1 = checkpoint.adapters[0]\n" in both and "    ApplyAdapter.of(adapter_1, 1.5),\n" in both
    assert f'adapter_2 = read_adapter("{tmp_path}/polite", checkpoint)\n' in both
    one = again("stories", ApplyAdapter.of(pirate))
    assert f'adapter = read_adapter("{tmp_path}/pirate", checkpoint)\nedits = [ApplyAdapter.of(adapter, 1)]\n' in one
    write_adapter(unknown, base, tmp_path / "elsewhere")
    assert f"{OWN_PATH}\n" in again("stories", ApplyAdapter.of(unknown), put=str(tmp_path / "elsewhere"))
