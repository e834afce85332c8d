"""Addition rules: each decision against its definition, and ranks that agree with decisions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vqelites.archives.addition import Compete, Contest, Cooperate, Dominate, Scheduled

numbers = st.sampled_from([-2.0, -1.0, -0.95, -0.5, 0.0, 0.5, 0.95, 1.0, 1.5, 2.0])
rows = st.lists(st.tuples(numbers, numbers, numbers, numbers, st.booleans()), min_size=16, max_size=16)


def contest(rows) -> Contest:
    *values, crowded = (jnp.array(column) for column in zip(*rows, strict=True))
    return Contest(*values, crowded)


def dominates(new_fit, old_fit, new_nov, old_nov) -> bool:
    worst_fit, worst_nov = old_fit - 0.1 * abs(old_fit), old_nov - 0.1 * abs(old_nov)
    gain = (new_nov - old_nov) * abs(old_fit) + (new_fit - old_fit) * abs(old_nov)
    return new_fit >= worst_fit and new_nov >= worst_nov and gain > 1e-9


@given(rows)
def test_decisions_follow_their_definitions(rows):
    c = contest(rows)
    np.testing.assert_array_equal(Compete().replaces(c), [new > old and not crowd for new, old, _, _, crowd in rows])
    drifted = [new >= old and not crowd for new, old, _, _, crowd in rows]
    np.testing.assert_array_equal(Compete(drift=True).replaces(c), drifted)
    np.testing.assert_array_equal(Cooperate().replaces(c), np.ones(16, bool))
    np.testing.assert_array_equal(Dominate().replaces(c), [dominates(*r[:4]) and not r[4] for r in rows])


@given(rows, st.booleans())
def test_scheduled_is_cooperation_then_the_rule(rows, cooperating):
    c = contest(rows)
    for rule in (Compete(), Compete(drift=True), Dominate()):
        now = Cooperate() if cooperating else rule
        np.testing.assert_array_equal(Scheduled(rule, cooperating).replaces(c), now.replaces(c))


@given(rows, st.booleans())
def test_ranks_agree_with_decisions(rows, cooperating):
    c = contest([(*row[:4], False) for row in rows])
    now = jnp.zeros(16, jnp.int32)
    drift = Compete(drift=True)
    for rule in (Compete(), drift, Cooperate(), Scheduled(Compete(), cooperating), Scheduled(drift, cooperating)):
        order = rule.ranking
        newcomer, incumbent = order.rank(c.fitness, now), order.rank(c.incumbent_fitness, now - 1)
        wins = newcomer >= incumbent if order.latest else newcomer > incumbent
        np.testing.assert_array_equal(wins, rule.replaces(c))


def test_only_total_orders_have_a_ranking():
    fitness, arrival = jnp.array(2.5), jnp.array(7)
    assert Compete().ranking.rank(fitness, arrival) == 2.5
    assert Scheduled(Compete(), True).ranking.rank(fitness, arrival) == 7
    assert Scheduled(Compete(), False).ranking.rank(fitness, arrival) == 2.5
    assert Dominate().ranking is None
    assert Scheduled(Dominate(), True).ranking is None


@pytest.mark.parametrize(("rule", "needs"), [(Compete(), False), (Cooperate(), False), (Dominate(), True)])
def test_novelty_is_asked_for_only_where_it_is_read(rule, needs):
    assert rule.needs_novelty is needs
    assert Scheduled(rule, False).needs_novelty is needs


def test_the_schedule_is_data_and_does_not_retrace():
    traces = []

    @jax.jit
    def decide(cooperating):
        traces.append(1)
        return Scheduled(Compete(), cooperating).replaces(Contest(*jnp.zeros((4, 1)), jnp.zeros(1, bool)))

    assert decide(jnp.array(True))
    assert not decide(jnp.array(False))
    assert len(traces) == 1
