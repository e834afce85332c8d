"""VQArchive inside of pyribs: every scheduler, emitter and ranker that takes archives of others, and its pictures."""

import pickle

import matplotlib as mpl
import numpy as np
import pytest

pytest.importorskip("ribs", reason="needs the extra ribs: pip install 'vqelites[ribs]'")

from matplotlib import pyplot
from ribs import emitters, visualize
from ribs.emitters import (
    EvolutionStrategyEmitter,
    GaussianEmitter,
    GeneticAlgorithmEmitter,
    GradientArborescenceEmitter,
    GradientOperatorEmitter,
    IsoLineEmitter,
    rankers,
)
from ribs.schedulers import BanditScheduler, Scheduler
from small import JOINTS, add, arm, small

mpl.use("Agg")
X0 = np.zeros(JOINTS)
pytestmark = pytest.mark.filterwarnings("ignore:The model has learned next to nothing")  # in 3 epochs
BATCH = 20
EMITTERS = {
    "gaussian": lambda archive: GaussianEmitter(archive, sigma=0.3, x0=X0, batch_size=BATCH, seed=1),
    "iso line": lambda archive: IsoLineEmitter(archive, x0=X0, batch_size=BATCH, seed=1),
    "genetic": lambda archive: GeneticAlgorithmEmitter(
        archive, operator="isoline", operator_kwargs={"iso_sigma": 0.1, "line_sigma": 0.2}, x0=X0, batch_size=BATCH
    ),
}
for _ranker in ("imp", "2imp", "rd", "2rd", "obj", "2obj"):
    EMITTERS[f"strategy, {_ranker}"] = lambda archive, ranker=_ranker: EvolutionStrategyEmitter(
        archive, x0=X0, sigma0=0.5, ranker=ranker, batch_size=BATCH, seed=1
    )
for _es in ("sep_cma_es", "openai_es"):
    EMITTERS[f"strategy, {_es}"] = lambda archive, es=_es: EvolutionStrategyEmitter(
        archive, x0=X0, sigma0=0.5, ranker="2imp", es=es, batch_size=BATCH, seed=1
    )
QUICK = ("gaussian",)  # the search that is pickled, below, is an evolution strategy
GRADIENT = {
    "arborescence": lambda archive: GradientArborescenceEmitter(
        archive, x0=X0, sigma0=0.5, lr=0.1, batch_size=BATCH, seed=1
    ),
    "operator": lambda archive: GradientOperatorEmitter(archive, x0=X0, sigma=0.3, sigma_g=0.3, batch_size=BATCH),
}


def tell(scheduler, archive, solutions):
    """Evaluate and tell."""
    objective, behavior = arm(solutions)
    scheduler.tell(objective, archive.encode(behavior), behavior=behavior)


def search(scheduler, archive, rounds=8):
    """A search with two trainings; how many elites it found."""
    for i in range(rounds):
        tell(scheduler, archive, scheduler.ask())
        if i in (3, 6):
            archive.train(i / rounds)
    return len(archive)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in EMITTERS]
)
def test_every_emitter_finds_elites(name):
    archive = small()
    assert search(Scheduler(archive, [EMITTERS[name](archive)]), archive) > 10
    assert archive.stats.num_elites == len(archive)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arborescence", "operator"])
def test_emitters_with_gradients_find_elites(name):
    """Gradients of the measures are the user's: here of the map's linear part, found by differences."""
    archive = small()
    scheduler = Scheduler(archive, [GRADIENT[name](archive)])
    for i in range(6):
        solutions = scheduler.ask_dqd()
        objective, behavior = arm(solutions)
        jacobian = np.zeros((len(solutions), 3, JOINTS))
        for k in range(JOINTS):
            nudged, seen = arm(solutions + 1e-2 * np.eye(JOINTS)[k])
            jacobian[:, 0, k] = (nudged - objective) / 1e-2
            jacobian[:, 1:, k] = (archive.encode(seen) - archive.encode(behavior)) / 1e-2
        scheduler.tell_dqd(objective, archive.encode(behavior), jacobian, behavior=behavior)
        tell(scheduler, archive, scheduler.ask())
        if i == 3:
            archive.train()
    assert len(archive) > 10


def test_no_emitter_ranker_or_picture_of_pyribs_is_left_out():
    """Those that a newer pyribs brings are noticed here. Left out is what takes archives of one kind alone."""
    archive = small()
    made = [make(archive) for make in [*EMITTERS.values(), *GRADIENT.values()]]
    grids_alone = {"BayesianOptimizationEmitter"}
    assert {type(emitter).__name__ for emitter in made} == {*emitters.__all__} - {"EmitterBase"} - grids_alone
    novelty_alone = {"NoveltyRanker", "NSLCRanker", "NSLCClassicRanker", "DensityRanker"}  # which `add` does not return
    ranked = {type(emitter._ranker).__name__ for emitter in made if hasattr(emitter, "_ranker")}
    assert ranked == {*rankers.__all__} - {"RankerBase"} - novelty_alone
    others = ("grid_", "proximity_", "sliding_", "qdax_")
    drawn = {name for name in visualize.__all__ if not name.startswith(others)}
    assert drawn == {*DRAWN, "cvt_archive_3d_plot"}


@pytest.mark.slow
def test_an_evolution_strategy_of_small_batches():
    """`lm_ma_es` wants no more solutions than these have numbers."""
    archive = small()
    options = {"x0": X0, "sigma0": 0.5, "ranker": "2imp", "es": "lm_ma_es", "batch_size": JOINTS}
    several = [EvolutionStrategyEmitter(archive, **options, seed=seed) for seed in range(7)]
    assert search(Scheduler(archive, several), archive) > 10


def test_single_additions():
    archive = small()
    scheduler = Scheduler(archive, [EMITTERS["iso line"](archive)], add_mode="single")
    assert search(scheduler, archive) > 10


def never_less(result, archive):
    """Whether one archive has as good an elite wherever the other has one."""
    best = dict(zip(*result.data(["index", "objective"], return_type="tuple"), strict=True))
    others = zip(*archive.data(["index", "objective"], return_type="tuple"), strict=True)
    return all(best[index] >= objective for index, objective in others)


@pytest.mark.parametrize("add_mode", ["batch", pytest.param("single", marks=pytest.mark.slow)])
def test_a_bandit_chooses_among_emitters(add_mode):
    archive = small(learning_rate=0.05, threshold_min=-2.0)
    result = archive.result_archive()
    pool = [EMITTERS[name](archive) for name in ("gaussian", "iso line", "strategy, 2imp")]
    scheduler = BanditScheduler(archive, pool, result, num_active=2, reselect="all", add_mode=add_mode)
    assert search(scheduler, archive) > 10
    assert never_less(result, archive)


def test_cma_mae_with_a_result_archive():
    archive = small(learning_rate=0.05, threshold_min=-2.0)
    result = archive.result_archive()
    emitter = EvolutionStrategyEmitter(archive, x0=X0, sigma0=0.5, ranker="imp", batch_size=BATCH, seed=1)
    search(Scheduler(archive, [emitter], result), archive)
    np.testing.assert_array_equal(result.centroids, archive.centroids)
    assert len(result) >= len(archive)
    assert result.stats.qd_score >= archive.stats.qd_score


@pytest.mark.slow
def test_a_cell_that_cma_mae_has_filled_is_never_empty_in_its_result_archive():
    """Re-binned apart from each other, the two keep different solutions, and cells of one were empty in the other."""
    archive = small(learning_rate=0.05, threshold_min=-2.0)
    result = archive.result_archive()
    emitter = GaussianEmitter(archive, sigma=0.3, x0=X0, batch_size=BATCH, seed=1)
    scheduler = Scheduler(archive, [emitter], result)
    for i in range(12):
        tell(scheduler, archive, scheduler.ask())
        if i % 2:
            archive.train(i / 12)
        assert never_less(result, archive)


@pytest.mark.slow
def test_a_pickled_search_goes_on_as_it_would_have():
    archive = small()
    scheduler = Scheduler(archive, [EMITTERS["strategy, 2imp"](archive)])
    search(scheduler, archive)
    other = pickle.loads(pickle.dumps(scheduler))
    assert other.archive is other.emitters[0].archive
    for each in (scheduler, other):
        search(each, each.archive)
    np.testing.assert_array_equal(archive.data("solution"), other.archive.data("solution"))


@pytest.fixture(scope="module")
def filled():
    """A trained archive."""
    made = small()
    add(made)
    made.train()
    return made


DRAWN = ("cvt_archive_heatmap", "parallel_axes_plot", "archive_histogram", "archive_ecdf", "aggregate_cdf")


@pytest.mark.parametrize("name", DRAWN)
def test_pyribs_draws_it(filled, name):
    getattr(visualize, name)([filled, filled] if name == "aggregate_cdf" else filled)
    assert any(axes.has_data() for axes in pyplot.gcf().axes)
    pyplot.close("all")


@pytest.mark.parametrize("latent_dim", [1, 3])
def test_pyribs_draws_spaces_of_one_and_three_numbers(latent_dim):
    archive = small(latent_dim=latent_dim)
    add(archive)
    draw = visualize.cvt_archive_heatmap if latent_dim == 1 else visualize.cvt_archive_3d_plot
    draw(archive)
    assert pyplot.gca().has_data()
    pyplot.close("all")
