"""Images and whole numbers of every type given to the ask/tell class: taken where nothing is lost, else refused."""

import warnings

import numpy as np
import pytest
from asking import assert_same_archive, new

from vqelites import VQElites, inputs

IMAGES = {"behavior_shape": (6, 6, 1), "bootstrap": 32, "batch_size": 8}  # nothing is trained yet
PIXELS = np.random.default_rng(0).integers(0, 256, (8, 6, 6, 1), np.uint8)


def told(qd, *batches):
    for pictures in batches:
        qd.ask(8)
        qd.tell(np.arange(8), pictures)
    return qd


@pytest.mark.parametrize("trained", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_8_bit_images_are_those_divided_by_255(trained):
    settings = IMAGES | ({"bootstrap": 8} if trained else {})
    assert_same_archive(told(new(**settings), PIXELS), told(new(**settings), PIXELS.astype(np.float64) / 255))


@pytest.mark.parametrize("kind", [np.uint16, np.int32, np.float64, bool])
def test_images_of_other_types_are_the_numbers_they_hold(kind):
    wide = PIXELS.astype(kind) * 200 if kind is not bool else PIXELS > 99
    qd = told(new(**IMAGES), wide)
    for row in qd.archive.behavior:
        assert (row == wide).all(axis=(1, 2, 3)).any()


RAW, FRACTIONS = PIXELS.astype(float), PIXELS / 255


@pytest.mark.parametrize(
    ("first", "second"),
    [(PIXELS, RAW), (RAW, PIXELS), (FRACTIONS, RAW), (RAW, FRACTIONS), (PIXELS, RAW - 128), (PIXELS, 0.9 * RAW)],
    ids=["bytes-raw", "raw-bytes", "fractions-raw", "raw-fractions", "bytes-centred", "bytes-resized"],
)
def test_images_in_two_scales_are_refused_and_nothing_is_lost(tmp_path, first, second):
    told(new(**IMAGES), first).save(tmp_path / "run")
    qd = VQElites.load(tmp_path / "run")  # what was told before is remembered
    qd.ask(8)
    with pytest.raises(ValueError, match=r"in another scale.*as uint8, or all as floats in one scale"):
        qd.tell(np.arange(8), second)
    with pytest.raises(ValueError, match="in another scale"):
        qd.describe(second)
    qd.tell(np.arange(8), first)
    assert qd.evaluations == 16


@pytest.mark.parametrize("batches", [(PIXELS, FRACTIONS), (RAW - 128, RAW), (RAW > 99, RAW), (RAW > 99, FRACTIONS)])
def test_images_that_go_together_are_taken(batches):
    known = frozenset()
    for batch in batches:
        known = inputs.pixel_kinds("behavior", batch, known)


def test_whole_numbers_that_floats_cannot_tell_apart_are_refused():
    assert inputs.behaviors("behavior", [[2**24, -(2**24)]], (2,)).tolist() == [[2**24, -(2**24)]]
    for value in (2**24 + 1, -(2**24) - 1):
        with pytest.raises(ValueError, match="Subtract an offset or divide"):
            inputs.behaviors("behavior", np.array([[value, 0]]), (2,))


@pytest.mark.parametrize("shape", [(3, 64, 64), (1, 28, 28), (4, 84, 84), (10, 3, 48, 64)])
def test_channels_first_are_refused_with_the_right_shape_and_a_way_round(shape):
    *frames, channels, height, width = shape
    right, other = (*frames, height, width, channels), (*frames, height, channels, width)
    with pytest.raises(ValueError, match="channels first") as error:
        new(behavior_shape=shape)
    assert str(right) in str(error.value)
    assert str(other) in str(error.value)
    inputs.channels_last(right)
    inputs.channels_last(other)


@pytest.mark.parametrize("shape", [(4,), (3, 64), (5, 5, 20), (3, 3, 20), (64, 64, 3), (4, 64, 3), (8, 16, 16, 1)])
def test_other_shapes_are_taken_as_they_are(shape):
    inputs.channels_last(shape)


def test_8_bit_fitness_truth_and_vectors_are_numbers():
    qd = new()
    qd.ask(16)
    points = np.arange(100, 116, dtype=np.uint8)
    vectors = np.random.default_rng(0).integers(0, 256, (16, 4), np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        qd.tell(points, vectors, truth=np.stack([points, points], axis=1))
    assert set(qd.archive.fitness) <= set(points.astype(float))
    np.testing.assert_array_equal(qd.archive.truth[:, 0], qd.archive.fitness)
    np.testing.assert_array_equal(qd.archive.behavior, vectors[(qd.archive.fitness - 100).astype(int)])
