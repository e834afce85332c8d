"""What a descriptor is trained on."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vqelites.algorithms import Effort, vq_elites
from vqelites.dataset import Dataset, unlike_earlier
from vqelites.descriptors import VQVAE
from vqelites.types import Elites, Evaluation, Sizes, SolutionSpace

KEY = jax.random.key(0)
NOBODY = Elites.empty(4, Sizes(1, (1,), 1))


def add(dataset, state, values, valid=None):
    values = np.asarray(values, np.float32)[:, None]
    valid = np.ones(len(values), bool) if valid is None else np.asarray(valid)
    return compiled_add(dataset, state, jnp.asarray(values), jnp.asarray(valid))


@eqx.filter_jit
def compiled_add(dataset, state, behavior, valid):
    return dataset.add(state, behavior, valid)


@eqx.filter_jit
def samples(dataset, state, elites):
    return dataset.samples(state, KEY, elites)


def drawn(dataset, state, elites=NOBODY):
    rows, mask = samples(dataset, state, elites)
    return sorted(np.asarray(rows)[np.asarray(mask), 0].tolist())


def elites_of(values, valid):
    elites = Elites.empty(len(values), Sizes(1, (1,), 1))
    behavior = jnp.asarray(values, jnp.float32)[:, None]
    return eqx.tree_at(lambda e: (e.behavior, e.valid), elites, (behavior, jnp.asarray(valid)))


def test_the_window_holds_what_came_since_the_last_training():
    dataset = Dataset(window=4)
    state = add(dataset, dataset.init(Sizes(1, (1,), 1)), [1, 2, 3])
    assert drawn(dataset, state) == [1, 2, 3]
    state = add(dataset, dataset.trained(state, state.since_update), [4, 5])
    assert drawn(dataset, state) == [4, 5]


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), max_size=5), st.integers(0, 5))
def test_the_window_is_the_newest_valid_rows_in_any_order_of_batches(batches, trained_after):
    dataset = Dataset(window=5)
    state, expected = dataset.init(Sizes(1, (1,), 1)), []
    for number, valid in enumerate(batches):
        values = np.arange(3) + 10 * number
        state = add(dataset, state, values, valid)
        expected += values[np.array(valid)].tolist()
        if number == trained_after:
            state, expected = dataset.trained(state, state.since_update), []
    assert drawn(dataset, state) == sorted(expected[-5:])


def test_invalid_rows_never_enter_even_if_not_finite():
    dataset = Dataset(window=4)
    state = add(dataset, dataset.init(Sizes(1, (1,), 1)), [np.nan, 2, np.inf], [False, True, False])
    assert drawn(dataset, state) == [2]


def test_archive_content_is_drawn_without_replacement_and_only_valid():
    elites = elites_of([1, 2, 3, 4, 5], [True, False, True, True, True])
    dataset = Dataset(archive=3)
    chosen = drawn(dataset, dataset.init(Sizes(1, (1,), 1)), elites)
    assert len(set(chosen)) == 3
    assert set(chosen) <= {1, 3, 4, 5}
    everything = Dataset(archive=99)
    assert drawn(everything, everything.init(Sizes(1, (1,), 1)), elites) == [1, 3, 4, 5]


def test_replay_outlives_a_training_and_is_bounded():
    dataset = Dataset(replay=4, memory=4)
    state = add(dataset, dataset.init(Sizes(1, (1,), 1)), [1, 2, 3])
    state = add(dataset, dataset.trained(state, state.since_update), [4, 5])
    assert drawn(dataset, state) == [2, 3, 4, 5]


def test_replay_memory_shorter_than_the_window_forgets_sooner():
    dataset = Dataset(window=4, replay=2, memory=2)
    state = add(dataset, dataset.init(Sizes(1, (1,), 1)), [1, 2, 3, 4])
    assert drawn(dataset, dataset.trained(state, state.since_update)) == [3, 4]


def test_a_mix_gives_rows_of_both_sources():
    dataset = Dataset(window=2, archive=2)
    state = add(dataset, dataset.init(Sizes(1, (1,), 1)), [7, 8])
    assert drawn(dataset, state, elites_of([1, 2], [True, True])) == [1, 2, 7, 8]


thinned = jax.jit(lambda images, mask: unlike_earlier(images, mask, 0.5))


def reference_thinning(images, mask, overlap):
    kept = []
    for i in range(len(images)):
        pixels = set(np.flatnonzero(images[i]))
        others = [set(np.flatnonzero(images[j])) for j in kept]
        alike = any(not (pixels | o) or len(pixels & o) / len(pixels | o) > overlap for o in others)
        if mask[i] and not alike:
            kept.append(i)
    return np.isin(np.arange(len(images)), kept)


@given(
    st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=12, max_size=12),
    st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_near_duplicates_go_as_in_a_plain_greedy_pass_over_pixel_sets(images, mask):
    images, mask = np.array(images, np.float32), np.array(mask)
    kept = thinned(images, mask)
    np.testing.assert_array_equal(np.asarray(kept), reference_thinning(images, mask, 0.5))


def test_the_filter_thins_the_samples():
    dataset = Dataset(window=3, overlap=0.5)
    image = np.zeros((3, 4, 4, 1), np.float32)
    image[0, 0, 0] = image[1, 0, 0] = image[2, 3, 3] = 1
    state = compiled_add(dataset, dataset.init(Sizes(1, (4, 4, 1), 1)), jnp.asarray(image), jnp.ones(3, bool))
    _, mask = samples(dataset, state, NOBODY)
    assert mask.sum() == 2


def test_equal_behaviors_count_once_unless_told_otherwise():
    for distinct, count in ((True, 3), (False, 5)):
        dataset = Dataset(window=8, distinct=distinct)
        state = add(dataset, dataset.init(Sizes(1, (1,), 1)), [1, 2, 1, 3, 2])
        assert len(drawn(dataset, state)) == count
    elites = elites_of([7, 8, 9], [True, True, False])
    dataset = Dataset(window=4, archive=3)
    state = add(dataset, dataset.init(Sizes(1, (1,), 1)), [8, 9])
    assert drawn(dataset, state, elites) == [7, 8, 9]


def test_small_features_beside_a_large_one_tell_behaviors_apart():
    """A switch of 0 or 1e6 made all that differed by less than 1 the same behavior."""
    random = np.random.default_rng(0)
    rows = np.c_[1e6 * random.integers(0, 2, 50), 1e-3 * random.normal(size=50)].astype(np.float32)
    rows[25:] = rows[:25]
    kept = eqx.filter_jit(Dataset(window=1).thinned)(jnp.asarray(rows), jnp.ones(50, bool))
    np.testing.assert_array_equal(kept, np.arange(50) < 25)


class Pictures:
    """A problem with images of 4x4 pixels."""

    space = SolutionSpace(2)
    behavior_shape, eight_bit = (4, 4, 1), False
    truth_low, truth_high = (0.0,), (1.0,)


@pytest.mark.parametrize(("overlap", "count"), [(None, 4), (0.5, 3)])
def test_the_first_model_sees_every_image_once_and_in_the_papers_form_no_near_duplicates(overlap, count):
    effort = Effort(bootstrap=6, batch_size=6)
    qd = vq_elites(Pictures(), VQVAE((4, 4, 1), 1, 4), dataset=Dataset(window=640, overlap=overlap), effort=effort)
    images = jnp.zeros((6, 4, 4, 1)).at[jnp.arange(6), jnp.array([0, 0, 1, 1, 2, 2]), 0].set(1)
    images = images.at[5, 2, 1].set(0.5)  # much like the one before, but not the same
    evaluation = Evaluation(fitness=jnp.arange(6.0), behavior=images, truth=jnp.zeros((6, 1)))

    @eqx.filter_jit
    def assigned(evaluation):
        state, trials = qd.ask(qd.init(0), 6)
        state, _ = qd.tell(state, trials, evaluation, qd.schedule.at(0))
        return qd.assign(state, qd.schedule.at(0))

    assert assigned(evaluation).mask.sum() == count


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": -1}, "negative"),
        ({"replay": 5, "memory": 4}, "raise `memory`"),
        ({"window": 5, "overlap": 0.0}, "near-duplicates"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Dataset(**settings)


def test_a_batch_larger_than_the_ring_is_refused():
    dataset = Dataset(window=2)
    with pytest.raises(ValueError, match="raise `window`"):
        add(dataset, dataset.init(Sizes(1, (1,), 1)), [1, 2, 3])
