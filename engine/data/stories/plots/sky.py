"""Animals who look up: a first flight, and the moon in the water."""

from .. import scenes
from ..telling import Telling


def learning_to_fly(t: Telling) -> None:
    a = t.animal("a", t.pick(("robin", "sparrow", "owl", "swallow", "bluebird", "crow")))
    b = t.animal("b", t.pick(("frog", "rabbit", "squirrel", "turtle", "hedgehog", "mouse")))
    t.group("both", a, b, "the two friends")
    t.let(
        a_kind=a.kind,
        b_kind=b.kind,
        sisters=t.pick(("two sisters", "two brothers", "three brothers", "three sisters")),
    )
    scenes.begin_fable(
        t, t.pick(("in a nest in a tall tree", "in a nest on the roof of a barn", "at the top of an old oak"))
    )
    t.say(
        "{a.he} had {sisters}. All of them could fly, but {a} could not.",
        "{a.his} {sisters} could fly, but {a} could not.",
    )
    t.say(
        "{a.he} was afraid to jump. “It is so far down,” {a.he} said.",
        "“What if I fall?” {a} thought, and stayed at home.",
    )
    t.say(
        "{one_day}, {a.he} saw {b.a} named {b} at the foot of the tree.",
        "{one_day}, {b}, {b.a}, sat down under the tree and began to cry.",
    )
    t.say(
        "A branch had fallen, and {b} was stuck under it. “Help!” {b.he} called.",
        "“My foot is stuck under this branch,” {b} said. “Can somebody help me?”",
    )
    t.say(
        "{a} looked around, but nobody else was there.",
        "{a.his} {sisters} were far away, so {a} was the only one who could help.",
    )
    t.say(
        "{a.he} forgot to be afraid. {a.he} opened {a.his} wings and jumped.",
        "“I'm coming!” called {a}. {a.he} closed {a.his} eyes and jumped.",
    )
    t.say(
        "The air held {a.him} up. {a.he} was flying!",
        "Flap, flap, flap! {a.he} did not fall. {a.he} flew!",
    )
    t.say(
        "{a.he} pulled the branch away, and {b} was free.",
        "{a.he} landed and pushed the branch until {b} could get out.",
    )
    t.say(
        "“Thank you,” said {b}. “You fly so well!” “Do I?” asked {a}, and {a.he} laughed.",
        "“I thought that I could not fly,” said {a}. “But you did,” said {b}.",
    )
    t.say(
        "That evening, {a} flew over the trees with {a.his} {sisters}, and {b} waved from below.",
        "From then on, {a} flew every day, and {a.he} always stopped to talk to {b}.",
        "{both} became good friends, one in the air and one on the ground.",
    )


def moon_in_pond(t: Telling) -> None:
    scenes.two_animals(
        t, ("fox", "frog", "hedgehog", "rabbit", "duck", "raccoon"), ("owl", "turtle", "deer", "badger")
    )
    t.let(water=t.pick(("pond", "lake", "river")), looks=t.pick(("a lamp", "a silver plate", "a big pearl")))
    scenes.begin_fable(t, "near a quiet {water}".format(water=t.fields["water"]))
    t.say(
        "One night, {a.he} looked into the {water} and saw something round and bright.",
        "One clear night, {a.he} went to the {water} to drink. Something was shining in the water.",
    )
    t.say("It looked like {looks}, but it was much too bright.", "It was as bright as {looks}.")
    t.say(
        "“The moon has fallen into the water!” cried {a}.",
        "“Oh no, the moon fell down,” said {a}. “I must save it.”",
    )
    t.say(
        "{a.he} reached for it, but it broke into a hundred pieces.",
        "{a.he} tried to catch it, but it slipped away.",
    )
    t.say(
        "Then {a.he} leaned too far. Splash! {a.he} fell in.",
        "{a.he} reached again, and splash, {a.he} was in the water!",
    )
    t.say(
        "{b}, an old and wise {b_kind}, heard the splash and helped {a.him} out."
        if t.chance(0.5)
        else "{b} the {b_kind} heard the noise. {b.he} pulled {a} out of the water.",
    )
    t.say(
        "“What are you doing?” asked {b}. “I wanted to save the moon,” said {a}.",
        "“I broke the moon,” said {a}, and began to cry.",
    )
    t.say("{b} smiled. “Look up,” {b.he} said.", "“Look at the sky, little one,” said {b}.")
    t.say(
        "{a} looked up. There was the moon, high above the trees.",
        "There, above the trees, was the moon, round and safe.",
    )
    t.say(
        "“The water is like a mirror,” said {b}. “It only shows you the moon.”",
        "“What you saw was only a picture in the water,” {b} said.",
    )
    t.say(
        "{a} laughed at {a.himself}. Then {both} sat side by side and looked at the stars.",
        "{a} was wet, but {a.he} was happy that the moon was safe.",
        "“Then the moon is up there, and it is down here too,” said {a}. “I like that.”",
    )


PLOTS = (learning_to_fly, moon_in_pond)
