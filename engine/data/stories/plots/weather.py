"""Rain, wind, snow, thunder and heat: weather has consequences."""

from .. import scenes, words
from ..telling import Telling


def rain(t: Telling) -> None:
    a = t.child("a")
    t.kin("g", a)
    t.thing("umbrella", ("umbrella",))
    place, inside = t.pick(words.OUTINGS)
    t.let(place=place, inside=inside, drink=t.pick(words.WARM_DRINKS))
    scenes.meet(t, a)
    scenes.bring_pet(t, 0.2)
    forgot = t.chance(0.5)
    t.say(
        "{one_day}, {a.he} wanted to go to the {place}.",
        "{one_day}, {a.he} was getting ready to go to the {place}.",
        "{one_day}, {a.he} put on {a.his} shoes to go to the {place}.",
    )
    t.say(
        "“The sky is gray,” said {g}. “Take your {umbrella.described} with you.”",
        "{g} saw the dark clouds. “It will rain,” {g.he} said. “Please take your {umbrella.described}.”",
    )
    if forgot:
        t.say(
            "But {a} did not listen. {a.he} left the umbrella by the door and ran out.",
            "“It won't rain,” said {a}, and {a.he} left the umbrella at home.",
            "{a} was in a hurry, so {a.he} forgot the umbrella.",
        )
        t.say(
            "{inside}, {a.he} played and sang.",
            "{a.he} had fun {inside}.",
            "{a.he} began to play {inside}.",
        )
        t.say(
            "Then it began to rain. Soon {a.his} hair was wet, and {a.his} shoes were wet too.",
            "Suddenly, big drops fell from the sky. {a.he} got wet from head to toe.",
            "Then the rain came down hard, and {a.he} got very wet.",
        )
        t.say(
            "{a.he} was so cold that {a.he} ran all the way home.",
            "{a.he} ran home because {a.he} was wet and cold.",
        )
        t.say(
            "{g} was waiting with a dry towel and a cup of {drink}.",
            "{g} gave {a.him} dry clothes and some {drink}.",
            "At home, {g} dried {a.his} hair and made {drink}.",
        )
        t.say(
            "“Next time, I will take my umbrella,” said {a}.",
            "“You were right, {g.call},” said {a}. “I should have listened to you.”",
        )
        t.say(
            "Soon {a.he} was warm again, and {a.he} listened to the rain on the roof.",
            "{a.he} sat by the fire until {a.he} was warm and dry.",
        )
        return
    b = t.child("b")
    t.group("both", a, b)
    t.say(
        "{a} took the umbrella and said goodbye.",
        "“Thank you, {g.call},” said {a}, and {a.he} took the umbrella.",
    )
    t.say(
        "{a.he} was {inside} when it began to rain.",
        "Soon after {a.he} came to the {place}, it began to rain.",
        "{inside}, {a.he} felt a drop on {a.his} nose. It was raining!",
    )
    t.say(
        "{a.he} opened {umbrella.the} and stayed dry.",
        "{a.he} was not worried, because {a.he} had {umbrella.the}.",
    )
    t.say(
        "Then {a.he} saw a {b.kind} named {b}, who had no umbrella and was very wet.",
        "Under a tree stood {a.his} friend {b}, who was wet and cold.",
    )
    t.say(
        "“Come under my umbrella,” said {a}. “There is room for two.”",
        "“You can share my umbrella,” said {a}.",
    )
    t.say(
        "{both} walked home together and [sang a song about the rain|jumped over the puddles].",
        "They walked close together, so both of them stayed dry.",
    )
    t.say(
        "{g} made {drink} for both of them.",
        "“Thank you for sharing,” said {b}. “Now the rain is fun!”",
        "When the rain stopped, there was a rainbow in the sky.",
    )
    scenes.good_day(t)


def wind(t: Telling) -> None:
    a = t.child("a")
    t.thing("hat", ("hat", "cap", "scarf", "kite", "balloon"), words.COLORS)
    t.neighbor("n")
    t.let(tree=t.pick(("an old oak tree", "a tall tree", "an apple tree", "a big pine tree")))
    scenes.meet(t, a)
    scenes.bring_pet(t, 0.2)
    t.say(
        "{one_day}, {a.he} went outside with {hat.a}.",
        "{a.he} had {hat.a}. {one_day}, {a.he} took it outside.",
    )
    t.say(
        "[It was a windy day|The wind was strong], and the leaves danced in the air.",
        "The wind blew and blew.",
        "That day, the wind was blowing hard.",
    )
    t.say(
        "Whoosh! The wind took the {hat} and carried it up into {tree}.",
        "Suddenly, the wind pulled the {hat} away. It flew up, up, up, and got stuck in {tree}.",
        "A strong wind blew the {hat} out of {a.his} hands and into {tree}.",
    )
    t.say(
        "{a.he} jumped and jumped, but {a.he} was too short to reach it.",
        "{a.he} threw a stick at it, but the {hat} did not come down.",
        "{a.he} tried to climb the tree, but the branches were too high.",
    )
    t.say("“Oh no, my {hat}!” {a.he} cried.", "{a.he} was {sad}.", "{a.he} looked up and felt {sad}.")
    scenes.pet_cares(t)
    t.say(
        "Just then, {n.a} came down the road with a ladder.",
        "{n.a} heard {a.him} and came out with a [long ladder|long pole].",
        "{n.a} walked by and saw {a.him}. “Wait here,” {n.he} said. {n.he} came back with a ladder.",
    )
    t.say(
        "“I can help you,” said {n}. {n.he} reached up high and got {hat.the}.",
        "“Don't worry,” said {n}. Up, up {n.he} reached, and down came {hat.the}.",
    )
    t.say(
        "“Thank you so much!” said {a}.",
        "“Thank you! You are very kind,” said {a}.",
        "{a} clapped {a.his} hands. “Thank you!” {a.he} said.",
    )
    t.say(
        "The next day, {a} drew a picture of {hat.the} and gave it to {n}.",
        "To say thank you, {a} helped {n} carry the ladder home.",
        "After that, {a} held on to the {hat} with both hands.",
        "“Hold on tight,” said {n} with a smile. {a} held the {hat} with both hands all the way home.",
    )
    scenes.good_day(t, 0.3)


def snow(t: Telling) -> None:
    a, b = t.child("a"), t.child("b")
    t.group("both", a, b)
    t.thing("scarf", ("scarf", "hat"), words.COLORS)
    t.let(count=t.pick(("three", "four", "five")), pieces=t.pick(("buttons", "stones", "acorns")))
    scenes.meet(t, a)
    t.say(
        "One winter morning, {a.he} looked out of the window. Everything was white!",
        "One cold morning, {a.he} woke up and saw snow on the trees.",
        "It snowed all night. In the morning, the garden was white and quiet.",
    )
    t.say(
        "{a.he} put on {a.his} boots and mittens and ran outside. {a.his} friend {b} was there too.",
        "“Snow!” {a.he} shouted. {a.he} called {a.his} friend {b}, and {both.they} ran outside.",
    )
    t.say("“Let's make a snowman,” said {b}.", "“Can we build a snowman?” asked {b}.")
    t.say(
        "They rolled a big ball of snow, and then a smaller one. {a} put the small ball on top.",
        "{a} rolled a big ball for the body, and {b} rolled a small ball for the head.",
    )
    t.say(
        "They used a carrot for the nose and {count} {pieces} for the mouth.",
        "{b} found a carrot for the nose, and {a} found {count} {pieces} for the mouth.",
    )
    t.say(
        "“He looks cold,” said {a}. {a.he} gave the snowman {scarf.a}.",
        "{a} took off {scarf.a} and put it on the snowman.",
        "Last of all, {b} gave the snowman {scarf.a}.",
    )
    t.maybe(
        0.6,
        "[Then|Soon] their hands were cold, so they went inside to get warm.",
        "When it got dark, they said good night to the snowman and went inside.",
    )
    t.say(
        "The next day, the sun was warm. The snowman got smaller and smaller.",
        "A few days later, the sun came out, and the snow began to melt.",
    )
    t.say(
        "At last, only {scarf.the}, the carrot, and the {count} {pieces} were left on the grass.",
        "Soon there was no snowman, only a carrot, {count} {pieces}, and {scarf.the}.",
    )
    t.say(
        "{a} was sad, but {b} said, “He will come back next winter.” {a} smiled and picked up the {scarf}.",
        "“Goodbye, snowman,” said {a}. “We will build you again when it snows.”",
        "{a} kept the {scarf} in a box. “It will wait here for the next snow,” {a.he} said.",
    )


def thunder(t: Telling) -> None:
    a = t.child("a")
    t.kin("g", a)
    t.thing("toy", ("teddy bear", "doll", "toy horse", "puppet", "toy rabbit"))
    scenes.meet(t, a)
    scenes.bring_pet(t, 0.5, ("dog", "cat"))
    t.say(
        "One night, there was a big storm.",
        "One night, {a.he} woke up because of a loud noise.",
        "One dark night, the rain beat on the window and the wind howled.",
    )
    t.say(
        "Boom! The thunder was very loud. {a.he} pulled the blanket over {a.his} head.",
        "The lightning flashed and the thunder went boom. {a.he} was scared.",
        "Boom! {a.he} jumped. {a.he} did not like the thunder at all.",
    )
    t.say(
        "{a.he} held {toy.a} tight and called for {g}.",
        "{a.he} took {toy.a} and tiptoed to find {g}.",
    )
    scenes.pet_cares(t)
    t.say(
        "“I'm scared,” said {a}. {g} sat down on the bed and held {a.his} hand.",
        "{g} gave {a.him} a hug. “I know it is loud, but you are safe here,” {g.he} said.",
    )
    t.say(
        "“Let's count,” said {g}. “When you see the light, count until you hear the boom.”",
        "“We can count between the light and the sound,” said {g}. “Then we will know where the storm is.”",
    )
    t.say(
        "First {a.he} counted to two. Then {a.he} counted to four. Then {a.he} counted to six.",
        "“One, two, three,” {a.he} counted. Boom! The next time, {a.he} counted to five.",
    )
    t.say(
        "“The storm is going away,” said {g}. “You see? The numbers are getting bigger.”",
        "“Is the storm going away?” asked {a}. “Yes, it is,” said {g}.",
    )
    t.say(
        "Soon the thunder was only a soft rumble. {a.he} was not scared anymore.",
        "Little by little, the night became quiet, and {a.he} felt safe.",
    )
    t.say(
        "{a.he} put {toy.the} on the pillow and fell asleep.",
        "{a.he} hugged {toy.the}, closed {a.his} eyes, and went to sleep.",
        "“Good night, storm,” {a.he} said. And {a.he} fell asleep with {toy.the} in {a.his} arms.",
    )


def hot_day(t: Telling) -> None:
    a, b = t.child("a"), t.child("b")
    t.group("both", a, b)
    t.let(
        money=t.pick(("two coins", "three coins")),
        flavor=t.pick(("strawberry", "lemon", "chocolate", "vanilla")),
    )
    scenes.meet(t, a)
    t.say(
        "One summer day, it was very hot. Even the birds were too tired to sing.",
        "It was the hottest day of the summer, and the sun burned in the sky.",
        "One hot day, the grass was dry and the air did not move.",
    )
    t.say(
        "{a.he} wanted something cold, so {a.he} went to buy ice cream.",
        "“I need some ice cream,” said {a}. {a.he} took {money} and went to the shop.",
    )
    t.say("{a.he} chose {flavor} ice cream.", "{a.he} bought a big cone of {flavor} ice cream.")
    t.say(
        "Outside, {a.he} met {a.his} friend {b}, who was pulling a heavy wagon.",
        "On the way home, {a.he} saw {a.his} friend {b}. {b.he} was sitting in the sun and looked hot.",
    )
    t.say(
        "{a} talked and forgot the ice cream. Drip, drip, drip. Splat! It fell on the ground.",
        "{a} waved, and the ice cream slid off the cone. It fell on the ground with a splat.",
    )
    t.maybe(
        0.7,
        "“Oh no!” cried {a}. {a.he} was {sad}.",
        "{a.he} looked at the empty cone and wanted to cry.",
    )
    t.say(
        "“I have an idea,” said {b}. “My house has a garden with a hose.”",
        "“Don't be sad,” said {b}. “Come with me. I know how to get cool.”",
    )
    t.say(
        "{both} ran through the cold water. They splashed and laughed until they were wet all over.",
        "{b} filled a big tub with water, and {both.they} jumped in. Splash! The water was cool.",
    )
    t.say(
        "Then {b}'s mom gave each of them a [glass of cold lemonade|slice of cold melon].",
        "After that, they shared a cold melon in the shade of a tree.",
    )
    t.say(
        "“This is better than ice cream,” said {a}.",
        "“Now I am not hot anymore,” said {a}, and {both.they} laughed.",
        "“I lost my ice cream, but I had more fun with you,” said {a}.",
    )
    scenes.good_day(t, 0.4)


PLOTS = (rain, wind, snow, thunder, hot_day)
