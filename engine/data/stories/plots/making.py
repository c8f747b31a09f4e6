"""Baking, growing, building, painting and giving: work that comes to something."""

from .. import scenes, words
from ..grammar import NUMBERS, article, counted, plural
from ..telling import Telling


def baking(t: Telling) -> None:
    a = t.child("a")
    t.kin("g", a)
    t.neighbor("n")
    eggs, bake, extra = t.number(2, 5), t.pick(words.BAKES), t.pick(words.FLAVORS)
    t.let(
        bake=bake,
        bake_a=article(bake),
        eggs=counted(eggs, "egg"),
        extra=extra,
        counting=", ".join(NUMBERS[1 : eggs + 1]),
    )
    scenes.meet(t, a)
    t.say(
        "{one_day}, {a.he} and {g} wanted to bake {bake_a}.",
        "{one_day}, {g} said, “Let's bake {bake_a} today.”",
        "{one_day}, {a.he} was hungry, so {g} said, “We can bake {bake_a}.”",
    )
    t.say(
        "{a.he} washed {a.his} hands and put on an apron.",
        "{a.he} stood on a chair so that {a.he} could reach the table.",
    )
    t.say(
        "“We need flour, butter, sugar, and {eggs},” said {g}.",
        "“First we need flour and {eggs},” {g} said.",
    )
    t.say(
        "{a} counted the eggs. “{counting},” {a.he} said.",
        "“{counting},” counted {a}, and {a.he} broke the eggs into a bowl.",
    )
    t.say(
        "Then {a.he} put some {extra} into the bowl and stirred.",
        "{a.he} stirred and stirred. “Now some {extra},” said {g}.",
        "{a} stirred with a big spoon, and {g} added the {extra}.",
    )
    t.say(
        "There was flour on the table, flour on the floor, and flour on {a.his} nose!",
        "Some flour got on {a.his} nose, and {g} laughed.",
    )
    t.say(
        "{g} put the {bake} into the hot oven. They waited and waited.",
        "“The oven is hot, so I will do this part,” said {g}.",
    )
    t.say(
        "Soon the whole house smelled sweet.",
        "After a while, a lovely smell came from the oven.",
        "“Is it ready?” asked {a}. “Not yet,” said {g}. At last, it was done.",
    )
    t.say(
        "{a} took the first bite. “Mmm! It is so good,” {a.he} said.",
        "They sat down at the table and ate while it was still warm.",
        "The {bake} was golden and warm.",
    )
    t.say(
        "They gave some to {n.a} who lived next door.",
        "“Let's take some to {n} next door,” said {a}. {n.he} thanked them with a big smile.",
        "“I am a baker now,” {a} said proudly.",
        "{a} kept the last piece for breakfast.",
    )
    scenes.good_day(t, 0.3)


def garden(t: Telling) -> None:
    a = t.child("a")
    t.kin("g", a)
    seed = t.pick(words.SEEDS)
    t.thing("pot", ("pot", "bucket", "cup"), words.COLORS)
    t.let(seed_a=article(seed), seed=seed, plants=plural(seed))
    grows = ("pumpkin", "bean", "tomato", "carrot", "pea")
    scenes.meet(t, a)
    t.say(
        "{one_day}, {g} gave {a.him} {seed_a} seed.",
        "{one_day}, {a.he} found {seed_a} seed in the kitchen.",
    )
    t.say(
        "It was so small that it almost got lost in {a.his} hand.",
        "“It is so small,” said {a}. “Can it grow?”",
    )
    t.say(
        "{a.he} put some soil in {pot.a} and pushed the seed into it.",
        "{a.he} filled {pot.a} with soil and put the seed inside.",
    )
    t.say(
        "Every day, {a.he} gave it water and put it in the sun.",
        "Every morning, {a.he} watered it. Every evening, {a.he} said good night to it.",
    )
    t.say(
        "One day went by. Two days went by. Nothing happened.",
        "{a.he} looked at the {pot} each morning, but there was only soil.",
    )
    t.say(
        "“It will never grow,” said {a}, and {a.he} felt {sad}.",
        "“Why is nothing growing?” asked {a}.",
    )
    t.say(
        "“Seeds need water, sun, and time,” said {g}. “You must be patient.”",
        "“Wait a little longer,” {g} said. “Good things take time.”",
    )
    t.say(
        "Then, one morning, there was a tiny green leaf in {pot.the}!",
        "A week later, something green was growing in {pot.the}.",
    )
    t.say("“{g.call}, look!” {a} shouted. “It is growing!”", "{a.he} jumped for joy and called {g}.")
    t.say(
        "The plant grew taller and taller, so they moved it to the garden.",
        "Soon the plant was as tall as {a.his} knee.",
    )
    if seed in grows:
        t.say(
            "In the fall, there were {plants} to eat, and they tasted wonderful.",
            "By the end of the summer, {a.he} picked the first {seed} and shared it with {g}.",
        )
    else:
        t.say(
            "In the summer, it had a big, beautiful flower.",
            "One day, it opened its flower, and bees came to visit.",
        )
    t.say(
        "“I grew it from a seed,” {a.he} said proudly.",
        "{a} was {glad} that {a.he} had waited.",
        "{g} was proud of {a.him}.",
    )


def tower(t: Telling) -> None:
    a, b = t.child("a"), t.child("b")
    t.group("both", a, b)
    build = t.pick(
        (
            ("tower", "out of blocks", "block"),
            ("castle", "out of sand", "shell"),
            ("bridge", "out of stones", "stone"),
            ("house", "out of sticks", "stick"),
            ("fort", "out of boxes", "box"),
        )
    )
    first = t.number(3, 6)
    t.let(
        build=build[0],
        of=build[1],
        part=build[2],
        parts=plural(build[2]),
        first=NUMBERS[first],
        more=NUMBERS[first + t.number(1, 3)],
    )
    scenes.meet(t, a)
    t.say(
        "{one_day}, {a.he} and {a.his} friend {b} wanted to build a {build} {of}.",
        "{one_day}, {a.he} said to {a.his} friend {b}, “Let's build a {build} {of}!”",
    )
    t.say(
        "{b} brought the {parts}, and {a} put them in place.",
        "{a} looked for {parts}, and {b} made a plan.",
    )
    t.say(
        "Up and up it went. They had used {first} {parts} when it began to shake.",
        "They had only used {first} {parts} when the {build} started to lean.",
    )
    t.say("Crash! The {build} fell down.", "Then the whole {build} fell with a crash.")
    t.say(
        "“It's your fault!” {a} cried. “No, it's yours!” said {b}.",
        "{a} was angry and kicked a {part}.",
        "“I give up,” said {a}. “It is too hard.”",
    )
    t.say(
        "Then {b} took a deep breath. “Let's not fight,” {b.he} said. “We can try again.”",
        "But {b} had an idea. “We can make the bottom wider this time,” {b.he} said.",
    )
    t.say(
        "They worked slowly and carefully. {a} held the {build}, and {b} added one {part} at a time.",
        "This time, {both.they} put the biggest {parts} at the bottom and the smallest at the top.",
    )
    t.say(
        "Soon there were {more} {parts}, and the {build} did not fall.",
        "They used {more} {parts}, and the {build} stood strong.",
    )
    t.say(
        "“We did it!” they shouted.",
        "“It is the best {build} in the world,” said {b}.",
        "“I'm sorry I was angry,” said {a}. “That's all right,” said {b}.",
    )
    t.say(
        "{both} were {glad}. They learned that it is good to try again.",
        "They put a little flag on top and danced around it.",
        "Everyone who saw the {build} said that it was wonderful.",
    )


def painting(t: Telling) -> None:
    a = t.child("a")
    t.kin("g", a)
    one, two, three = t.pick(
        (
            ("yellow", "blue", "green"),
            ("red", "blue", "purple"),
            ("red", "yellow", "orange"),
            ("red", "white", "pink"),
            ("black", "white", "gray"),
        )
    )
    things = {
        "green": "a green frog",
        "purple": "a purple plum",
        "orange": "an orange cat",
        "pink": "a pink pig",
        "gray": "a gray mouse",
    }
    t.let(one=one, two=two, three=three, picture=things[three])
    scenes.meet(t, a)
    t.say(
        "{one_day}, {a.he} wanted to paint a picture for {g}.",
        "{one_day}, {a.he} sat at the table with a brush and some paper.",
        "{one_day}, {a.he} had a big sheet of paper and a new brush.",
    )
    t.say("“I will paint {picture},” {a.he} said.", "{a.he} wanted to paint {picture}.")
    t.say(
        "There was {one} paint and {two} paint, but there was no {three} paint.",
        "{a.he} had a pot of {one} and a pot of {two}, but {a.he} had no {three}.",
    )
    t.say(
        "“How can I paint {picture} without {three}?” {a.he} asked.",
        "{a.he} frowned and put down the brush.",
    )
    t.say(
        "{g} came to look. “Try to mix your colors,” {g.he} said.",
        "“You don't need to buy {three},” said {g}. “You can make it.”",
    )
    t.say(
        "{a.he} put some {one} on a plate. Then {a.he} added some {two} and stirred.",
        "{a} mixed the {one} paint and the {two} paint together.",
    )
    t.say(
        "It was like magic! The {one} and the {two} turned into {three}.",
        "“Look, it is {three}!” {a.he} shouted.",
    )
    t.say(
        "{a.he} painted {picture} with big eyes and a happy face.",
        "Now {a.he} could paint {picture}. {a.he} painted a yellow sun too."
        if three != "gray"
        else "Now {a.he} could paint {picture}. {a.he} painted its long tail too.",
    )
    t.say(
        "{g} loved the picture and hung it on the wall.",
        "“This is for you, {g.call},” said {a}. {g} hung the picture by the door.",
    )
    t.say(
        "Now {a.he} knew a secret: {one} and {two} make {three}.",
        "“{one} and {two} make {three},” {a} told everyone.",
        "Every time {a.he} walked past the picture, {a.he} smiled.",
    )


PLOTS = (baking, garden, tower, painting)
