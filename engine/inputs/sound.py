"""From a sound to what a model hears: a WAV or FLAC file's samples, resampled, as log-mel frames (Whisper's).

The settings are read from and written to the `preprocessor_config.json` that transformers' feature extractor uses.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import ceil, gcd
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from engine.inputs.settings_file import write_fields
from engine.plurals import count_words

LONGEST = 30  # seconds of a sound
RATES = 1_000, 192_000  # samples a second
MOST_CHANNELS = 32
MOST_CHUNKS = 1000  # of a WAV file before its samples
PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE  # kinds of samples in a WAV file
BITS = {PCM: (8, 16, 24, 32), FLOAT: (32, 64)}
ZEROS, BETA, ROLLOFF = 64, 9.0, 0.955  # of the resampler's sinc: crossings a side, Kaiser's window, share of the band
AT_ONCE = 2**22  # products of the resampler in memory
HIGHEST = 8000.0  # Hz of the last mel filter, whatever the rate, as in transformers
FLOOR, SPAN = 1e-10, 8.0  # the least energy, and how many powers of ten below the greatest are told apart
KEYS = frozenset((
    "feature_extractor_type", "feature_size", "sampling_rate", "hop_length", "chunk_length", "n_fft",  # read
    "mel_filters", "n_samples", "nb_max_frames",  # worked out from those
    "padding_side", "padding_value", "return_attention_mask", "processor_class", "transformers_version", "auto_map",
))  # fmt: skip


@dataclass(frozen=True)
class Waveform:
    """`samples` (float32, from -1 to 1, all channels averaged) at `rate` samples a second."""

    samples: Tensor
    rate: int

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate


@dataclass(frozen=True)
class SoundProcessor:
    """Log-mel frames of a sound that is filled up with silence to `seconds` (Radford et al. 2023, section 2.2).

    Windows of `n_fft` samples (Hann) at every `hop`-th sample of `rate` a second, their power spectrum in `bins` of
    Slaney's mel scale, log10, no more than 8 below the greatest, then (x + 4) / 4.
    """

    bins: int = 80
    rate: int = 16_000
    n_fft: int = 400
    hop: int = 160
    seconds: int = LONGEST

    def __post_init__(self) -> None:
        limits = {
            "feature_size": (self.bins, 1, 1024),
            "sampling_rate": (self.rate, *RATES),
            "n_fft": (self.n_fft, 2, 2**15),
            "hop_length": (self.hop, 1, 2**15),
            "chunk_length": (self.seconds, 1, LONGEST),
        }
        for name, (value, least, most) in limits.items():
            if not least <= value <= most:
                raise ValueError(f"Expected {name} from {least} to {most:,}, got {value:,}; correct it.")
        if self.n_fft // 2 >= self.seconds * self.rate:
            raise ValueError(
                f"Expected windows shorter than {count_words(self.seconds, 'second')}, got n_fft {self.n_fft:,}."
            )

    @property
    def frames(self) -> int:
        return self.seconds * self.rate // self.hop

    def frame_seconds(self, frame: float) -> float:
        """The time at which a frame's window has its middle."""
        return frame * self.hop / self.rate

    def mel(self, sound: Waveform | Sequence[Waveform]) -> Tensor:
        """float32, batch mel frame; one sound is a batch of one. Raises ValueError for one that is too long."""
        sounds = [sound] if isinstance(sound, Waveform) else list(sound)
        for each in sounds:
            check_length(len(each.samples), each.rate, self.seconds)
        whole = torch.zeros(len(sounds), self.seconds * self.rate)
        for row, each in zip(whole, sounds, strict=True):
            samples = resample(each.samples, each.rate, self.rate)[: len(row)]
            row[: len(samples)] = samples
        window = torch.hann_window(self.n_fft)
        spectrum = torch.stft(whole, self.n_fft, self.hop, window=window, return_complex=True)[..., :-1]
        energy = mel_filters(self.bins, self.n_fft, self.rate).T @ spectrum.abs().square().contiguous()
        logs = energy.clamp(min=FLOOR).log10()
        return (torch.maximum(logs, logs.amax((1, 2), keepdim=True) - SPAN) + 4) / 4

    def save(self, folder: Path) -> None:
        fields = {
            "feature_extractor_type": "WhisperFeatureExtractor", "feature_size": self.bins,
            "sampling_rate": self.rate, "n_fft": self.n_fft, "hop_length": self.hop, "chunk_length": self.seconds,
            "padding_value": 0.0, "padding_side": "right", "return_attention_mask": False,
        }  # fmt: skip
        write_fields(folder, fields)


def is_of_sound(fields: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    """True for the settings of a feature extractor of sounds; without a name the model's type counts."""
    name = fields.get("feature_extractor_type")
    if name is None and fields.get("image_processor_type") is None:
        return config.get("model_type") == "whisper"
    return name == "WhisperFeatureExtractor"


def read_sound_processor(fields: Mapping[str, Any]) -> SoundProcessor:
    """Raises ValueError or TypeError for settings that cannot be obeyed."""
    names = {"bins": "feature_size", "rate": "sampling_rate", "n_fft": "n_fft", "hop": "hop_length"}
    names["seconds"] = "chunk_length"
    given = {ours: fields[theirs] for ours, theirs in names.items() if fields.get(theirs) is not None}
    if fields.get("padding_value"):
        raise ValueError(f"Expected padding_value 0, silence, got {fields['padding_value']!r:.80}; correct it.")
    return SoundProcessor(**{name: operator.index(value) for name, value in given.items()})


def mel_filters(bins: int, n_fft: int, rate: int) -> Tensor:
    """frequency mel: triangles whose corners stand evenly on Slaney's scale (1998), each of the same area."""
    corners = mel_to_hertz(torch.linspace(0.0, hertz_to_mel(HIGHEST), bins + 2, dtype=torch.float64))
    frequencies = torch.linspace(0.0, rate // 2, 1 + n_fft // 2, dtype=torch.float64)[:, None]
    widths = corners.diff()
    rising = (frequencies - corners[:-2]) / widths[:-1]
    falling = (corners[2:] - frequencies) / widths[1:]
    return (torch.minimum(rising, falling).clamp(min=0) * (2 / (corners[2:] - corners[:-2]))).float()


STEP = 27 / math.log(6.4)  # mels of a factor e above 1000 Hz, where the scale turns from straight to logarithmic


def hertz_to_mel(hertz: float) -> float:
    return 3 * hertz / 200 if hertz < 1000 else 15 + math.log(hertz / 1000) * STEP


def mel_to_hertz(mel: Tensor) -> Tensor:
    return torch.where(mel < 15, 200 * mel / 3, 1000 * ((mel - 15) / STEP).exp())


def resample(samples: Tensor, rate: int, wanted: int) -> Tensor:
    """`samples` at `wanted` a second: the sum of sincs that band-limited samples stand for (Shannon 1949), cut off by
    Kaiser's window; frequencies that the new rate cannot carry are left out."""
    if rate == wanted or not len(samples):
        return samples
    divisor = gcd(rate, wanted)
    step, phases = rate // divisor, wanted // divisor  # after so many outputs the same distances come again
    count = ceil(len(samples) * phases / step)
    band = min(1.0, wanted / rate) * ROLLOFF
    reach = ceil(ZEROS / band)
    padded = torch.nn.functional.pad(samples, (reach, reach + step + 1))
    out = torch.empty(count)
    number = min(phases, count)
    rounds = ceil(count / phases)
    at_once = max(1, AT_ONCE // (rounds * 2 * reach))
    windows = padded.unfold(0, 2 * reach, 1)
    for begin in range(0, number, at_once):
        phase = torch.arange(begin, min(begin + at_once, number))
        first = phase * step // phases  # the last sample that is not later
        late = (phase * step % phases).double() / phases
        distance = torch.arange(1 - reach, reach + 1, dtype=torch.float64) - late[:, None]  # phase tap
        kaiser = torch.special.i0(BETA * (1 - (distance / reach).square()).clamp(min=0).sqrt()) / float(
            torch.special.i0(torch.tensor(BETA, dtype=torch.float64))
        )
        kernel = (band * torch.sinc(band * distance) * kaiser).float()
        index = first[:, None] + 1 + step * torch.arange(rounds)  # phase round
        at = phase[:, None] + phases * torch.arange(rounds)
        inside = at < count
        made = torch.einsum("prt,pt->pr", windows[index.clamp(max=len(windows) - 1)], kernel)
        out[at[inside]] = made[inside]
    return out


def check_length(samples: int, rate: int, seconds: int) -> None:
    """Raises ValueError for a sound of nothing, or of more than so many `seconds`."""
    if not RATES[0] <= rate <= RATES[1]:
        raise ValueError(
            f"Expected a sound of {RATES[0]:,} to {RATES[1]:,} samples a second, got {rate:,}; resample it."
        )
    if samples < 1:
        raise ValueError("Expected a sound, got one without any samples; record it again.")
    if samples > seconds * rate:
        raise ValueError(
            f"Expected a sound of at most {count_words(seconds, 'second')}, got {samples / rate:,.1f}; cut it."
        )


def open_sound(file: IO[bytes], seconds: int = LONGEST) -> Waveform:
    """The sound in a WAV or FLAC file, whose header is measured before its samples are read. Raises ValueError for what
    is none, is damaged, or is longer than `seconds`."""
    begin = file.read(12)
    file.seek(0)
    if begin[:4] == b"fLaC":
        return _open_flac(file, seconds)
    if begin[:4] != b"RIFF" or begin[8:] != b"WAVE":
        raise ValueError("Expected a sound as WAV or FLAC, got something else; save it as WAV.")
    try:
        kind, channels, rate, bits, size = _read_wav_header(file)
    except struct.error:
        raise ValueError("Expected a whole WAV file, got one without any samples; save it again.") from None
    if bits not in BITS.get(kind, ()):
        known = "8, 16, 24 or 32 bits, or floats of 32 or 64"
        raise ValueError(f"Expected a WAV file of {known}, got kind {kind} of {count_words(bits, 'bit')}; convert it.")
    if not 1 <= channels <= MOST_CHANNELS:
        raise ValueError(f"Expected 1 to {MOST_CHANNELS} channels, got {channels}; save it with one or two.")
    row = channels * bits // 8
    check_length(size // row, rate, seconds)
    data = file.read(size // row * row)
    if len(data) < size // row * row:
        raise ValueError(f"Expected {size:,} bytes of samples, as the header says, got {len(data):,}; save it again.")
    return Waveform(_decode(data, kind, bits).view(-1, channels).mean(1), rate)


def _read_wav_header(file: IO[bytes]) -> tuple[int, int, int, int, int]:
    """Kind of the samples, channels, rate, bits of a sample, and bytes of all, before which `file` then stands."""
    file.seek(12)
    found: tuple[int, int, int, int] | None = None
    for _ in range(MOST_CHUNKS):
        name, size = struct.unpack("<4sI", file.read(8))
        if name == b"data" and found is not None:
            return *found, size
        if name == b"fmt ":
            fields = file.read(min(size, 40))
            kind, channels, rate, _, _, bits = struct.unpack("<HHIIHH", fields[:16])
            if kind == EXTENSIBLE:
                (kind,) = struct.unpack("<H", fields[24:26])
            found = kind, channels, rate, bits
            size -= len(fields)
        file.seek(size + size % 2, 1)
    raise struct.error("no samples follow")


def _decode(data: bytes, kind: int, bits: int) -> Tensor:
    """Samples from -1 to 1."""
    if kind == FLOAT:
        values = torch.frombuffer(bytearray(data), dtype=torch.float32 if bits == 32 else torch.float64).float()
        if not bool(values.isfinite().all()):
            raise ValueError("Expected samples from -1 to 1, got some that are no numbers; save it again.")
        return values
    if bits == 8:  # without a sign
        return (torch.frombuffer(bytearray(data), dtype=torch.uint8).float() - 128) / 128
    if bits == 24:
        parts = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(-1, 3).int()
        values = parts[:, 0] | parts[:, 1] << 8 | parts[:, 2] << 16
        return (values - (values >> 23 << 24)).float() / 2**23
    return torch.frombuffer(bytearray(data), dtype=torch.int16 if bits == 16 else torch.int32).float() / 2 ** (bits - 1)


def _open_flac(file: IO[bytes], seconds: int) -> Waveform:
    if find_spec("soundfile") is None:
        raise ValueError("Expected a WAV file, got FLAC, which needs soundfile; install it, or save the sound as WAV.")
    import soundfile  # an extra

    try:
        with soundfile.SoundFile(file) as opened:
            count, rate = opened.frames, opened.samplerate
            check_length(count, rate, seconds)
            rows = torch.from_numpy(opened.read(count, dtype="float32", always_2d=True))
    except (soundfile.LibsndfileError, RuntimeError) as error:
        raise ValueError("Expected a whole FLAC file, got a damaged one; save it again.") from error
    if len(rows) < count:
        told = f"Expected {count_words(count, 'sample')}, as the header says"
        raise ValueError(f"{told}, got {len(rows):,}; save it again.")
    return Waveform(rows.mean(1), rate)
