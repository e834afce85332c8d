"""A map that has collapsed is begun anew; behaviors that are truly alike, and healthy maps, are left alone."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vqelites.descriptors.base import Observed
from vqelites.descriptors.health import collapsed, judge
from vqelites.descriptors.training import Training
from vqelites.descriptors.vqvae import VQVAE
from vqelites.distinct import distinct
from vqelites.tessellation import nearest

KEY = jax.random.key(0)
SAMPLES = jax.random.normal(jax.random.key(1), (300, 4)) + 5
MASK = jnp.arange(300) % 10 > 0


def model(**settings):
    return VQVAE((4,), 2, 200, training=Training(batch=100), **settings)


def trained(vqvae, samples=SAMPLES):
    state, _ = eqx.filter_jit(vqvae.learn)(vqvae.init(KEY), KEY, samples, MASK, jnp.array(0.0), jnp.array(2))
    return state


def saturated(state):
    """All descriptors in one corner."""
    bias = state.model.coder.encoder.layers[-1].bias
    return eqx.tree_at(lambda s: s.model.coder.encoder.layers[-1].bias, state, jnp.full_like(bias, 50.0))


@eqx.filter_jit
def settle(vqvae, state, samples=SAMPLES, mask=MASK):
    rows = samples, mask, jnp.full(len(mask), jnp.nan)
    return vqvae.settle(state, KEY, [Observed(*(x[:100] for x in rows)), Observed(*(x[100:] for x in rows))])


def codes_in_use(vqvae, state, samples=SAMPLES):
    return len(np.unique(nearest(vqvae.describe(state, samples[MASK], None), vqvae.cells(state))))


@pytest.mark.slow
@pytest.mark.parametrize("codebook", ["kmeans", "data"])
def test_a_saturated_map_is_begun_anew_from_all_stored_behaviors(codebook):
    vqvae = model(codebook=codebook)
    ill = saturated(trained(vqvae))
    assert codes_in_use(vqvae, ill) == 1
    state, described, info = settle(vqvae, ill, SAMPLES + 7)
    assert info.restarted
    assert info.behaviors == MASK.sum() == 270
    assert info.codes_used == codes_in_use(vqvae, state, SAMPLES + 7) > 80
    assert info.perplexity > 60
    assert info.saturated < 0.2
    np.testing.assert_allclose(jnp.concatenate(described), vqvae.describe(state, SAMPLES + 7, None), atol=1e-5)
    np.testing.assert_allclose(state.model.coder.seen.mean, (SAMPLES + 7)[MASK].mean(axis=0), rtol=1e-5)
    assert state.optimizer.count == 0
    assert state.trainings == ill.trainings
    again, _, info = settle(vqvae, state, SAMPLES + 7)
    assert not info.restarted
    assert info.saturated < 0.2
    assert info.codes_used > 80
    assert eqx.tree_equal(again.model.coder, state.model.coder)


@pytest.mark.slow
def test_saturation_is_told():
    vqvae = model(equal=0)
    state = saturated(trained(vqvae))
    (latent,), views = vqvae.coding.look(state.model.coder, [SAMPLES])
    code = jnp.where(MASK, nearest(latent, state.model.codebook), 200)
    info = judge(distinct(views, MASK).sum(), latent, MASK, code, 200, True)
    assert (info.saturated, info.codes_used, info.perplexity, info.behaviors) == (1, 1, 1, 270)


@pytest.mark.slow
def test_behaviors_that_are_all_alike_are_no_collapse():
    vqvae = model()
    alike = jnp.broadcast_to(SAMPLES[:1], SAMPLES.shape)
    for state in (trained(vqvae), trained(vqvae, alike), saturated(trained(vqvae))):
        _, _, info = settle(vqvae, state, alike)
        assert (info.behaviors, info.codes_used, info.restarted) == (1, 1, False)


@pytest.mark.slow
def test_a_healthy_map_is_left_alone():
    vqvae = model(equal=0)
    state = trained(vqvae)
    settled, described, info = settle(vqvae, state)
    assert not info.restarted
    assert info.codes_used > 80
    assert eqx.tree_equal(settled, state)
    np.testing.assert_allclose(jnp.concatenate(described), vqvae.describe(state, SAMPLES, None), atol=1e-5)


@pytest.mark.slow
def test_side_by_side_only_the_collapsed_one_is_begun_anew():
    vqvae = model()
    healthy = trained(vqvae)
    both = jax.tree.map(lambda *x: jnp.stack(x), healthy, saturated(healthy))
    together, _, info = eqx.filter_vmap(lambda state: settle(vqvae, state))(both)
    assert info.restarted.tolist() == [False, True]
    for i, state in enumerate((healthy, saturated(healthy))):
        alone, _, _ = settle(vqvae, state)
        jax.tree.map(lambda a, b, i=i: np.testing.assert_allclose(a[i], b, atol=1e-4), together, alone)


@pytest.mark.parametrize(
    ("behaviors", "used", "ill"), [(1, 1, False), (0, 0, False), (15, 1, False), (300, 9, True), (300, 11, False)]
)
def test_few_codes_for_many_behaviors_is_a_collapse(behaviors, used, ill):
    code = jnp.where(jnp.arange(300) < behaviors, jnp.arange(300) % max(used, 1), 200)
    assert collapsed(jnp.array(behaviors), code, 200) == ill
