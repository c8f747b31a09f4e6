"""What the stories are about: names, animals, things, places and feelings. Tables only.

Every entry is chosen so that any row of a table fits wherever a plot draws from that table.
"""

SHE, HE, IT, THEY = "she", "he", "it", "they"

# subject: object, possessive, reflexive
PRONOUNS = {
    SHE: ("her", "her", "herself"),
    HE: ("him", "his", "himself"),
    IT: ("it", "its", "itself"),
    THEY: ("them", "their", "themselves"),
}

GIRLS = (
    ("Lily", SHE), ("Mia", SHE), ("Anna", SHE), ("Sara", SHE), ("Lucy", SHE), ("Emma", SHE), ("Zoe", SHE),
    ("Ella", SHE), ("Nora", SHE), ("Ruby", SHE), ("Molly", SHE), ("Amy", SHE), ("Rosie", SHE), ("Clara", SHE),
    ("Ivy", SHE), ("Maya", SHE),
)
BOYS = (
    ("Tom", HE), ("Ben", HE), ("Max", HE), ("Sam", HE), ("Tim", HE), ("Leo", HE), ("Jack", HE), ("Finn", HE),
    ("Noah", HE), ("Oscar", HE), ("Adam", HE), ("Theo", HE), ("Billy", HE), ("Hugo", HE), ("Omar", HE),
    ("Ravi", HE),
)
GRANDPARENTS = (("grandma", SHE), ("grandpa", HE))
KIN = (("mom", SHE), ("dad", HE), *GRANDPARENTS)
SELLERS = (("old man", HE), ("old woman", SHE), ("farmer", HE), ("gardener", SHE))
NEIGHBORS = (*SELLERS, ("baker", SHE), ("postman", HE))

PET_NAMES = (
    ("Spot", HE), ("Biscuit", HE), ("Patch", HE), ("Buddy", HE), ("Luna", SHE), ("Daisy", SHE), ("Coco", SHE),
    ("Pepper", SHE),
)
ANIMAL_NAMES = (
    ("Pip", HE), ("Basil", HE), ("Rusty", HE), ("Moss", HE), ("Bramble", HE), ("Oliver", HE), ("Hazel", SHE),
    ("Willow", SHE), ("Clover", SHE), ("Fern", SHE), ("Dot", SHE), ("Olive", SHE),
)
FOREST_ANIMALS = (
    "rabbit", "fox", "mouse", "squirrel", "hedgehog", "bear", "badger", "raccoon", "deer", "mole",
)
# animal: where it sleeps
ANIMAL_HOMES = {
    "rabbit": "burrow", "fox": "den", "mouse": "hole", "squirrel": "nest", "hedgehog": "bed of leaves",
    "bear": "cave", "badger": "den", "raccoon": "hollow tree", "deer": "clearing", "mole": "tunnel",
}
# what each pet does when it is glad, and when it is worried
PET_JOY = {
    "dog": ("barked and wagged {pet.his} tail", "ran in circles", "jumped up and licked {a.his} hand"),
    "cat": ("purred and rubbed against {a.his} legs", "purred softly", "closed {pet.his} eyes and purred"),
}
PET_CARE = {
    "dog": ("put {pet.his} head on {a.his} knee", "looked up with big eyes", "whined softly"),
    "cat": ("curled up next to {a.him}", "meowed softly", "looked up with round eyes"),
}

TRAITS = (
    "kind", "brave", "clever", "curious", "shy", "cheerful", "gentle", "funny", "quiet", "playful", "polite",
    "careful", "helpful", "friendly", "lively",
)
HOBBIES = (
    "paint", "draw pictures", "sing songs", "dance", "climb trees", "read books", "play in the mud",
    "collect shells", "look at the stars", "build things", "tell jokes", "run fast", "watch the birds",
    "jump in puddles", "count things", "play games", "ask questions", "listen to stories",
    "help other people", "dig in the sand",
)
HOMES = (
    "a small house near the forest", "a little house by the sea", "a tall house in the city",
    "a quiet village", "a yellow house on a hill", "a cottage beside the river", "a little town",
    "a house with a red door", "a house at the end of the road", "a warm little house with a garden",
)
ONE_DAY = (
    "One day", "One morning", "One day", "On Saturday", "On Sunday", "Early one morning", "One quiet morning",
)
SCHOOL_DAY = ("One day", "One morning", "On Monday", "On Friday", "One day")

COLORS = (
    "red", "blue", "green", "yellow", "orange", "purple", "pink", "white", "black", "brown", "silver", "gray",
)
SIZES = ("big", "little", "small", "tiny", "old", "new", "shiny", "pretty")

TOYS = (
    "ball", "doll", "toy car", "teddy bear", "drum", "toy boat", "robot", "whistle", "puppet", "toy train",
    "toy horse", "truck", "toy plane",
)
OUTDOOR_TOYS = ("ball", "kite", "wagon", "bike", "scooter", "bucket", "rope", "hoop", "balloon")
CLOTHES = ("coat", "sweater", "jacket", "mittens", "gloves", "boots")
PLURAL_THINGS = frozenset(("mittens", "gloves", "boots"))
LOST_THINGS = ("key", "ring", "hat", "glove", "bag", "book", "umbrella", "watch", "wallet", "scarf")
TREASURES = ("shell", "stone", "button", "coin", "feather", "marble", "key", "bell", "ribbon", "book")
INDOOR_SPOTS = (
    "under the bed", "behind the door", "in the closet", "on the shelf", "under the table",
    "behind the couch", "under the stairs", "next to the window", "behind the curtain", "on the chair",
    "in the cupboard", "under the blanket",
)
CONTAINERS = ("box", "basket", "bag", "drawer", "chest", "bucket", "cupboard")
HIDING_PLACES = (
    "behind the big tree", "under the bench", "behind the fence", "in the tall grass", "behind the bushes",
    "under the slide", "behind the wall", "inside the little hut", "behind the woodpile", "next to the well",
)
# place, and how one is there
OUTINGS = (
    ("park", "in the park"), ("beach", "at the beach"), ("lake", "by the lake"), ("meadow", "in the meadow"),
    ("river", "by the river"), ("playground", "on the playground"), ("hill", "on the hill"),
    ("woods", "in the woods"),
)
PLAYGROUNDS = (
    ("park", "in the park"), ("playground", "on the playground"), ("yard", "in the yard"),
    ("garden", "in the garden"),
)

SNACKS = ("apple", "sandwich", "cookie", "banana", "pear", "orange", "muffin", "peach", "pancake", "cupcake")
FRUITS = (
    "apple", "banana", "pear", "orange", "peach", "plum", "lemon", "carrot", "tomato", "egg", "onion",
    "melon",
)
PICNIC = ("bread", "cheese", "grapes", "cookies", "sandwiches", "apples", "strawberries", "nuts")
DRINKS = ("juice", "lemonade", "milk", "cold tea")
BAKES = ("cake", "pie", "loaf of bread", "batch of cookies", "batch of muffins", "apple cake", "honey cake")
FLAVORS = ("chocolate", "honey", "cinnamon", "raisins", "nuts", "berries", "lemon", "vanilla")
WARM_DRINKS = ("hot cocoa", "warm milk", "tea with honey", "hot soup")
SEEDS = ("sunflower", "pumpkin", "bean", "tomato", "carrot", "daisy", "poppy", "pea")

SAD = ("sad", "very sad", "upset", "unhappy")
GLAD = ("happy", "very happy", "glad", "full of joy", "delighted")
