"""The market, a picnic, the farm, a letter, a school day: small journeys with something to count or carry."""

from .. import scenes, words
from ..grammar import NUMBERS, counted, listing, plural
from ..telling import Telling


def market(t: Telling) -> None:
    """One coin buys one fruit, and the sums come out."""
    a = t.child("a")
    t.kin("g", a)
    t.neighbor("n", among=words.SELLERS)
    coins = t.number(3, 6)
    bought = t.number(2, coins - 1)
    fruit = t.pick(words.FRUITS)
    t.let(
        coins=counted(coins, "coin"),
        bought=counted(bought, fruit),
        left=counted(coins - bought, "coin"),
        paid=counted(bought, "coin"),
        fruits=plural(fruit),
        were="was" if coins - bought == 1 else "were",
        basket=t.thing("basket", ("basket", "bag")).a,
    )
    scenes.meet(t, a)
    t.say(
        "{one_day}, {g} gave {a.him} {coins}. “Please go to the market and buy {bought},” {g.he} said.",
        "{one_day}, {g} needed some {fruits}. {g.he} gave {a} {coins} and asked for {bought}.",
    )
    t.say(
        "{a.he} took {basket} and walked to the market.",
        "With {basket} in {a.his} hand, {a.he} went down the road.",
    )
    t.say(
        "The market was full of people and good smells. There were cheese, fish, flowers, and bread.",
        "There was so much to see! One man sold hats, and one woman sold candy.",
    )
    t.maybe(
        0.6,
        "{a} saw a bright red candy. “I want it,” {a.he} thought, but {a.he} did not buy it.",
        "A man played the fiddle, and {a} stopped to listen for a while.",
    )
    t.say(
        "Then {a.he} found the {fruits}. “One coin for each,” said {n.a} behind the table.",
        "{n.a} was selling {fruits}. “They cost one coin each,” said {n}.",
    )
    t.say("“I need {bought}, please,” said {a}.", "“Good morning! May I have {bought}?” asked {a}.")
    t.say(
        "{a.he} paid {paid}, and now there {were} {left} left.",
        "{a} gave {n} {paid}. {a.he} still had {left}.",
    )
    t.say(
        "{a.he} carried the {fruits} home very carefully.",
        "On the way home, {a.he} did not drop even one.",
    )
    t.say(
        "{g} counted the {fruits}. There were {bought}, just right.",
        "“Here are {bought}, and here is the money,” {a} told {g}.",
    )
    t.say(
        "“Well done, {a.call}!” said {g}. “You may keep the rest of the money.”",
        "“You are a big help,” said {g}, and {a} was proud.",
    )
    t.say(
        "{a} put {left} in {a.his} money box and smiled.",
        "“Next time, I will go again,” said {a}.",
        "Then they made a fruit salad for lunch."
        if fruit in ("apple", "banana", "pear", "peach", "plum", "melon")
        else "Then they cooked lunch together.",
    )


def picnic(t: Telling) -> None:
    a, b = t.child("a"), t.child("b")
    t.group("both", a, b)
    t.thing("blanket", ("blanket",), words.COLORS)
    foods = [*t.sample(words.PICNIC, 3), t.pick(words.DRINKS)]
    place, inside = t.pick(words.OUTINGS)
    thief, takes = t.pick(
        (
            ("squirrel", "ran up a tree"),
            ("crow", "flew away"),
            ("raccoon", "ran into the bushes"),
            ("goose", "ran away"),
            ("dog", "ran off"),
        )
    )
    t.creature("x", thief)
    t.let(
        place=place,
        inside=inside,
        a_food=listing(foods[:2]),
        b_food=listing(foods[2:]),
        all_food=listing(foods),
        stolen=foods[1],
        takes=takes,
    )
    scenes.meet(t, a)
    t.say(
        "{one_day}, {a.he} and {a.his} friend {b} wanted to have a picnic {inside}.",
        "{one_day}, {a.he} said to {a.his} friend {b}, “Let's have a picnic!”",
    )
    t.say("{a} brought {a_food}, and {b} brought {b_food}.", "{a} packed {a_food}. {b} packed {b_food}.")
    t.say(
        "With {blanket.a} in their bag, they walked to the {place}.",
        "They took {blanket.a} and walked to the {place}.",
    )
    t.say("They put {blanket.the} on the grass and sat down.", "They sat on {blanket.the} under a tree.")
    t.maybe(0.8, "Now they had {all_food}. What a feast!", "“We have {all_food},” said {b}. “That is a lot!”")
    t.say(
        "Suddenly, {x.a} came and took the {stolen}.",
        "While they were laughing, {x.a} came close. Snap! It took the {stolen}.",
    )
    t.say(
        "“Hey, that is ours!” shouted {a}, but {x} {takes}.",
        "“Stop!” cried {b}. But {x} {takes} with the {stolen}.",
    )
    t.say(
        "{a} was angry, but {b} began to laugh. “It was hungry too,” {b.he} said.",
        "At first {a} was {sad}. Then {b} made a funny face, and {a.he} had to laugh.",
    )
    t.maybe(0.6, "“We still have enough,” said {b}.", "“We can share what is left,” said {a}.")
    t.say("So they shared the rest, and it was plenty.", "They ate until they were full.")
    t.say(
        "Then {both.they} lay on {blanket.the} and looked for shapes in the clouds.",
        "After lunch, {both.they} flew a kite and rolled down the grass.",
    )
    t.say(
        "“I see a cloud that looks like {x.a}!” said {b}, and they laughed all the way home.",
        "When they went home, {blanket.the} was full of grass, and both of them were {glad}.",
    )


def farm(t: Telling) -> None:
    a = t.child("a")
    t.kin("g", a)
    first, second = t.sample(
        (
            ("cow", "moo"),
            ("hen", "cluck"),
            ("pig", "oink"),
            ("sheep", "baa"),
            ("duck", "quack"),
            ("horse", "neigh"),
            ("goat", "maa"),
        ),
        2,
    )
    n_first, n_second = t.number(2, 6), t.number(3, 7)
    t.let(
        first=plural(first[0]),
        first_sound=first[1],
        second=plural(second[0]),
        second_sound=second[1],
        n_first=NUMBERS[n_first],
        n_second=NUMBERS[n_second],
        one_less=counted(n_second - 1, second[0]),
        missing=second[0],
        hiding=t.pick(
            ("behind the barn", "under the cart", "in the hay", "next to the well", "behind the gate")
        ),
    )
    scenes.meet(t, a)
    t.say(
        "{one_day}, {a.he} went to visit a farm with {g}.",
        "{one_day}, {a.he} and {g} drove to a farm in the country.",
    )
    t.say(
        "The farmer let {a.him} help. “You can count the animals,” he said.",
        "“Will you help me to count the animals?” asked the farmer.",
    )
    t.say(
        "There were {n_first} {first}. “{first_sound}, {first_sound},” they said.",
        "In the field were {n_first} {first}. “{first_sound}!” they said, all at once.",
    )
    t.say(
        "There were {n_second} {second} too, said the farmer. But {a} counted only {one_less}.",
        "“There should be {n_second} {second},” said the farmer. {a} counted. There were only {one_less}.",
    )
    t.say(
        "“One {missing} is missing,” said {a}.",
        "{a} counted again. “One of the {second} is gone!” {a.he} said.",
    )
    t.say(
        "They looked in the barn and in the field. The {missing} was not there.",
        "The farmer was worried. They looked in the barn, but it was empty.",
    )
    t.say(
        "Then {a} heard something {hiding}. It was a very quiet {second_sound}.",
        "“Shh,” said {a}. “I can hear something {hiding}.”",
    )
    t.say(
        "{a.he} looked {hiding}, and there was the {missing}.",
        "And there, {hiding}, was the {missing}. It was fast asleep."
        if second[0] not in ("hen",)
        else "And there, {hiding}, was the {missing}. It was sitting on an egg.",
    )
    t.say("“I found it!” {a.he} called.", "“Here it is!” {a.he} shouted.")
    t.say(
        "Now there were {n_first} {first} and {n_second} {second} again.",
        "“Now all {n_second} {second} are here,” said {a}.",
    )
    t.say(
        "“You have good eyes and good ears,” said the farmer. He gave {a.him} a glass of fresh milk.",
        "To thank {a.him}, the farmer let {a.him} ride on the tractor.",
        "“Thank you,” said the farmer. “Come back and help me any time.”",
    )
    scenes.good_day(t, 0.5)


def letter(t: Telling) -> None:
    a = t.child("a")
    t.kin("g", a, always_title=True, among=words.GRANDPARENTS)
    drew = t.pick(
        (
            ("a big sun", "the big sun"),
            ("a red house", "the red house"),
            ("two hearts", "the two hearts"),
            ("a blue bird", "the blue bird"),
            ("a tree full of apples", "the tree full of apples"),
        )
    )
    t.let(
        far=t.pick(
            ("on the other side of the mountains", "by the sea", "far away in the city", "across the river")
        ),
        drew=drew[0],
        the_drawing=drew[1],
        days=t.pick(("one week", "five days", "six days", "ten days")),
        gift=t.pick(
            (
                "a pair of warm socks",
                "a tiny silver bell",
                "a box of cookies",
                "a pretty shell",
                "a new pencil",
            )
        ),
    )
    scenes.meet(t, a)
    t.say("{a.his} {g.kind} lived {far}.", "{g} lived {far}, and {a} did not see {g.him} very often.")
    t.say("{one_day}, {a.he} missed {g} very much.", "{one_day}, {a.he} thought about {g} and felt {sad}.")
    t.say("“I will write a letter,” {a.he} said.", "So {a.he} found some paper and a pencil.")
    t.say(
        "{a.he} wrote, “Dear {g.call}, I miss you. Love, {a.call}.”",
        "“Dear {g.call},” {a.he} wrote. “How are you? I am well. I love you.”",
    )
    t.say("At the bottom, {a.he} drew {drew}.", "There was room left on the paper, so {a.he} drew {drew}.")
    t.maybe(
        0.8,
        "{a.he} put on a stamp and dropped the letter into the mailbox.",
        "Then {a.he} ran to the mailbox and dropped it in.",
    )
    t.say(
        "Every day, {a.he} asked the postman, “Is there a letter for me?” Every day, he shook his head.",
        "{a} waited and waited. Day after day, the mailbox was empty.",
    )
    t.say(
        "After {days}, there was a small package with {a}'s name on it.",
        "Then, after {days}, the postman rang the bell. “This is for you,” he said.",
    )
    t.say("Inside were a letter and {gift}.", "{a} opened it. There was {gift}, and under it was a letter.")
    t.say(
        "“Dear {a.call},” it said. “Your picture is on my wall. Thank you for {the_drawing}.”",
        "“Thank you for {the_drawing},” {g} had written. “It makes me smile each day.”",
    )
    t.say(
        "{a.he} read the letter three times and put it under {a.his} pillow.",
        "{a} was {glad}. {g} was far away, but now {g.he} felt close.",
    )
    t.maybe(
        0.6,
        "The next day, {a.he} wrote another letter.",
        "“I will come to see you soon,” said the last line.",
        "That night, {a.he} dreamed about {g}.",
    )


PLOTS = (market, picnic, farm, letter)
