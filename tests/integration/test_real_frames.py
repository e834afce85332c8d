"""The promise on environments of Gymnasium: told apart by pictures or observations, nearly as much is found as given
the truth."""

import numpy as np
import pytest

WHY = "needs the extras gym and ribs: pip install 'vqelites[gym,ribs]'"
frames = pytest.importorskip("frames", reason=WHY)
worlds = pytest.importorskip("worlds", reason=WHY)


def random_policies(world, count):
    return np.random.default_rng(0).uniform(-1, 1, (count, worlds.solution_dim(world))).astype(np.float32)


@pytest.mark.long
@pytest.mark.shipped
@pytest.mark.parametrize("name", ["minigrid", "lander-frames"])
def test_a_short_run_holds_half_of_what_it_visited(name):
    """The model cannot have learned much yet, but a map that collapses holds one elite."""
    case, seen = frames.CASES[name], []
    with worlds.pool(case.world, case.sensor) as evaluate:

        def watch(solutions):
            seen.append(evaluate(solutions))
            return seen[-1]

        held = frames.vq_elites(case, seed=0, evaluations=frames.FEWEST, evaluate=watch)
    visited = frames.count(case, *(np.concatenate([getattr(o, part) for o in seen]) for part in ("fitness", "truth")))
    print(f"\nvisited {visited}\nheld {held}")
    for what in case.targets:
        assert visited[what] > 20
        assert held[what] >= 0.5 * visited[what], what


@pytest.mark.soak
@pytest.mark.shipped
@pytest.mark.parametrize("name", frames.USUAL)
def test_as_much_is_found_as_given_the_truth(name):
    seeds, case = (0, 1, 2), frames.CASES[name]
    peers = frames.PeerResults(None).of(name, seeds, case.evaluations)
    ours = frames.learned(name, seeds, case.evaluations)
    for what, target in case.targets.items():
        assert frames.share(ours, peers, what) >= target, what


@pytest.mark.parametrize(
    ("world", "sensor"),
    [("minigrid", "frame"), *(pytest.param("lander", by, marks=pytest.mark.slow) for by in ("frame", "observations"))],
)
def test_a_policy_does_the_same_every_time_and_whatever_looks_on(world, sensor):
    policies = random_policies(world, 16)
    with worlds.pool(world, sensor) as evaluate, worlds.pool(world, "nothing") as unseen:
        once, again, other = evaluate(policies), evaluate(policies[::-1]), unseen(policies)
    assert once.behavior.shape == (16, *worlds.BEHAVIOR[sensor])
    if sensor == "frame":
        assert 0 <= once.behavior.min() < once.behavior.max() <= 1
    for first, second in zip(once, again, strict=True):
        np.testing.assert_array_equal(first, second[::-1])
    np.testing.assert_array_equal(once.fitness, other.fitness)
    np.testing.assert_array_equal(once.truth, other.truth)
    assert len(np.unique(once.truth, axis=0)) > 3


def test_landings_count_only_on_the_ground_and_inside_the_picture():
    x, grounded = np.array([-1.02, -0.99, -0.01, 0.01, 0.02, 0.99, 1.0]), np.array([0, 1, 1, 1, 1, 0, 0])
    truth = np.stack([x, np.zeros(7), grounded], axis=1)
    counts = frames.count(frames.CASES["lander-observations"], np.array([-9.0, -1, 0, 1, 2, 3, -5]), truth)
    assert counts == {
        "elites": 7,
        "best return": 3,
        "positive return": 3,
        "on the ground": 4,
        "landing bins": 3,
        "x bins": 4,
        "outside": 2,
    }


def test_peer_results_are_computed_once(tmp_path, monkeypatch):
    path, runs = tmp_path / "peers.json", []

    def run(case, seed, evaluations, evaluate):
        runs.append(seed)
        return {"elites": seed}

    monkeypatch.setattr(frames, "map_elites", run)
    frames.PeerResults(path).of("minigrid", (0, 1), 640)
    again = frames.PeerResults(path).of("minigrid", (0, 1, 2), 640)
    assert again == [{"elites": 0}, {"elites": 1}, {"elites": 2}]
    assert runs == [0, 1, 2]
    frames.PeerResults(path).of("minigrid", (0,), 1280)
    assert runs == [0, 1, 2, 0]
