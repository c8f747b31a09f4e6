"""The verbs and their adverbs. Tables only."""

from .lexicon import GOODS, HUMAN, LIVING, SEEN, Adverb, Verb, kinds

WELL, A_LOT = Adverb("well", "bien", inner=True), Adverb("a lot", "beaucoup", inner=True)
FAST, SLOWLY = Adverb("fast", "vite"), Adverb("slowly", "lentement")

EATEN = "food dish"
TAKEN = "clothes thing food dish drink"
TRANSITIVE = tuple(
    Verb(english, particle, past, french, preposition, kinds(subjects), kinds(objects))
    for english, particle, past, french, preposition, subjects, objects in (
        ("eat", "", "ate", "manger", "", LIVING, EATEN),
        ("drink", "", "drank", "boire", "", LIVING, "drink"),
        ("see", "", "saw", "voir", "", LIVING, f"{LIVING} {SEEN}"),
        ("love", "", "", "aimer", "", LIVING, f"{LIVING} {GOODS} place"),
        ("buy", "", "bought", "acheter", "", HUMAN, f"{GOODS} {EATEN} drink pet"),
        ("find", "", "found", "trouver", "", LIVING, f"{LIVING} clothes thing food"),
        ("look", "at", "looked", "regarder", "", LIVING, f"{LIVING} {SEEN}"),
        ("look", "for", "looked", "chercher", "", LIVING, f"{LIVING} clothes thing"),
        ("read", "", "", "lire", "", HUMAN, "text"),
        ("wear", "", "wore", "porter", "", HUMAN, "clothes"),
        ("carry", "", "carried", "porter", "", HUMAN, "thing furniture"),
        ("take", "", "took", "prendre", "", HUMAN, TAKEN),
        ("have", "", "", "avoir", "", HUMAN, f"pet {GOODS}"),
        ("need", "", "", "avoir", "besoin de", HUMAN, f"{HUMAN} clothes thing vehicle"),
        ("talk", "to", "talked", "parler", "à", HUMAN, LIVING),
        ("play", "with", "played", "jouer", "avec", "child kin animal", "kin child pet plaything"),
    )
)
GIVING = (Verb("give", "", "gave", "donner", "", kinds(HUMAN), kinds(f"clothes thing {EATEN} drink")),)
MOVING = tuple(
    Verb(english, particle, past, french, preposition, kinds(LIVING), kinds("goal"))
    for english, particle, past, french, preposition in (
        ("go", "to", "went", "aller", "à"),
        ("return", "from", "returned", "revenir", "de"),
    )
)
INTRANSITIVE = tuple(
    Verb(english, particle, past, french, "", kinds(subjects), adverbs=adverbs)
    for english, particle, past, french, subjects, adverbs in (
        ("sleep", "", "slept", "dormir", LIVING, (WELL, A_LOT)),
        ("work", "", "worked", "travailler", HUMAN, (WELL, A_LOT, SLOWLY)),
        ("sing", "", "sang", "chanter", HUMAN, (WELL, A_LOT)),
        ("run", "", "ran", "courir", LIVING, (FAST, SLOWLY)),
        ("play", "", "played", "jouer", "child kin animal", (A_LOT,)),
        ("stay", "", "stayed", "rester", LIVING, ()),
        ("get", "up", "got", "se lever", HUMAN, (SLOWLY,)),
    )
)
BE = Verb("be", "", "was", "être", "", kinds(LIVING))

OFTEN = (Adverb("often", "souvent"), Adverb("always", "toujours"), Adverb("sometimes", "parfois"))
NOW = (
    Adverb("today", "aujourd'hui"),
    Adverb("now", "maintenant"),
    Adverb("every day", "tous les jours"),
    Adverb("in the morning", "le matin"),
)
TO_ALL_NOW = NOW[:2]  # "tous tous les jours" is not said
THEN = (Adverb("yesterday", "hier"), Adverb("this morning", "ce matin"))
