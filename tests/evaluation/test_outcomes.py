"""Many results together: as arrays, and failures as sentences."""

import numpy as np
import pytest

from vqelites.evaluation import Failure, Kind, Reasons, Result, Value, arrays


def fine(name, shape=(3, 2), truth=1):
    return Result(name, Value(float(name), np.full(shape, name, np.float32), np.full(truth, -name, np.float32)))


def failed(name):
    return Result(name, Failure(Kind.RAISED, "ValueError: x"))


@pytest.mark.parametrize("truth_dim", [0, 1, 2])
def test_rows_are_in_the_order_of_the_results_and_failures_have_no_fitness(truth_dim):
    results = [fine(7, truth=truth_dim), failed(5), fine(2, truth=truth_dim)]
    fitness, behavior, truth = arrays(results, (3, 2), truth_dim)
    assert fitness.dtype == behavior.dtype == truth.dtype == np.float32
    np.testing.assert_array_equal(fitness, [7, np.nan, 2])
    np.testing.assert_array_equal(behavior, np.broadcast_to(np.array([7, 0, 2])[:, None, None], (3, 3, 2)))
    np.testing.assert_array_equal(truth, np.broadcast_to(np.array([-7, 0, -2])[:, None], (3, truth_dim)))


@pytest.mark.parametrize("results", [[], [failed(1), failed(2)]])
def test_arrays_have_their_shapes_even_if_nothing_came_of_it(results):
    fitness, behavior, truth = arrays(results, (4,), 2)
    assert (fitness.shape, behavior.shape, truth.shape) == ((len(results),), (len(results), 4), (len(results), 2))
    assert np.isnan(fitness).all()


def test_failures_do_not_share_their_rows():
    _, behavior, _ = arrays([failed(1), failed(2)], (4,), 2)
    behavior[0] = 1
    assert not behavior[1].any()


@pytest.mark.parametrize("wrong", [(2, 3), (1, 2), (6,)])
def test_a_value_of_another_shape_is_not_bent_into_place(wrong):
    with pytest.raises(ValueError, match="same shape"):
        arrays([fine(1, shape=wrong)], (3, 2), 1)


def sentences(failures):
    reasons = Reasons()
    for name, failure in failures.items():
        reasons.add(name, failure)
    return reasons.sentences()


def test_equal_reasons_are_one_sentence_and_the_most_frequent_comes_first():
    often = Failure(Kind.RAISED, "ValueError: x (my_sim.py, line 3)")
    failures = {41: often, 17: often, 40: often, 90: often}
    failures |= {3: Failure(Kind.TIMED_OUT, "took more than 2 s")}
    failures |= {9: Failure(Kind.DIED, "ended its worker (exit code 1)")}
    failures |= dict.fromkeys((8, 6), Failure(Kind.NONSENSE, "fitness is not finite"))
    told = [
        "4 evaluations raised: ValueError: x (my_sim.py, line 3); first ids 17, 40, 41",
        "2 evaluations returned nonsense: fitness is not finite; ids 6, 8",
        "1 evaluation timed out: took more than 2 s; id 3",
        "1 evaluation died: ended its worker (exit code 1); id 9",
    ]
    for order in (failures, dict(sorted(failures.items())), dict(reversed(failures.items()))):
        assert sentences(order) == told


def test_reasons_that_differ_in_numbers_and_addresses_are_one():
    reasons = {
        7: "ValueError: 0.5 is too much for <Robot at 0x7f01ab>",
        2: "ValueError: -3e4 is too much for <Robot at 0x7f09ff>",
    }
    assert sentences({name: Failure(Kind.RAISED, reason) for name, reason in reasons.items()}) == [
        "2 evaluations raised: ValueError: -3e4 is too much for <Robot at 0x7f09ff>; ids 2, 7"
    ]


def test_no_failures_need_no_words():
    assert sentences({}) == []
