"""From token ids, a picture or a sound to the first residual stream."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import conv1d, embedding, gelu, interpolate, pixel_unshuffle

from engine.model.config import ModelConfig, Patches
from engine.model.hooks import HookPoint
from engine.model.layers.dropout import dropout
from engine.model.layers.module import Module
from engine.model.layers.norm import make_norm
from engine.model.layers.position import sinusoidal
from engine.model.layers.position_override import check_within, has_position

FRAMES = 3  # that a convolution sees at once
TRAINED_SHARE = 0.15 * 0.8  # of masks in the texts that ESM's models were trained on


def token_factors(ids: Tensor, mask: int, padding: Tensor | None = None) -> Tensor:
    """batch pos: factors of the token vectors, 0 at masks and elsewhere what makes up for their share of a text."""
    masked = ids == mask
    length = ids.shape[1] if padding is None else padding.sum(1, keepdim=True)
    share = masked.sum(1, keepdim=True) / length
    return torch.where(masked, 0.0, (1 - TRAINED_SHARE) / (1 - share))


class Embed(Module):
    """W_E[id], plus W_P[pos] where positions are learned, plus the sinusoids where they are not.

    `shared` leaves W_E to somebody else, who passes it as `table`. Where vectors have a width of their own, `mapped` is
    what makes them as wide as the stream.
    """

    def __init__(self, config: ModelConfig, shared: bool = False) -> None:
        super().__init__()
        kind, made = config.positions.kind, config.embedding
        self.dropout, self.scale, self.pairs = config.dropout, made.scale, config.positions.pairs
        reads, heard = made.of_tokens, made.sound
        self.token_dropout = made.token_dropout
        self.tokens = nn.Embedding(config.vocab_size, config.d_embed) if reads and not shared else None
        self.patches = None if made.patches is None else PatchEmbed(made.patches, config.d_model)
        self.conv1 = None if heard is None else Convolution(heard.bins, config.d_model, "batch frame d_model")
        self.conv2 = None if heard is None else Convolution(config.d_model, config.d_model, "batch pos d_model", 2)
        self.maps_all = made.width is not None and made.mapped == "all"
        self.maps_tokens = made.width is not None and made.mapped == "tokens"
        self.mapped = nn.Linear(made.width, config.d_model, bias=self.maps_all) if made.width is not None else None
        width = config.d_embed if self.maps_all else config.d_model  # of what is added up
        places = config.context if made.patches is None else made.patches.places
        self.positions = nn.Embedding(places, width) if config.positions.has_places else None
        both = kind == "learned" and config.positions.axes == 2
        self.within = nn.Embedding(config.context, width) if both else None
        self.segments = nn.Embedding(made.segments, width) if made.segments else None
        counts = config.positions.counted == "tokens"
        self.padded = nn.Parameter(torch.empty(width)) if counts else None
        axes = "batch pos d_embed" if self.maps_all else "batch pos d_model"
        self.norm = make_norm(config.norm, width, axes) if made.norm else None
        self.sinusoids = kind == "sinusoidal"
        if reads:
            self.hook_tokens = HookPoint("tokens", "batch pos d_embed" if self.maps_tokens else axes)
        elif made.patches is not None:
            self.hook_patches = HookPoint("patches", axes)
        else:
            self.hook_mel = HookPoint("mel", "batch frame mel")
        if made.token_dropout is not None:
            self.hook_factor = HookPoint("factor", "batch pos")
        if made.segments:
            self.hook_segments = HookPoint("segments", axes)
        if self.positions is not None or self.sinusoids:
            self.hook_position_ids = HookPoint("position_ids", "pos", on_request=True)
            self.hook_positions = HookPoint("positions", axes)
        if both:
            self.hook_within = HookPoint("within", axes)
        if self.mapped is not None:
            self.hook_mapped = HookPoint("mapped", "batch pos d_model")

    def forward(
        self,
        ids: Tensor,
        pos: Tensor,
        segments: Tensor | None = None,
        table: Tensor | None = None,
        padding: Tensor | None = None,
    ) -> Tensor:
        """batch pos d_model. `pos` is pos, batch pos where padding has no place (-1), or 2 batch pos where a token has
        two; `padding` (batch pos) is True where a token is real."""
        mask = self.token_dropout
        resid = self.read(ids, table, None if mask is None else self.hook_factor(token_factors(ids, mask, padding)))
        if self.maps_tokens:
            resid = self.map(resid)
        if self.segments is not None:
            segments = torch.zeros_like(ids) if segments is None else segments
            resid = resid + self.hook_segments(self.segments(segments))
        if self.positions is not None or self.sinusoids:
            resid = self.place(resid, pos)
        if self.norm is not None:
            resid = self.norm(resid)
        resid = dropout(resid, self.dropout, self.training)
        return self.map(resid) if self.maps_all else resid

    def place(self, resid: Tensor, pos: Tensor) -> Tensor:
        """`resid` with what `pos` adds to it; a token that an edit left without a position gets nothing."""
        own = pos if pos.dim() == 1 else torch.arange(pos.shape[-1], device=pos.device)
        ids = self.hook_position_ids(own)
        stands = None
        if pos.dim() == 2 and ids is own:
            return resid + self.hook_positions(self.look_up(pos))
        pos = own if pos.dim() == 2 else pos
        if ids is not own:
            check_within(ids, self.last_place(pos))
            pos, stands = ids.clamp(min=0) if pos.dim() == 1 else pos[..., ids.clamp(min=0)], has_position(ids)
        if self.within is not None and self.positions is not None:
            place, within = self.positions(pos[0]), self.within(pos[1])
            place, within = (place, within) if stands is None else (place * stands, within * stands)
            return resid + self.hook_positions(place) + self.hook_within(within)
        if self.positions is not None:
            place = self.positions(pos) if self.patches is None else self.patches.placed(self.positions.weight)[pos]
        else:
            place = sinusoidal(pos, resid.shape[-1], self.pairs).to(resid.dtype)
        return resid + self.hook_positions((place if stands is None else place * stands).expand_as(resid))

    def look_up(self, pos: Tensor) -> Tensor:
        """batch pos d_model: the vectors of the places `pos`, batch pos, and of padding where there is none, -1."""
        assert self.positions is not None
        found: Tensor = self.positions(pos.clamp(min=0))
        return found if self.padded is None else torch.where(pos[..., None] < 0, self.padded, found)

    def last_place(self, pos: Tensor) -> int | None:
        """The greatest position id there is: sinusoids have no end, a token with two positions takes another's."""
        if pos.dim() > 1:
            return pos.shape[-1] - 1
        if self.patches is not None:
            return self.patches.config.before + self.patches.config.count - 1
        return None if self.positions is None else len(self.positions.weight) - 1

    def map(self, narrow: Tensor) -> Tensor:
        assert self.mapped is not None
        return self.hook_mapped(self.mapped(narrow))

    def read(self, ids: Tensor, table: Tensor | None, factor: Tensor | None = None) -> Tensor:
        """Vectors of tokens, times a `factor` of each where there is one (as `ids`), or of patches."""
        if self.patches is not None:
            return self.hook_patches(self.patches(ids))
        if self.conv1 is not None and self.conv2 is not None:
            return self.conv2(self.conv1(self.hook_mel(ids.mT.to(self.conv1.weight.dtype))))
        weight = table if self.tokens is None else self.tokens.weight
        assert weight is not None
        read = embedding(ids, weight)
        if factor is not None:
            read = read * factor[..., None].to(read.dtype)
        if self.scale == 1:
            return self.hook_tokens(read)
        return self.hook_tokens(read * torch.tensor(self.scale, dtype=read.dtype))  # rounded as the vectors are (Gemma)


class Convolution(Module):
    """gelu of a convolution over three frames side by side, at every `stride`-th frame; beyond both ends they are 0
    (Radford et al. 2023, section 2.2). The weight is d_out frame d_in: a linear map of the three frames joined."""

    def __init__(self, d_in: int, d_out: int, axes: str, stride: int = 1) -> None:
        super().__init__()
        self.stride = stride
        self.weight = nn.Parameter(torch.empty(d_out, FRAMES, d_in))
        self.bias = nn.Parameter(torch.empty(d_out))
        self.hook_pre = HookPoint("pre", axes)
        self.hook_post = HookPoint("post", axes)

    def forward(self, x: Tensor) -> Tensor:
        """`x` is batch frame d_in."""
        pre = conv1d(x.mT, self.weight.mT, self.bias, self.stride, FRAMES // 2).mT
        return self.hook_post(gelu(self.hook_pre(pre)))


class PatchEmbed(Module):
    """[CLS], in a distilled model [DIST], registers, then each patch's pixels through one linear map (Dosovitskiy et
    al. 2021, equation 1; Touvron et al. 2021, section 4).
    """

    def __init__(self, patches: Patches, d_model: int) -> None:
        super().__init__()
        self.size, self.config = patches.size, patches
        self.project = nn.Linear(patches.channels * patches.size**2, d_model, bias=patches.bias)
        self.cls = nn.Parameter(torch.empty(d_model)) if patches.cls else None
        self.distilled = nn.Parameter(torch.empty(d_model)) if patches.distilled else None
        registers = patches.registers
        self.registers = None if registers is None else nn.Parameter(torch.empty(registers, d_model))
        self.mask = nn.Parameter(torch.empty(d_model)) if patches.mask else None
        self.hook_pixels = HookPoint("pixels", "batch patch pixel")

    def forward(self, pixels: Tensor) -> Tensor:
        """`pixels` is batch channel height width; a patch's are channel by channel, row by row."""
        pixels = pixels.to(self.project.weight.dtype)
        cut = self.hook_pixels(pixel_unshuffle(pixels, self.size).flatten(2).mT)  # batch patch pixel
        first = [one for _, one in self.before()]
        return torch.cat([*(one.expand(len(cut), 1, -1) for one in first), self.project(cut)], dim=1)

    def before(self) -> list[tuple[tuple[str, ...], Tensor]]:
        """What stands before the patches, each d_model, by the name of its parameter, and its row of one with rows."""
        named = (("cls", self.cls), ("distilled", self.distilled))
        found: list[tuple[tuple[str, ...], Tensor]] = [((name,), one) for name, one in named if one is not None]
        rows = [] if self.registers is None else list(self.registers)
        return [*found, *((("registers", str(number)), row) for number, row in enumerate(rows))]

    def placed(self, table: Tensor) -> Tensor:
        """The learned position of each vector, pos d_model: those of the patches interpolated where the picture has
        other sizes than the table (bicubic, in float32), none for registers."""
        patches, first = self.config, self.config.cls + self.config.distilled
        if patches.trained is not None and patches.trained != patches.image:
            side = patches.trained // patches.size
            grid = table[first:].unflatten(0, (side, side)).permute(2, 0, 1)[None].float()
            sizes = (patches.side, patches.side)
            moved = interpolate(grid, size=sizes, mode="bicubic", align_corners=False, antialias=patches.antialias)
            table = torch.cat([table[:first], moved[0].flatten(1).mT.to(table.dtype)])
        if not patches.registers:
            return table
        return torch.cat([table[:first], table.new_zeros(patches.registers, table.shape[1]), table[first:]])
