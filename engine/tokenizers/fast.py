"""FastTokenizer: a Hugging Face `tokenizers` pipeline, seen through this engine's Tokenizer protocol."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property, reduce
from itertools import groupby, pairwise
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, models
from tokenizers.processors import TemplateProcessing

from engine.json_text import parse_json
from engine.tokenizers.encoding import Encoding
from engine.tokenizers.pieces import draw_piece, draw_stray_bytes, read_spelling, read_state
from engine.tokenizers.pipeline_limits import bound_growth, check_growth, flatten_steps, refuse_failure
from engine.tokenizers.special import guess_roles
from engine.tokenizers.vocabulary import check_unicode

BETWEEN = "\n"  # the two texts of a pair, in `Encoding.text`
FIRST, LAST = "[CLS]", "[SEP]"
LONGEST_SHOWN = 80  # characters of a word in a message
CLEANED = (" .", " ?", " !", " ,", " ' ", " n't", " 'm", " 's", " 've", " 're")  # in this order, as transformers
KINDS = {"BPE": "bpe", "WordPiece": "wordpiece", "Unigram": "unigram", "WordLevel": "word"}


class FastTokenizer:
    """Tokenizer that owns `fast` and switches its padding and truncation off: the model's length decides.

    `roles` names special tokens as transformers does ("eos_token": "</s>"). A role whose token the vocabulary lacks is
    dropped, as checkpoints often carry another vocabulary's; `declared_roles` keeps it, for a chat template writes it
    all the same. `notes` are sentences for the load report, and `clean_up` is whether decoding takes away the spaces
    before English punctuation, as transformers does if told so, and `segmented` whether the texts of a pair are told
    apart by segment ids. `target` is the tokenizer of the target's texts where that is another, and `files` those that
    it was read from, by their names, which it is saved as.
    """

    def __init__(
        self, fast: tokenizers.Tokenizer, roles: Mapping[str, str] | None = None, notes: Iterable[str] = ()
    ) -> None:
        self.notes = tuple(notes)
        self.clean_up, self.segmented = False, True
        self.target: FastTokenizer | None = None
        self.files: dict[str, bytes] = {}
        fast.no_padding()
        self.cut_left = (fast.truncation or {}).get("direction") == "left"
        fast.no_truncation()
        self.fast = fast
        self._ids = fast.get_vocab(with_added_tokens=True)
        self.vocab_size = max(self._ids.values(), default=-1) + 1
        added = fast.get_added_tokens_decoder()
        self.special_tokens = {token.content: id for id, token in sorted(added.items()) if token.special}
        self.declared_roles = dict(roles or {})
        known = {role: token for role, token in self.declared_roles.items() if token in self._ids}
        self.roles = guess_roles(self.special_tokens) | known
        self.end_id = self._role_id("eos_token")
        self.mask_id = self._role_id("mask_token")
        self.cls_id = self._role_id("cls_token")
        self.sep_id = self._role_id("sep_token")
        self.pad_id = self._role_id("pad_token")
        self._added_ids = frozenset(added)
        self._spelling = read_spelling(fast)

    @cached_property
    def kind(self) -> str:
        """A BPE without a single merge is a character tokenizer, or a byte one if its letters are bytes."""
        units = (entry for entry, id in self._ids.items() if id not in self._added_ids)
        if isinstance(self.fast.model, models.BPE) and all(len(unit) == 1 for unit in units):
            return "byte" if self._spelling.byte_level else "char"
        return KINDS[type(self.fast.model).__name__]

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        return tuple(f"#{id}" if data is None else draw_piece(data) for id, data in enumerate(self._meanings))

    def piece(self, id: int) -> str:
        return self.pieces[id] if 0 <= id < self.vocab_size else f"#{id}"

    def encode(self, text: str, pair: str | None = None, *, special: bool = True) -> Encoding:
        texts = [text] if pair is None else [text, pair]
        found = self._read(text, pair, special)
        added = found.special_tokens_mask
        starts = [len(text) + len(BETWEEN) if which == 1 else 0 for which in found.sequence_ids]
        return Encoding(
            text=BETWEEN.join(texts),
            ids=tuple(found.ids),
            pieces=tuple(map(self.pieces.__getitem__, found.ids)),
            spans=tuple(_place_spans(self._widen(found, texts), starts, added)),
            special=tuple(mark == 1 or id in self._marker_ids for mark, id in zip(added, found.ids, strict=True)),
            segments=tuple(found.type_ids) if self.segmented else (0,) * len(found.ids),
            second=None if pair is None else len(text) + len(BETWEEN),
            cut_left=self.cut_left,
        )

    def take_space_before(self, id: int) -> None:
        """Make the space before a special token a part of it, as one writes it before a gap."""
        token = self.fast.get_added_tokens_decoder().get(id)
        if token is not None:
            made = AddedToken(token.content, lstrip=True, normalized=False, special=True)
            self.fast.add_special_tokens([made])

    def _widen(self, found: tokenizers.Encoding, texts: Sequence[str]) -> list[tuple[int, int]]:
        """Offsets in each text. Behind an added token `tokenizers` takes the space that it put before a word for one of
        the text, and cuts the word's first letter off."""
        if not self._spelling.byte_level:
            return self._empty_put_spaces(found, found.offsets)
        placed = []
        for id, (start, end), which in zip(found.ids, found.offsets, found.sequence_ids, strict=True):
            letters = (self._meanings[id] or b"").decode("utf-8", "ignore").lstrip(" ")
            begin = end - len(letters)
            cut = which is not None and 0 <= begin < start and texts[which][begin:end] == letters
            placed.append((begin if cut else start, end))
        return self._empty_put_spaces(found, placed)

    def _empty_put_spaces(self, found: tokenizers.Encoding, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Empty the span of a space that `tokenizers` put before a word, where it is a token of its own: it has the
        offsets of the word's first letter, which is the next token's."""
        placed, ids = list(spans), found.ids  # a list that each access makes anew
        tokens = list(zip(found.sequence_ids, spans, strict=True))
        for at, ((which, (start, end)), (following, (then, _))) in enumerate(pairwise(tokens)):
            shares = which == following and start == then < end
            continues = at > 0 and tokens[at - 1][0] == which and start < tokens[at - 1][1][1]
            if shares and not continues and self._meanings[ids[at]] == b" ":
                placed[at] = start, start
        return placed

    def ids(self, text: str, *, special: bool = True) -> list[int]:
        return self._read(self.pipeline_input(text), None, special).ids

    def tokens_at(self, text: str, characters: Iterable[int]) -> list[int | None]:
        """Index of the first token that covers each character, as `tokenizers` places them; None where none does.
        Without special tokens around the text."""
        found = self._read(text, None, False)
        return [found.char_to_token(at) for at in characters]

    def pipeline_input(self, text: str) -> str:
        """Text that `fast` is given: all that a subclass does comes before it."""
        return text

    @property
    def of_targets(self) -> FastTokenizer:
        return self.target or self

    def _read(self, text: str, pair: str | None, special: bool) -> tokenizers.Encoding:
        for each in [text] if pair is None else [text, pair]:
            check_unicode(each)
            check_growth(self.fast.normalizer, self._growth, each)
            check_words(self.fast, self._ids, each)
        with refuse_failure("the tokenizer must write any text, and fails", "fetch its files again"):
            return self.fast.encode(text, pair, add_special_tokens=special)

    @cached_property
    def _growth(self) -> float:
        return bound_growth(list(flatten_steps(read_state(self.fast.normalizer), "normalizers")))

    def decode(self, ids: Iterable[int], *, special: bool = True) -> str:
        wanted = (id for id in map(int, ids) if special or id not in self._marker_ids)
        runs = groupby(wanted, key=lambda id: 0 <= id < self.vocab_size and self._meanings[id] is not None)
        texts = (self._text(list(run)) if known else "".join(map(self.piece, run)) for known, run in runs)
        return reduce(lambda text, mark: text.replace(mark, mark.strip()), CLEANED * self.clean_up, "".join(texts))

    def to_bytes(self, ids: Iterable[int]) -> bytes:
        """The text with its special tokens in UTF-8, where it is cut within a character too."""
        wanted = list(map(int, ids))
        if not self._spelling.splits_characters:
            return self.decode(wanted).encode("utf-8")
        return b"".join(self._meanings[id] or b"" for id in wanted if 0 <= id < self.vocab_size)

    def save(self, path: Path) -> None:
        """`path` is the folder, or the `tokenizer.json` in it. transformers reads what is written."""
        if self.files and path.suffix != ".json":
            return write_files(self.files, path)
        file = path if path.suffix == ".json" else path / "tokenizer.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        self.fast.save(str(file))
        config: dict[str, object] = {"tokenizer_class": "PreTrainedTokenizerFast", **self.roles}
        if self.cut_left:
            config["truncation_side"] = "left"
        if self.clean_up:
            config["clean_up_tokenization_spaces"] = True
        if self.fast.encode_special_tokens:
            config["split_special_tokens"] = True
        if not self.segmented:
            config["model_input_names"] = ["input_ids", "attention_mask"]
        elif 1 in self._read("", "", True).type_ids:  # transformers leaves segment ids out unless told
            config["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
        file.with_name("tokenizer_config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")

    @cached_property
    def _meanings(self) -> tuple[bytes | None, ...]:
        """The bytes that each id stands for; None for an id that the vocabulary leaves out."""
        table: list[bytes | None] = [None] * self.vocab_size
        for entry, id in self._ids.items():
            table[id] = entry.encode("utf-8") if id in self._added_ids else self._spelling.to_bytes(entry)
        return tuple(table)

    @cached_property
    def _marker_ids(self) -> frozenset[int]:
        """Special tokens that stand for no text; the unknown token does stand for some."""
        return frozenset(self.special_tokens.values()) - {self.unknown_id}

    @property
    def unknown_id(self) -> int | None:
        if isinstance(self.fast.model, models.Unigram):
            return parse_json(self.fast.model.__getstate__())["unk_id"]
        return self._ids.get(self.fast.model.unk_token or "")

    def _role_id(self, role: str) -> int | None:
        return self._ids[self.roles[role]] if role in self.roles else None

    def _text(self, ids: list[int]) -> str:
        if not self._spelling.splits_characters:
            with refuse_failure("the tokenizer must read any of its tokens, and fails", "fetch its files again"):
                return self.fast.decode(ids, skip_special_tokens=False)
        # `fast.decode` would write U+FFFD for a part of a character; here its bytes stay readable.
        text = draw_stray_bytes(b"".join(self._meanings[id] or b"" for id in ids))
        return text.removeprefix(" ") if self._spelling.dummy_prefix else text


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def _place_spans(spans: list[tuple[int, int]], starts: list[int], added: list[int]) -> Iterable[tuple[int, int]]:
    """Place tokens in the text of the encoding; `starts` is where the text of each token begins there.

    `tokenizers` puts an added token at (0, 0); here it stands, empty, where the text before it ends.
    """
    end = 0
    for (start, stop), text_start, is_added in zip(spans, starts, added, strict=True):
        end = end if is_added else text_start + stop
        yield (end, end) if is_added else (text_start + start, end)


def check_words(fast: tokenizers.Tokenizer, ids: Mapping[str, int], text: str) -> None:
    """Raise ValueError for the first word of `text` that a closed word vocabulary lacks; other tokenizers pass."""
    model = fast.model
    if not isinstance(model, models.WordLevel) or model.unk_token in ids:
        return
    with refuse_failure("the tokenizer must find the words of any text, and fails", "fetch its files again"):
        plain = fast.normalizer.normalize_str(text) if fast.normalizer else text
        words = fast.pre_tokenizer.pre_tokenize_str(plain) if fast.pre_tokenizer else [(plain, (0, len(plain)))]
    unknown = next((word for word, _ in words if word and word not in ids), None)
    if unknown is not None:
        near = get_close_matches(unknown[:LONGEST_SHOWN], ids, n=5, cutoff=0.0)
        nearest = ", ".join(f"{word!r:.{LONGEST_SHOWN}}" for word in near)
        raise ValueError(
            f"Expected words of this vocabulary, got {unknown!r:.{LONGEST_SHOWN}}, and it has no token for unknown "
            f"words; use one of its {len(ids)} words, such as {nearest}."
        )


def remove_template(tokenizer: FastTokenizer) -> FastTokenizer:
    """Put nothing around a text: for models that read texts as they stand."""
    tokenizer.fast.post_processor = TemplateProcessing(single="$A", pair="$A:0 $B:0", special_tokens=[])
    return tokenizer


def add_bert_template(tokenizer: FastTokenizer) -> FastTokenizer:
    """Put [CLS] A [SEP] around one text and [CLS] A [SEP] B [SEP] around two, as BERT does; both are special tokens."""
    ids = tokenizer.special_tokens
    tokenizer.fast.post_processor = TemplateProcessing(
        single=[f"{FIRST}:0", "$A:0", f"{LAST}:0"],
        pair=[f"{FIRST}:0", "$A:0", f"{LAST}:0", "$B:1", f"{LAST}:1"],
        special_tokens=[(name, ids[name]) for name in (FIRST, LAST)],
    )
    return tokenizer
