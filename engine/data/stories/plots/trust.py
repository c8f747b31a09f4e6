"""Promises, the truth, and a secret that is kept."""

from .. import scenes, words
from ..telling import Telling


def promise(t: Telling) -> None:
    a = t.child("a")
    t.neighbor("n")
    jobs = (
        ("water the flowers", "watered the flowers", "the flowers were red and yellow and full of bees"),
        ("feed the hens", "fed the hens", "the hens were fat and happy"),
        ("water the tomatoes", "watered the tomatoes", "the tomatoes were big and red"),
        ("feed the fish", "fed the fish", "the fish were swimming around happily"),
        ("feed the old cat", "fed the old cat", "the cat was sleeping in the sun"),
    )
    job, done, result = t.pick(jobs)
    fun = t.pick(("play ball", "swim in the lake", "fly kites", "ride bikes", "have a picnic"))
    days = t.pick(("three days", "four days", "five days", "a week"))
    b = t.child("b")
    t.group("both", a, b)
    t.let(job=job, done=done, result=result, fun=fun, days=days)
    scenes.meet(t, a)
    t.say(
        "Next door lived {n.a}. {one_day}, {n.he} had to go away for {days}.",
        "{one_day}, {n.a} came to the door. “I must go away for {days},” {n.he} said.",
    )
    t.say(
        "“Can you {job} every day?” asked {n}. “I promise,” said {a}.",
        "“Will you {job} while I am gone?” {n} asked. “Yes, I promise,” {a} said.",
    )
    t.maybe(
        0.7,
        "On the first day, {a} {done}. It was easy.",
        "The first morning, {a} got up early and {done}.",
    )
    t.say(
        "The next day, {a.his} friend {b} came. “Let's {fun}!” said {b}.",
        "On the second day, {b} knocked on the door. “Do you want to {fun}?” {b.he} asked.",
    )
    t.say(
        "{a} wanted to go, but then {a.he} remembered the promise.",
        "{a} put on {a.his} shoes. Then {a.he} stopped. “I made a promise,” {a.he} said.",
    )
    t.say(
        "“First I have to {job},” said {a}. “A promise is a promise.”",
        "{a} shook {a.his} head. “I want to, but first I must {job}.”",
    )
    t.say(
        "“Then I will help you,” said {b}. Together they {done}, and then they went out to {fun}.",
        "So {a} {done}, and after that {both.they} went out to {fun}.",
    )
    t.say(
        "When {n} came home, {result}.",
        "After {days}, {n} came back. {n.he} saw that {result}.",
    )
    t.say(
        "“You kept your promise,” said {n}. “Thank you, {a.call}.”",
        "“Thank you, {a.call}. I knew that I could trust you,” said {n}.",
    )
    t.say(
        "{n} gave {a.him} [a jar of honey|a basket of plums|a bag of cherries|a little silver bell].",
        "{a} was proud. It felt good to keep a promise.",
    )


def truth(t: Telling) -> None:
    a = t.child("a")
    t.kin("g", a)
    t.thing(
        "vase", ("vase", "cup", "plate", "lamp", "bowl", "teapot"), (*words.COLORS, "pretty", "old", "new")
    )
    t.let(with_what=t.pick(("ball", "toy plane", "scooter", "wooden sword")))
    scenes.meet(t, a)
    scenes.bring_pet(t, 0.5, ("cat", "dog"))
    t.say(
        "{one_day}, {a.he} was playing with {a.his} {with_what} in the house.",
        "{one_day}, {a.he} played inside with {a.his} {with_what}, because it was cold outside.",
    )
    t.say(
        "Crash! {vase.a} fell off the table and broke.",
        "The {with_what} hit {vase.a}. Crash! It broke into many pieces.",
        "{a.he} ran too fast and bumped into the table. {vase.a} fell down and broke.",
    )
    t.say(
        "{a.he} was scared. It was {g}'s favorite {vase}.",
        "“Oh no,” {a.he} whispered. {g} loved that {vase}.",
    )
    if "pet" in t.fields:
        t.say(
            "{a.he} looked at {pet}. “I could say that {pet} did it,” {a.he} thought.",
            "“{g.call} will think that {pet} did it,” {a.he} thought.",
        )
        t.say("But {pet} looked so sweet that {a} could not tell a lie.", "But that was not fair to {pet}.")
    else:
        t.say(
            "{a.he} hid the pieces under a rug.",
            "{a.he} wanted to hide the pieces, but {a.his} tummy felt bad.",
            "“I could say that the wind did it,” {a.he} thought.",
        )
        t.say("But {a.he} could not stop thinking about it.", "But {a.he} knew that was wrong.")
    t.say("Soon {g} came in. “What was that noise?” {g.he} asked.", "Then {g} came home.")
    t.say(
        "{a} looked at the floor. “I broke your {vase},” {a.he} said. “I am very sorry.”",
        "“It was me,” said {a}, and tears ran down {a.his} cheeks. “I broke your {vase}.”",
    )
    t.say(
        "{g} was quiet for a moment. Then {g.he} gave {a} a hug.",
        "{g} was sad about the {vase}, but {g.he} was not angry.",
    )
    t.say(
        "“Thank you for telling the truth,” said {g}. “That was brave.”",
        "“A {vase} is only a thing,” said {g}. “I'm glad that you told me the truth.”",
    )
    t.say(
        "Together they glued the pieces. The {vase} was not perfect, but they both loved it.",
        "They swept up the pieces together. After that, {a} always played with the {with_what} outside.",
        "{a} felt light and happy again. The truth was better than a lie.",
    )


def surprise(t: Telling) -> None:
    a, b = t.child("a"), t.child("b")
    t.group("both", a, b)
    t.kin("g", a, always_title=True)
    t.thing("gift", ("scarf", "hat", "cup", "book", "kite", "bell", "drum"))
    t.let(spot=t.pick(words.INDOOR_SPOTS), age=t.pick(("six", "seven", "eight", "nine")))
    scenes.meet(t, a)
    t.say(
        "{a.his} friend {b} was going to be {age} years old.",
        "Soon it would be {b}'s birthday. {b} was {a.his} best friend.",
    )
    t.say(
        "“I want to give {b} a surprise,” {a.he} told {g}.",
        "“Let's have a party for {b},” {a.he} said to {g}. “But it must be a secret!”",
    )
    t.say(
        "They bought {gift.a}, wrapped it in paper, and hid it {spot}.",
        "{a} chose {gift.a} as a present. {a.he} hid it {spot}.",
    )
    t.say(
        "The next day, {b} came to play. “What is that {spot}?” {b.he} asked.",
        "The next day, {b} came to visit and almost looked {spot}.",
    )
    t.say(
        "“Nothing!” said {a}, and quickly {a.he} asked {b.him} to come outside.",
        "“Let's play in the garden,” {a} said quickly.",
    )
    t.maybe(
        0.5,
        "It was hard to keep the secret, but {a} did not say a word.",
        "{a} wanted to tell, but {a.he} kept {a.his} mouth shut.",
    )
    t.say(
        "On the birthday, {g} baked a cake with {age} candles, and {a} hung up balloons.",
        "At last, the big day came. There were balloons, a cake, and {age} candles.",
    )
    t.say(
        "When {b} opened the door, everyone shouted, “Surprise!”",
        "“Surprise!” everyone shouted when {b} came in.",
    )
    t.maybe(
        0.7,
        "{b} was so surprised that {b.he} could not speak. Then {b.he} laughed and clapped.",
        "{b}'s eyes grew big. “Is this all for me?” {b.he} asked.",
    )
    t.say(
        "{a} took the present from its place {spot}. {b} opened it and found {gift.the}.",
        "{a} ran to get the present. It was still {spot}. {b} tore the paper, and there was {gift.the}.",
    )
    t.say(
        "“I love it,” said {b}. “And I love my friends.”",
        "“Thank you, {a.call}! This is my best birthday ever,” said {b}.",
    )
    t.maybe(
        0.6,
        "Then {b} blew out the {age} candles, and everyone had cake.",
        "They danced and sang until bedtime.",
    )


PLOTS = (promise, truth, surprise)
