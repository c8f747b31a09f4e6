"""Everyday English without end, for a model that a visitor's own sentence does not defeat.

Document `index` of `seed` is always the same text, on every machine and Python version: only `random.Random.random` and
its seeding by text are used, as in the stories. A document is some lines about one topic, some facts, a talk, a small
story, or one of the children's stories of `engine.data.stories`; `corpora/everyday` holds what they are made of, and
its README explains how it is written.

A tenth of all pairs of a fact and a wording is never written: "The capital of France is Paris." may be missing where
"Paris is the capital of France." is there. `unseen_facts` lists these, to ask a model what it knows.
"""

from __future__ import annotations

import random
import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, combinations
from typing import Any, TypeVar

from engine.data.corpora import read_corpus
from engine.data.drawing import choice, is_held_out, number
from engine.data.stories import plural, story, typeset

T = TypeVar("T")

# {table}, {table2} for another entry, {form:table}, {form:=word}, {form:table@subject}, {subject.property}
SLOT = re.compile(r"\{(?:([a-z]+):)?(=?[a-z_]+)(\d*)(?:\.([a-z]+))?(?:@([a-z]+\d*))?\}")
VOWEL = re.compile(r"\b([Aa]) (?=[aeiou]|hour|honest)(?!un[ai](?!m)|use|euro|one\b|once\b)")
LAST_SLOT = re.compile(r" \{[a-z]+\}\.$")
VOWELS = "aeiou"


@dataclass(frozen=True)
class Person:
    """The words that go with a subject."""

    he: str
    him: str
    his: str
    himself: str
    be: str  # am, is, are
    was: str
    has: str
    does: str
    many: bool = True  # takes the bare verb: "they go"


PERSONS = {
    "i": Person("I", "me", "my", "myself", "am", "was", "have", "do"),
    "you": Person("you", "you", "your", "yourself", "are", "were", "have", "do"),
    "he": Person("he", "him", "his", "himself", "is", "was", "has", "does", many=False),
    "she": Person("she", "her", "her", "herself", "is", "was", "has", "does", many=False),
    "it": Person("it", "it", "its", "itself", "is", "was", "has", "does", many=False),
    "we": Person("we", "us", "our", "ourselves", "are", "were", "have", "do"),
    "they": Person("they", "them", "their", "themselves", "are", "were", "have", "do"),
}
PRONOUNS = ("he", "him", "his", "himself", "be", "was", "has", "does")  # of the verb's subject, else of `who`
IMPERATIVE = PERSONS["you"]


@dataclass(frozen=True)
class Subject:
    text: str
    person: Person


@dataclass(frozen=True)
class Fact:
    """`prompt` + " " + `answer` states it."""

    kind: str
    prompt: str
    answer: str


def document(seed: int, index: int) -> str:
    """Text of document `index` of the stream `seed`."""
    chance = random.Random(f"{seed}:{index}:everyday").random
    shares = read_corpus("everyday/documents")
    kind = pick_weighted(chance, shares["shares"])
    if kind == "tale":
        return story(seed, index)
    text = DOCUMENTS[kind](Writer(chance))
    return contract(text) if chance() < shares["contracted"] else text


STYLES = ("pirate", "old", "cheerful")


def styled_document(seed: int, index: int, style: str) -> str:
    """`document` in one of STYLES: other words, and other ends of its sentences."""
    table, pattern = style_words(style)
    return pattern.sub(lambda found: as_written(table[found[0].lower()], found[0]), document(seed, index))


@cache
def style_words(style: str) -> tuple[Mapping[str, str], re.Pattern[str]]:
    """Words and ends of sentences by those that they stand for, and the pattern that finds these."""
    found = read_corpus("everyday/styles")[style]
    words, ends = (sorted(found[kind], key=len, reverse=True) for kind in ("words", "ends"))
    pattern = rf"\b(?:{'|'.join(words)})\b(?!')|(?:{'|'.join(map(re.escape, ends))})(?=\s|$)"
    return found["words"] | found["ends"], re.compile(pattern, re.IGNORECASE)


def as_written(word: str, before: str) -> str:
    """`word` with the capital of what it stands for."""
    return word.capitalize() if before[0].isupper() and word[0].isalpha() else word


def pick_weighted(chance: Callable[[], float], weights: Mapping[str, float]) -> str:
    ends = list(accumulate(weights.values()))
    return list(weights)[bisect(ends, chance() * ends[-1])]


# The forms of a word


@cache
def contraction_table() -> tuple[re.Pattern[str], Mapping[str, str]]:
    """Pattern for pairs of words that are contracted before a third, in lower case or capitalised, and the contraction
    of each."""
    pairs = read_corpus("everyday/forms")["contracted"]
    pairs = pairs | {f"{long[0].upper()}{long[1:]}": f"{short[0].upper()}{short[1:]}" for long, short in pairs.items()}
    return re.compile(rf"\b({'|'.join(pairs)})(?= [a-zA-Z])"), pairs


def contract(text: str) -> str:
    """ "He doesn't" for "He does not"."""
    pattern, pairs = contraction_table()
    return pattern.sub(lambda found: pairs[found[1]], text)


def words() -> Mapping[str, Any]:
    """The word tables by name."""
    return read_corpus("everyday/words")


@cache
def irregular(form: str) -> Mapping[str, str]:
    forms: Mapping[str, str] = read_corpus("everyday/forms")[form]
    return forms


def first_word(inflect: Callable[[str], str], phrase: str) -> str:
    word, space, rest = phrase.partition(" ")
    return inflect(word) + space + rest


def double_last_letter(word: str) -> str:
    """ "stopp", from "stop"; as it is where the last letter stays single."""
    return word + word[-1] if word in read_corpus("everyday/forms")["doubled"] else word


def past(verb: str) -> str:
    if verb in irregular("past"):
        return irregular("past")[verb]
    if verb.endswith("y") and verb[-2] not in VOWELS:
        return f"{verb[:-1]}ied"
    return f"{verb}d" if verb.endswith("e") else f"{double_last_letter(verb)}ed"


def participle(verb: str) -> str:
    return irregular("participle").get(verb) or past(verb)


def ing(verb: str) -> str:
    if verb in ("lie", "die", "tie"):
        return f"{verb[:-2]}ying"
    if verb.endswith("e") and not verb.endswith("ee") and verb != "be":
        return f"{verb[:-1]}ing"
    return f"{double_last_letter(verb)}ing"


def third(verb: str) -> str:
    if verb in irregular("third"):
        return irregular("third")[verb]
    return f"{verb}es" if verb.endswith("o") else plural(verb)


def many(noun: str) -> str:
    """The plural; of "bus stop" and "piece of cake" too."""
    head, of, rest = noun.partition(" of ")
    before, space, last = head.rpartition(" ")
    return before + space + (irregular("plural").get(last) or plural(last)) + of + rest


def degree(adjective: str, ending: str) -> str:
    """ "bigger" or "biggest", "more beautiful" or "most beautiful"."""
    if adjective in irregular(ending):
        return irregular(ending)[adjective]
    if adjective in read_corpus("everyday/forms")["long"]:
        return f"{'more' if ending == 'er' else 'most'} {adjective}"
    if adjective.endswith("y"):
        return f"{adjective[:-1]}i{ending}"
    return f"{adjective}{ending[1:]}" if adjective.endswith("e") else f"{double_last_letter(adjective)}{ending}"


def spell(value: int) -> str:
    """A number below a hundred in words; one hundred too."""
    ones, tens = words()["ones"], words()["tens"]
    if value == 100:
        return "one hundred"
    if value < len(ones):
        return str(ones[value])
    ten, one = divmod(value, 10)
    return str(tens[ten - 2]) + (f"-{ones[one]}" if one else "")


FORMS: Mapping[str, Callable[[str], str]] = {
    "plural": many,
    "past": lambda phrase: first_word(past, phrase),
    "done": lambda phrase: first_word(participle, phrase),
    "ing": lambda phrase: first_word(ing, phrase),
    "third": lambda phrase: first_word(third, phrase),
    "er": lambda adjective: degree(adjective, "er"),
    "est": lambda adjective: degree(adjective, "est"),
}


# Filling templates


class Writer:
    """A seeded chooser, the topic, and what the slots of the present text were filled with."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self.chance = chance
        self.topic: Mapping[str, Any] = {}
        self.fields: dict[str, str | Subject] = {}
        self.inside = False  # an entry, whose pronouns wait until it is known who does it

    def pick(self, options: Sequence[T]) -> T:
        return choice(self.chance, options)

    def pick_topic(self) -> None:
        self.topic = self.pick(list(read_corpus("everyday/topics").values()))

    def table(self, name: str) -> Sequence[Any]:
        return self.topic[name] if name in self.topic else words()[name]

    def fill(self, template: str, subject: Person | None = None) -> str:
        """The template with each slot filled; pronouns are the subject's, or `who`'s."""
        return SLOT.sub(lambda slot: self.fill_slot(slot, subject), template)

    def fill_slot(self, slot: re.Match[str], subject: Person | None) -> str:
        form, name, digits, part, about = slot.groups()
        if name in PRONOUNS and not form and not digits:
            return slot[0] if self.inside else getattr(subject or self.subject(None), name)
        value = self.value(name, digits)
        if isinstance(value, Subject):
            return getattr(value.person, part) if part else value.text
        if form in ("pres", "past", "ing", "done", "do"):
            return self.inflect(form, value, self.subject(about))
        text = self.fill(value, subject)
        return FORMS[form](text) if form else text

    def subject(self, name: str | None) -> Person:
        """Person of a verb: `name` itself, or that of the slot named after the @, else of `who`, else of an
        imperative."""
        if name in PERSONS:
            return PERSONS[name]
        found = self.fields.get(name or "who")
        return found.person if isinstance(found, Subject) else IMPERATIVE

    def inflect(self, form: str, phrase: str, subject: Person) -> str:
        phrase = self.fill(phrase, subject)
        verb = phrase.split(" ")[0]
        if verb == "be" and form in ("pres", "past"):
            return (subject.be if form == "pres" else subject.was) + phrase[2:]
        if form == "pres":
            return phrase if subject.many else FORMS["third"](phrase)
        return phrase if form == "do" else FORMS[form](phrase)

    def value(self, name: str, digits: str) -> str | Subject:
        """Value that the slot has been filled with, or a new entry that no slot of that name has yet."""
        if name[0] == "=":
            return name[1:]
        key = name + digits
        if key not in self.fields:
            self.fields[key] = self.draw(name)
        return self.fields[key]

    def draw(self, name: str) -> str | Subject:
        subjects = read_corpus("everyday/subjects")
        taken = [value for key, value in self.fields.items() if key.rstrip("0123456789") == name]
        for _ in range(20):
            if name in subjects:
                person, entry = self.pick(flatten(name))
                found: str | Subject = Subject(self.entry(entry), PERSONS[person])
            else:
                found = self.entry(self.pick(self.table(name)))
            if found not in taken:
                break
        return found

    def entry(self, text: str) -> str:
        """An entry with its own slots filled afresh, so that they are nobody else's."""
        if "{" not in text:
            return text
        outer = self.fields, self.inside
        self.fields, self.inside = {}, True
        text = self.fill(text)
        self.fields, self.inside = outer
        return text

    def line(self, template: str, **fields: str | Subject) -> str:
        """A template as a line of its own."""
        self.fields = dict(fields)
        return typeset_line(self.fill(template))


@cache
def flatten(name: str) -> tuple[tuple[str, str], ...]:
    return tuple((person, text) for person, texts in read_corpus("everyday/subjects")[name].items() for text in texts)


def typeset_line(text: str) -> str:
    text = VOWEL.sub(r"\1n ", text)
    start = 1 if text[0] == "“" else 0
    return typeset(text[:start] + text[start].upper() + text[start + 1 :])


# The kinds of documents


def write_lines(writer: Writer) -> str:
    """Some lines about a topic, most of them about one person."""
    writer.pick_topic()
    frames = read_corpus("everyday/sentences")
    host = writer.draw("who")
    lines = []
    for _ in range(number(writer.chance, 4, 11)):
        group = pick_weighted(writer.chance, frames["shares"])
        template = writer.pick(writer.topic["say"] if group == "topic" else frames[group])
        lines.append(writer.line(template, **({"who": host} if writer.chance() < 0.5 else {})))
    return "\n".join(lines)


def write_talk(writer: Writer) -> str:
    """Two people who speak in turns, a line each."""
    writer.pick_topic()
    return "\n".join(tell(writer, writer.pick(read_corpus("everyday/talks")["talks"])))


def write_story(writer: Writer) -> str:
    writer.pick_topic()
    return " ".join(tell(writer, writer.pick(read_corpus("everyday/plots")["plots"])))


def tell(writer: Writer, steps: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yields one wording of each step; an empty one leaves the step out. The slots keep what they were filled with."""
    for step in steps:
        template = writer.pick(step)
        if template:
            yield typeset_line(writer.fill(template))


def write_facts(writer: Writer) -> str:
    """Facts of one kind, or of several."""
    kinds = dict.fromkeys(facts(), 1) | read_corpus("everyday/documents")["facts"]
    one = pick_weighted(writer.chance, kinds) if writer.chance() < 0.5 else None
    lines = []
    for _ in range(number(writer.chance, 4, 10)):
        kind = one or pick_weighted(writer.chance, kinds)
        for _ in range(100):
            row, wording = writer.pick(facts()[kind]), writer.pick(read_corpus("everyday/facts")[kind]["say"])
            if not is_unseen(kind, row, wording):
                break
        lines.append(writer.line(wording, **row))
    return "\n".join(lines)


DOCUMENTS = {"lines": write_lines, "talk": write_talk, "story": write_story, "facts": write_facts}


# Facts

Row = Mapping[str, str]


@cache
def facts() -> Mapping[str, tuple[Row, ...]]:
    """The rows of each kind of fact, a field for each column."""
    return {kind: tuple(fact_rows(table)) for kind, table in read_corpus("everyday/facts").items()}


def fact_rows(table: Mapping[str, Any]) -> Iterator[Row]:
    if "arithmetic" in table:
        yield from ARITHMETIC[table["arithmetic"]](table["up_to"])
    columns = table["columns"].split(", ") if "columns" in table else []
    if "ordered" in table:  # each pair of a list, the smaller first
        for items in table["ordered"]:
            yield from (dict(zip(columns, pair, strict=True)) for pair in combinations(items, 2))
    if "circle" in table:  # what stands before and behind each
        items = table["circle"]
        yield from (
            dict(zip(columns, (items[at - 1], item, items[(at + 1) % len(items)]), strict=True))
            for at, item in enumerate(items)
        )
    for row in table.get("rows", ()):
        yield dict(zip(columns, row, strict=True))


def sums(up_to: int) -> Iterator[Row]:
    for first in range(up_to + 1):
        for second in range(up_to + 1 - first):
            yield {"x": spell(first), "y": spell(second), "sum": spell(first + second)}


def products(up_to: int) -> Iterator[Row]:
    for first in range(1, up_to + 1):
        for second in range(1, up_to + 1):
            yield {"x": spell(first), "y": spell(second), "product": spell(first * second)}


def counts(up_to: int) -> Iterator[Row]:
    for value in range(1, up_to):
        yield {"before": spell(value - 1), "x": spell(value), "after": spell(value + 1)}


ARITHMETIC: Mapping[str, Callable[[int], Iterator[Row]]] = {"sums": sums, "products": products, "counts": counts}


def is_unseen(kind: str, row: Row, wording: str) -> bool:
    return is_held_out(f"{kind}:{wording}:{'|'.join(row.values())}", seed=0)


@cache
def unseen_facts() -> tuple[Fact, ...]:
    """Each fact in a wording that no facts state it in, where that ends with one word which nothing else could be."""
    writer, written = Writer(random.Random(0).random), set()
    found: dict[str, Fact] = {}
    for kind, rows in facts().items():
        for wording in read_corpus("everyday/facts")[kind]["say"]:
            lines = [writer.line(wording, **row) for row in rows]
            ends = Counter(line.rpartition(" ")[0] for line in set(lines))
            for row, line in zip(rows, lines, strict=True):
                prompt, _, answer = line.removesuffix(".").rpartition(" ")
                if not is_unseen(kind, row, wording):
                    written.add(line)
                elif LAST_SLOT.search(wording) and ends[prompt] == 1:
                    found[line] = Fact(kind, prompt, answer)
    return tuple(fact for line, fact in found.items() if line not in written)
