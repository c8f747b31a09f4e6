"""The adjectives, and which of them are not said together. Tables only."""

from .lexicon import GOODS, HUMAN, LIVING, SEEN, Adjective, kinds

BEFORE = (
    ("small", "petit", f"person child animal {SEEN}"),
    ("tiny", "très petit", f"animal {SEEN}"),
    ("big", "grand", f"animal {SEEN}"),
    ("huge", "très grand", f"animal {SEEN}"),
    ("fat", "gros", "animal"),
    ("beautiful", "beau", f"animal {SEEN}"),
    ("gorgeous", "très beau", f"animal {SEEN}"),
    ("pretty", "joli", f"animal {SEEN}"),
    ("old", "vieux", f"person animal {SEEN}"),
    ("ancient", "très vieux", "furniture tree part place"),
    ("good", "bon", "food dish drink text"),
    ("excellent", "très bon", "food dish drink text"),
    ("young", "jeune", "person kin child animal"),
)
BEFORE_UNGRADED = (("new", "nouveau", GOODS),)
COLORS = (
    ("red", "rouge", "clothes colored fruit"),
    ("blue", "bleu", "clothes colored"),
    ("green", "vert", "clothes colored fruit"),
    ("yellow", "jaune", "clothes colored fruit"),
    ("black", "noir", "clothes animal container vehicle furniture"),
    ("white", "blanc", "clothes animal container vehicle furniture part"),
    ("gray", "gris", "clothes animal container vehicle furniture"),
)
AFTER = (
    ("happy", "heureux", LIVING),
    ("delighted", "très heureux", LIVING),
    ("overjoyed", "très heureux", LIVING),
    ("sad", "triste", LIVING),
    ("heartbroken", "très triste", LIVING),
    ("tired", "fatigué", LIVING),
    ("exhausted", "très fatigué", LIVING),
    ("angry", "fâché", LIVING),
    ("furious", "très fâché", LIVING),
    ("clever", "intelligent", LIVING),
    ("brilliant", "très intelligent", HUMAN),
    ("funny", "drôle", LIVING),
    ("hilarious", "très drôle", LIVING),
    ("rich", "riche", "person kin"),
    ("wealthy", "très riche", "person kin"),
    ("famous", "célèbre", "person kin text"),
    ("strong", "fort", LIVING),
    ("brave", "courageux", LIVING),
    ("lazy", "paresseux", LIVING),
    ("sick", "malade", LIVING),
    ("quiet", "calme", "child animal place"),
    ("hot", "chaud", "dish drink"),
    ("boiling", "très chaud", "served"),
    ("cold", "froid", "dish drink"),
    ("freezing", "très froid", "drink"),
    ("fresh", "frais", "food baked"),
    ("dirty", "sale", "animal clothes container vehicle furniture part room"),
    ("filthy", "très sale", "animal clothes container vehicle furniture part room"),
    ("clean", "propre", "clothes container vehicle furniture part room"),
    ("spotless", "très propre", "clothes container vehicle furniture part room"),
    ("expensive", "cher", GOODS),
)
UNGRADED = (
    ("empty", "vide", "container vehicle place"),
    ("open", "ouvert", "shut"),
    ("closed", "fermé", "shut"),
)

ADJECTIVES = tuple(
    Adjective(english, french, kinds(names), before, graded and " " not in french)
    for rows, before, graded in (
        (BEFORE, True, True),
        (BEFORE_UNGRADED, True, False),
        (COLORS, False, False),
        (AFTER, False, True),
        (UNGRADED, False, False),
    )
    for english, french, names in rows
)
# of each group at most one at a time: nobody is said to be happy and sad
RIVALS = tuple(
    kinds(names)
    for names in (
        "heureux triste fâché",
        "petit grand gros",
        "beau joli",
        "vieux nouveau jeune",
        "chaud froid",
        "sale propre",
        "ouvert fermé",
        " ".join(french for _, french, _ in COLORS),
    )
)
# what may be so now, often or because; the rest is so for good
PASSING = kinds("heureux triste fatigué fâché malade calme chaud froid sale propre vide ouvert fermé")
NEVER_SAID_OF = kinds("nouveau")  # "la voiture est neuve", so it only stands before a noun

# what is not said of it, or means something else in French: a "grande école" is not just big
UNSAID = frozenset(
    {
        ("big", "kitchen"),
        ("big", "school"),
        ("new", "flower"),
        ("old", "flower"),
        ("expensive", "letter"),
        ("expensive", "newspaper"),
    }
)
