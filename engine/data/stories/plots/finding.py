"""Things that are put somewhere, lost, moved or hidden, and found where they are."""

from .. import scenes, words
from ..telling import Telling


def lost_toy(t: Telling) -> None:
    a = t.child("a")
    t.kin("g", a)
    toy = t.thing("toy", words.TOYS)
    toy.where, here, there = t.sample(words.INDOOR_SPOTS, 3)
    t.let(here=here, there=there)
    scenes.meet(t, a)
    t.say(
        "{a.his} favorite toy was {toy.a}.",
        "{a.he} had {toy.a} that {a.he} took everywhere.",
        "{a.he} had {toy.a} and loved {toy.them} very much.",
        "Of all {a.his} toys, {a.he} liked {toy.a} best.",
    )
    scenes.bring_pet(t, 0.3, ("dog", "cat"))
    t.say(
        "{one_day}, {a.he} put the {toy} {toy.where} and went [outside to play|to help {g} in the kitchen].",
        "{one_day}, {a.he} left the {toy} {toy.where} and [sat down to draw|went to eat breakfast].",
    )
    t.say(
        "Later, {a.he} wanted to play with {toy.the}, but {a.he} could not find it.",
        "After lunch, {a.he} looked for {toy.the}, but it was gone.",
        "When {a.he} came back, {a.he} did not know where {toy.the} was.",
    )
    t.say(
        "{a.he} looked {here} and {there}, but the {toy} was not there.",
        "First {a.he} looked {here}. Then {a.he} looked {there}. There was no {toy}.",
        "{a.he} searched {here}, and then {there}. The {toy} was not there either.",
    )
    t.say(
        "{a.he} was {sad} and began to cry.",
        "{a.he} felt {sad}.",
        "{a.he} sat on the floor and felt {sad}.",
    )
    scenes.pet_cares(t)
    t.say(
        "“What is wrong?” asked {g}. “I can't find my {toy},” said {a}.",
        "“Why are you sad, {a}?” {g} asked. “My {toy} is lost,” said {a}.",
        "“I have lost my {toy},” {a.he} told {g}. “[Don't worry|Don't cry], we will find it,” said {g}.",
    )
    t.say(
        "“Where did you have it last?” {g} asked. {a} thought hard. “I put it {toy.where}!” {a.he} said.",
        "“Think about this morning,” said {g}. “What did you do with it?” Then {a} remembered.",
        "{g} told {a.him} to close {a.his} eyes and think. “Oh! Now I remember,” {a} said.",
    )
    t.say(
        "{a.he} ran and looked {toy.where}. There was {toy.the}!",
        "{a.he} hurried to look {toy.where}, and there it was.",
        "{a.he} looked {toy.where} and found {toy.the}, just where {a.he} had left it.",
    )
    t.say(
        "{a.he} was {glad} and hugged the {toy}.",
        "{a.he} laughed and gave {g} a big hug.",
        "{a.he} was {glad}.",
    )
    scenes.pet_is_glad(t)
    t.say(
        "From that day on, {a.he} always put {a.his} toys back in the toy box.",
        "After that, {a.he} always knew where {a.his} {toy} was.",
        "“Thank you for helping me, {g.call},” {a.he} said.",
        "That night, the {toy} slept next to {a.him}.",
    )


def moved(t: Telling) -> None:
    """Somebody moves a thing while its owner is away; the owner looks where it was, not where it is."""
    a, b = t.child("a"), t.child("b")
    t.group("both", a, b)
    t.thing("toy", words.TREASURES + words.TOYS[:5])
    first, second = t.sample(words.CONTAINERS, 2)
    color, other = t.sample(words.COLORS, 2)
    t.let(first=first, second=second, color=color, other=other)
    scenes.meet(t, a)
    t.say(
        "{one_day}, {a.he} was playing with {a.his} friend {b}.",
        "{one_day}, {a.his} friend {b} came to visit.",
        "{one_day}, {both} were playing at home.",
    )
    t.say("{a} had {toy.a}.", "{a} had brought {toy.a}.", "{a} showed {b} {toy.a}.")
    t.say(
        "{a} put the {toy} in the {color} {first} and went to [get some water|call the dog].",
        "“I will keep it in the {color} {first},” said {a}. {a.he} put it there and went outside.",
    )
    t.say(
        "While {a} was away, {b} took the {toy} out of the {first} and put it in the {other} {second}.",
        "Then {b} took {toy.the} out. When {b.he} was done, {b.he} put it in the {other} {second}.",
        "{b} wanted to play a trick. {b.he} moved the {toy} from the {first} to the {other} {second}.",
    )
    t.say(
        "When {a} came back, {a.he} looked in the {color} {first}. It was empty!",
        "Soon {a} came back and opened the {color} {first}, but there was no {toy} in it.",
        "{a} came back and went straight to the {color} {first}, but the {toy} was not there.",
    )
    t.say(
        "{a} was [surprised|worried|puzzled]. “Where is my {toy}?” {a.he} asked.",
        "“My {toy} is gone!” cried {a}.",
        "“That is strange,” said {a}. “I put my {toy} right here.”",
    )
    t.say(
        "“I put it in the {other} {second},” said {b}. “I'm sorry. I did not know you were looking for it.”",
        "{b} smiled. “Look in the {other} {second},” {b.he} said.",
        "“Don't be sad,” said {b}. “It is in the {other} {second}. I moved it.”",
    )
    t.say(
        "{a} opened the {other} {second}, and there was {toy.the}.",
        "{a} looked in the {second} and took out {toy.the}.",
        "They opened the {other} {second} together. {toy.the} was inside.",
    )
    t.say(
        "{both} laughed. “Next time, [please tell me|ask me first],” said {a}.",
        "{a.he} was {glad}, and {both.they} played until it was time for dinner.",
        "“Next time, I will ask you first,” said {b}. {a} nodded, and they were friends again.",
    )
    scenes.good_day(t, 0.2)


def hide_and_seek(t: Telling) -> None:
    a, b, c = t.child("a"), t.child("b"), t.child("c")
    t.group("both", b, c)
    place, inside = t.pick(words.PLAYGROUNDS)
    spots = t.sample(words.HIDING_PLACES, 3)
    t.let(
        place=place,
        inside=inside,
        spot_b=spots[0],
        spot_c=spots[1],
        empty=spots[2],
        count=t.pick(("ten", "five")),
    )
    scenes.meet(t, a)
    scenes.bring_pet(t, 0.25)
    t.say(
        "{one_day}, {a.he} played hide and seek with {both} {inside}.",
        "{one_day}, {a.he} met {both} {inside}. “Let's play hide and seek!” said {b}.",
        "{one_day}, {a}, {b}, and {c} were {inside}. They wanted to play hide and seek.",
    )
    t.say(
        "{a} closed {a.his} eyes and counted to {count}.",
        "{a} was the first to count. {a.he} covered {a.his} eyes and counted slowly to {count}.",
    )
    t.say(
        "{b} hid {spot_b}, and {c} hid {spot_c}.",
        "{b} ran and hid {spot_b}. {c} hid {spot_c} and did not make a sound.",
        "Quickly, {c} hid {spot_c}. {b} hid {spot_b}.",
    )
    t.say(
        "“Ready or not, here I come!” shouted {a}.",
        "“I'm coming to find you!” called {a}.",
        "When {a} opened {a.his} eyes, nobody was there.",
    )
    t.say("First {a} looked {empty}, but nobody was there.", "{a} looked {empty}. Nobody was there.")
    t.say(
        "Then {a.he} heard a [giggle|sneeze]. {a.he} looked {spot_b}. “I see you, {b.call}!” {a.he} said.",
        "Then {a.he} saw a shoe. {a.he} looked {spot_b} and found {b}.",
        "Next {a.he} looked {spot_b}, and there was {b}!",
    )
    t.say(
        "“Now we must find {c},” said {a}. They looked and looked.",
        "But where was {c}?",
        "{b} laughed and came out. “Now find {c},” {b.he} said.",
    )
    if "pet" in t.fields:
        t.say("{pet} ran ahead and began to bark. {c} was {spot_c}!", "{pet} sniffed and found {c} {spot_c}.")
    else:
        t.say(
            "At last, {a} looked {spot_c}. “There you are!” {a.he} said.",
            "{a} walked on tiptoe and looked {spot_c}. {c} jumped out and laughed.",
            "At last, {a} found {c} {spot_c}.",
        )
    t.say(
        "Then it was {b}'s turn to count. They played until the sun went down.",
        "They all laughed and played again. This time, {c} counted and {a} hid.",
        "“You are good at this game,” said {c}. The three friends played all day.",
        "Now all three were together again, and they walked home hand in hand.",
    )


def found_owner(t: Telling) -> None:
    a = t.child("a")
    t.neighbor("n")
    lost = t.thing("lost", words.LOST_THINGS)
    gift = t.thing("gift", words.SNACKS, ("big", "sweet", "warm", "fresh"))
    t.let(
        lost_noun=lost.name, where=t.pick(("on the path", "under a bench", "in the grass", "beside the road"))
    )
    t.let(gift_a=gift.a)
    scenes.meet(t, a)
    scenes.bring_pet(t, 0.2)
    t.say(
        "{school_day}, {a.he} was walking [to school|home|to the park] and saw something {where}.",
        "{one_day}, {a.he} went for a walk. There was something {where}.",
        "{one_day}, while {a.he} was [skipping|walking] along, {a.he} found something {where}.",
    )
    t.say(
        "It was {lost.a}.",
        "{a.he} picked it up. It was {lost.a}.",
        "{a.he} looked closer. It was {lost.a}!",
    )
    t.say(
        "{a.he} liked the {lost}, but {a.he} knew that it was not {a.his} own.",
        "“Somebody must be looking for this {lost},” {a.he} thought.",
        "“It is pretty, but it is not mine,” {a.he} said to {a.himself}.",
    )
    t.say(
        "{a.he} asked a woman in the shop, but the {lost} was not hers.",
        "{a.he} knocked on the first door, but nobody there had lost a thing.",
        "First {a.he} asked the children at the playground. They all shook their heads.",
    )
    t.say(
        "Then {a.he} saw {n.a}, who was looking at the ground and seemed {sad}.",
        "Then {a.he} met {n.a}. {n} looked {sad}.",
        "At the corner stood {n.a}, who looked worried.",
    )
    t.say(
        "“What are you looking for?” asked {a}. “I have lost my {lost},” said {n}.",
        "“Did you lose something?” asked {a}. “Yes, {lost.a},” said {n}.",
        "“Oh dear,” said {n}. “I can't find my {lost} anywhere.”",
    )
    t.say(
        "“Is this your {lost}?” {a} asked, and held it out.",
        "{a} held up {lost.the}. “I found it {where},” {a.he} said.",
    )
    t.say(
        "{n} was {glad}. “Thank you! You are an honest {kind},” {n.he} said.",
        "“Yes, that is my {lost}! Thank you, {a.call},” said {n}.",
        "{n.his} face lit up. “You have a good heart,” {n.he} said.",
    )
    t.say(
        "{n} gave {a} {gift_a} to say thank you.",
        "To thank {a.him}, {n} gave {a} {gift_a}.",
        "{a} went home and felt {glad}. It was good to help.",
        "From that day on, {a} and {n} always waved to each other.",
    )
    scenes.pet_is_glad(t)
    scenes.good_day(t, 0.3)


PLOTS = (lost_toy, moved, hide_and_seek, found_owner)
