"""What a training learns of a person's rows is what the pages, and transformers, read when the same text is typed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import transformers
from sentencepiece import SentencePieceTrainer
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from engine.checkpoints import Checkpoint, load
from engine.inputs.readers import given_target, tokens
from engine.scoring.examples import UNASKED
from engine.training import read_recipe
from engine.training.sources import open_source

WORDS = ["the cat sat on the mat", "a dog is in the house", "the house is red", "Zoë met the dog", "2+2=4, 4+4=8"]
ROWS = [  # an unusual letter, a mark, two spaces, capitals, a word cut in letters, an answer that joins its prompt
    {"text": "the cat <turn> sat", "pair": "on  the Mat", "label": "no", "answer": " on it"},
    {"text": "Zoë met the dog", "pair": "zq", "label": "yes", "answer": "gy"},
    {"text": "2+2=", "pair": "4", "label": "no", "answer": "4"},
    {"text": "the house", "pair": "is red <turn>", "label": "yes", "answer": " <turn> red"},
    {"text": "qzx is in", "pair": "the house", "label": "no", "answer": "\nthe end"},
]
SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
PAIRED = {
    "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_position_embeddings": 66, "decoder_start_token_id": 2,
}  # fmt: skip
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0}
MARKS = ["<pad>", "<s>", "</s>", "<unk>", "<mask>", "<turn>"]


def bytewise(single: str = "$A", pair: str = "$A $B", prefix: bool = False) -> tokenizers.Tokenizer:
    fast = tokenizers.Tokenizer(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    fast.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    fast.train_from_iterator(
        WORDS, trainers.BpeTrainer(vocab_size=320, special_tokens=MARKS, initial_alphabet=alphabet)
    )
    return framed(fast, single, pair)


def metaspace(single: str, pair: str, scheme: str = "first") -> tokenizers.Tokenizer:
    fast = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    fast.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    fast.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    letters = [f"<0x{byte:02X}>" for byte in range(256)]
    fast.train_from_iterator(WORDS, trainers.BpeTrainer(vocab_size=330, special_tokens=[*MARKS, *letters]))
    return framed(fast, single, pair)


def uncased(single: str, pair: str) -> tokenizers.Tokenizer:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<turn>"]
    fast = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    fast.normalizer = normalizers.BertNormalizer(lowercase=True)
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.decoder = decoders.WordPiece()
    fast.train_from_iterator(WORDS, trainers.WordPieceTrainer(vocab_size=90, special_tokens=special))
    return framed(fast, single, pair)


def framed(fast: tokenizers.Tokenizer, single: str, pair: str) -> tokenizers.Tokenizer:
    ids = {mark: fast.token_to_id(mark) for mark in [*MARKS, "[CLS]", "[SEP]"]}
    marks = [(mark, id) for mark, id in ids.items() if id is not None]
    fast.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=marks)
    return fast


def write_fast(folder: Path, fast: tokenizers.Tokenizer, **settings: Any) -> int:
    bert = fast.token_to_id("[CLS]") is not None
    roles = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    roles |= {"mask_token": "<mask>", "cls_token": "<s>", "sep_token": "</s>"}
    if bert:
        roles = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
        roles |= {"mask_token": "[MASK]"}
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_object=fast, extra_special_tokens=["<turn>"], **roles, **settings
    )
    theirs.save_pretrained(folder)
    return fast.get_vocab_size()


def write_pieces(folder: Path, file: str, lines: list[str], **options: Any) -> list[str]:
    made = BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 20), model_writer=made, vocab_size=60, model_type="unigram",
        hard_vocab_limit=False, minloglevel=2, **options,
    )  # fmt: skip
    (folder / file).write_bytes(made.getvalue())
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_proto=made.getvalue())
    return [processor.id_to_piece(id) for id in range(processor.get_piece_size())]


def sentencepiece(folder: Path, name: str, file: str, **options: Any) -> int:
    pieces = write_pieces(folder, file, WORDS, **options)
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    return len(pieces) + 110  # sentinels, and the marks of fairseq


def marian(folder: Path) -> int:
    source = write_pieces(folder, "source.spm", WORDS, unk_id=1, eos_id=0, bos_id=-1)
    target = write_pieces(folder, "target.spm", ["le chat est là", *WORDS[::2]], unk_id=1, eos_id=0, bos_id=-1)
    names = list(dict.fromkeys(["</s>", "<unk>", *source, *target, "<pad>"]))
    (folder / "vocab.json").write_text(json.dumps({name: id for id, name in enumerate(names)}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MarianTokenizer"}))
    return len(names)


CLS, BOTH = "[CLS] $A [SEP]", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1"
ROUND = ("<s> $A </s>", "<s> $A </s> </s> $B </s>")
START = ("<s> $A", "<s> $A <s> $B")
DECODER = SIZES | {"num_key_value_heads": 2}
ENCODER = SIZES | {"max_position_embeddings": 66}
FAIRSEQ = {"unk_id": 0, "bos_id": 1, "eos_id": 2}
BASES: dict[str, tuple[dict[str, Any], Callable[[Path], int]]] = {
    "GPT2LMHeadModel": (
        {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64},
        lambda folder: write_fast(folder, bytewise()),
    ),
    "LlamaForCausalLM": (DECODER, lambda folder: write_fast(folder, metaspace(*START))),
    "MistralForCausalLM": (DECODER, lambda folder: write_fast(folder, metaspace(*START, scheme="always"))),
    "Qwen2ForCausalLM": (DECODER, lambda folder: write_fast(folder, bytewise(*ROUND))),  # a template with an end
    "BertForMaskedLM": (SIZES, lambda folder: write_fast(folder, uncased(CLS, BOTH))),
    "RobertaForMaskedLM": (ENCODER, lambda folder: write_fast(folder, bytewise(*ROUND))),
    "XLMRobertaForMaskedLM": (
        ENCODER,
        lambda folder: sentencepiece(folder, "XLMRobertaTokenizer", "sentencepiece.bpe.model", **FAIRSEQ),
    ),
    "T5ForConditionalGeneration": (
        T5,
        lambda folder: sentencepiece(folder, "T5Tokenizer", "spiece.model", pad_id=0, eos_id=1, unk_id=2, bos_id=-1),
    ),
    "BartForConditionalGeneration": (PAIRED, lambda folder: write_fast(folder, bytewise(*ROUND))),
    "MarianMTModel": (PAIRED | {"eos_token_id": 0}, marian),
}
EVERYDAY = ("LlamaForCausalLM", "RobertaForMaskedLM", "T5ForConditionalGeneration", "MarianMTModel")
FAMILIES = [name if name in EVERYDAY else pytest.param(name, marks=pytest.mark.long) for name in BASES]
MARK_OF = {"XLMRobertaForMaskedLM": "<mask>", "T5ForConditionalGeneration": "<extra_id_0>", "MarianMTModel": "</s>"}
LEARNED = {
    "next": 'text = "text"',
    "masked": 'text = "text"',
    "classification": 'text = "text"\nlabel = "label"',
    "pair": 'text = "text"\npair = "pair"\nlabel = "label"',
    "token_classification": 'tokens = "text"\ntags = "tags"',
    "completion": 'source = "text"\ntarget = "answer"',
    "sequence_to_sequence": 'source = "text"\ntarget = "answer"',
    "span": 'question = "text"\ncontext = "pair"\nanswer = "found"\nstart = "start"',
    "dpo": "",
}


def base_of(name: str, folder: Path) -> Path:
    kind = getattr(transformers, name)
    sizes, write = BASES[name]
    base = folder / "base"
    base.mkdir()
    rows = write(base)
    pad = {"pad_token_id": rows - 1} if name == "MarianMTModel" else {}
    kind(kind.config_class(vocab_size=rows, **sizes, **pad)).save_pretrained(base)
    return base


def learned_by(name: str) -> Iterator[str]:
    if "Conditional" in name or name == "MarianMTModel":
        yield "sequence_to_sequence"
    elif "Masked" in name:
        yield from ("masked", "classification", "pair", "token_classification", "span")
    else:
        yield from ("next", "classification", "completion", "dpo")


def rows_of(name: str) -> list[dict[str, Any]]:
    mark = MARK_OF.get(name, "<turn>")
    return [{key: text.replace("<turn>", mark) for key, text in row.items()} for row in ROWS]


def open_rows(kind: str, base: Path, folder: Path, rows: list[dict[str, Any]]) -> Any:
    pairs = [{"prompt": row["text"], "chosen": row["answer"], "rejected": " no"} for row in rows]
    for row in rows:
        tags = " ".join("AB"[len(word) % 2] for word in row["text"].split())
        row |= {"tags": tags, "found": row["pair"][:2], "start": 0}
    lines = pairs if kind == "dpo" else rows
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    objective = "classification" if kind == "pair" else kind
    (folder / f"{kind}.toml").write_text(
        f'base = "{base}"\n[data.{"preferences" if kind == "dpo" else "rows"}]\npath = "rows.jsonl"\n{LEARNED[kind]}\n'
        f'held_out = 0.2\n[objective]\nkind = "{objective}"\n[schedule]\nsteps = 1\n[batch]\nsize = 1\n'
        f"context = {4 if kind in ('next', 'masked') else 48}\n"
    )
    (folder / kind).mkdir()
    return open_source(read_recipe(folder / f"{kind}.toml"), folder / kind)


def check_row(
    kind: str, source: Any, checkpoint: Checkpoint, theirs: Any, index: int, rows: list[dict[str, Any]]
) -> None:
    tokenizer = checkpoint.tokenizer
    assert tokenizer is not None
    row = list(source.task_examples("train"))[index] if hasattr(source, "task_examples") else None
    if kind in ("next", "masked"):
        read = tuple(source.corpus.train.document(index)[0].tolist())
        # of texts with masks the marks stand around each window
        wanted = [tokenizer.encode(row["text"], special=kind == "next").ids for row in rows]
        ended = [ids if ids[-1:] == (tokenizer.end_id,) else (*ids, tokenizer.end_id) for ids in wanted]
        assert read in (ended if tokenizer.end_id is not None else wanted)
        return
    if kind == "dpo":
        pair = source.answered_pairs("train", [index])
        for which, answer in enumerate((row.chosen, row.rejected)):
            ids = pair.ids[0, which][pair.real[0, which]].tolist()
            typed = list(tokens(checkpoint, row.prompt + answer).ids)
            typed = typed[:-1] if typed[-1:] == [tokenizer.end_id] and ids[-1:] != [tokenizer.end_id] else typed
            assert ids in (typed, [*typed, tokenizer.end_id])
        return
    examples = source.examples("train", [index])
    ids = examples.ids[0].tolist()
    if kind == "completion":
        asked = [id for id in examples.targets[0].tolist() if id != UNASKED]
        whole = [*ids[: len(ids) - len(asked) + 1], *asked]
        assert tokenizer.end_id == whole[-1]
        mark = next(text for text, id in tokenizer.special_tokens.items() if id == tokenizer.sep_id)
        typed = [*tokens(checkpoint, f"{row.source}{mark}{row.target}").ids]
        assert whole == (typed if typed[-1] == whole[-1] else [*typed, whole[-1]])
    elif kind == "sequence_to_sequence":
        assert ids == list(tokens(checkpoint, row.source).ids) == theirs(row.source)["input_ids"]
        assert examples.inputs["target"][0].tolist() == list(given_target(checkpoint, row.target).ids)
        asked = [id for id in examples.targets[0].tolist() if id != UNASKED]
        assert asked == theirs(text_target=row.target)["input_ids"]
    elif kind == "token_classification":
        assert ids == list(tokens(checkpoint, row.text).ids)
        spaced = theirs(list(row.words), is_split_into_words=True)
        if spaced["input_ids"] == ids:  # not so of a byte-level BPE without add_prefix_space
            firsts = [spaced.word_ids().index(word) for word in range(len(row.words))]
            assert [at for at, tag in enumerate(examples.targets[0].tolist()) if tag != UNASKED] == firsts
    else:
        first, second = (row.question, row.context) if kind == "span" else (row.text, row.pair)
        typed = tokens(checkpoint, first, second)
        assert ids == list(typed.ids) == (theirs(first, second) if second else theirs(first))["input_ids"]


@pytest.mark.parametrize("name", FAMILIES)
def test_the_ids_that_a_training_sees_are_those_of_the_page(name: str, tmp_path: Path) -> None:
    base = base_of(name, tmp_path)
    checkpoint, theirs = load(base), transformers.AutoTokenizer.from_pretrained(base)
    for kind in learned_by(name):
        rows = rows_of(name)
        source = open_rows(kind, base, tmp_path, rows)
        for index in range(4):
            check_row(kind, source, checkpoint, theirs, index, rows)
