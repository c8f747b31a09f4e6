"""A model that hears on every page: two draw its sound, the others say in a sentence that they do not."""

from __future__ import annotations

import io
import wave
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import run
from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.inputs.sound import SoundProcessor, open_sound
from engine.model.config import MLP, Attention, Embedding, Encoder, ModelConfig, Sound
from engine.model.transformer import Transformer, initialise
from engine.runtime import library
from pages.controls.checkpoint.card import compare
from pages.controls.menu import entries
from pages.controls.model_input.sound import ELSEWHERE, LOOKS, NO_SOUND, STAGES, HeardSound
from tests.pages.mounted import record
from tests.pages.test_attention import opened

WITHOUT = Attention(2, key_bias=False)
CONFIG = ModelConfig(
    11, 24, 16, 2, WITHOUT, MLP(20, "gelu"), embedding=Embedding(sound=Sound(5, 50)),
    encoder=Encoder(1, Attention(2, mask="full", key_bias=False), MLP(20, "gelu"), start=2),
)  # fmt: skip


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = initialise(Transformer(CONFIG), 0)
    Checkpoint(model, processor=SoundProcessor(bins=5, seconds=1)).save(tmp_path / "mine")
    monkeypatch.setattr(budget, "models_folder", str(tmp_path))
    library.checkpoint.cache_clear()


def tone() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setparams((1, 2, 16_000, 0, "NONE", ""))
        written.writeframes((8000 * np.sin(np.arange(9_600) / 5)).astype("<i2").tobytes())
    return file.getvalue()


def sentences(app: AppTest) -> list[str]:
    return [one.value for one in (*app.info, *app.warning, *app.error)]


OF_A_RUN = (
    "generate compare why_token why_head logit_lens fires interventions probes steering similarity quantisation".split()
)


@pytest.mark.parametrize("path", [entry.path for entry in entries()])
def test_every_page_opens_with_a_model_that_hears_and_says_where_it_is_drawn(path: str) -> None:
    app = opened(path, model="mine", a_model="mine", b_model="mine")
    assert not app.exception, app.exception
    said, page = sentences(app), Path(path).stem
    assert any(ELSEWHERE in one for one in said) == (page in OF_A_RUN)
    assert (NO_SOUND in said) == (page in ("walkthrough", "attention"))


def test_a_tone_goes_through_transformers_too() -> None:
    found, read = compare("mine", library.checkpoint("mine"))
    assert found.logits < 1e-4 and found.patterns < 1e-5 and read == "a tone of 440 Hz, of one second"


@pytest.mark.parametrize("page", ["pages/explore/walkthrough.py", "pages/explore/attention.py"])
def test_a_sound_is_drawn_with_what_the_model_computed_of_it(page: str) -> None:
    app = opened(page, model="mine", target="2 3 4 5")
    assert NO_SOUND in sentences(app)
    app.file_uploader(key="sound file").set_value(("tone.wav", tone(), "audio/wav")).run()
    assert not app.exception, app.exception
    kept = record(app, HeardSound)
    checkpoint = library.checkpoint("mine")
    mel = checkpoint.processor.mel(open_sound(io.BytesIO(tone())))
    trace = run(checkpoint.model, mel, target=[2, 3, 4, 5])
    torch.testing.assert_close(kept.trace["logits"], trace["logits"])
    assert any("60 frames of 5 mel bins; silence fills up the 100" in one.value for one in app.caption)
    if "walkthrough" in page:
        for stage, hook in STAGES.items():
            app.selectbox(key="heard stage").set_value(stage).run()
            assert not app.exception, app.exception
            assert f"stored: {float(trace[hook][0, 0, 0]):.4g}"[:10] in app.code[0].value
    else:
        for look, hook in LOOKS.items():
            app.segmented_control(key="heard look").set_value(look).run()
            assert not app.exception, app.exception
            name = hook.format(0)
            assert [one for one in kept.trace if one.endswith("pattern")] == [name]
            torch.testing.assert_close(kept.trace[name], trace[name])
            share = trace[name][0, 0][: 30 if "itself" in look else None, :30].sum(1).mean()
            assert look == "tokens to tokens" or any(f"{share:.1%} of it" in one.value for one in app.caption)
    app.text_input(key="target").set_value("").run()
    assert kept.reading.written and not app.exception
