"""What a simulator may return, and which seed an evaluation gets."""

import re

import numpy as np
import pytest
import simulators
from hypothesis import given
from hypothesis import strategies as st

from vqelites.evaluation import (
    EvaluatorError,
    Failure,
    Kind,
    LocalEvaluator,
    Result,
    Simulator,
    Value,
    arrays,
    evaluation_seeds,
    probe,
)

SHAPED = Simulator(simulators.noisy, behavior_shape=(2,), truth_dim=0)
ONE = np.zeros((1, 2))


def outcome_of(returned, **shapes):
    [outcome] = Simulator(lambda solution, seed: returned, **shapes).evaluate(ONE, [0])
    return outcome


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (None, "but gave NoneType"),
        (1.0, "but gave float"),
        ((1.0,), "but gave 1 values"),
        ((1.0, [1, 2], [3], 4), "but gave 4 values"),
        ("ab", "but gave str"),
        (("high", [1, 2]), "fitness must be real numbers, but is str"),
        ((None, [1, 2]), "fitness must be real numbers, but is NoneType"),
        ((1j, [1, 2]), "fitness must be real numbers"),
        (([1.0], [1, 2]), r"fitness must have shape \(\), but has \(1,\)"),
        ((np.nan, [1, 2]), "fitness is not finite"),
        ((1e300, [1, 2]), "fitness is not finite"),
        ((1.0, [1, np.inf]), "behavior is not finite .*: 1 of 2 numbers"),
        ((1.0, [1, 2, 3]), r"behavior must have shape \(2,\), but has \(3,\)"),
        ((1.0, [[1, 2], [3]]), "behavior cannot be made an array"),
        ((1.0, {"a": 1}), "behavior must be real numbers, but is dict"),
        ((1.0, [1, 2], [0.5]), r"truth must have shape \(0,\), but has \(1,\)"),
    ],
)
def test_nonsense_is_a_failure_with_its_reason(returned, reason):
    outcome = outcome_of(returned, behavior_shape=(2,), truth_dim=0)
    assert isinstance(outcome, Failure)
    assert outcome.kind is Kind.NONSENSE
    assert re.search(reason, outcome.reason), outcome.reason


def test_without_known_shapes_only_what_can_never_be_right_fails():
    assert isinstance(outcome_of((1.0, np.zeros((4, 4, 1)), np.zeros(2))), Value)
    assert outcome_of((1.0, 2.0)).reason == "behavior must be an array, but is a single number"
    assert outcome_of((1.0, [2.0], 3.0)).reason == "truth must be a vector, but has shape ()"


def test_values_are_single_precision_and_8_bit_behavior_stays_8_bit():
    value = outcome_of((True, np.array([0, 51, 255], np.uint8), np.array([200], np.uint8)))
    assert (value.fitness, value.behavior.dtype, value.truth.dtype) == (1.0, np.uint8, np.float32)
    np.testing.assert_array_equal(value.behavior, [0, 51, 255])
    np.testing.assert_array_equal(value.truth, np.float32([200]))  # a number, not a brightness
    fitness, behavior, truth = arrays([Result(0, value)], (3,), 1)
    assert fitness.dtype == behavior.dtype == truth.dtype == np.float32
    np.testing.assert_array_equal(behavior, np.float32([[0, 0.2, 1]]))


def test_where_behavior_is_8_bit_floats_are_taken_if_they_are_levels_and_else_refused():
    levels = outcome_of((0.0, np.array([0.0, 0.2, 1.0])), eight_bit=True)
    np.testing.assert_array_equal(levels.behavior, np.array([0, 51, 255], np.uint8), strict=True)
    refused = outcome_of((0.0, np.array([0.0, 0.5, 1.0])), eight_bit=True)
    assert refused.kind is Kind.NONSENSE
    assert "behavior must be 8-bit levels" in refused.reason
    assert "return uint8 always, or say eight_bit=False" in refused.reason


def test_a_truth_of_none_is_no_truth():
    assert outcome_of((1.0, [2.0], None)).truth.shape == (0,)


def test_an_error_is_told_with_its_line():
    [outcome] = Simulator(simulators.faulty).evaluate(np.array([[simulators.RAISE, 4.0]]), [0])
    assert outcome.kind is Kind.RAISED
    assert outcome.reason.startswith("ValueError: cannot stand 4 (simulators.py, line ")


def test_leaving_by_sys_exit_is_an_error_like_others():
    [outcome] = Simulator(lambda solution, seed: exit(3)).evaluate(ONE, [0])
    assert outcome.kind is Kind.RAISED
    assert outcome.reason.startswith("SystemExit: 3")


def test_something_that_cannot_be_called_is_no_simulator():
    with pytest.raises(TypeError, match="A simulator is a function"):
        Simulator(simulate=3)


def test_probe_finds_shapes_although_the_first_solutions_fail():
    simulator = Simulator(simulators.tame)
    solutions = np.array([[simulators.RAISE, 1.0], [simulators.NAN, 1.0], [simulators.FINE, 1.0]])
    with LocalEvaluator(simulator) as evaluator:
        shaped = simulator.like(probe(evaluator, solutions, [0, 1, 2]))
        assert (shaped.behavior_shape, shaped.truth_dim) == (simulators.SHAPE, simulators.TRUTH)
        with pytest.raises(EvaluatorError, match=r"None of 2 solutions could be evaluated.*cannot stand 1"):
            probe(evaluator, solutions[:2], [0, 1])


@given(st.integers(0, 2**63), st.lists(st.integers(0, 2**40), max_size=5), st.integers(0, 3))
def test_a_seed_depends_on_run_and_id_alone(seed, ids, repeat):
    together = evaluation_seeds(seed, np.array(ids, np.int64), repeat)
    assert together == [evaluation_seeds(seed, [name], repeat)[0] for name in ids]
    assert all(isinstance(number, int) and 0 <= number < 2**31 for number in together)


def test_seeds_differ_between_ids_runs_and_repeats():
    seeds = [
        number for seed in range(3) for repeat in range(3) for number in evaluation_seeds(seed, range(100), repeat)
    ]
    assert len(set(seeds)) == 900


def test_seeds_stay_what_they_are():
    """Elites of saved runs are tried again with them."""
    assert evaluation_seeds(0, [0, 1, 1000]) + evaluation_seeds(7, [1], repeat=2) == [
        2044266242,
        1976665982,
        1038061855,
        1016141897,
    ]
