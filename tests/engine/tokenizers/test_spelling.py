"""SentencePiece's stand-ins for spaces and bytes: drawn and decoded as the text they mean."""

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from engine.tokenizers import FastTokenizer

ENTRIES = ["<unk>", "▁", "h", "i", "▁h", "▁hi", *(f"<0x{byte:02X}>" for byte in range(256))]


@pytest.fixture
def llama_like() -> FastTokenizer:
    vocabulary = {entry: id for id, entry in enumerate(ENTRIES)}
    merges = [("▁", "h"), ("▁h", "i")]
    fast = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    fast.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    fast.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    fast.add_special_tokens(["<unk>"])
    return FastTokenizer(fast)


def test_fallback_bytes_and_dummy_spaces_are_drawn_as_what_they_mean(llama_like: FastTokenizer) -> None:
    encoding = llama_like.encode("hi hi\n中")
    assert encoding.pieces == ("·hi", "·hi", "\\n", "<E4>", "<B8>", "<AD>")
    assert encoding.spans == ((0, 2), (2, 5), (5, 6), (6, 7), (6, 7), (6, 7))


def test_half_a_character_decodes_to_its_bytes_and_the_dummy_space_goes(llama_like: FastTokenizer) -> None:
    ids = llama_like.encode("hi hi\n中").ids
    assert llama_like.decode(ids) == "hi hi\n中"
    assert llama_like.decode(ids[:-1]) == "hi hi\n<E4 B8>"
