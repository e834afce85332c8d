"""How children are made: iso+line (the default), Gaussian, and SBX with polynomial mutation."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from vqelites.types import SolutionSpace
from vqelites.variation.base import AbstractVariation


class IsoLine(AbstractVariation):
    """Isotropic noise plus a step along the line to the mate (Vassiliades & Mouret 2018)."""

    iso: float | Float[Array, ""] = eqx.field(converter=jnp.asarray, default=0.01)
    line: float | Float[Array, ""] = eqx.field(converter=jnp.asarray, default=0.2)

    def child(
        self, key: Key[Array, ""], parent: Float[Array, "s"], mate: Float[Array, "s"], space: SolutionSpace
    ) -> Float[Array, "s"]:
        # One draw for both: the last number is the step along the line, one scalar per child.
        noise = jax.random.normal(key, (space.dim + 1,))
        return parent + self.iso * noise[:-1] + self.line * noise[-1] * (mate - parent)


class Gaussian(AbstractVariation):
    """Isotropic noise alone; the mate is not used."""

    sigma: float | Float[Array, ""] = eqx.field(converter=jnp.asarray, default=0.1)

    def child(
        self, key: Key[Array, ""], parent: Float[Array, "s"], mate: Float[Array, "s"], space: SolutionSpace
    ) -> Float[Array, "s"]:
        return parent + self.sigma * jax.random.normal(key, (space.dim,))


class SBXPolynomial(AbstractVariation):
    """Simulated binary crossover, then polynomial mutation of some parameters (Deb & Agrawal 1995).

    Mutation steps are measured in widths of the solution space (`high - low`), bounded or not.
    """

    crossover_eta: float | Float[Array, ""] = eqx.field(converter=jnp.asarray, default=10.0)
    mutation_eta: float | Float[Array, ""] = eqx.field(converter=jnp.asarray, default=10.0)
    mutation_rate: float | Float[Array, ""] = eqx.field(converter=jnp.asarray, default=0.1)

    def child(
        self, key: Key[Array, ""], parent: Float[Array, "s"], mate: Float[Array, "s"], space: SolutionSpace
    ) -> Float[Array, "s"]:
        spread_key, delta_key, choice_key = jax.random.split(key, 3)
        u = jax.random.uniform(spread_key, (space.dim,))
        spread = jnp.where(u < 0.5, 2 * u, 0.5 / (1 - u)) ** (1 / (self.crossover_eta + 1))
        crossed = 0.5 * ((1 + spread) * parent + (1 - spread) * mate)

        u = jax.random.uniform(delta_key, (space.dim,))
        power = 1 / (self.mutation_eta + 1)
        delta = jnp.where(u < 0.5, (2 * u) ** power - 1, 1 - (2 * (1 - u)) ** power)
        mutates = jax.random.bernoulli(choice_key, self.mutation_rate, (space.dim,))
        return crossed + jnp.where(mutates, delta * (space.high - space.low), 0.0)
