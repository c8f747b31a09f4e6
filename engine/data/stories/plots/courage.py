"""Being afraid, learning something hard, going to sleep, running a race."""

from .. import scenes, words
from ..grammar import NUMBERS
from ..telling import Telling


def afraid(t: Telling) -> None:
    a, b = t.child("a"), t.child("b")
    t.group("both", a, b)
    fear = t.pick(
        (
            (
                "the tall slide",
                "on the playground",
                "went down the slide",
                "climbed the steps",
                "slid all the way down",
            ),
            (
                "the deep water",
                "at the lake",
                "swam to the rock",
                "walked in slowly",
                "swam all the way to the rock",
            ),
            (
                "the high bridge",
                "in the woods",
                "walked over the bridge",
                "held the rail",
                "walked to the other side",
            ),
            ("the big brown horse", "on the farm", "rode the horse", "climbed up", "rode around the field"),
            ("the dark cave", "by the sea", "went into the cave", "took a lamp", "walked to the very end"),
            (
                "the fast swing",
                "in the park",
                "went up high on the swing",
                "held on tight",
                "went as high as the trees",
            ),
        )
    )
    t.let(fear=fear[0], inside=fear[1], did=fear[2], start=fear[3], end=fear[4])
    scenes.meet(t, a)
    t.say("{a.he} was afraid of only one thing: {fear} {inside}.", "{a} was afraid of {fear} {inside}.")
    t.say(
        "{one_day}, {a.he} was there with {a.his} friend {b}, who {did} and laughed.",
        "{one_day}, {a.his} friend {b} {did}. “Come on, {a.call}!” {b.he} called. “It is fun!”",
    )
    t.say(
        "{a} shook {a.his} head. {a.his} legs felt like jelly.",
        "“I can't,” said {a}. {a.his} heart went thump, thump, thump.",
        "“I'm too scared,” {a} whispered.",
    )
    t.say(
        "{b} did not laugh at {a.him}. “I was scared the first time, too,” {b.he} said.",
        "“It's all right to be scared,” said {b}. “I will stay right here.”",
        "{b} came back and took {a.his} hand. “Let's do it together,” {b.he} said.",
    )
    t.say(
        "{a} thought about it. Then {a.he} took a deep breath and {start}.",
        "“I will try,” said {a} in a small voice. {a.he} {start}.",
        "{a} counted to three. “One, two, three!” Then {a.he} {start}.",
    )
    t.say(
        "{a.he} wanted to stop, but {b} smiled at {a.him}.",
        "For a moment, {a.he} closed {a.his} eyes.",
        "{a.his} hands were shaking, but {a.he} did not stop.",
    )
    t.say("{a} {end}!", "And then {a} {end}!", "Step by step, {a.he} was braver, and {a.he} {end}.")
    t.say(
        "“I did it!” {a.he} shouted. “Can we do it again?”",
        "“You did it!” cheered {b}. {a} was so proud that {a.he} did it again.",
        "“That was not so bad,” {a.he} said, and laughed.",
    )
    t.say(
        "{both} played there all afternoon, and {a} was not afraid anymore.",
        "Being brave did not mean that {a} was not scared. It meant that {a.he} tried.",
        "That evening, {a} told everyone at home how brave {a.he} had been.",
    )


def learning(t: Telling) -> None:
    a = t.child("a")
    t.kin("g", a)
    skill = t.pick(
        (
            ("ride a bike", "the bike tipped over", "rode down the whole street"),
            ("swim", "water went up {a.his} nose", "swam across the pool"),
            ("whistle", "only air came out", "whistled a whole song"),
            ("tie {a.his} shoes", "the knot came undone", "tied both shoes"),
            ("skate", "{a.he} slipped and sat down on the ice", "skated in a big circle"),
            ("jump rope", "the rope got caught on {a.his} foot", "jumped twenty times"),
            ("play the drum", "it was only noise", "played a real tune"),
            ("read", "the letters danced in front of {a.his} eyes", "read a whole page"),
        )
    )
    again = t.number(3, 6)
    t.let(times=NUMBERS[again])
    scenes.meet(t, a)
    t.say(
        "{a.he} wanted to learn to " + skill[0] + ".",
        "More than anything, {a.he} wanted to " + skill[0] + ".",
    )
    t.say(
        "{one_day}, {a.he} tried for the first time, but " + skill[1] + ".",
        "{one_day}, {g} helped {a.him} to try, but " + skill[1] + ".",
    )
    t.say("{a.he} tried again, and again it went wrong.", "The second time was not any better.")
    t.say(
        "“I will never learn it!” {a} cried.",
        "{a.he} was angry and wanted to give up.",
        "“Everyone can do it but me,” said {a}.",
    )
    t.say(
        "“Nobody can do it the first time,” said {g}. “I had to try for {times} days.”",
        "{g} smiled. “You are not good at it yet,” {g.he} said. “You need to practice.”",
    )
    t.say(
        "So {a} practiced every day, for {times} days.",
        "{a.he} practiced before breakfast, and {a.he} practiced after dinner.",
        "For {times} days, {a} practiced a little each day.",
    )
    t.say(
        "Some days were hard, and some days were easier.",
        "Little by little, it became easier.",
        "{g} always cheered, even when it went wrong.",
    )
    t.say("Then, one day, {a.he} " + skill[2] + "!", "And at last, {a.he} " + skill[2] + ", all alone!")
    t.say("“I can do it! I can do it!” {a.he} shouted.", "“{g.call}, did you see that?” {a.he} called.")
    t.say(
        "{g} clapped and clapped. “You worked hard, and you did it,” {g.he} said.",
        "{g} was so proud that {g.he} danced.",
        "{a} was proud and {glad}. The next week, {a.he} helped a friend to learn it too.",
    )
    scenes.good_day(t, 0.3)


def bedtime(t: Telling) -> None:
    a = t.child("a")
    t.kin("g", a)
    t.thing(
        "toy",
        ("teddy bear", "doll", "puppet", "toy horse", "pillow", "blanket"),
        words.COLORS + ("old", "little"),
    )
    animals = t.sample(("sheep", "rabbits", "ducks", "foxes", "mice", "frogs", "owls"), 1)[0]
    t.let(animals=animals, count=t.pick(("seven", "eight", "nine", "ten")))
    scenes.meet(t, a)
    scenes.bring_pet(t, 0.3, ("cat", "dog"))
    t.say(
        "One night, {a.he} could not sleep.",
        "It was late, but {a} was wide awake.",
        "The moon was high, but {a} was still awake in bed.",
    )
    t.say(
        "{a.he} turned to the left, and {a.he} turned to the right.",
        "The room was dark, and the clock went tick, tock.",
        "{a.he} looked at the ceiling and listened to the wind.",
    )
    scenes.pet_cares(t)
    t.say("“{g.call}, I can't sleep,” {a.he} called.", "{a.he} got up and went to find {g}.")
    t.say(
        "{g} brought a cup of warm milk and sat down on the bed.",
        "“Is something wrong?” asked {g}. “My head is full of thoughts,” said {a}.",
    )
    t.say(
        "“Where is your {toy.described}?” asked {g}.",
        "{g} looked around. “Where is your {toy.described}?” {g.he} asked.",
    )
    t.say(
        "They looked, and it was on the floor under the bed. {g} put it in {a.his} arms.",
        "It had fallen behind the bed. {g} picked it up and gave it to {a}.",
    )
    if t.chance(0.5):
        t.say(
            "“Now close your eyes and count {animals},” said {g}.",
            "“Think of {animals},” said {g} softly. “Count them one by one.”",
        )
        t.say(
            "“One, two, three, four,” {a} whispered. {a.his} eyes became heavy.",
            "{a} held {toy.the} and counted.",
        )
        t.say(
            "{a.he} got to {count}, and then {a.he} was asleep.",
            "Somewhere after {count}, {a.he} fell asleep.",
        )
    else:
        t.say(
            "Then {g} told a story about {count} {animals} who lived on the moon.",
            "“I will tell you about the {count} little {animals} who sailed to the moon,” said {g}.",
        )
        t.say(
            "{a} held {toy.the} and listened. {a.his} eyes became heavy.",
            "{a} listened with {toy.the} in {a.his} arms.",
        )
        t.say(
            "Before the end, {a.he} was fast asleep.",
            "When the {animals} went to bed, {a.he} was asleep too.",
        )
    t.say(
        "“Sweet dreams,” whispered {g}, and turned off the light.",
        "{g} kissed {a.him} on the forehead and closed the door quietly.",
        "Outside, the stars were shining over the quiet house.",
    )


def race(t: Telling) -> None:
    a, b = t.child("a"), t.child("b")
    t.child("c")
    t.group("both", a, b)
    prize = t.thing("prize", ("medal", "ribbon", "cup"), ("gold", "silver", "blue", "red", "shiny"))
    goal = t.pick(("the old oak tree", "the red gate", "the bridge", "the farm", "the big rock"))
    t.let(goal=goal, prize_a=prize.a)
    scenes.meet(t, a)
    t.say(
        "{one_day}, there was a race to {goal}. The winner would get {prize_a}.",
        "{one_day}, the children had a race to {goal}. There was {prize_a} for the winner.",
    )
    t.say("{a}, {b}, and {c} stood in a line.", "{a} wanted to win it, and so did {b} and {c}.")
    t.maybe(
        0.7,
        "“I am the fastest,” said {c}. “I will win.”",
        "{c} was the fastest of all the children, and {c.he} knew it.",
    )
    t.maybe(0.8, "“Ready, set, go!” And off they went.", "“One, two, three, go!” They all began to run.")
    t.say(
        "{c} was first, {a} was second, and {b} was third.",
        "{c} ran ahead, and {a} was right behind. {b} was last.",
    )
    t.say(
        "Suddenly, {b} fell over a stone and hurt {b.his} knee.",
        "Then {b} slipped in the mud and fell down. “Ouch!” {b.he} cried.",
    )
    t.say(
        "{c} did not stop, but {a} did. “Are you hurt?” {a.he} asked.",
        "{a} heard it and turned around. {a.he} ran back to help, but {c} ran on.",
    )
    t.say(
        "{a} helped {b} to stand up. {both} walked to {goal} together.",
        "“Lean on me,” said {a}. Slowly, {both.they} walked on.",
    )
    t.say(
        "{c} was already there. {c.he} had won {prize.the}.",
        "When they came to {goal}, {c} was holding {prize.the}.",
    )
    t.say(
        "{c} looked at {b}'s knee and felt {sad}. “I should have stopped, too,” {c.he} said.",
        "Everyone clapped for {c}, but {c} looked at {a}. “You stopped to help,” {c.he} said.",
    )
    t.say(
        "Then {c} gave {prize.the} to {a}. “You are the real winner,” {c.he} said.",
        "“You should have this, {a.call},” said {c}, and held out {prize.the}.",
    )
    t.say(
        "{a} smiled. “Let's share it,” {a.he} said, and all three were {glad}.",
        "“Thank you,” said {a}. From then on, all three were friends.",
        "From that day on, they always waited for each other.",
    )


PLOTS = (afraid, learning, bedtime, race)
