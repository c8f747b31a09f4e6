"""Sharing, making friends, and looking after each other."""

from .. import scenes, words
from ..grammar import counted, plural
from ..telling import Telling


def share_snack(t: Telling) -> None:
    """The numbers are true: what one friend gives away, the other has."""
    a, b = t.child("a"), t.child("b")
    t.group("both", a, b)
    snack = t.pick(("apple", "cookie", "muffin", "pear", "plum", "strawberry", "nut", "sandwich"))
    half = t.number(1, 3)
    _, inside = t.pick(words.PLAYGROUNDS)
    t.let(
        all=counted(2 * half, snack),
        half=counted(half, snack),
        snacks=plural(snack),
        snack=snack,
        inside=inside,
        none=f"no {plural(snack)}",
    )
    scenes.meet(t, a)
    scenes.bring_pet(t, 0.2)
    t.say("{one_day}, {a.he} had {all} in {a.his} bag.", "{one_day}, {a.he} took {all} and went out to play.")
    t.say(
        "{inside}, {a.he} met {b}, who was sitting all alone.",
        "{a.he} saw {a.his} friend {b} {inside}.",
        "{a.he} sat down next to {b}, a new {b.kind} at school.",
    )
    t.say(
        "{b} looked at the {snacks}. “I forgot my lunch,” {b.he} said in a small voice.",
        "{b} had {none}, and {b.his} tummy began to rumble.",
        "{b} was hungry, because {b.he} had nothing to eat.",
    )
    t.maybe(
        0.6,
        "{a} loved {snacks}. {a.he} wanted to keep them all.",
        "{a} looked at {a.his} food, and then {a.he} looked at {b}.",
    )
    t.say(
        "But {a} thought, “I have {all}, and {b} has none. That is not fair.”",
        "“I have {all},” said {a}. “That is enough for both of us.”",
        "“Are you hungry?” asked {a}. {b} nodded.",
    )
    t.say(
        "{a.he} gave {half} to {b} and kept {half} for {a.himself}.",
        "So {a.he} gave {b} {half}. Now {a} had {half}, and {b} had {half} too.",
    )
    t.say(
        "“Thank you!” said {b} with a big smile.",
        "{b} was {glad}. “You are a good friend,” {b.he} said.",
        "“They are sweet,” said {b}. “Thank you for sharing.”"
        if snack != "sandwich"
        else "“Thank you,” said {b}.",
    )
    scenes.pet_is_glad(t)
    t.say(
        "{both} ate and talked, and then {both.they} played together.",
        "The next day, {b} brought a cake, and {b.he} gave the biggest piece to {a}.",
        "After that, {both.they} ate lunch together every day.",
        "The food tasted even better, because they shared it.",
    )
    scenes.good_day(t, 0.3)


def one_toy(t: Telling) -> None:
    a, b = t.child("a"), t.child("b")
    t.group("both", a, b)
    t.kin("g", a, always_title=True)
    t.thing("toy", words.OUTDOOR_TOYS[:5], words.COLORS)
    _, inside = t.pick(words.PLAYGROUNDS)
    t.let(inside=inside)
    scenes.meet(t, a)
    t.say(
        "{one_day}, {a.he} was {inside} with {a.his} friend {b}.",
        "{one_day}, {a.he} and {a.his} friend {b} went out to play.",
    )
    t.say(
        "There was only one toy, {toy.a}.",
        "They found {toy.a} in the grass.",
        "{a.his} {g.kind} had given them {toy.a} to play with.",
    )
    t.say(
        "“I want it!” said {a}. “No, I want it!” said {b}.",
        "“It is my turn,” said {a}. “No, it is my turn!” said {b}.",
        "{a} pulled on one side, and {b} pulled on the other.",
    )
    t.say(
        "They shouted and pulled, and soon both of them were angry.",
        "{b} stamped {b.his} foot, and {a} began to cry.",
        "Both of them were angry, and nobody had any fun.",
    )
    t.say(
        "{g} heard the noise and came over. “You are friends,” {g.he} said. “How can you both be happy?”",
        "“Why are you fighting?” asked {g}. “Can you think of a better way?”",
    )
    t.say(
        "{a} thought for a while. “We can take turns,” {a.he} said.",
        "“I know,” said {b}. “{a.call} can go first, and then I will have a turn.”",
        "“You can have it first,” said {a}. “I will wait until you are done.”",
    )
    t.say(
        "So {both.they} took turns with {toy.the}. First one played, and then the other.",
        "They counted to twenty for each turn. {a} played with {toy.the}, and then {b} did.",
    )
    t.say(
        "“This is more fun than fighting,” said {b}.",
        "“I'm sorry I shouted,” said {a}. “I'm sorry too,” said {b}.",
        "{g} smiled. “I'm proud of you,” {g.he} said.",
    )
    t.say(
        "{both} played happily until it was time to go home.",
        "They learned that a game is better with a friend.",
        "From then on, {both.they} always shared their toys.",
    )


def new_friend(t: Telling) -> None:
    a, b = t.child("a"), t.child("b")
    t.group("both", a, b)
    place, inside = t.pick(words.OUTINGS)
    games = t.sample(("tag", "catch", "hopscotch", "pirates", "school", "leapfrog"), 2)
    t.let(place=place, inside=inside, game=games[0], other_game=games[1])
    scenes.meet(t, a)
    scenes.bring_pet(t, 0.25)
    t.say(
        "{a.he} was new in town and had no friends yet.",
        "{a.he} wished for a friend to play with.",
        "{a.he} often played alone, and sometimes {a.he} felt lonely.",
    )
    t.say(
        "{one_day}, {a.he} saw {b.a} {inside} who was [singing a song|playing with a ball].",
        "{one_day}, {inside}, {a.he} saw {b.a} who was all alone.",
    )
    t.say(
        "{a} wanted to say hello, but {a.he} was too shy to speak.",
        "{a} stood behind a tree, because {a.he} did not know what to say.",
        "“What if nobody likes me?” {a.he} thought.",
    )
    t.say(
        "Then {a.he} took a deep breath. “Hello, my name is {a.call},” {a.he} said.",
        "At last, {a.he} was brave. “Hi, I'm {a.call}. Can I play with you?” {a.he} asked.",
    )
    t.say(
        "The {b.kind} smiled. “I'm {b},” {b.he} said. “Do you want to play {game}?”",
        "“Hello, {a.call},” said the {b.kind}. “I am {b}. Let's play {game}!”",
    )
    t.say(
        "First they played {game}, and then they played {other_game}.",
        "They played {game} and {other_game} until they were out of breath.",
        "{both} played {game}, and {a} was not shy anymore.",
    )
    scenes.pet_is_glad(t)
    t.say(
        "{b} showed {a} a secret place where the [blackberries|wild flowers] grew.",
        "When {a} fell down, {b} helped {a.him} up.",
        "{a} told a joke, and {b} laughed so hard that {b.he} fell over.",
    )
    t.say(
        "“Will you come again tomorrow?” asked {b}. “Yes, I will,” said {a}.",
        "When it was time to go home, {b} said, “See you tomorrow, {a.call}!”",
    )
    t.say(
        "{a} ran home to tell everyone about {a.his} new friend.",
        "{a} was not lonely anymore, because now {a.he} had a friend.",
        "From that day on, {both} were the best of friends.",
    )


def sick_friend(t: Telling) -> None:
    a, b = t.child("a"), t.child("b")
    t.group("both", a, b)
    t.kin("g", a, always_title=True)
    t.thing("gift", ("book", "puzzle", "puppet", "teddy bear", "picture"), words.COLORS + ("funny", "pretty"))
    t.let(soup=t.pick(("chicken soup", "carrot soup", "tomato soup", "noodle soup")))
    scenes.meet(t, a)
    t.say(
        "{school_day}, {a.his} friend {b} did not come to school.",
        "{one_day}, {a.he} waited for {a.his} friend {b}, but {b} did not come out to play.",
    )
    t.say("“Where is {b}?” asked {a}. “{b} is sick in bed,” said {g}.", "“{b} has a cold,” said {g}.")
    t.say(
        "{a} was {sad}, because {a.he} knew that it is no fun to be sick.",
        "“Poor {b},” said {a}. “I want to make {b.him} feel better.”",
    )
    t.say(
        "So {a} and {g} made a big pot of {soup}.",
        "{a} and {g} cut the vegetables and cooked {soup}.",
    )
    t.say(
        "{a} put {gift.a} in a bag, and they walked to {b}'s house.",
        "{a.he} also took {gift.a} for {b}, and then they went to {b}'s house.",
    )
    t.say(
        "{b} was in bed. {b.his} nose was red, and {b.his} eyes were tired.",
        "{b} lay under three blankets. “Achoo!” {b.he} said.",
    )
    t.say(
        "“I brought you some {soup} and {gift.a},” said {a}.",
        "“Here is some {soup},” said {a}. “And this {gift} is for you.”",
    )
    t.say(
        "{b} ate the warm soup and looked at the {gift}. {b.he} began to smile.",
        "{b} ate all the soup. It was so good that {b.he} asked for more.",
    )
    t.say(
        "“Thank you, {a.call},” said {b}. “I feel better already.”",
        "“You are the best friend in the world,” said {b}.",
    )
    t.say(
        "A few days later, {b} was well again, and {both} ran and played outside.",
        "The next week, {b} was well. With {gift.the} under {b.his} arm, {b.he} ran to {a}'s house.",
        "Two days later, {b} came to school again, and {a} was {glad}.",
    )


def outgrown(t: Telling) -> None:
    """One thing or a pair: "the coat was too small", "the mittens were too small"."""
    a = t.child("a")
    t.child("b")
    t.kin("g", a, always_title=True)
    pair = t.thing("wear", words.CLOTHES, words.COLORS).pronoun == words.THEY
    t.let(spot=t.pick(("behind the school", "by the fence", "at the bus stop", "under the big tree")))
    scenes.meet(t, a)
    t.say(
        "{a.he} loved {a.his} {wear.described}. {a.his} {g.kind} had made {wear.them}.",
        "Last year, {g} had given {a.him} {wear.a}.",
        "{a.he} had {wear.a}, and {a.he} was very proud of {wear.them}.",
    )
    t.say(
        "Then the winter came, and {wear.the} {wear.was} too small.",
        "When the cold days came, {a.he} tried to put {wear.them} on. But {wear.it} {wear.was} too small!",
    )
    t.say(
        "{a.he} pulled and pulled, and {a.he} was {sad}.",
        "“My {wear} {wear.are} too small,” said {a}.",
        "How {a} had grown!",
    )
    t.say(
        "“We can buy new ones,” said {g}. “Who could wear {wear.the} now?”"
        if pair
        else "“We can buy a new one,” said {g}. “Who could wear {wear.the} now?”",
        "“Maybe somebody smaller needs {wear.the},” said {g}.",
    )
    t.say(
        "{a} thought of {b}, a little {b.kind} who was always cold.",
        "Then {a} remembered {b}, a little {b.kind} who lived across the street.",
    )
    t.say(
        "{a.he} washed {wear.the} and put {wear.them} in a bag.",
        "{a} did not want to give {wear.them} away, but {wear.it} {wear.was} no use in a drawer.",
    )
    t.say("The next day, {a.he} found {b} {spot}.", "{a.he} went out and saw {b} {spot}.")
    t.say(
        "“These are for you,” said {a}." if pair else "“This is for you,” said {a}.",
        "“Would you like to have {wear.the}?” asked {a}.",
    )
    t.say(
        "{b} put {wear.them} on at once. {wear.it} {wear.was} just right.",
        "{b} tried {wear.them} on. {wear.the} fit perfectly!"
        if pair
        else "{b} tried it on. It was warm and soft, and just the right size.",
    )
    t.say(
        "“Thank you!” said {b}. “Now I am warm.”",
        "“I will take good care of {wear.them},” said {b}.",
        "{b} was {glad} and turned around and around.",
    )
    t.say(
        "{a} walked home without {wear.the}, but {a.he} felt warm inside.",
        "Every time {a} saw {wear.the} on {b}, {a.he} smiled.",
        "All winter, {b} wore {wear.the}, and the two of them were friends.",
    )


PLOTS = (share_snack, one_toy, new_friend, sick_friend, outgrown)
