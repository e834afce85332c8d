"""Numbers that leave the device together, and the history that is made of them when it is read."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vqelites.drive import StepInfo
from vqelites.drive.bundle import Bundle
from vqelites.loop import TellInfo, UpdateInfo
from vqelites.optimizer.history import History, Iterated
from vqelites.runs.metrics_file import COLUMNS

TREE = {
    "numbers": jnp.array([[1.5, -0.0], [jnp.nan, -jnp.inf]], jnp.float32),
    "count": jnp.array(2**31 - 1, jnp.int32),
    "seed": jnp.array(2**32 - 1, jnp.uint32),
    "small": jnp.array([-1, 2], jnp.int8),
    "flags": jnp.array([True, False, True]),
    "nothing": jnp.zeros((0, 3), jnp.float32),
}


def assert_bits(found, wanted):
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("bundled", [Bundle.of, jax.jit(Bundle.of), lambda tree: Bundle.of(tree).fetched()])
def test_what_is_bundled_comes_back_bit_for_bit(bundled):
    jax.tree.map(assert_bits, bundled(TREE).tree(), TREE)


def test_a_program_can_unpack_too():
    jax.tree.map(assert_bits, jax.jit(Bundle.traced)(Bundle.of(TREE)), TREE)


def test_several_come_back_with_a_leading_axis():
    trees = [{"x": jnp.array([i, i + 1.0]), "n": jnp.array(i)} for i in range(3)]
    found = Bundle.stacked([Bundle.of(tree) for tree in trees])
    assert found["x"].tolist() == [[0, 1], [1, 2], [2, 3]]
    assert found["n"].tolist() == [0, 1, 2]


def entry(size, evaluations):
    measures = dict.fromkeys(("max_fitness", "qd_score", "coverage", "pqd", "edr", "cds", "entropy"), jnp.float32(0))
    step = StepInfo(TellInfo.nothing(), UpdateInfo.nothing(), measures | {"size": jnp.array(size)})
    return Iterated(Bundle.of(step), 1, evaluations, 0.5)


def test_a_history_that_was_interrupted_goes_on_without_what_was_not_told():
    one = History().then(entry(1, 10))
    one.then(entry(99, 20))  # Ctrl-C: nobody keeps it
    two = one.then(entry(2, 20))
    assert two.columns()["size"].tolist() == [1, 2]
    assert (len(one), len(two)) == (1, 2)
    assert one.columns()["size"].tolist() == [1]


def test_a_history_continues_the_rows_of_a_file():
    before = {name: np.array([7.0, 8.0]) for name in COLUMNS}
    rows = History(before).then(entry(3, 30)).columns()
    assert rows["size"].tolist() == [7, 8, 3]
    assert rows["iteration"].tolist() == [7, 8, 2]
    assert rows["rejected"].tolist() == [7, 8, 1]
    assert set(rows) == set(COLUMNS)
