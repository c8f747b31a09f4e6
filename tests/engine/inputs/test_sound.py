"""Sounds of files: read, resampled and made into log-mel frames as transformers makes them; others in one sentence."""

from __future__ import annotations

import io
import math
import struct
import sys
import types
import wave
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import WhisperFeatureExtractor

from engine.inputs.sound import SoundProcessor, Waveform, open_sound, resample
from tests.engine import tiny

RATE = 16_000


def tone(rate: int, hertz: float, seconds: float = 1.0) -> Tensor:
    at = torch.arange(int(rate * seconds), dtype=torch.float64) / rate
    return (0.5 * torch.sin(2 * math.pi * hertz * at)).float()


def wav(
    data: bytes, bits: int = 16, rate: int = RATE, channels: int = 1, kind: int = 1, size: int | None = None
) -> io.BytesIO:
    """A WAV file, with a chunk of somebody else's between its header and its samples."""
    form = struct.pack("<HHIIHH", kind, channels, rate, 0, channels * bits // 8, bits)
    if kind == 0xFFFE:
        form += struct.pack("<HHIH14x", 22, bits, 0, 1)
    head = b"fmt " + struct.pack("<I", len(form)) + form + b"LIST" + struct.pack("<I", 3) + b"abc\0"
    body = head + b"data" + struct.pack("<I", len(data) if size is None else size) + data
    return io.BytesIO(b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body)


def pack(samples: Tensor, bits: int) -> bytes:
    if bits == 8:
        return bytes((samples * 128 + 128).round().clamp(0, 255).to(torch.uint8).tolist())
    levels = (samples.double() * 2 ** (bits - 1)).round().long().tolist()
    return b"".join(level.to_bytes(bits // 8, "little", signed=True) for level in levels)


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"feature_size": 128},
        {"feature_size": 7, "sampling_rate": 8000, "hop_length": 80, "chunk_length": 2, "n_fft": 256},
    ],
    ids=str,
)
def test_frames_equal_transformers(sizes: dict[str, Any]) -> None:
    theirs = WhisperFeatureExtractor(**sizes)
    rate = theirs.sampling_rate
    ours = SoundProcessor(theirs.feature_size, rate, theirs.n_fft, theirs.hop_length, theirs.chunk_length)
    sounds = [tone(rate, 440.0, 0.3) + 0.01 * tiny.normal(int(rate * 0.3)), 0.2 * tiny.normal(rate)]
    expected = theirs([one.numpy() for one in sounds], sampling_rate=rate, return_tensors="pt").input_features
    found = ours.mel([Waveform(one, rate) for one in sounds])
    assert found.shape == (2, ours.bins, ours.frames)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    assert ours.frame_seconds(ours.frames) == ours.seconds


@pytest.mark.parametrize("bits", [8, 16, 24, 32])
@pytest.mark.parametrize("kind", [1, 0xFFFE])
def test_a_wav_of_any_width_is_read_and_its_channels_averaged(bits: int, kind: int) -> None:
    left, right = tone(RATE, 440.0, 0.1), tone(RATE, 1000.0, 0.1)
    both = torch.stack([left, right], dim=1).flatten()
    sound = open_sound(wav(pack(both, bits), bits, channels=2, kind=kind))
    assert sound.rate == RATE and sound.seconds == 0.1
    torch.testing.assert_close(sound.samples, (left + right) / 2, atol=2.0 ** (1 - bits) + 1e-7, rtol=0)


def test_a_wav_of_floats_and_one_of_the_standard_library_are_read() -> None:
    samples = tone(RATE, 440.0, 0.1)
    assert torch.equal(open_sound(wav(samples.numpy().tobytes(), 32, kind=3)).samples, samples)
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(22_050)
        written.writeframes(pack(samples, 16))
    file.seek(0)
    sound = open_sound(file)
    assert sound.rate == 22_050
    torch.testing.assert_close(sound.samples, samples, atol=2**-15, rtol=0)


@pytest.mark.parametrize("rate", [8_000, 11_025, 44_100, 44_101, 48_000, 192_000])
def test_a_tone_stays_itself_at_another_rate_and_one_too_high_goes(rate: int) -> None:
    inside = slice(RATE // 4, -RATE // 4)
    again = resample(tone(rate, 3000.0), rate, RATE)
    assert len(again) == RATE
    torch.testing.assert_close(again[inside], tone(RATE, 3000.0)[inside], atol=1e-4, rtol=0)
    if rate > 20_000:
        assert resample(tone(rate, 9000.0), rate, RATE)[inside].abs().max() < 1e-4


SHORT = pack(tone(RATE, 440.0, 0.01), 16)
REFUSED = [
    (io.BytesIO(b"ID3 a song"), "Expected a sound as WAV or FLAC, got something else"),
    (io.BytesIO(b""), "Expected a sound as WAV or FLAC, got something else"),
    (io.BytesIO(wav(SHORT).getvalue()[:30]), "Expected a whole WAV file, got one without any"),
    (
        io.BytesIO(b"RIFF\0\0\0\0WAVE" + b"JUNK\0\0\0\0" * 5000),
        "Expected a whole WAV file, got one without any",
    ),
    (wav(b""), "Expected a sound, got one without any samples"),
    (wav(SHORT, rate=0), "Expected a sound of 1,000 to 192,000 samples a second, got 0"),
    (wav(SHORT, rate=2**32 - 1), "samples a second, got 4,294,967,295"),
    (wav(SHORT, size=2**32 - 1), "Expected a sound of at most 30 seconds, got 134,217.7"),
    (wav(SHORT, size=len(SHORT) + 2), "Expected 322 bytes of samples, as the header says, got 320"),
    (wav(b"", size=2 * 3600 * RATE), "Expected a sound of at most 30 seconds, got 3,600.0"),
    (wav(SHORT, channels=0), "Expected 1 to 32 channels, got 0"),
    (wav(SHORT, bits=12), "Expected a WAV file of 8, 16, 24 or 32 bits, .*, got kind 1 of 12 bits"),
    (wav(SHORT, kind=2), "got kind 2 of 16 bits"),
    (wav(b"\xff" * 8, bits=32, kind=3), "Expected samples from -1 to 1, got some that are no numbers"),
]


@pytest.mark.parametrize(("file", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_sound_is_one_sentence(file: io.BytesIO, message: str) -> None:
    file.seek(0)
    with pytest.raises(ValueError, match=message) as raised:
        open_sound(file)
    assert "\n" not in str(raised.value)


def test_settings_that_cannot_be_obeyed_and_a_sound_that_is_too_long_are_one_sentence() -> None:
    with pytest.raises(ValueError, match="Expected hop_length from 1 to 32,768, got 0; correct it"):
        SoundProcessor(hop=0)
    with pytest.raises(ValueError, match="Expected chunk_length from 1 to 30, got 1,000,000,000; correct it"):
        SoundProcessor(seconds=10**9)
    with pytest.raises(ValueError, match="Expected a sound of at most 1 second, got 1.5; cut it"):
        SoundProcessor(seconds=1).mel(Waveform(tone(8_000, 440.0, 1.5), 8_000))


class FakeFlac:
    """soundfile's reader of one file, of which `frames` is what the header says."""

    def __init__(self, rate: int, frames: int, rows: Tensor) -> None:
        self.samplerate, self.frames, self.rows = rate, frames, rows

    def __enter__(self) -> FakeFlac:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, count: int, dtype: str, always_2d: bool) -> Any:
        assert (dtype, always_2d) == ("float32", True)
        return self.rows[:count].numpy()


def test_a_flac_is_read_by_soundfile_and_measured_first(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO(b"fLaC and so on")
    monkeypatch.setattr("engine.inputs.sound.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="Expected a WAV file, got FLAC, which needs soundfile; install it"):
        open_sound(file)
    rows = torch.stack([tone(RATE, 440.0, 0.1), tone(RATE, 1000.0, 0.1)], dim=1)
    said = {"rate": RATE, "frames": len(rows)}
    fake = types.ModuleType("soundfile")
    fake.LibsndfileError = type("LibsndfileError", (RuntimeError,), {})  # type: ignore[attr-defined]
    fake.SoundFile = lambda _: FakeFlac(**said, rows=rows)  # type: ignore[attr-defined]
    monkeypatch.setattr("engine.inputs.sound.find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, "soundfile", fake)
    sound = open_sound(file)
    assert sound.rate == RATE and torch.equal(sound.samples, rows.mean(1))
    for changes, message in (
        ({"rate": 0}, "samples a second, got 0"),
        ({"frames": 3600 * RATE}, "at most 30 seconds, got 3,600.0"),
        ({"frames": len(rows) + 1}, "Expected 1,601 samples, as the header says, got 1,600"),
    ):
        said |= {"rate": RATE, "frames": len(rows)} | changes
        with pytest.raises(ValueError, match=message):
            open_sound(file)


def test_a_real_flac_is_read() -> None:
    soundfile = pytest.importorskip("soundfile", reason="FLAC needs the extra “sound”")
    file, samples = io.BytesIO(), tone(RATE, 440.0, 0.1)
    soundfile.write(file, samples.numpy(), RATE, format="FLAC", subtype="PCM_24")
    file.seek(0)
    torch.testing.assert_close(open_sound(file).samples, samples, atol=2**-22, rtol=0)
    damaged = io.BytesIO(file.getvalue()[:60])
    with pytest.raises(ValueError, match="FLAC file|as the header says"):
        open_sound(damaged)
