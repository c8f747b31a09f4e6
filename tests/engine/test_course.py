"""What the course computes, against numbers worked by hand and against torch and the models."""

import json
from pathlib import Path

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from engine import load, run
from engine.course.averaging import (
    average_by_loop,
    running_sums,
    scores_of,
    softmax_weights,
    triangular_weights,
    weighted_average,
)
from engine.course.circuits import direct_effects, head_scores, leading_head
from engine.course.embeddings import (
    analogy,
    context_similarity,
    embedding_table,
    principal_map,
    rank,
    row_by_product,
    whole_words,
)
from engine.course.heads import fit_difference, merge_heads, split_heads, training_examples
from engine.course.lookup import look_up
from engine.course.masks import KINDS, mask_of, pattern_under
from engine.course.norms import averaged_over, batch_norm_at_inference, mlp_alone, normalise
from engine.course.positions import (
    NOTICED,
    POSITION_KINDS,
    buckets,
    dot_products,
    rotated_score,
    shuffle_change,
    sinusoidal_table,
    wavelengths,
)
from engine.course.residual import branch_gradients, deep_stack, repeating_batch, train_stack
from engine.course.scaling import attend, random_scores, score_variance, softmax_gradient

WORKED = torch.tensor([[1.0, 3.0], [2.0, 1.0], [0.0, 1.0]])


def test_four_ways_to_average_give_the_worked_numbers() -> None:
    assert running_sums(WORKED).tolist() == [[1, 3], [3, 4], [3, 5]]
    means = [[1, 3], [1.5, 2], [1, 1.667]]
    for found in (
        average_by_loop(WORKED),
        weighted_average(triangular_weights(3), WORKED),
        weighted_average(softmax_weights(torch.zeros(3, 3)), WORKED),
    ):
        assert [[round(value, 3) for value in row] for row in found.tolist()] == means
    weights = softmax_weights(scores_of(WORKED))
    torch.testing.assert_close(weights.sum(-1), torch.ones(3))
    expected = scaled_dot_product_attention(WORKED[None], WORKED[None], WORKED[None], is_causal=True)[0]
    torch.testing.assert_close(weighted_average(weights, WORKED), expected)


def test_a_lookup_is_attention_of_one_query() -> None:
    q, k, v = torch.randn(4), torch.randn(6, 4), torch.randn(6, 3)
    torch.testing.assert_close(look_up(q, k, v).out, scaled_dot_product_attention(q[None], k, v)[0])


def test_variance_grows_with_d_and_the_gradient_is_that_of_a_softmax() -> None:
    for d in (1, 16, 256):
        plain, divided = score_variance(d)
        assert abs(plain / d - 1) < 0.1 and abs(divided - 1) < 0.1
    scores = random_scores(32, 5)
    expected = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), scores)
    torch.testing.assert_close(softmax_gradient(attend(scores, 1.0)), expected)


def test_heads_are_split_and_joined_as_in_the_model() -> None:
    checkpoint = load("stories")
    trace = run(checkpoint.model, checkpoint.tokenizer.encode("Max gave the red ball"))
    z = trace["blocks.0.attn.z"]  # batch pos head d_head
    assert torch.equal(split_heads(z.flatten(2), z.shape[2]), z.transpose(1, 2))
    assert torch.equal(merge_heads(z.transpose(1, 2)), z.flatten(2))
    assert training_examples([5, 6, 7]) == [([5], 6), ([5, 6], 7)]


def test_one_head_cannot_give_a_difference_and_two_can() -> None:
    one, two = fit_difference(1), fit_difference(2)
    assert one.losses[-1] > 0.5 and two.losses[-1] < 1e-3
    assert two.values.prod() < 0


def test_masks_are_those_of_the_layers_and_change_what_a_head_attends_to() -> None:
    checkpoint = load("stories")
    encoding = checkpoint.tokenizer.encode("Max gave the red ball")
    length = len(encoding.ids)
    trace = run(checkpoint.model, encoding)
    torch.testing.assert_close(
        pattern_under(checkpoint, encoding, mask_of("causal", length), 0, 0), trace["blocks.0.attn.pattern"][0, 0]
    )
    for kind in KINDS:
        allowed = mask_of(kind, length)
        pattern = pattern_under(checkpoint, encoding, allowed, 1, 2)
        assert not pattern[~allowed].any()
        torch.testing.assert_close(pattern.sum(-1), torch.ones(length))
    assert mask_of("prefix", 4, 2).int().tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert mask_of("window", 4, 2).int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    assert mask_of("padding", 4, 1).int().tolist() == [[1, 1, 1, 0]] * 4


def test_positions_are_the_papers_and_only_a_model_without_any_does_not_notice_a_shuffle() -> None:
    table = [[round(value, 2) for value in row] for row in sinusoidal_table(3, 4).tolist()]
    assert table == [[0, 1, 0, 1], [0.84, 0.54, 0.01, 1], [0.91, -0.42, 0.02, 1]]
    torch.testing.assert_close(wavelengths(4), torch.tensor([2 * torch.pi, 200 * torch.pi]))
    shifted = sinusoidal_table(20, 16)[5:]
    torch.testing.assert_close(dot_products(shifted), dot_products(sinusoidal_table(15, 16)))
    q, k = torch.randn(8), torch.randn(8)
    torch.testing.assert_close(rotated_score(q, k, 9, 4), rotated_score(q, k, 25, 20), atol=1e-5, rtol=1e-5)
    assert buckets(4)[0].tolist() == [0, 17, 18, 19] and buckets(4)[3].tolist() == [3, 2, 1, 0]
    noticed = {
        (kind, mask): shuffle_change(kind, mask, [5, 6, 7, 8, 9], 32) > NOTICED
        for kind in POSITION_KINDS
        for mask in ("causal", "full")
    }
    assert [place for place, notices in noticed.items() if not notices] == [("none", "full")]


def test_a_row_is_a_product_and_analogies_succeed_and_fail_on_the_shipped_table() -> None:
    checkpoint = load("everyday")
    table, words = embedding_table(checkpoint), whole_words(checkpoint)
    assert torch.equal(row_by_product(words["girl"], table), table[words["girl"]])
    near = rank(table[words["girl"]], table, words, ("girl",))
    cosines = torch.nn.functional.cosine_similarity(table[words["girl"]], table[[words[one] for one in near.words]])
    torch.testing.assert_close(torch.tensor(near.cosines), cosines)
    assert near.cosines == sorted(near.cosines, reverse=True)
    for a, b, c, d in (("he", "she", "his", "her"), ("Monday", "Tuesday", "Wednesday", "Thursday")):
        assert analogy(table, words, a, b, c).words[0] == d
    assert analogy(table, words, "bird", "birds", "cow").words[0] != "cows"
    assert analogy(table, words, "hot", "cold", "day").words[0] == "night"
    places, shares = principal_map(table[:50], 50)
    centred = table[:50] - table[:50].mean(0)
    torch.testing.assert_close(places @ places.T, centred @ centred.T, atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(shares.sum(), torch.tensor(1.0))


def test_one_word_in_two_contexts_begins_alike_and_ends_apart() -> None:
    texts = ("We fished from the bank", "I work in a bank")
    found = context_similarity(load("everyday"), texts, "bank")
    assert abs(found[0] - 1) < 1e-6 and found[-1] < 0.7
    with pytest.raises(ValueError, match="one token of the text"):
        context_similarity(load("everyday"), texts, "house")


def test_an_addition_hands_the_same_gradient_to_both_branches_and_depth_without_it_starves_the_first_block() -> None:
    assert branch_gradients(3.0, 0.5) == (1.0, 0.5)
    torch.manual_seed(1)
    with_, without = (train_stack(8, residual, 2) for residual in (True, False))
    model = deep_stack(8, True, 0)
    generator = torch.Generator().manual_seed(0)
    ids = repeating_batch(generator)
    assert torch.equal(ids[:, :4], ids[:, 4:8])
    loss = torch.nn.functional.cross_entropy(model(ids)[:, 3:-1].flatten(0, 1), ids[:, 4:].flatten())
    assert abs(loss.item() - with_.losses[0]) < 1e-5
    first = with_.gradients[0]
    assert first.max() / first.min() < 5 and without.gradients[0].argmin() == 0


def test_the_recorded_stack_is_what_the_function_makes() -> None:
    found = json.loads(Path("assets/learn/recorded/stack.json").read_text(encoding="utf-8"))
    again = train_stack(found["layers"], False, 11, found["seed"])
    kept = torch.tensor(found["without"]["gradients"][:2])
    torch.testing.assert_close(again.gradients[[0, 10]], kept, rtol=1e-2, atol=1e-6)
    assert found["with"]["losses"][-1] < 0.01 and found["without"]["losses"][-1] > 2.5
    assert found["without"]["gradients"][-1][0] < 1e-6 < found["without"]["gradients"][-1][-1]


def test_norms_are_torchs_and_their_means_run_over_a_row_or_a_column() -> None:
    x = torch.randn(5, 6)
    torch.testing.assert_close(normalise(x, "layer"), torch.nn.functional.layer_norm(x, (6,)))
    torch.testing.assert_close(normalise(x, "rms"), torch.nn.functional.rms_norm(x, (6,), eps=1e-5))
    torch.testing.assert_close(normalise(x, "batch"), torch.nn.functional.batch_norm(x, None, None, training=True))
    mean, variance = torch.randn(6), torch.rand(6)
    expected = torch.nn.functional.batch_norm(x, mean, variance)
    torch.testing.assert_close(batch_norm_at_inference(x, mean, variance), expected)
    assert not normalise(x[:1], "batch").any()
    for kind in ("layer", "rms", "batch"):
        over = averaged_over((5, 6), kind, 2, 3)
        changed = x + torch.where(over, 0.0, 1.0)  # what is not averaged does not matter
        torch.testing.assert_close(normalise(changed, kind)[2, 3], normalise(x, kind)[2, 3])


def test_an_mlp_gives_a_token_the_same_alone() -> None:
    checkpoint = load("stories")
    assert mlp_alone(checkpoint, checkpoint.tokenizer.encode("Max gave the red ball"), 1).max() < 1e-5


def test_heads_of_shipped_models_do_what_the_lesson_says() -> None:
    induction = load("induction")
    found = head_scores(induction, induction.tokenizer.encode("b7Kx2qmTb7Kx2qm"))
    assert found.previous[0].max() > 0.9 and found.induction[1].max() > 0.9 and found.induction[0].max() < 0.1
    stories = load("stories")
    encoding = stories.tokenizer.encode('Max gave the red ball to Anna. "Thank you," said')
    trace = run(stories.model, encoding)
    anna = int(trace["logits"][0, -1].argmax())
    effects = direct_effects(stories, encoding, anna)
    layer, head = divmod(int(effects.argmax()), effects.shape[1])
    looked = encoding.pieces[int(trace[f"blocks.{layer}.attn.pattern"][0, head, -1].argmax())]
    assert stories.tokenizer.decode([anna]).strip() == "Anna" and "Anna" in looked and effects.max() > 5


def test_effects_of_heads_are_their_part_of_the_logit() -> None:
    stories = load("stories")
    encoding = stories.tokenizer.encode("Max gave the red ball")
    trace = run(stories.model, encoding, keep="*")
    written = run(stories.model, encoding, keep=["*head_out"])
    heads = torch.stack([written[f"blocks.{at}.attn.head_out"] for at in range(4)])
    rest = trace["blocks.3.resid_post"][0, -1] - heads[:, 0, -1].sum((0, 1))
    scale, gamma = trace["final_norm.scale"][0, -1], stories.model.get_parameter("final_norm.weight")
    table = stories.model.get_parameter("embed.tokens.weight")
    bias = stories.model.get_parameter("final_norm.bias") @ table.T
    other = (rest - rest.mean()) / scale * gamma @ table.T + bias
    logits = trace["logits"][0, -1]
    parts = direct_effects(stories, encoding, 7).sum() + (other[7] - other.mean())
    torch.testing.assert_close(parts, logits[7] - logits.mean(), atol=1e-3, rtol=1e-3)


def test_a_head_that_looks_one_back_is_no_induction_head() -> None:
    induction = load("induction")
    for text in ("b7Kx2qmTb7Kx2qm", "abababab", "aaaaaaaa", "abcabcabc"):
        found = head_scores(induction, induction.tokenizer.encode(text))
        leading = leading_head(found.induction, found.previous)
        assert leading is None or found.induction[leading] > found.previous[leading]
    copies, back = torch.tensor([[0.6, 0.5], [0.1, 0.2]]), torch.tensor([[0.9, 0.1], [0.0, 0.0]])
    assert leading_head(copies, back) == (0, 1)
    assert leading_head(back, copies) == (0, 0)
    assert leading_head(torch.zeros(2, 2), torch.zeros(2, 2)) is None
