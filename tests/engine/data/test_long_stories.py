"""Long stories: what was said of a friend at the beginning comes again far behind, and nothing else tells it."""

import re

from engine.data.long_stories import STORIES, long_story, tell_evening
from engine.runtime import library


def test_what_is_said_of_each_friend_comes_again_at_the_end() -> None:
    for index in range(40):
        evening = tell_evening(3, index)
        first, *_, last = evening.text.split("\n")
        for friend in evening.friends:
            assert all(word in last for word in (friend.name, friend.house, friend.called, friend.food))
            (said,) = re.findall(rf"[^.]*\b{friend.house} house[^.]*\.[^.]*\.", first)
            assert friend.name in said and friend.called in said and friend.pet in said
        kinds = [(one.house, one.pet, one.called, one.food) for one in evening.friends]
        assert all(len(set(column)) == len(kinds) for column in zip(*kinds, strict=True))


def test_the_stories_between_are_about_others_and_texts_differ_and_stay() -> None:
    texts = [tell_evening(3, index) for index in range(20)]
    for evening in texts:
        told = evening.text.split("\n")[3::3]
        assert len(told) == STORIES
        assert not any(friend.name in part for part in told for friend in evening.friends)
    assert len({one.text for one in texts}) == 20
    assert [long_story(3, index) for index in range(20)] == [one.text for one in texts]
    assert not {"{", "}", "“"} & set("".join(one.text for one in texts))


def test_a_whole_text_is_about_a_thousand_tokens() -> None:
    tokenizer = library.checkpoint("long-stories").tokenizer
    assert tokenizer is not None
    lengths = [len(tokenizer.encode(long_story(5, index)).ids) for index in range(40)]
    assert min(lengths) > 900 and max(lengths) < 1200
