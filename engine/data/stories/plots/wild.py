"""Children and the animals they meet: hurt, stuck, lost or hungry ones."""

from .. import scenes, words
from ..grammar import article
from ..telling import Telling


def hurt_animal(t: Telling) -> None:
    a = t.child("a")
    t.kin("g", a)
    kind, hurt, leaves = t.pick(
        (
            ("bird", "wing", "flew up into the sky"),
            ("rabbit", "leg", "hopped back to the forest"),
            ("duck", "foot", "swam out on the pond"),
            ("hedgehog", "paw", "walked off into the leaves"),
            ("squirrel", "paw", "ran up a tree"),
            ("owl", "wing", "flew away into the night"),
        )
    )
    t.creature("x", kind)
    t.thing("box", ("box", "basket"))
    t.let(
        hurt=hurt, leaves=leaves, days=t.pick(("three days", "five days", "six days", "a week", "two weeks"))
    )
    scenes.meet(t, a)
    t.say(
        "{one_day}, {a.he} heard a small cry in the garden. It was {x.a}.",
        "{one_day}, {a.he} found {x.a} in the grass.",
        "{one_day}, {a.he} was walking in the woods when {a.he} saw {x.a}.",
    )
    t.say(
        "{x.its} {hurt} was hurt, and {x.it} could not move.",
        "{x} had a hurt {hurt}. {x.it} was shaking with fear.",
    )
    t.say(
        "“Don't be afraid,” {a} said softly. “I will not hurt you.”",
        "“Poor little thing,” said {a}. “I will help you.”",
    )
    t.say(
        "{a.he} put {x} in {box.a} with soft grass and carried it home.",
        "Gently, {a.he} laid {x} in {box.a} and took it home to {g}.",
    )
    t.say(
        "{g} looked at the {hurt} and put a bandage on it.",
        "“It needs rest,” said {g}, and {g.he} put a small bandage on the {hurt}.",
    )
    t.say(
        "Every day, {a} gave {x} water and food.",
        "Each morning, {a} fed {x} and talked to it.",
        "{a} sat beside {box.the} every day and sang quietly.",
    )
    t.say(
        "After {days}, the {hurt} was better.",
        "{x} grew stronger. After {days}, {x.its} {hurt} was well again.",
    )
    t.say(
        "“It is time to say goodbye,” said {g}. {a} was a little sad, but {a.he} nodded.",
        "“{x} wants to go home,” said {g}. “I know,” said {a}.",
    )
    t.say(
        "They carried {box.the} outside and opened it. {x} looked around, and then it {leaves}.",
        "{a} opened {box.the}. {x} looked at {a.him} one more time, and then it {leaves}.",
    )
    t.say(
        "“Goodbye, little friend!” called {a}.",
        "Sometimes {x} came back to visit, and {a} was always {glad} to see it.",
        "{a} kept {box.the}, so that {a.he} would always remember {a.his} little friend.",
    )


def stuck_kitten(t: Telling) -> None:
    a, b = t.child("a"), t.child("b")
    t.group("both", a, b)
    kind, where, sound, eats = t.pick(
        (
            ("kitten", "up in a tree", "meow", "a bowl of milk"),
            ("puppy", "in a deep hole", "woof", "a bone"),
            ("lamb", "behind a fence", "baa", "some clover"),
            ("kitten", "on the roof", "meow", "a bit of fish"),
            ("little goat", "on a big rock", "maa", "some grass"),
        )
    )
    t.creature("x", kind)
    tool = t.pick(("ladder", "rope", "long board"))
    t.let(where=where, sound=sound, eats=eats, tool=tool, new_name=t.pick(words.PET_NAMES)[0])
    scenes.meet(t, a)
    t.say(
        "{one_day}, {both} were playing outside when they heard a sound. “{sound}! {sound}!”",
        "{one_day}, {a} and {a.his} friend {b} heard something. “{sound}! {sound}!” it went.",
    )
    t.say(
        "“What is that?” asked {b}. They looked left and right.",
        "“Somebody needs help,” said {a}. They followed the sound.",
    )
    t.say(
        "There was {x.a} {where}. {x.it} could not get out."
        if "hole" in where or "fence" in where
        else "There was {x.a} {where}. {x.it} could not get down."
    )
    t.maybe(
        0.6,
        "{x} was cold and scared, and it looked at them with big eyes.",
        "{x} was so scared that {x.it} was shaking.",
    )
    t.say(
        "{a} tried to reach it, but {a.his} arms were too short.",
        "“Come here, little one,” called {a}, but {x} did not move.",
    )
    t.say(
        "“I know what to do,” said {b}. {b.he} ran home and came back with a {tool}.",
        "“We need a {tool},” said {a}. {b} ran to get one.",
    )
    t.say(
        "{b} held the {tool}, and {a} went to get {x}. “Be careful!” said {b}.",
        "They used the {tool}. Slowly and carefully, {a} took {x} in {a.his} arms.",
    )
    t.maybe(
        0.7,
        "At last, {x} was safe. {x.it} licked {a.his} hand.",
        "“You are safe now,” {a} whispered. {x} put {x.its} head on {a.his} shoulder.",
    )
    t.maybe(
        0.6,
        "They gave {x} {eats}, because it was hungry.",
        "{b} gave {x} {eats}, and {x.it} ate every bit.",
    )
    t.say(
        "They looked for the owner, but {x} had no home. So {a} kept it and named it {new_name}.",
        "An old woman came down the road. “You found my {x.kind}!” she cried. “Thank you, thank you!”",
        "Soon the owner came. “Thank you for saving my {x.kind},” he said. “You can visit it every day.”",
    )
    t.say(
        "{both} were proud and {glad}.",
        "It was good that there were two of them.",
        "They had worked together, and it had worked.",
    )


def lost_duckling(t: Telling) -> None:
    a = t.child("a")
    kind, mother, place = t.pick(
        (
            ("duckling", "duck", "the pond"),
            ("chick", "hen", "the farm"),
            ("lamb", "sheep", "the green field"),
            ("piglet", "pig", "the farm"),
            ("kitten", "cat", "the barn"),
        )
    )
    t.creature("x", kind)
    others = t.sample(
        (
            ("cow", "“No, it is not mine,” said the cow"),
            ("goat", "“It is much too small to be mine,” said the goat"),
            ("horse", "“My baby has long legs,” said the horse"),
            ("sheep", "“My baby has soft wool,” said the sheep"),
            ("goose", "“My babies are all here,” said the goose"),
            ("owl", "“Who? Not me,” said the owl"),
        ),
        3,
    )
    asked = [other for other in others if other[0] != mother]
    t.let(
        mother=mother,
        place=place,
        first=article(asked[0][0]),
        first_says=asked[0][1],
        second=article(asked[1][0]),
        second_says=asked[1][1],
    )
    scenes.meet(t, a)
    t.say(
        "{one_day}, {a.he} met {x.a} that was all alone.",
        "{one_day}, {a.he} saw {x.a} on the path. It was lost.",
    )
    t.say(
        "“Where is your mother?” asked {a}. {x} only looked at {a.him} and cried.",
        "“I can't find my mother,” {x} seemed to say.",
    )
    t.say(
        "“Come with me,” said {a}. “We will find her.”",
        "{a} picked it up. “Let's look for her together,” {a.he} said.",
    )
    t.say(
        "First they went to {first}. {first_says}.",
        "They came to {first}. “Is this your baby?” asked {a}. {first_says}.",
    )
    t.say("Then they met {second}. {second_says}.", "Next, {a.he} asked {second}. {second_says}.")
    t.say(
        "{x} was tired and sad, so {a} carried it in {a.his} arms.",
        "“Don't give up,” said {a}. {x} stayed close to {a.him}.",
    )
    t.say(
        "At last, they came to {place}. There was a {mother}, who was calling and calling.",
        "Then they heard a voice from {place}. It was a {mother}, and she looked worried.",
    )
    t.say(
        "“My baby!” cried the {mother}. {x} ran to her as fast as it could.",
        "{x} jumped down and ran straight to the {mother}. It was home!",
    )
    t.say(
        "“Thank you for bringing my baby home,” said the {mother}.",
        "The {mother} was {glad}. She thanked {a} again and again.",
    )
    t.say(
        "{a} waved goodbye, and {x} waved back with {x.its} little tail.",
        "Every week, {a} went to {place} to see {x} and its mother.",
        "From far away, {a} could still hear the happy {mother}.",
    )


def paper_boat(t: Telling) -> None:
    a = t.child("a")
    t.thing("boat", ("boat",), words.COLORS)
    kind, move, food = t.pick(
        (
            ("duck", "swam", "bread"),
            ("frog", "jumped in and swam", "worms"),
            ("turtle", "swam slowly", "lettuce"),
            ("swan", "swam", "grain"),
            ("beaver", "swam", "fresh leaves"),
        )
    )
    t.creature("x", kind)
    t.let(move=move, water=t.pick(("pond", "lake", "river")), food=food)
    scenes.meet(t, a)
    t.say(
        "{one_day}, {a.he} made {boat.a} out of paper and took it to the {water}.",
        "{one_day}, {a.he} made {boat.a}. {a.he} painted it and carried it to the {water}.",
    )
    t.say("{boat.the} floated on the water like a real ship.", "{a.he} put it on the water, and it floated!")
    t.say(
        "But the wind blew, and the boat went farther and farther away.",
        "Then a little wave came and carried the boat away.",
    )
    t.say(
        "“Come back!” called {a}, but the boat did not come back.",
        "{a.he} reached out, but the boat was too far away.",
    )
    t.say(
        "{a.he} sat down by the {water} and felt {sad}.",
        "{a.he} was {sad}, because {a.he} could not swim.",
    )
    t.say(
        "{x.a} was watching. It had seen everything.",
        "Then {a.he} saw {x.a}. “Can you help me?” {a.he} asked.",
        "“What is the matter?” asked a little voice. It was {x.a}.",
    )
    t.say(
        "{x} {move} to the middle of the {water}, where the boat was.",
        "Splash! {x} {move} out to the boat.",
    )
    t.say(
        "{x.it} pushed the boat with {x.its} nose, all the way back to {a}."
        if kind in ("frog", "turtle", "beaver")
        else "{x.it} pushed the boat with {x.its} beak, all the way back to {a}.",
    )
    t.say(
        "“Oh, thank you!” said {a}, and picked up {boat.the}.",
        "{a} clapped. There was {boat.the}, wet but not broken!",
    )
    t.say(
        "{a.he} gave {x} some {food} from {a.his} bag.",
        "The next day, {a.he} came back with some {food} for {x}.",
    )
    t.say(
        "After that, {a} tied a string to the boat. And {x} always came to say hello.",
        "From then on, {a} and {x} were friends. Every Sunday, they played by the {water}.",
        "Then {a} tied a long string to {boat.the}, so that it could not get lost again.",
    )


PLOTS = (hurt_animal, stuck_kitten, lost_duckling, paper_boat)
