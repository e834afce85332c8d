"""Who stays: rules that turn a newcomer's contest with an incumbent into a decision, knowing no archive."""

import abc
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class Ranking(NamedTuple):
    """A total order: the higher rank stays, and of equal ranks the latest arrival or else the earliest."""

    rank: Callable[[Float[Array, "*n"], Int[Array, "*n"]], Float[Array, "*n"]]  # of fitness and arrival
    latest: bool


class Contest(eqx.Module):
    """Newcomers against the incumbents whose places they want; `crowded` where a second entry is too close as well."""

    fitness: Float[Array, "*n"]
    incumbent_fitness: Float[Array, "*n"]
    novelty: Float[Array, "*n"]
    incumbent_novelty: Float[Array, "*n"]
    crowded: Bool[Array, "*n"]


class AbstractAddition(eqx.Module):
    """Decides, contest by contest, whether the newcomer takes the incumbent's place."""

    @property
    @abc.abstractmethod
    def needs_novelty(self) -> bool:
        """Whether `replaces` reads novelty; archives leave it at 0 otherwise, as it is costly."""

    @property
    @abc.abstractmethod
    def ranking(self) -> Ranking | None:
        """The total order the rule follows, so that a whole batch can be settled at once; None if it follows none."""

    @abc.abstractmethod
    def replaces(self, contest: Contest) -> Bool[Array, "*n"]:
        """Whether each newcomer wins its contest."""


class AbstractRanked(AbstractAddition):
    """A rule that is a total order."""

    @property
    @abc.abstractmethod
    def latest(self) -> bool:
        """Which of equal ranks stays: the latest arrival, or else the earliest."""

    @property
    @abc.abstractmethod
    def enters_crowded(self) -> bool:
        """Whether a newcomer may win although a second entry is too close."""

    @abc.abstractmethod
    def rank(self, fitness: Float[Array, "*n"], arrival: Int[Array, "*n"]) -> Float[Array, "*n"]:
        """The rank of solutions; incumbents arrived at -1, row i of a batch at i."""

    @property
    def needs_novelty(self) -> bool:
        """Ranks never read novelty."""
        return False

    @property
    def ranking(self) -> Ranking:
        """The rule's own order."""
        return Ranking(self.rank, self.latest)

    def replaces(self, contest: Contest) -> Bool[Array, "*n"]:
        """Whether each newcomer outranks its incumbent."""
        now = jnp.zeros_like(contest.fitness, jnp.int32)
        newcomer, incumbent = self.rank(contest.fitness, now), self.rank(contest.incumbent_fitness, now - 1)
        wins = newcomer >= incumbent if self.latest else newcomer > incumbent
        return wins if self.enters_crowded else wins & ~contest.crowded


class Compete(AbstractRanked):
    """The fitter one stays.

    With `drift` a newcomer that is equally fit takes the place too. Where fitness counts points, solutions then go on
    changing at the same score, and the search does not stop at the first ones that got there.
    """

    drift: bool = eqx.field(static=True, default=False)

    @property
    def latest(self) -> bool:
        """Of equally fit solutions the newcomer stays, if `drift` is on."""
        return self.drift

    @property
    def enters_crowded(self) -> bool:
        """Never into a crowded place."""
        return False

    def rank(self, fitness: Float[Array, "*n"], arrival: Int[Array, "*n"]) -> Float[Array, "*n"]:
        """Fitness itself."""
        return fitness


class Cooperate(AbstractRanked):
    """The newcomer always takes the place, whatever its fitness."""

    @property
    def latest(self) -> bool:
        """Irrelevant here: arrival times never tie."""
        return True

    @property
    def enters_crowded(self) -> bool:
        """Crowding does not matter."""
        return True

    def rank(self, fitness: Float[Array, "*n"], arrival: Int[Array, "*n"]) -> Float[Array, "*n"]:
        """The time of arrival."""
        return arrival.astype(fitness.dtype)


class Dominate(AbstractAddition):
    """Novelty and fitness may each be a little worse, if their relative gains add up (Grillotti & Cully 2022)."""

    tolerance: Float[Array, ""] = eqx.field(converter=jnp.asarray, default=0.1)

    @property
    def needs_novelty(self) -> bool:
        """Novelty is half of the decision."""
        return True

    @property
    def ranking(self) -> None:
        """Tolerance makes the relation intransitive."""
        return

    def replaces(self, contest: Contest) -> Bool[Array, "*n"]:
        """Whether each newcomer dominates its incumbent in the tolerant sense."""
        novelty, fitness = contest.incumbent_novelty, contest.incumbent_fitness
        novelty_gain, fitness_gain = contest.novelty - novelty, contest.fitness - fitness
        tolerable = (novelty_gain >= -self.tolerance * jnp.abs(novelty)) & (
            fitness_gain >= -self.tolerance * jnp.abs(fitness)
        )
        # Both relative gains, multiplied by the incumbent's values: they may be zero.
        better = novelty_gain * jnp.abs(fitness) + fitness_gain * jnp.abs(novelty) > 0
        return tolerable & better & ~contest.crowded


class Scheduled(AbstractAddition):
    """Cooperates while told to, then follows `rule`; the flag is data, so a schedule can drive it in compiled code."""

    rule: AbstractAddition
    cooperating: Bool[Array, ""] = eqx.field(converter=jnp.asarray)

    @property
    def needs_novelty(self) -> bool:
        """As the rule that takes over."""
        return self.rule.needs_novelty

    @property
    def ranking(self) -> Ranking | None:
        """A total order if the rule is one."""
        later, first = self.rule.ranking, Cooperate().rank
        if later is None:
            return None

        def rank(fitness: Float[Array, "*n"], arrival: Int[Array, "*n"]) -> Float[Array, "*n"]:
            return jnp.where(self.cooperating, first(fitness, arrival), later.rank(fitness, arrival))

        return Ranking(rank, later.latest)

    def replaces(self, contest: Contest) -> Bool[Array, "*n"]:
        """Whether each newcomer wins under the rule now in force."""
        return jnp.where(self.cooperating, Cooperate().replaces(contest), self.rule.replaces(contest))
