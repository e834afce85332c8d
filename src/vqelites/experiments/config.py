"""All hyperparameters, as typed records: what the command line offers and what `config.json` holds."""

from dataclasses import dataclass, field
from typing import Literal

from vqelites.inputs import positive

PresetName = Literal["paper", "quick", "literal"]
NetworksName = Literal["auto", "mobile", "arm", "minigrid"]
Units = Literal["auto", "same", "mixed"]


@dataclass(frozen=True)
class Search:
    """What all algorithms share: numbers of evaluations, and how children are made."""

    iterations: int = 3000
    """iterations of the run; learning rate and cooperation are planned over them"""
    batch_size: int = 128
    """solutions per iteration"""
    bootstrap: int = 1280
    """random solutions evaluated first"""
    fresh_until: float = 0.1
    """random solutions are mixed in until this share of the archive is filled"""
    iso: float = 0.01
    """standard deviation of the noise on every number of a child"""
    line: float = 0.2
    """step along the line to a second parent"""
    tournament: int = 1
    """elites drawn for each parent, which is the fittest of them"""

    def __post_init__(self) -> None:
        positive(iterations=self.iterations, batch_size=self.batch_size, tournament=self.tournament)


@dataclass(frozen=True)
class Model:
    """How behavior is encoded, and how the networks are trained."""

    networks: NetworksName = "auto"
    """auto: networks that fit the behavior's shape; else those that the paper has for this task"""
    latent_dim: int = 2
    """numbers in a learned descriptor"""
    bounded: bool = True
    """keep descriptors in [-1, 1], by tanh"""
    blur: float | None = None
    """width of the blur through which the model sees images, as a share of theirs; None: read from the first data"""
    units: Units = "auto"
    """same: the features of a behavior keep their proportions; mixed: they count equally; auto: by their spreads"""
    loss: Literal["squared", "cross-entropy"] = "squared"
    """loss of the reconstruction; cross-entropy is for images, pixel by pixel"""
    reduction: Literal["mean", "sum"] = "mean"
    """whether the loss of a behavior is the mean over its numbers, or their sum"""
    standardise: bool = True
    """centre and scale behavior before it is encoded"""
    principal: bool = True
    """add the first data's principal components to the encoder's output: a start without folds"""
    dropout: float = 0.0
    """share of features dropped in training, where the networks have such layers"""
    learning_rate: float = 7e-4
    """Adam's learning rate at the start of the run"""
    final_rate: float = 0.02
    """share of the learning rate that is left at the end (cosine; 1: constant)"""
    minibatch: int = 64
    """samples per training step"""
    bootstrap_epochs: int = 100
    """epochs on what the first random solutions did"""

    def __post_init__(self) -> None:
        positive(latent_dim=self.latent_dim, minibatch=self.minibatch)


@dataclass(frozen=True)
class Data:
    """What the model is trained on at each update: rows from each source."""

    window: int | None = None
    """behaviors seen since the last update; None: all of them"""
    archive: int | None = None
    """elites, drawn at random; None: as many as the window has rows"""
    replay: int = 0
    """rows drawn from the memory of past behaviors"""
    memory: int = 0
    """past behaviors kept for replay"""
    distinct: bool = True
    """equal behaviors count once"""
    overlap: float | None = None
    """leave out images whose pixels overlap an earlier one's by more than this (the paper)"""


@dataclass(frozen=True)
class MapElitesSettings:
    """MAP-Elites on the task's hand-coded cells."""

    search: Search = field(default_factory=Search)
    drift: bool = True
    """an equally fit newcomer replaces the elite, so that solutions go on changing at the same score"""


@dataclass(frozen=True)
class CVTMapElitesSettings:
    """MAP-Elites on cells spread evenly over the task's true outcomes."""

    search: Search = field(default_factory=Search)
    cells: int = 1000
    """cells, also the largest size of the archive"""
    drift: bool = True
    """an equally fit newcomer replaces the elite, so that solutions go on changing at the same score"""

    def __post_init__(self) -> None:
        positive(cells=self.cells)


@dataclass(frozen=True)
class VQElitesSettings:
    """A VQ-VAE learns the descriptors, and its codebook is the cells."""

    search: Search = field(default_factory=Search)
    model: Model = field(default_factory=Model)
    data: Data = field(default_factory=Data)
    cells: int = 1000
    """cells: the codes of the codebook, and the largest size of the archive"""
    codebook: Literal["kmeans", "random", "data"] = "kmeans"
    """initial codes: k-means of uniform points, random points, or k-means of the first data"""
    beta: float = 0.25
    """weight of the commitment term"""
    equal_cells: float = 0.25
    """share of the codes that one round may move to where cells are too large (two rounds per update)"""
    even: bool = True
    """rare behaviors are drawn more often in training, as if all were spread evenly"""
    stretch: float = 1.0
    """weight of equal stretch in the loss, divided by the number of latent numbers"""
    update_every: int = 5
    """iterations between model updates"""
    epochs: int = 10
    """epochs per update"""
    cooperate: float = 0.0
    """share of the run, from its start, in which newcomers always take the cell"""
    frozen: float = 0.1
    """share of the run, at its end, without model updates: search fills the cells that the last one has emptied"""
    fringe: bool = True
    """each cell also keeps the rejected solution farthest from its code, to be offered again at each update"""
    drift: bool = True
    """an equally fit newcomer replaces the elite, so that solutions go on changing at the same score"""

    def __post_init__(self) -> None:
        positive(cells=self.cells, update_every=self.update_every, epochs=self.epochs)


@dataclass(frozen=True)
class AuroraSettings:
    """An autoencoder learns the descriptors, and elites keep a minimum distance, the threshold."""

    search: Search = field(default_factory=Search)
    model: Model = field(default_factory=lambda: Model(bounded=False, final_rate=1.0))
    stretch: float = 0.0
    """weight of equal stretch in the loss"""
    distinct: bool = True
    """equal behaviors count once in training"""
    overlap: float | None = None
    """leave out of training images whose pixels overlap an earlier one's by more than this (the paper)"""
    target: int = 1000
    """number of elites that size control aims at, by adapting the threshold"""
    capacity: int = 2500
    """largest size of the archive"""
    threshold: Literal["fixed", "volume", "vat"] = "fixed"
    """fixed: starts at `initial`; volume: set once, from the volume of the first descriptors; vat: set at every
    rebuild, from the largest distance between elites"""
    initial: float = 1e-5
    """first threshold"""
    minimum: float = 1e-5
    """smallest threshold"""
    maximum: float = 1e5
    """largest threshold"""
    k_csc: float = 5e-6
    """gain of size control: each step multiplies the threshold by 1 - k_csc (target - size)"""
    steered_at: Literal["iteration", "rebuild"] = "iteration"
    """when size control acts: after every iteration, or before every rebuild (each 10 iterations and each training)"""
    epochs: int = 100
    """epochs per training, at most"""
    cooperate: float = 0.0
    """share of the run, from its start, in which newcomers always replace their nearest entry"""


Settings = MapElitesSettings | CVTMapElitesSettings | VQElitesSettings | AuroraSettings
