"""Checks on what users hand in: errors name the argument, what was expected and what came."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

from vqelites import inputs

LARGEST = 2**32 - 1


@pytest.mark.parametrize("value", [0, 7, LARGEST, np.int64(7), np.uint32(LARGEST), np.array(7), jnp.array(7)])
def test_a_seed_is_a_whole_number_of_32_bits(value):
    assert inputs.seed(value) == int(value)
    assert type(inputs.seed(value)) is int


@pytest.mark.parametrize("value", [-1, 2**32, 1.0, 0.5, np.nan, True, "7", [7], np.array([7]), np.float32(1)])
def test_other_seeds_are_refused(value):
    message = f"seed must be a whole number from 0 to {LARGEST}, but is {value!r}."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        inputs.seed(value)


def test_no_seed_is_told_how_to_get_one():
    with pytest.raises(ValueError, match=r"but is None\. For another one every time, pass secrets\.randbelow"):
        inputs.seed(None)


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (4, (4,)),
        (np.int32(4), (4,)),
        (np.array(4), (4,)),
        ((4,), (4,)),
        ([16, 2], (16, 2)),
        (np.array([8, 8, 3]), (8, 8, 3)),
        (jnp.array([8, 8]), (8, 8)),
        ((np.int64(8), 8), (8, 8)),
    ],
)
def test_a_shape_is_whole_numbers_or_one(value, shape):
    assert inputs.shape(value) == shape
    assert all(type(size) is int for size in inputs.shape(value))


@pytest.mark.parametrize("value", [(), [], 0, (4, 0), (4, -1), 4.0, (4, 2.5), "44", None, (4, None), True, ((4, 2), 3)])
def test_other_shapes_are_refused(value):
    with pytest.raises(ValueError, match=rf"^behavior_shape must be whole numbers .* but is {re.escape(repr(value))}"):
        inputs.shape(value)


@pytest.mark.parametrize(
    ("behavior", "message"),
    [
        ([[1, 2], [1, 2], [1, 2, 3]], "every row must have shape (2,), but row 2 has shape (3,)."),
        ([[1, 2, 3], [1, 2], [1, 2]], "every row must have shape (2,), but row 0 has shape (3,)."),
        ([[1, 2], [1, [2]]], "every row must have shape (2,), but row 1 has ragged rows of its own."),
        ([[1, 2], 3], "every row must have shape (2,), but row 1 has shape ()."),
        ((np.zeros(2), np.zeros(3)), "every row must have shape (2,), but row 1 has shape (3,)."),
        ([np.zeros((2, 3)), np.zeros((2, 4))], "every row must have shape (2,), but row 0 has shape (2, 3)."),
    ],
)
def test_ragged_behavior_is_told_with_its_first_odd_row(behavior, message):
    for count in (None, len(behavior)):
        with pytest.raises(ValueError, match=f"^behavior is ragged: {re.escape(message)}$"):
            inputs.behaviors("behavior", behavior, (2,), count)


def test_ragged_bootstrap_behavior_is_told_as_such():
    with pytest.raises(ValueError, match=r"^bootstrap is ragged: every row must have shape"):
        inputs.bootstrap([[1, 2], [1]], (2,), default=0)


def test_ragged_fitness_is_told_with_its_first_odd_row():
    with pytest.raises(ValueError, match=r"^fitness is ragged: every row must have shape \(\), but row 1 has"):
        inputs.shaped("fitness", [1.0, [2.0], 3.0], (3,))


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ([[1, 2], [1, 2], [1]], r"every row must have shape \(2,\), but row 2 has shape \(1,\)"),
        ([[1, [2, 3]], [1, 2]], "every row must have one shape, but row 0 has ragged rows of its own"),
    ],
)
def test_where_no_shape_is_known_the_first_row_shows_it(truth, message):
    with pytest.raises(ValueError, match=f"^truth is ragged: {message}"):
        inputs.numbers("truth", truth)


def test_an_array_that_refuses_says_so_itself():
    class Refuses:
        def __array__(self, dtype=None, copy=None):
            raise ValueError("it is elsewhere")

    with pytest.raises(ValueError, match="it is elsewhere"):
        inputs.numbers("fitness", Refuses())


def test_numbers_that_are_fine_stay_what_they_are():
    np.testing.assert_array_equal(inputs.numbers("fitness", [1, 2.5, True]), np.float32([1, 2.5, 1]))
    np.testing.assert_array_equal(inputs.behaviors("behavior", [[1, 2], [3, 4]], (2,), 2), np.float32([[1, 2], [3, 4]]))
    with pytest.raises(TypeError, match="fitness must hold real numbers, but its dtype is object"):
        inputs.numbers("fitness", [1.0, None])
