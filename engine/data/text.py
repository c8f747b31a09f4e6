"""Plain text: reading it, a text that every Python carries, cutting it into documents and a held-out part."""

from pathlib import Path
from pydoc_data.topics import topics

from engine.data.encodings import decode
from engine.data.published import unpack
from engine.plurals import count_words

PARAGRAPH = "\n\n"


def read_text(path: str | Path) -> str:
    """The text of a file, as `read_encoded` has it."""
    return read_encoded(path)[0]


def read_encoded(path: str | Path) -> tuple[str, str]:
    """The text of a file and its encoding, with \\n for every line end and without a byte-order mark. One named .xz is
    unpacked.

    Raises ValueError, in one sentence, for a file of no encoding that is known, or without a text in it.
    """
    raw = unpack(Path(path).read_bytes(), Path(path).name)
    try:
        text, encoding = decode(raw)
    except ValueError as error:
        raise ValueError(f"{path}{str(error).removeprefix('the file')}") from None
    if not text.strip():
        raise ValueError(f"{path} should contain text, but it is empty; choose a file with text in it.")
    return text, encoding


def python_reference() -> str:
    """The Python language reference that `help()` reads: half a million characters, offline, free to use.

    It is the running Python's own, so it differs a little between Python versions: name the version beside a
    model trained on it.
    """
    return PARAGRAPH.join(topics[name].strip() for name in sorted(topics)) + "\n"


def split(text: str, held_out: float = 0.05) -> tuple[str, str]:
    """The text in two, (train, held out): the end is held out, in one piece, so that no sentence is in both.

    The cut is the paragraph boundary nearest to the share asked for; failing that a line end, or any place.
    """
    if not 0 < held_out < 1:
        raise ValueError(f"held_out should be a share between 0 and 1, but it is {held_out}; 0.05 is usual.")
    if len(text) < 2:
        count = count_words(len(text), "character")
        raise ValueError(f"a text of {count} cannot be split in two; give it a longer text.")
    wanted = min(max(round(len(text) * (1 - held_out)), 1), len(text) - 1)
    for mark in (PARAGRAPH, "\n"):
        before, after = text.rfind(mark, 0, wanted), text.find(mark, wanted)
        cuts = [cut + len(mark) for cut in (before, after) if cut >= 0 and 0 < cut + len(mark) < len(text)]
        if cuts:
            cut = min(cuts, key=lambda place: abs(place - wanted))
            return text[:cut], text[cut:]
    return text[:wanted], text[wanted:]


def chunks(text: str, longest: int = 2000) -> list[str]:
    """The text as documents of at most `longest` characters: whole paragraphs together while they fit.

    A paragraph that is longer by itself is cut at a line or a space where it has one. Nothing is lost but the
    blank space between documents.
    """
    if longest < 1:
        raise ValueError(f"longest should be at least 1 character, but it is {longest}; 2000 is usual.")
    documents: list[str] = []
    for paragraph in (piece.strip("\n") for piece in text.split(PARAGRAPH)):
        if documents and len(documents[-1]) + len(PARAGRAPH) + len(paragraph) <= longest:
            documents[-1] += PARAGRAPH + paragraph
        elif paragraph.strip():
            documents.extend(_pieces(paragraph, longest))
    return documents


def _pieces(paragraph: str, longest: int) -> list[str]:
    pieces = []
    while len(paragraph) > longest:
        cut = max(paragraph.rfind("\n", 1, longest + 1), paragraph.rfind(" ", 1, longest + 1))
        cut = cut if cut > 0 else longest
        pieces.append(paragraph[:cut])
        paragraph = paragraph[cut:].lstrip()
    return [*pieces, paragraph] if paragraph else pieces
