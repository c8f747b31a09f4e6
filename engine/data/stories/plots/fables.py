"""Animals who talk, in the old way: the small help the big, and friends find their way home."""

from .. import scenes, words
from ..grammar import counted, plural
from ..telling import Telling


def lost_in_fog(t: Telling) -> None:
    a, b = scenes.two_animals(t, words.FOREST_ANIMALS, ("owl", "firefly", "deer", "turtle", "robin"))
    t.let(
        home=words.ANIMAL_HOMES[a.kind], dark=t.pick(("the fog came down", "it got dark", "it began to snow"))
    )
    t.let(mark=t.pick(("the crooked tree", "the white stone", "the old bridge", "the hollow log")))
    scenes.begin_fable(t, t.pick(("in the deep woods", "at the edge of the forest", "under the green hills")))
    t.say(
        "{one_day}, {a.he} went to pick berries. {a.he} went past {mark} and on and on.",
        "{one_day}, {a.he} went out to find berries. {a.he} came to {mark}, and then {a.he} went on.",
    )
    t.say("Before {a.he} could turn back, {dark}.", "Suddenly, {dark}, and {a.he} could not see the path.")
    t.say(
        "“Where is my {home}?” cried {a}. “I am lost!”",
        "{a.he} walked this way and that way, but {a.he} could not find {a.his} {home}.",
    )
    t.maybe(0.6, "{a.he} sat down and shivered.", "{a.he} was cold, and {a.he} felt very small.")
    t.say(
        "Then {a.he} heard a soft voice. It was {b.a} named {b}.",
        "“Who is crying there?” asked a voice. It was {b}, {b.a}.",
    )
    t.say(
        "“I can't find my way home,” said {a}. “What do you remember?” asked {b}.",
        "“I want to go home,” said {a}. “Tell me what you saw on the way,” said {b}.",
    )
    t.say("{a} thought and thought. “I went past {mark},” {a.he} said.", "“I remember {mark},” said {a}.")
    t.say("“I know that place,” said {b}. “Follow me!”", "“That is not far,” {b} said. “Stay close to me.”")
    t.say(
        "So {both} went through the trees until they came to {mark}.",
        "Slowly, {both} made their way back. Soon they saw {mark}.",
    )
    t.say(
        "From there, {a} knew the way. There was {a.his} {home}, warm and dry.",
        "Now {a} was not lost anymore. {a.he} ran straight to {a.his} {home}.",
    )
    t.say(
        "“Please come in and share my berries,” said {a}, and {b} did.",
        "“Thank you, {b.call},” said {a}. “You are a true friend.”",
        "After that, {a} always looked back to remember the way.",
    )


def winter_store(t: Telling) -> None:
    scenes.two_animals(
        t, ("squirrel", "mouse", "hedgehog", "mole", "badger"), ("rabbit", "fox", "robin", "raccoon", "deer")
    )
    food = t.pick(("nut", "acorn", "apple", "seed", "carrot", "chestnut"))
    half = t.number(2, 4)
    store = t.pick(
        (
            ("in a hollow log", "in the hollow log"),
            ("under a flat stone", "under the flat stone"),
            ("between the roots of an oak", "between the roots of the oak"),
            ("in a hole in the ground", "in the hole in the ground"),
        )
    )
    t.let(
        food=food,
        foods=plural(food),
        all=counted(2 * half, food),
        half=counted(half, food),
        store=store[0],
        the_store=store[1],
    )
    scenes.begin_fable(t, t.pick(("in the woods", "in a quiet forest", "near a small farm")))
    t.say(
        "All summer, {a.he} gathered {foods} and hid them {store}.",
        "Every day in the fall, {a.he} looked for {foods} and put them {store}.",
    )
    t.say(
        "{a.his} friend {b}, the {b_kind}, liked to sing and dance. “Come and play!” {b.he} called.",
        "“Why do you work so hard?” asked {a.his} friend {b}, the {b_kind}. “The sun is shining!”",
    )
    t.say(
        "“Winter is coming,” said {a}. “Then there will be nothing to eat.”",
        "“I must get ready for the winter,” said {a}.",
    )
    t.maybe(0.6, "{b} laughed and danced away.", "But {b} did not listen.")
    t.say(
        "Then the winter came. The snow was deep, and there was no food anywhere.",
        "Soon the cold wind came, and snow covered the ground.",
    )
    t.say(
        "{b} was hungry. {b.he} knocked on {a}'s door.",
        "One cold night, {b} came to {a}'s door. {b.he} was thin and sad.",
    )
    t.say(
        "“I have nothing to eat,” {b} said. “I should have listened to you.”",
        "“Please, {a.call}, can you help me?” asked {b}.",
    )
    t.say(
        "{a} went to look {the_store}. There were {all} left.",
        "{a} looked {the_store} and counted. There were {all}.",
    )
    t.say(
        "{a.he} gave {half} to {b} and kept {half} for {a.himself}.",
        "“Half for you and half for me,” said {a}. So each of them had {half}.",
    )
    t.maybe(
        0.6,
        "{b} was so thankful that {b.he} cried.",
        "“Thank you,” said {b}. “I will never forget this.”",
    )
    t.say(
        "The next summer, {both} gathered {foods} together. And when the work was done, they danced.",
        "When spring came, {b} helped {a} to find new {foods}. They worked first, and then they played.",
    )


def small_helper(t: Telling) -> None:
    scenes.two_animals(
        t, ("bear", "wolf", "lion", "fox", "badger"), ("mouse", "squirrel", "mole", "beetle", "wren")
    )
    t.let(
        trap=t.pick(("a net", "the roots of a tree", "some thorns", "an old fence")),
        food=t.pick(("honey", "berries", "plums")),
    )
    scenes.begin_fable(
        t,
        t.pick(("in the dark woods", "on the other side of the mountain", "near a dark cave")),
        ("big", "strong", "proud", "mighty"),
    )
    t.say(
        "{a.he} was the biggest and strongest animal there, and {a.he} knew it.",
        "{a.he} was big and loud, and everyone was a little afraid of {a.him}.",
    )
    t.say(
        "{one_day}, a tiny {b_kind} named {b} came by. “Can we be friends?” {b.he} asked.",
        "{one_day}, {a.he} met {b}, a tiny {b_kind}. “If you need help, call me,” said {b}.",
    )
    t.say(
        "{a} laughed. “You are so small! How could you ever help me?”",
        "“You?” laughed {a}. “You are no bigger than my nose!”",
    )
    t.maybe(
        0.6,
        "{b} was hurt, but {b.he} said nothing.",
        "“Small friends can do big things,” said {b}, and went away.",
    )
    t.say(
        "The next day, {a} was looking for {food}. Suddenly, {a.he} was caught in {trap}.",
        "Later that week, {a} smelled {food}. {a.he} ran so fast that {a.he} got stuck in {trap}.",
    )
    t.say(
        "{a.he} pulled and pulled, but {a.he} could not get free.",
        "The more {a.he} pulled, the worse it became.",
    )
    t.maybe(
        0.6,
        "“Help! Help!” {a} roared. Nobody dared to come near.",
        "{a.he} called for help, but only the wind answered.",
    )
    t.say("But {b} heard the noise and came running.", "Then a tiny voice said, “I am here.” It was {b}!")
    t.say(
        "Bit by bit, {b} worked with {b.his} tiny feet and made a hole, until {a} was free.",
        "{b} was small enough to get inside. {b.he} pulled here and bit there, until {a} could get out.",
    )
    t.say(
        "“I laughed at you, and you saved me,” said {a}. “I am sorry.”",
        "{a} looked down at {a.his} feet. “I was wrong about you,” {a.he} said.",
    )
    t.say(
        "“Now can we be friends?” asked {b}. “Yes,” said {a}. “Always.”",
        "{b} smiled. “That is what friends do,” {b.he} said.",
    )
    t.say(
        "From that day on, {b} rode through the woods on {a}'s back, and {both} shared all their {food}.",
        "After that, {a} never laughed at anyone for being small.",
    )


PLOTS = (lost_in_fog, winter_store, small_helper)
