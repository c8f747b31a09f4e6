"""A picture as a text, by hand, against what the models compute of it."""

import torch

from engine.course.picture import cut_patches, look_at_patches, next_pixel, patch_tokens, position_likeness
from engine.inputs.readers import pictures, read_picture, read_pixels
from engine.runtime import library
from engine.runtime.run import run

PICTURE = pictures()[0][3]


def test_patches_and_what_cls_sees_are_those_of_the_model() -> None:
    square = torch.arange(16).view(4, 4)
    assert cut_patches(square, 2).tolist() == [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
    checkpoint = library.checkpoint("digits-vit")
    trace = run(checkpoint.model, read_picture(checkpoint, PICTURE).read)
    pixels, vectors = patch_tokens("digits-vit", PICTURE.tolist())
    torch.testing.assert_close(pixels, trace["embed.patches.pixels"][0])
    torch.testing.assert_close(vectors, trace["embed.patches"][0, 1:], rtol=1e-4, atol=1e-5)
    found = look_at_patches("digits-vit", PICTURE.tolist())
    torch.testing.assert_close(found.weights, trace["blocks.2.attn.pattern"][0, :, 0, 1:])
    torch.testing.assert_close(found.probabilities, trace["logits"][0].softmax(-1))
    assert float(position_likeness("digits-vit", 6)[6]) > 0.999


def test_the_next_pixel_is_that_of_the_page() -> None:
    checkpoint = library.checkpoint("digits-imagegpt")
    read = read_pixels(checkpoint, PICTURE, 20, 65, {"greedy": True}, 0).read
    ids, probabilities = next_pixel("digits-imagegpt", PICTURE.tolist(), 20)
    assert isinstance(ids, list) and tuple(ids) == tuple(read.ids[:21])
    assert int(probabilities.argmax()) == read.ids[21]
