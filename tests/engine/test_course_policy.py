"""One choice and its reward: the best policy in closed form is where both ways of learning it end."""

from itertools import pairwise

import pytest
import torch

from engine.course.policy import best_policy, climb, divergence, learn_from_pairs, likely_words, mean_reward, preference
from engine.runtime import library
from engine.tokenizers.encoding import Encoding

REFERENCE, REWARDS, PRICE = (0.5, 0.3, 0.2), (0.0, 2.0, -1.0), 1.0


def test_the_best_policy_is_where_ascent_and_pairs_end() -> None:
    best = best_policy(REFERENCE, REWARDS, PRICE)
    by_hand = torch.tensor(REFERENCE) * torch.tensor(REWARDS).exp()
    torch.testing.assert_close(best, by_hand / by_hand.sum())
    climbed = climb(REFERENCE, REWARDS, PRICE, 400, 0.5)
    torch.testing.assert_close(climbed.policy, best, rtol=0, atol=1e-3)
    assert len(climbed.values) == 401 and all(a < b + 1e-5 for a, b in pairwise(climbed.values))
    value = mean_reward(best, REWARDS) - PRICE * divergence(best, REFERENCE)
    assert climbed.values[-1] == pytest.approx(float(value), abs=1e-4) and climbed.values[0] == pytest.approx(0.4)
    learned = learn_from_pairs(REFERENCE, REWARDS, PRICE, 2000, 1.0)
    torch.testing.assert_close(learned.policy, best, rtol=0, atol=1e-2)
    assert learned.values[-1] < learned.values[0]


def test_a_high_price_keeps_the_reference_and_none_gives_all_to_the_best_word() -> None:
    torch.testing.assert_close(best_policy(REFERENCE, REWARDS, 1e4), torch.tensor(REFERENCE), rtol=0, atol=1e-3)
    assert float(best_policy(REFERENCE, REWARDS, 0.05)[1]) > 0.999
    assert preference(REWARDS, 1, 0) == pytest.approx(0.8808, abs=1e-4)
    tokenizer = library.checkpoint("everyday").tokenizer
    assert tokenizer is not None
    ids = tokenizer.encode("The little girl was thirsty, so she drank a").ids
    words, shares = likely_words("everyday", ids, 3)
    assert set(words) == {"·cup", "·bottle", "·glass"}
    logits = library.traces.trace("everyday", Encoding.from_ids(ids))["logits"][0, -1]
    assert shares == pytest.approx(logits.softmax(-1).sort(descending=True).values[:3].tolist())


def test_a_policy_of_some_words_and_all_others_is_that_of_all_words() -> None:
    shares, reward, price = torch.tensor([0.4, 0.2, 0.15, 0.1, 0.1, 0.05]).tolist(), 2.0, 0.7
    whole = best_policy(shares, [0.0, reward, 0.0, 0.0, 0.0, 0.0], price)
    grouped = best_policy([*shares[:2], sum(shares[2:])], [0.0, reward, 0.0], price)
    torch.testing.assert_close(grouped, torch.stack([whole[0], whole[1], whole[2:].sum()]))
    gap = divergence(grouped, [*shares[:2], sum(shares[2:])])
    torch.testing.assert_close(gap, divergence(whole, shares))
