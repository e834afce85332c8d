"""A small simulator, a puck struck on a table, and the sensors that it can be seen through."""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key
from matplotlib.axes import Axes

from vqelites.tasks.base import AbstractTask
from vqelites.tessellation import grid
from vqelites.types import Bins, Evaluation, SolutionSpace

BLOWS = jnp.array([0.5, 0.3, 0.2])  # how far each blow can drive the puck
TWIN_BLOWS = jnp.array([1.0, 1.0, -4.0]) / 6  # where the twin rests says nothing of where the puck does
MARGIN = 1.2  # pictures show this much of the table, so that no dot is cut off
PLAIN, HARD = 0.85, 0.7  # share of the coverage of CVT-MAP-Elites that is asked for; HARD where no sensor shows all


class Motion(eqx.Module):
    """What one solution makes the puck do; the twin is a second puck, whose place does not matter."""

    rest: Float[Array, "2"]
    twin: Float[Array, "2"]

    def path(self, frames: int) -> Float[Array, "frames 2"]:
        """Where the puck is over time: from the centre in a bend to its place of rest, ever slower."""
        share = 1 - jnp.linspace(1, 0, frames) ** 2
        turn = 1 - share
        x, y = self.rest
        turned = jnp.stack([x * jnp.cos(turn) - y * jnp.sin(turn), x * jnp.sin(turn) + y * jnp.cos(turn)], axis=1)
        return share[:, None] * turned


View = Callable[[Motion, Key[Array, ""]], Float[Array, "*shape"]]


@dataclass(frozen=True)
class Sensor:
    """How a motion is seen, and the share of CVT-MAP-Elites' coverage that VQ-Elites should reach through it."""

    view: View
    target: float = PLAIN

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one behavior."""
        return jax.eval_shape(self.view, Motion(jnp.zeros(2), jnp.zeros(2)), jax.random.key(0)).shape


class Puck(AbstractTask):
    """Three blows (x, y) drive a puck from the centre of a table; the truth is where it comes to rest.

    A blow drives the puck by the square of its strength, so that random blows hardly ever reach the edges; the whole
    table is reachable, in many ways, of which the fittest needs the least effort.
    """

    space: SolutionSpace
    cells: Float[Array, "k 2"]
    bins: Bins
    behavior_shape: tuple[int, ...] = eqx.field(static=True)
    view: View = eqx.field(static=True)
    truth_low: tuple[float, ...] = eqx.field(static=True, default=(-1.0, -1.0))
    truth_high: tuple[float, ...] = eqx.field(static=True, default=(1.0, 1.0))

    def __init__(self, sensor: Sensor):
        self.space = SolutionSpace(6, bounded=True)
        self.cells = grid((12, 12), self.truth_low, self.truth_high)
        self.bins = Bins(self.cells, jnp.ones(144, bool))
        self.behavior_shape, self.view = sensor.shape, sensor.view

    def evaluate(self, keys: Key[Array, " n"], solutions: Float[Array, "n s"]) -> Evaluation:
        motions = jax.vmap(strike)(solutions)
        return Evaluation(-jnp.square(solutions).mean(axis=1), self.see(keys, motions), truth=motions.rest)

    def see(self, keys: Key[Array, " n"], motions: Motion) -> Float[Array, " n *shape"]:
        """n motions through the sensor."""
        return jax.vmap(self.view)(motions, keys)

    def draw(self, axes: Axes, solutions: Float[Array, "n s"]) -> None:
        """The table with the paths of the puck."""
        for path in jax.vmap(lambda solution: strike(solution).path(32))(solutions):
            axes.plot(path[:, 0], path[:, 1], marker="o", markevery=[-1])
        axes.set(xlim=(-1, 1), ylim=(-1, 1), aspect="equal", xlabel="x", ylabel="y")


def strike(solution: Float[Array, "6"]) -> Motion:
    """What three blows do. (Sums, since GPUs round matrix products.)"""
    drive = (solution * jnp.abs(solution)).reshape(3, 2)
    return Motion(*((reach[:, None] * drive).sum(axis=0) for reach in (BLOWS, TWIN_BLOWS)))


def points(height: int, width: int) -> Float[Array, "h w 2"]:
    """Pixel centres (column, row), in pixels."""
    return jnp.stack(jnp.meshgrid(jnp.arange(width) + 0.5, jnp.arange(height) + 0.5), axis=-1)


def in_pixels(places: Float[Array, "n 2"], height: int, width: int) -> Float[Array, "n 2"]:
    """Places on the table as (column, row); row 0 is at the top."""
    share = (places * jnp.array([[1.0, -1.0]]) + MARGIN) / (2 * MARGIN)
    return share * jnp.array([[width, height]])


def dot(place: Float[Array, "2"], height: int, width: int) -> Float[Array, "h w"]:
    """How much of each pixel a dot covers; its radius is a twentieth of the picture."""
    distance = jnp.linalg.norm(points(height, width) - in_pixels(place[None], height, width)[None], axis=-1)
    return jnp.clip(0.05 * min(height, width) + 0.5 - distance, 0, 1)


def line(path: Float[Array, "t 2"], height: int, width: int) -> Float[Array, "h w"]:
    """How much of each pixel a line of one pixel's width covers."""
    corners = in_pixels(path, height, width)
    start, along = corners[:-1][None, None], jnp.diff(corners, axis=0)[None, None]
    offset = points(height, width)[:, :, None] - start
    share = jnp.clip((offset * along).sum(-1) / jnp.maximum((along**2).sum(-1), 1e-6), 0, 1)
    return jnp.clip(1 - jnp.linalg.norm(offset - share[..., None] * along, axis=-1).min(axis=-1), 0, 1)


def blob(place: Float[Array, "2"], height: int, width: int) -> Float[Array, "h w"]:
    """A soft light a quarter as wide as the picture."""
    distance = jnp.linalg.norm(points(height, width) - in_pixels(place[None], height, width)[None], axis=-1)
    return jnp.exp(-0.5 * (distance / (0.25 * min(height, width))) ** 2)


def painted(cover: Float[Array, "*shape"], colour: float, ground: float) -> Float[Array, "*shape 1"]:
    """A grey picture: the colour where it is covered, the ground elsewhere."""
    return (ground + (colour - ground) * cover)[..., None]


def still_picture(height: int, width: int) -> Float[Array, "h w 3"]:
    """A colourful background: slanted stripes under a sky that grows brighter, and a dark frame."""
    across, down = jnp.meshgrid(jnp.linspace(0, 1, width), jnp.linspace(0, 1, height))
    stripes = 0.5 + 0.5 * jnp.sin(25 * (across + 0.6 * down))
    frame = (jnp.minimum(across, down) > 0.05) & (jnp.maximum(across, down) < 0.95)
    colours = jnp.stack([0.3 + 0.4 * stripes, 0.9 - 0.5 * down, 0.4 + 0.5 * across * stripes], axis=-1)
    return jnp.where(frame[..., None], colours, 0.15)


def coloured(place: Float[Array, "2"], height: int, width: int) -> Float[Array, "h w 3"]:
    """A red dot on the still picture, in 8 bits."""
    cover = dot(place, height, width)[..., None]
    picture = (1 - cover) * still_picture(height, width) + cover * jnp.array([[[0.9, 0.1, 0.1]]])
    return jnp.round(255 * picture) / 255


def noisy(place: Float[Array, "2"], key: Key[Array, ""]) -> Float[Array, "32 32 1"]:
    """A white dot on black, each pixel with noise of its own, new in every evaluation."""
    picture = painted(dot(place, 32, 32), 1, 0)
    return jnp.clip(picture + 0.1 * jax.random.normal(key, picture.shape), 0, 1)


def flickering(place: Float[Array, "2"], key: Key[Array, ""]) -> Float[Array, "40 56 3"]:
    """The red dot on the still picture, under a lamp that is up to 7 % darker in every evaluation."""
    return coloured(place, 40, 56) * jax.random.uniform(key, minval=0.93, maxval=1.0)


def video(path: Float[Array, "t 2"], frame: Callable[[Float[Array, "2"]], Array]) -> Float[Array, "t h w c"]:
    """A picture of every place on the path."""
    return jax.vmap(frame)(path)


def state(path: Float[Array, "t 2"]) -> Float[Array, "t 4"]:
    """Place and speed over time."""
    speed = jnp.asarray(jnp.gradient(path, 1 / (len(path) - 1), axis=0))
    return jnp.concatenate([path, speed], axis=1)


def ranges(place: Float[Array, "2"]) -> Float[Array, "6"]:
    """Distances to six beacons around the table."""
    angle = jnp.arange(6) * jnp.pi / 3
    beacons = 1.5 * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
    return jnp.linalg.norm(beacons - place[None], axis=1)


def _dot(size: int, colour: float, ground: float) -> Sensor:
    return Sensor(lambda motion, key: painted(dot(motion.rest, size, size), colour, ground))


def _twins(motion: Motion, key: Key[Array, ""]) -> Float[Array, "32 32 1"]:
    """The puck in white and its twin in grey."""
    return jnp.maximum(painted(dot(motion.rest, 32, 32), 1, 0), painted(dot(motion.twin, 32, 32), 0.5, 0))


_UNITS = jnp.array([1e-3, 1.0, 1e3, 1e6])
_MIXED = jnp.array([1e-3, 1e-1, 1.0, 1e2, 1e4, 1e6])
_OFFSETS = jnp.array([1e4, -3e3, 1e3, -1e2, 5e3, -1e4])

SENSORS = {
    "black-on-white": _dot(32, 0, 1),
    "white-on-grey": _dot(32, 1, 0.5),
    "white-on-black": _dot(32, 1, 0),
    "white-on-black-16": _dot(16, 1, 0),
    "white-on-black-128": _dot(128, 1, 0),
    "bright-on-bright": _dot(32, 1, 0.9),
    "colour-on-picture": Sensor(lambda motion, key: coloured(motion.rest, 40, 56)),
    "flickering-light": Sensor(lambda motion, key: flickering(motion.rest, key)),
    "large-blob": Sensor(lambda motion, key: painted(blob(motion.rest, 32, 32), 1, 0)),
    "thin-lines": Sensor(lambda motion, key: painted(line(motion.path(16), 32, 32), 1, 0), HARD),
    "pixel-noise": Sensor(lambda motion, key: noisy(motion.rest, key), HARD),
    "twins": Sensor(_twins, HARD),
    "video": Sensor(lambda motion, key: video(motion.path(8), lambda at: painted(dot(at, 24, 24), 1, 0))),
    "colour-video": Sensor(lambda motion, key: video(motion.path(8), lambda at: coloured(at, 24, 24))),
    "series": Sensor(lambda motion, key: motion.path(16)),
    "series-units": Sensor(lambda motion, key: state(motion.path(16)) * _UNITS[None]),
    "vector": Sensor(lambda motion, key: ranges(motion.rest)),
    "vector-units": Sensor(lambda motion, key: jnp.append(ranges(motion.rest) * _MIXED, 273.15)),
    "vector-offsets": Sensor(lambda motion, key: ranges(motion.rest) + _OFFSETS),
}
