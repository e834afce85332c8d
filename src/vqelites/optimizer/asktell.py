"""Quality-Diversity for users who never see JAX: ask for solutions, tell what they did."""

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

import numpy as np

from vqelites import inputs
from vqelites.descriptors import Chosen, chosen
from vqelites.drive import Rows
from vqelites.experiments import presets
from vqelites.experiments.build import Module, own_networks
from vqelites.experiments.config import Settings
from vqelites.frames import ArchiveFrame
from vqelites.optimizer.blueprint import Blueprint
from vqelites.optimizer.now import Now
from vqelites.optimizer.observe import Observe, reminding, silent
from vqelites.optimizer.told import Told
from vqelites.runs.describe import describe
from vqelites.runs.kept_programs import keep_programs
from vqelites.tasks import Interface

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class AskTell:
    """An algorithm around any simulator: NumPy in, NumPy out.

    The first `bootstrap` solutions are random and train the model; from then on it is trained further after every
    `update_every * batch_size` evaluations, whatever the size of the batches told. `bootstrap` may also be behavior
    you already have, (n, *behavior_shape); `pretrained` is the folder of a saved run whose model to start from; `start`
    are solutions (n, solution_dim) to try first. `iterations * batch_size` evaluations are the planned run: over it the
    learning rate decays, and `cooperate` is a share of it; it may go on beyond.

    Random solutions are uniform between `low` and `high`; `bounded` keeps children there too. `truth_low`, `truth_high`
    and `bins` say what a truth that is told means: algorithms with hand-coded descriptors need them, and metrics use
    them. `settings` is a record of all hyperparameters (`vqelites.experiments.config`), and `values` are single ones by
    name (`vqelites run arm --algorithm NAME --help` lists them), with the defaults of the command line. `observe=print`
    prints a line before and after a training, and one for every ten seconds that it takes.
    """

    only: ClassVar[str | None] = None  # the algorithm of a class that stands for one

    def __init__(
        self,
        algorithm: str = "vq-elites",
        *,
        solution_dim: int,
        behavior_shape: int | Sequence[int],
        low: float | Sequence[float] = -1.0,
        high: float | Sequence[float] = 1.0,
        bounded: bool = False,
        truth_low: Sequence[float] = (),
        truth_high: Sequence[float] = (),
        bins: Sequence[int] | None = None,
        seed: int = 0,
        bootstrap: int | np.ndarray | None = None,
        start: np.ndarray | None = None,
        pretrained: str | Path | None = None,
        encoder: Module | None = None,
        decoder: Module | None = None,
        settings: Settings | None = None,
        observe: Observe = silent,
        **values: Any,
    ):
        if self.only not in (None, algorithm):
            raise ValueError(f"{type(self).__name__} is {self.only} alone: use AskTell({algorithm!r}, ...).")
        keep_programs()
        shape = inputs.shape(behavior_shape)
        inputs.positive(solution_dim=solution_dim)
        inputs.channels_last(shape)
        wanted = presets.wanted("", algorithm, record=settings, values=values)
        random, data = inputs.bootstrap(bootstrap, shape, default=0 if pretrained else wanted.search.bootstrap)
        limits = tuple(np.atleast_1d(truth_low)), tuple(np.atleast_1d(truth_high))
        blueprint = Blueprint(
            algorithm=algorithm,
            settings=presets.with_values(wanted, {"bootstrap": random}),
            interface=Interface(
                int(solution_dim),
                inputs.limit("low", low),
                inputs.limit("high", high),
                bounded,
                shape,
                None,
                *limits,
                None if bins is None else tuple(np.atleast_1d(bins)),
            ),
            seed=inputs.seed(seed),
            start=None if start is None else inputs.rows("start", start, (solution_dim,)),
            own=own_networks(encoder, decoder),
        )
        now = Now.of(blueprint)
        if pretrained is not None:
            now = now.with_model_of(Path(pretrained))
        self._begin(now, observe)
        if data is not None:
            observe(f"Training on {len(data)} behaviors; compiling takes a moment.")
            now = replace(now, pixels=self._kinds("bootstrap", bootstrap))
            now, trained = now.pretrained(data, reminding(observe, "Training"))
            self._now = now
            for sentence in self._illnesses(trained):
                warnings.warn(sentence, RuntimeWarning, stacklevel=2)

    def _begin(self, now: Now, observe: Observe) -> None:
        self._now, self._observe = now, observe
        self._warned: set[str] = set()

    @overload
    def ask(self, count: int) -> np.ndarray: ...
    @overload
    def ask(self, count: int, *, ids: Literal[True]) -> tuple[np.ndarray, np.ndarray]: ...

    def ask(self, count: int, *, ids: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """`count` solutions to try, (count, solution_dim); with `ids=True` their ids first, to be told in any order.

        A noisy simulator that draws from `vqelites.evaluation.evaluation_seeds(seed, ids)` does what `vqelites.run`
        would, so that a saved folder can be resumed and verified exactly.
        """
        inputs.positive(count=count)
        now = self._now
        if not ids:
            now.pending.check_nothing_open()
        self._now, names, solutions = now.asked(int(count), by_order=not ids)
        return (names, solutions.copy()) if ids else solutions.copy()

    def tell(self, fitness: Any, behavior: Any, *, truth: Any = None, ids: Any = None) -> Told:
        """Tell what the solutions of the last `ask` did, in its order, or those with the given ids.

        `truth`, a hand-coded descriptor of what really happened, is kept with the elites for metrics; only algorithms
        with hand-coded descriptors use it. Nothing changes if an argument is wrong, and nothing is lost by Ctrl-C: the
        same can be told again.
        """
        names = self._now.pending.answered(ids)
        return self._tell(self._now, names, self._now.pending.of(names), fitness, behavior, truth)

    def add(self, solutions: Any, fitness: Any, behavior: Any, *, truth: Any = None) -> Told:
        """Add solutions (n, solution_dim) that were not asked for, with what they did; they count as evaluations."""
        space = self._now.host.qd.space
        rows = inputs.rows("solutions", solutions, (space.dim,))
        if space.bounded and ((rows < np.asarray(space.low)) | (rows > np.asarray(space.high))).any():
            raise ValueError(
                "solutions lie outside of low and high, though bounded=True keeps all solutions between them."
            )
        at, names = self._now.host.claim(self._now.at, len(rows))
        return self._tell(replace(self._now, at=at), names, rows, fitness, behavior, truth)

    @property
    def archive(self) -> ArchiveFrame:
        """The elites now."""
        return ArchiveFrame.of(self._now.host.qd.archive.elites(self._now.state.archive))

    @property
    def codebook(self) -> np.ndarray:
        """The centres of the cells in the space of descriptors, (cells, latent_dim)."""
        cells = getattr(self._now.state.archive, "cells", None)
        if cells is None:
            raise AttributeError(f"{self._now.blueprint.algorithm} has an archive without cells.")
        return np.asarray(cells)

    @property
    def evaluations(self) -> int:
        """How many evaluations were told."""
        return self._now.host.evaluations(self._now.at)

    @property
    def iteration(self) -> int:
        """How many iterations, of `batch_size` evaluations each, are complete."""
        return self._now.at.iteration

    @property
    def rejected(self) -> int:
        """How many evaluations held a non-finite number and were kept out."""
        return self._now.rejected

    @property
    def chosen(self) -> Chosen | None:
        """How the model sees behavior: the units and the blur it chose; None until it is trained."""
        return chosen(self._now.host.qd.descriptor, self._now.state.descriptor)

    @property
    def history(self) -> "pd.DataFrame":
        """A row for the bootstrap and for every completed iteration, with the columns of metrics.csv."""
        from vqelites.runs.metrics_file import HEADER, lines, parsed

        return parsed((HEADER + lines(self._now.history.columns())).encode())

    def plot(self) -> "Figure":
        """The learned space with its elites, coloured by their fitness, and its cells where there are any."""
        from vqelites import plots

        archive, codes = self.archive, getattr(self._now.state.archive, "cells", None)
        title = f"{self._now.blueprint.algorithm}: {len(archive)} elites after {self.evaluations} evaluations"
        return plots.latent_cells(
            archive.descriptors, archive.fitness, None if codes is None else np.asarray(codes), title
        )

    def describe(self, behavior: Any) -> np.ndarray:
        """Where behavior (n, *behavior_shape) belongs in the learned space, (n, latent_dim); of one, (latent_dim,)."""
        self._kinds("behavior", behavior)
        return describe(self._now.host.qd, self._now.state, behavior)

    def lookup(self, behavior: Any) -> np.ndarray:
        """For each behavior (n, *behavior_shape), or for one, the row of `archive` nearest in the learned space."""
        return self.archive.nearest(self.describe(behavior))

    def save(self, folder: str | Path) -> None:
        """Write everything needed to go on later, as a run folder; an earlier one is kept until this is done."""
        from vqelites.optimizer.saved import save

        save(self._now, Path(folder))

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        encoder: Module | None = None,
        decoder: Module | None = None,
        observe: Observe = silent,
    ) -> "AskTell":
        """A saved one, or any run folder, ready to go on; own modules must be given again."""
        from vqelites.optimizer.saved import load

        keep_programs()
        now = load(Path(folder), own_networks(encoder, decoder))
        if cls.only not in (None, now.blueprint.algorithm):
            raise ValueError(f"{folder} holds a run of {now.blueprint.algorithm}: use AskTell.load.")
        loaded = cls.__new__(cls)
        loaded._begin(now, observe)
        return loaded

    def __repr__(self) -> str:
        now = self._now
        known, size = now.blueprint.interface, int(now.host.qd.archive.elites(now.state.archive).size)
        phase = "in the bootstrap, " if now.at.bootstrapping else ""
        return (
            f"<{now.blueprint.algorithm}: {size} elites after {self.evaluations} evaluations, {phase}solutions of "
            f"{known.solution_dim} numbers, behavior {known.behavior_shape}>"
        )

    def _tell(
        self, now: Now, names: np.ndarray, solutions: np.ndarray, fitness: Any, behavior: Any, truth: Any
    ) -> Told:
        """Check, take in, and only then change anything."""
        began = time.monotonic()
        now, columns = self._checked(now, len(names), fitness, behavior, truth)
        training = now.trains_within(len(names))
        if training:
            self._observe(f"{training}; the first time, compiling takes a moment.")
        bad = ~inputs.finite_rows(*columns)
        self._now, told = now.told(Rows(names, solutions, *columns), bad, began, reminding(self._observe, training))
        if training and told.trainings:
            self._observe(
                f"Trained in {time.monotonic() - began:.1f} s: loss {told.loss:.3g}, {told.lost} elites lost."
            )
        if bad.any():
            text = f"{np.count_nonzero(bad)} of {len(bad)} evaluations hold NaN or infinity"
            warnings.warn(f"{text} and were kept out of the archive.", RuntimeWarning, stacklevel=3)
        for sentence in self._illnesses(told) if training else ():
            warnings.warn(sentence, RuntimeWarning, stacklevel=3)
        return told

    def _checked(
        self, now: Now, count: int, fitness: Any, behavior: Any, truth: Any
    ) -> tuple[Now, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """The told arrays as they are held, or an error before anything has changed; the first ones say how that is."""
        rows = inputs.behaviors("behavior", behavior, now.host.sizes.behavior, count)
        now = replace(now, pixels=self._kinds("behavior", behavior))
        fitness = inputs.shaped("fitness", fitness, (count,))
        if not self.evaluations:
            now = now.shown(rows, 0 if truth is None else inputs.width("truth", truth, count))
        held = inputs.held("behavior", rows, now.host.sizes.eight_bit)
        return now, (fitness, held, inputs.truth(truth, count, now.host.sizes.truth))

    def _kinds(self, name: str, behavior: Any) -> frozenset[str]:
        """The kinds of image told up to these, or an error if they do not go together."""
        images = len(self._now.host.sizes.behavior) > 2
        return inputs.pixel_kinds(name, behavior, self._now.pixels) if images else self._now.pixels

    def _illnesses(self, told: Told) -> Iterator[str]:
        """What is wrong with the map after a training: each kind of illness once."""
        for kind, sentence in self._now.illnesses(told).items():
            if kind not in self._warned:
                self._warned.add(kind)
                yield sentence
