"""VQ-Elites for users who never see JAX: ask for solutions, tell what they did."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import Any, Literal, overload

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from vqelites import checkpoint, inputs, saving
from vqelites.descriptors import AbstractLayer, Chosen, chosen, per_sample
from vqelites.diagnosis import diagnoses
from vqelites.experiments.build import build_vq_elites
from vqelites.experiments.config import Model, NetworksName, Search, Units, VQElitesSettings
from vqelites.frames import ArchiveFrame
from vqelites.pending import Pending
from vqelites.teller import Rows, Teller, Told
from vqelites.types import SolutionSpace

# An own network: maps one behavior to its latent vector, or back; its arrays are trained.
Module = Callable[[Array], Array]

_DEFAULT = VQElitesSettings()


@dataclass(frozen=True)
class _Problem:
    """A simulator of which only the shapes are known."""

    space: SolutionSpace
    behavior_shape: tuple[int, ...]
    truth_low: tuple[float, ...] = ()
    truth_high: tuple[float, ...] = ()


class VQElites:
    """Quality-Diversity with learned descriptors, around any simulator: NumPy in, NumPy out.

    The first `bootstrap` solutions are random and train the model; from then on it is trained further after every
    `update_every * batch_size` evaluations, whatever the size of the batches told. `bootstrap` may also be behavior
    you already have, (n, *behavior_shape); `pretrained` is the folder of a saved run whose model to start from.
    `iterations * batch_size` evaluations are the planned run: over it the learning rate decays, and `cooperate` is a
    share of it. Defaults are those of the command line.
    """

    def __init__(
        self,
        *,
        solution_dim: int,
        behavior_shape: Sequence[int],
        cells: int = _DEFAULT.cells,
        latent_dim: int = _DEFAULT.model.latent_dim,
        seed: int = 0,
        low: float | Sequence[float] = -1.0,
        high: float | Sequence[float] = 1.0,
        bounded: bool = False,
        iso: float = _DEFAULT.search.iso,
        line: float = _DEFAULT.search.line,
        tournament: int = _DEFAULT.search.tournament,
        batch_size: int = _DEFAULT.search.batch_size,
        iterations: int = _DEFAULT.search.iterations,
        update_every: int = _DEFAULT.update_every,
        epochs: int = _DEFAULT.epochs,
        cooperate: float = _DEFAULT.cooperate,
        reserve: int | None = _DEFAULT.reserve,
        bootstrap: int | np.ndarray | None = None,
        pretrained: str | Path | None = None,
        networks: NetworksName = _DEFAULT.model.networks,
        units: Units = _DEFAULT.model.units,
        blur: float | None = _DEFAULT.model.blur,
        encoder: Module | None = None,
        decoder: Module | None = None,
    ):
        settings = {name: inputs.plain(value) for name, value in locals().items() if name not in _NOT_SAVED}
        shape = tuple(int(size) for size in behavior_shape)
        inputs.positive(solution_dim=solution_dim, cells=cells, batch_size=batch_size, iterations=iterations)
        inputs.channels_last(shape)
        own = _own_networks(encoder, decoder)
        random, data = inputs.bootstrap(bootstrap, shape, default=0 if pretrained else _DEFAULT.search.bootstrap)

        self._settings = settings | {"behavior_shape": shape, "bootstrap": random, "own_modules": own is not None}
        record = VQElitesSettings(
            search=Search(iterations, batch_size, random, iso=iso, line=line, tournament=tournament),
            model=Model(networks, index(latent_dim), blur=blur, units=units),
            cells=index(cells),
            update_every=update_every,
            epochs=epochs,
            cooperate=cooperate,
            reserve=reserve,
        )
        problem = _Problem(SolutionSpace(solution_dim, low, high, bounded=bounded), shape)
        self._pending = Pending()
        self._pixels: frozenset[str] = frozenset()  # kinds of image that were told
        self._warned: set[str] = set()
        self._teller = Teller(build_vq_elites(problem, record, own), seed)
        if pretrained is not None:
            saved = VQElites.load(pretrained, encoder=encoder, decoder=decoder)
            self._teller.adopt(saved._teller.state.descriptor, f"the model saved in {pretrained}")
            self._pixels = saved._pixels
        if data is not None:
            self._pixels = self._kinds("bootstrap", bootstrap)
            self._teller.pretrain(data)

    @overload
    def ask(self, count: int) -> np.ndarray: ...
    @overload
    def ask(self, count: int, *, ids: Literal[True]) -> tuple[np.ndarray, np.ndarray]: ...

    def ask(self, count: int, *, ids: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """`count` solutions to try, (count, solution_dim); with `ids=True` their ids first, to be told in any order."""
        inputs.positive(count=count)
        if not ids:
            self._pending.check_nothing_open()
        names, solutions = self._teller.ask(int(count))
        self._pending.add(names, solutions, by_order=not ids)
        return (names, solutions.copy()) if ids else solutions.copy()

    def tell(self, fitness: Any, behavior: Any, *, truth: Any = None, ids: Any = None) -> Told:
        """What the solutions of the last `ask` did, in its order; or those with the given ids.

        `truth`, a hand-coded descriptor of what really happened, is optional: it is kept with the elites for metrics
        and never used otherwise. Nothing changes if an argument is wrong.
        """
        names = self._pending.answered(ids)
        columns, self._pixels = self._checked(len(names), fitness, behavior, truth)
        told = self._teller.tell(Rows(self._pending.take(names), *columns))
        for sentence in self._complaints(told, len(names)):
            warnings.warn(sentence, RuntimeWarning, stacklevel=2)
        return told

    @property
    def archive(self) -> ArchiveFrame:
        """The elites now."""
        return ArchiveFrame.of(self._teller.qd.archive.elites(self._teller.state.archive))

    @property
    def codebook(self) -> np.ndarray:
        """The centres of the cells in the learned descriptor space, (cells, latent_dim)."""
        return np.asarray(self._teller.state.archive.cells)

    @property
    def evaluations(self) -> int:
        """How many evaluations were told."""
        return self._teller.told

    @property
    def rejected(self) -> int:
        """How many of them held a non-finite number and were kept out."""
        return self._teller.rejected

    @property
    def chosen(self) -> Chosen | None:
        """How the model sees behavior: the units and the blur it chose; None until it is trained."""
        return chosen(self._teller.qd.descriptor, self._teller.state.descriptor)

    def describe(self, behavior: Any) -> np.ndarray:
        """Where behavior (n, *behavior_shape) belongs in the learned space, (n, latent_dim)."""
        rows = inputs.behaviors("behavior", behavior, self._teller.qd.sizes.behavior)
        self._kinds("behavior", behavior)
        nothing = jnp.zeros((len(rows), 0))
        return np.asarray(
            self._teller.qd.descriptor.describe(self._teller.state.descriptor, jnp.asarray(rows), nothing)
        )

    def save(self, folder: str | Path) -> None:
        """Write everything needed to go on later; a saved run that is there already is replaced in one step."""
        waiting = self._pending.solutions
        host = self._teller.host() | {
            "pending_ids": np.array(list(waiting), np.int64),
            "pending_solutions": np.array(list(waiting.values()), np.float32).reshape(
                len(waiting), self._teller.qd.space.dim
            ),
            "open_ids": self._pending.open_ids,
            "pixels": np.array(sorted(self._pixels), np.str_),
        }
        settings = self._settings | {"truth_dim": self._teller.qd.sizes.truth}
        saving.save(Path(folder), settings, self._teller.state, host)

    @classmethod
    def load(cls, folder: str | Path, *, encoder: Module | None = None, decoder: Module | None = None) -> "VQElites":
        """A saved optimizer, ready to go on; own modules must be given again."""
        folder = Path(folder)
        settings = saving.load_settings(folder)
        if settings.pop("own_modules") and (encoder is None or decoder is None):
            raise ValueError(f"{folder} was saved with own modules: load(folder, encoder=..., decoder=...).")
        truth = settings.pop("truth_dim")
        loaded = cls(**settings, encoder=encoder, decoder=decoder)
        host = saving.load_host(folder)
        solutions = dict(zip(host["pending_ids"].tolist(), host["pending_solutions"], strict=True))
        loaded._pending = Pending(solutions, host["open_ids"])
        loaded._pixels = frozenset(host["pixels"].tolist())
        loaded._teller.expect_truth(truth)
        loaded._teller.restore(checkpoint.restore(folder / "state", loaded._teller.state), host)
        return loaded

    def _checked(
        self, count: int, fitness: Any, behavior: Any, truth: Any
    ) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], frozenset[str]]:
        """The told arrays as float32, and the kinds of image told so far; or an error before anything has changed."""
        sizes = self._teller.qd.sizes
        rows = inputs.behaviors("behavior", behavior, sizes.behavior, count)
        kinds = self._kinds("behavior", behavior)
        fitness = inputs.shaped("fitness", fitness, (count,))
        if truth is None:
            if sizes.truth:
                raise ValueError(
                    f"truth was told before, so it must be told always: an array ({count}, {sizes.truth})."
                )
            return (fitness, rows, np.zeros((count, 0), np.float32)), kinds
        truth = inputs.numbers("truth", truth)
        width = truth.shape[-1] if self.evaluations == 0 and truth.ndim == 2 else sizes.truth
        truth = inputs.shaped("truth", truth, (count, width))
        if width != sizes.truth:
            self._teller.expect_truth(width)
        return (fitness, rows, truth), kinds

    def _kinds(self, name: str, behavior: Any) -> frozenset[str]:
        """The kinds of image told up to these, or an error if they do not go together."""
        images = len(self._teller.qd.sizes.behavior) > 2
        return inputs.pixel_kinds(name, behavior, self._pixels) if images else self._pixels

    def _complaints(self, told: Told, count: int) -> Iterator[str]:
        """What is wrong with the evaluations told, and with the map: each kind of illness once."""
        if told.rejected:
            yield f"{told.rejected} of {count} evaluations hold NaN or infinity and were kept out of the archive."
        found = diagnoses(
            evaluations=self.evaluations,
            behaviors=told.behaviors,
            codes_used=told.codes_used,
            saturated=told.saturated,
            restarted=told.restarted > 0,
            latent=self._teller.qd.descriptor.dim,
            cells=len(self.codebook),
        )
        for kind, sentence in found.items():
            if kind not in self._warned:
                self._warned.add(kind)
                yield sentence


# Arguments that settings.json does not hold: they are arrays, modules, or used once.
_NOT_SAVED = ("self", "bootstrap", "pretrained", "encoder", "decoder", "behavior_shape")


def _own_networks(encoder: Module | None, decoder: Module | None) -> tuple[AbstractLayer, AbstractLayer] | None:
    if encoder is None and decoder is None:
        return None
    if encoder is None or decoder is None:
        raise ValueError("Own modules come as a pair: give both encoder and decoder, or neither.")
    return per_sample(encoder), per_sample(decoder)
