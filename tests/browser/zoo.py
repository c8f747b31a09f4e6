"""One small random model of every architecture, for looking at in a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tokenizers.processors import TemplateProcessing

from engine import load, run
from engine.checkpoints import Checkpoint
from engine.data.stories import story
from engine.data.translation import pair
from engine.inputs.processors import ImageProcessor, PalettePixels
from engine.inputs.readers import pictures
from engine.model.config import (
    MLP,
    Attention,
    Embedding,
    Encoder,
    Experts,
    Infill,
    ModelConfig,
    Norm,
    OtherRotation,
    OutputHead,
    Patches,
    Positions,
)
from engine.model.transformer import Transformer, initialise
from engine.runtime.trace import Trace
from engine.tokenizers import END, Tokenizer, train

TEXT = "The dog was sad"
GIVEN = {
    "bert": {"text": f"{TEXT} [MASK]", "second": "He lost his ball"},
    "original": {"text": "The delighted dog", "target": "Le chien très"},
    "t5": {"text": "The delighted dog", "target": "Le chien très"},
    "glm": {"text": "The dog [gMASK] sad", "span": " was very"},
    "glm-learned": {"text": "The dog [gMASK] sad", "span": " was very"},
    "vit": {"picture": "7"},
    "imagegpt": {"picture": "7", "given": "64"},
    "imagegpt-class": {"picture": "7"},
    "neox": {"text": f"{TEXT} because he lost his ball"},
    "gemma": {"text": TEXT},
    "alibi": {"text": TEXT},
    "roberta-qa": {"text": "Who was sad?", "second": TEXT},
    "distilbert-score": {"text": TEXT, "second": "He lost his ball"},
    "albert": {"text": f"{TEXT} [MASK]", "second": "He lost his ball"},
    "electra": {"text": TEXT},
    "modernbert": {"text": f"{TEXT} because he lost his ball"},
    "mpnet": {"text": f"{TEXT}<mask>"},
    "deberta": {"text": f"{TEXT} [MASK]"},
    "esm": {"text": f"{TEXT} [MASK]"},
    "deit": {"picture": "7"},
    "opt-350m": {"text": TEXT},
    "opt-350m-class": {"text": TEXT},
    "opt-350m-body": {"text": TEXT},
    "phi": {"text": TEXT},
    "experts": {"text": TEXT},
    "gpt-neo-class": {"text": f"{TEXT} because he lost his ball"},
    "bart-class": {"text": "The delighted dog"},
}
LINEAR = {"bias": False, "out_bias": False}


def fill(folder: Path) -> None:
    """Writes them into `folder`, a models folder."""
    stories = [story(1, index) for index in range(60)]
    pairs = [pair(0, index) for index in range(400)]
    pieces = train("wordpiece", stories, 400)
    bytes_ = train("bpe", stories, 400, special_tokens=(END, "[gMASK]", "[sop]", "[eop]"))
    words = train("word", [text for p in pairs for text in (p.english, p.french)], special_tokens=(END, "<start>"))
    marks = bytes_.special_tokens
    start = words.special_tokens["<start>"]

    def put(name: str, config: ModelConfig, **parts: object) -> None:
        model = initialise(Transformer(config), 0).requires_grad_(False).eval()
        Checkpoint(model, name=name, **parts).save(folder / name)  # type: ignore[arg-type]

    bert = Embedding(segments=2, norm=True)
    heads = OutputHead("masked", bias=True, pooler=True, next_sentence=True)
    encoder = {"norm": Norm(place="after"), "embedding": bert, "head": heads}
    put(
        "bert",
        ModelConfig(pieces.vocab_size, 96, 32, 2, Attention(4, mask="full"), MLP(48, "gelu"), **encoder),
        tokenizer=pieces,
    )
    put(
        "original",
        ModelConfig(
            words.vocab_size,
            48,
            32,
            2,
            Attention(4),
            MLP(48, "relu"),
            Positions("sinusoidal"),
            Norm(place="after"),
            embedding=Embedding(scale=32**0.5),
            encoder=Encoder(2, Attention(4, mask="full"), MLP(48, "relu"), start),
        ),
        tokenizer=words,
    )
    plain = Attention(4, **LINEAR, scale=1.0)
    put(
        "t5",
        ModelConfig(
            words.vocab_size,
            48,
            32,
            2,
            plain,
            MLP(48, "gelu_tanh", gated=True, bias=False),
            Positions("relative", buckets=8, farthest=20),
            Norm("rms"),
            encoder=Encoder(3, Attention(4, **LINEAR, scale=1.0, mask="full"), MLP(48, "relu", bias=False), start),
            head=OutputHead(scale=32**-0.5),
        ),
        tokenizer=words,
    )
    for name, kind, turned in (("glm", "rotary", 2), ("glm-learned", "learned", None)):
        put(
            name,
            ModelConfig(
                bytes_.vocab_size,
                96,
                32,
                2,
                Attention(4, mask="prefix"),
                MLP(48),
                Positions(kind, axes=2, turned=turned),  # type: ignore[arg-type]
                infill=Infill(marks["[gMASK]"], marks["[sop]"]),
            ),
            tokenizer=bytes_,
            end_ids=(marks["[eop]"],),
        )
    put(
        "vit",
        ModelConfig(
            1,
            17,
            32,
            2,
            Attention(4, mask="full", block=2),
            MLP(48, "gelu"),
            embedding=Embedding(patches=Patches(8, 2, 1)),
            head=OutputHead("sequence", 10),
        ),
        processor=ImageProcessor.grey((8, 8), 17),
        labels=tuple(map(str, range(10))),
    )
    put(
        "imagegpt",
        ModelConfig(
            18,
            65,
            32,
            2,
            Attention(4),
            MLP(48, "quick_gelu"),
            norm=Norm("rms"),
            tied=False,
            head=OutputHead(outputs=17),
        ),
        processor=PalettePixels.grey((8, 8), 17),
    )
    put(
        "neox",
        ModelConfig(
            bytes_.vocab_size,
            96,
            32,
            2,
            Attention(4, kv_heads=2, qk_norm="head", softcap=20.0, window=5, windowed=(0,)),
            MLP(40, "silu", gated=True),
            Positions("rotary", turned=4, other=OtherRotation((0,))),
            Norm("rms"),
            sublayers="parallel",
            head=OutputHead(softcap=30.0),
        ),
        tokenizer=bytes_,
    )
    put(
        "gemma",
        ModelConfig(
            bytes_.vocab_size,
            96,
            32,
            2,
            Attention(4, **LINEAR, nearest=4),
            MLP(40, "gelu_tanh", gated=True),
            Positions("rotary", pairs="neighbours", other=OtherRotation((0,), 50.0)),
            Norm("rms", place="around"),
            embedding=Embedding(scale=32**0.5),
        ),
        tokenizer=bytes_,
    )
    put(
        "alibi",
        ModelConfig(
            bytes_.vocab_size,
            96,
            32,
            2,
            Attention(4),
            MLP(40, "relu2"),
            Positions("alibi"),
            Norm(learned="weight"),
            residual_scale=0.5,
        ),
        tokenizer=bytes_,
    )
    put(
        "imagegpt-class",
        ModelConfig(
            18,
            64,
            32,
            2,
            Attention(4),
            MLP(48, "quick_gelu"),
            norm=Norm("rms"),
            head=OutputHead("sequence", 10, read="mean", bias=False),
        ),
        processor=PalettePixels.grey((8, 8), 17),
        labels=tuple(map(str, range(10))),
    )
    fill_encoders(put, pieces, like_roberta(stories))
    fill_decoders(put, bytes_, words)


def like_roberta(stories: list[str]) -> Tokenizer:
    """<s> A </s></s> B </s>, all of one segment."""
    found = train("bpe", stories, 400, special_tokens=("<s>", "</s>", "<mask>"))
    marks = [(mark, found.special_tokens[mark]) for mark in ("<s>", "</s>")]
    pair = "<s> $A </s> </s> $B:0 </s>"
    found.fast.post_processor = TemplateProcessing(single="<s> $A </s>", pair=pair, special_tokens=marks)
    return found


def fill_encoders(put: Callable[..., None], pieces: Tokenizer, one_segment: Tokenizer) -> None:
    """What reads whole texts, and a picture with two vectors before it."""
    after, narrow = Norm(place="after"), Embedding(segments=2, norm=True, width=16)
    whole, normed = Attention(4, mask="full"), Embedding(norm=True)
    put(
        "roberta-qa",
        ModelConfig(
            one_segment.vocab_size,
            64,
            32,
            2,
            whole,
            MLP(48, "gelu"),
            norm=after,
            embedding=normed,
            head=OutputHead("span"),
        ),
        tokenizer=one_segment,
    )
    put(
        "distilbert-score",
        ModelConfig(
            one_segment.vocab_size,
            64,
            32,
            2,
            whole,
            MLP(48, "gelu"),
            norm=after,
            embedding=normed,
            head=OutputHead("sequence", 1, pooler=True, pooler_activation="relu"),
        ),
        tokenizer=one_segment,
    )
    put(
        "albert",
        ModelConfig(
            pieces.vocab_size,
            64,
            32,
            3,
            whole,
            MLP(48, "gelu_tanh"),
            norm=after,
            embedding=narrow,
            distinct=1,
            head=OutputHead("masked", bias=True, activation="gelu_tanh", pooler=True, next_sentence=True),
        ),
        tokenizer=pieces,
    )
    put(
        "electra",
        ModelConfig(
            pieces.vocab_size,
            64,
            32,
            2,
            whole,
            MLP(48, "gelu"),
            norm=after,
            embedding=narrow,
            head=OutputHead("token", 1, dense=True),
        ),
        tokenizer=pieces,
    )
    put(
        "modernbert",
        ModelConfig(
            pieces.vocab_size,
            64,
            32,
            3,
            Attention(4, **LINEAR, mask="full", window=3, windowed=(1, 2)),
            MLP(40, "gelu", gated=True, bias=False),
            Positions("rotary", other=OtherRotation((1, 2), 50.0)),
            Norm(learned="weight", first=False),
            embedding=normed,
            head=OutputHead("sequence", 3, read="mean", dense=True, dense_bias=False, norm=True),
        ),
        tokenizer=pieces,
        labels=("sad", "glad", "neither"),
    )
    put(
        "mpnet",
        ModelConfig(
            one_segment.vocab_size,
            64,
            32,
            2,
            whole,
            MLP(48, "gelu"),
            Positions(relative_bias=True, buckets=8, farthest=20),
            after,
            embedding=normed,
            head=OutputHead("masked", bias=True),
        ),
        tokenizer=one_segment,
    )
    put(
        "deberta",
        ModelConfig(
            pieces.vocab_size,
            64,
            32,
            2,
            whole,
            MLP(48, "gelu"),
            Positions("disentangled", buckets=8, farthest=20, normed=True),
            after,
            embedding=normed,
            head=OutputHead("masked", bias=True),
        ),
        tokenizer=pieces,
    )
    put(
        "esm",
        ModelConfig(
            pieces.vocab_size,
            64,
            32,
            2,
            whole,
            MLP(48, "gelu"),
            Positions("rotary"),
            embedding=Embedding(token_dropout=pieces.mask_id),
            head=OutputHead("masked", bias=True),
        ),
        tokenizer=pieces,
    )
    put(
        "deit",
        ModelConfig(
            1,
            18,
            32,
            2,
            whole,
            MLP(48, "gelu"),
            embedding=Embedding(patches=Patches(8, 2, 1, distilled=True)),
            head=OutputHead("sequence", 10, averaged=True),
        ),
        processor=ImageProcessor.grey((8, 8), 17),
        labels=tuple(map(str, range(10))),
    )


def fill_decoders(put: Callable[..., None], bytes_: Tokenizer, words: Tokenizer) -> None:
    """What reads a text from its beginning to its end, and one that reads it twice."""
    put(
        "opt-350m",
        ModelConfig(
            bytes_.vocab_size,
            96,
            32,
            2,
            Attention(4),
            MLP(48, "relu"),
            norm=Norm(place="after"),
            embedding=Embedding(width=16, mapped="tokens"),
        ),
        tokenizer=bytes_,
    )
    for name, head in (
        ("opt-350m-class", OutputHead("sequence", 3, read="last", bias=False, narrow=True)),
        ("opt-350m-body", OutputHead("none", narrow=True)),
    ):
        put(
            name,
            ModelConfig(
                bytes_.vocab_size,
                96,
                32,
                2,
                Attention(4),
                MLP(48, "relu"),
                norm=Norm(place="after"),
                embedding=Embedding(width=16, mapped="tokens"),
                head=head,
            ),
            tokenizer=bytes_,
            labels=("sad", "glad", "neither") if head.classes else (),
        )
    put(
        "phi",
        ModelConfig(
            bytes_.vocab_size,
            96,
            32,
            2,
            Attention(4),
            MLP(40, "gelu_tanh"),
            Positions("rotary", turned=4),
            sublayers="parallel_one_norm",
            tied=False,
            head=OutputHead(bias=True),
        ),
        tokenizer=bytes_,
    )
    put(
        "experts",
        ModelConfig(
            bytes_.vocab_size,
            96,
            32,
            2,
            Attention(4, kv_heads=2, bias=False, out_bias=False),
            MLP(
                24, "silu", True, bias=False, experts=Experts(6, 2, shared=16, shared_gate=True, dense=(0,), d_dense=40)
            ),
            Positions("rotary"),
            Norm("rms"),
            tied=False,
        ),
        tokenizer=bytes_,
    )
    put(
        "gpt-neo-class",
        ModelConfig(
            bytes_.vocab_size,
            96,
            32,
            2,
            Attention(4, bias=False, scale=1.0, window=4, windowed=(1,)),
            MLP(48, "gelu_tanh"),
            head=OutputHead("sequence", 3, read="last", bias=False),
        ),
        tokenizer=bytes_,
        labels=("sad", "glad", "neither"),
    )
    put(
        "bart-class",
        ModelConfig(
            words.vocab_size,
            48,
            32,
            2,
            Attention(4),
            MLP(48, "gelu"),
            norm=Norm(place="after"),
            embedding=Embedding(norm=True),
            encoder=Encoder(2, Attention(4, mask="full"), MLP(48, "gelu"), words.special_tokens["<start>"]),
            head=OutputHead("sequence", 3, read="last", pooler=True),
        ),
        tokenizer=words,
    )


def traced(folder: Path, name: str) -> Trace:
    """The same run, from the engine alone."""
    checkpoint, given = load(folder / name), GIVEN[name]
    if "picture" in given:
        image = pictures()[0][int(given["picture"])]
        if name in ("vit", "deit"):
            return run(checkpoint.model, checkpoint.processor.pixels(image))
        start = [] if name == "imagegpt-class" else [checkpoint.processor.start_id]
        return run(checkpoint.model, [*start, *checkpoint.processor.ids(image)[0].tolist()])
    if "target" in given:
        encoding = checkpoint.tokenizer.encode(given["text"])
        return run(checkpoint.model, encoding, target=checkpoint.target(given["target"]))
    if "span" in given:
        return run(checkpoint.model, checkpoint.tokenizer.encode(f"{given['text']}[sop]{given['span']}"))
    return run(checkpoint.model, checkpoint.tokenizer.encode(given["text"], given.get("second")))
