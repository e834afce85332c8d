"""The arm: kinematics against a robotics library, the simulator against NumPy, and the shipped ground truth."""

import hashlib
import math
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vqelites.tasks import arm as arm_module
from vqelites.tasks import groundtruth
from vqelites.tasks.arm import (
    CONSTRAINED,
    DT,
    GOAL,
    POLICY,
    START,
    STEPS,
    Arm,
    arm,
    arm_constrained,
    draw_poses,
    load_ground_truth,
)
from vqelites.tasks.kinematics import (
    LIMIT,
    SEGMENTS,
    SPEED,
    TOLERANCE,
    chain,
    check_reachable,
    forward,
    inverse,
    solve,
)

KEY = jax.random.key(0)
LIMITS = {"free": np.asarray(LIMIT), "constrained": np.asarray(CONSTRAINED)}


@pytest.fixture(scope="module")
def tasks():
    return {"free": arm(), "constrained": arm_constrained()}


@eqx.filter_jit
def evaluate(task, solutions):
    return task.evaluate(jax.random.split(KEY, len(solutions)), solutions)


def random_solutions(n, seed=0, scale=1.0):
    return scale * jax.random.uniform(jax.random.key(seed), (n, POLICY.size), minval=-1, maxval=1)


def sample(n, limit, goal=GOAL, seed=0):
    high = jnp.asarray(limit, jnp.float32)
    return np.concatenate(list(inverse(jax.random.key(seed), n, jnp.asarray(goal), -high, high)))


def miss(poses, goal=GOAL):
    """Distances of the flange to the goal."""
    return np.linalg.norm(np.asarray(forward(jnp.asarray(poses))) - np.asarray(goal), axis=1)


class TestKinematics:
    @pytest.mark.parametrize(
        ("angles", "position"),
        [
            ([0.0] * 6, [0, 0, 1.306]),
            ([1, math.pi / 3, 0, -math.pi / 3, 0, math.pi / 3], [0.3837, 0.5976, 0.2440]),
        ],
    )
    def test_check_values(self, angles, position):
        np.testing.assert_allclose(forward(jnp.asarray(angles)), position, atol=5e-5)

    def test_agrees_with_pinocchio(self):
        pin = pytest.importorskip("pinocchio")
        model = pin.Model()
        axes = [(0, 0, 1), (0, 1, 0), (0, 0, 1), (0, -1, 0), (0, 0, 1), (0, 1, 0)]
        # Joints in pairs about z and y at shoulder, elbow and wrist.
        heights = [SEGMENTS[0], 0, SEGMENTS[1], 0, SEGMENTS[2], 0]
        joint = 0
        for i, (axis, height) in enumerate(zip(axes, heights, strict=True)):
            offset = pin.SE3(np.eye(3), np.array([0, 0, height]))
            joint = model.addJoint(joint, pin.JointModelRevoluteUnaligned(*map(float, axis)), offset, f"joint{i + 1}")
        data = model.createData()
        angles = np.random.default_rng(0).uniform(-1, 1, (1000, 6)) * LIMIT
        points = np.zeros((1000, 4, 3))
        for row, pose in zip(points, angles, strict=True):
            pin.forwardKinematics(model, data, pose)
            row[:3] = [data.oMi[i].translation for i in (2, 4, 6)]
            row[3] = data.oMi[6].act(np.array([0, 0, SEGMENTS[3]]))
        found = np.asarray(chain(jnp.asarray(angles, jnp.float32)))
        assert np.abs(found[:, 1:] - points).max() < 1e-5
        assert not found[:, 0].any()
        np.testing.assert_array_equal(forward(jnp.asarray(angles, jnp.float32)), found[:, -1])

    @pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
    @pytest.mark.parametrize("goal", [GOAL, (0.2, -0.5, 0.7)])
    def test_inverse_reaches_the_goal_within_the_limits(self, limit, goal):
        if limit[0] < 1:
            goal = (0.3, 0.1, 0.9) if goal != GOAL else goal
        poses = sample(5000, limit, goal)
        assert poses.shape == (5000, 6)
        assert (np.abs(poses) <= limit.astype(np.float32)).all()
        assert miss(poses, goal).max() <= TOLERANCE

    @pytest.mark.long
    def test_inverse_is_deterministic_by_key(self):
        np.testing.assert_array_equal(sample(100, LIMIT), sample(100, LIMIT))
        assert not np.array_equal(sample(100, LIMIT), sample(100, LIMIT, seed=1))

    def test_solve_finds_every_pose_again(self):
        poses = jax.random.uniform(KEY, (1000, 6), minval=-1, maxval=1) * jnp.asarray(LIMIT)[None]
        found = np.asarray(jax.jit(jax.vmap(solve))(poses[:, jnp.array([2, 4, 5])], forward(poses)))
        # Where two solutions meet, rounding may leave none.
        exists = np.isfinite(found).all(axis=-1)
        assert exists.any(axis=1).mean() > 0.995
        assert miss(found[exists], np.repeat(forward(poses), exists.sum(axis=1), axis=0)).max() < TOLERANCE
        gap = np.where(exists, np.abs(found - np.asarray(poses)[:, None]).max(axis=-1), np.inf).min(axis=1)
        assert (gap < 0.01).mean() > 0.995

    @pytest.mark.slow
    def test_inverse_is_spread_evenly(self):
        """Against random poses near the goal, each weighted by how fast the flange moves there (coarea formula)."""

        @jax.jit
        def near(key):
            poses = jax.random.uniform(key, (2**19, 6), minval=-1, maxval=1) * jnp.asarray(LIMIT)[None]
            flange = forward(poses.at[:, 0].set(0))
            poses = poses.at[:, 0].set(-jnp.arctan2(flange[:, 1], flange[:, 0]))  # straight ahead, as the goal is
            out = jnp.hypot(flange[:, 0], flange[:, 1]) - GOAL[0]
            close = (jnp.abs(out) < 0.05) & (jnp.abs(flange[:, 2] - GOAL[2]) < 0.05)
            return poses, close & (jnp.abs(poses[:, 0]) < LIMIT[0])

        kept = [np.asarray(poses)[np.asarray(close)] for poses, close in map(near, jax.random.split(KEY, 8))]
        reference = np.concatenate(kept)
        jacobian = np.asarray(jax.jit(jax.vmap(jax.jacfwd(forward)))(jnp.asarray(reference)))
        weight = np.sqrt(np.linalg.det(jacobian @ jacobian.swapaxes(1, 2)))
        found = sample(50_000, LIMIT)
        for joint in range(6):
            edges = np.linspace(-LIMIT[joint], LIMIT[joint], 9)
            expected = np.histogram(reference[:, joint], edges, weights=weight)[0] / weight.sum()
            share = np.histogram(found[:, joint], edges)[0] / len(found)
            assert np.abs(share - expected).max() < 0.01, joint

    @pytest.mark.parametrize("goal", [(2.0, 0.0, 0.0), (0.0, 0.0, -0.7), (0.0, 0.0, 0.5)])
    def test_unreachable_goal(self, goal):
        high = jnp.asarray(LIMIT)
        with pytest.raises(ValueError, match=r"No pose within the joint limits.*0\.946 m"):
            check_reachable(jnp.asarray(goal), -high, high)
        with pytest.raises(ValueError, match="No pose"):
            next(inverse(KEY, 1, jnp.asarray(goal), -high, high))

    def test_goal_out_of_reach_of_the_limits_only(self):
        high = jnp.asarray(CONSTRAINED)
        far = jnp.asarray((0.85, 0.0, 0.36))
        check_reachable(far, -jnp.asarray(LIMIT), jnp.asarray(LIMIT))
        with pytest.raises(ValueError, match="widen low"):
            check_reachable(far, -high, high)


def slow_final_angles(task, solution):
    """The rollout in plain NumPy, double precision, weights read by hand."""
    low, high = np.asarray(task.low, float), np.asarray(task.high, float)
    vector, layers = np.asarray(solution, float), []
    for inputs, outputs in ((6, 32), (32, 32), (32, 6)):
        weight, bias, vector = np.split(vector, [inputs * outputs, (inputs + 1) * outputs])
        layers.append((weight.reshape(inputs, outputs), bias))
    angles = np.asarray(task.start, float)
    for _ in range(STEPS):
        x = angles
        for weight, bias in layers[:-1]:
            x = np.exp(-((x @ weight + bias) ** 2))
        velocity = np.clip(x @ layers[-1][0] + layers[-1][1], -np.asarray(SPEED), SPEED)
        angles = np.clip(angles + DT * velocity, low, high)
    return angles


class TestSimulator:
    def test_sizes(self, tasks):
        for task in tasks.values():
            assert task.space.dim == POLICY.size == 1478
            assert not task.space.bounded
            assert task.behavior_shape == (6,)
            assert task.truth_high == LIMIT
            assert task.truth_low == tuple(-x for x in LIMIT)
            assert task.cells.shape == (1500, 6)
            assert task.bins.centres.shape == (400, 6)
            assert task.bins.reachable.all()

    @pytest.mark.parametrize("name", LIMITS)
    def test_agrees_with_numpy(self, tasks, name):
        task = tasks[name]
        solutions = random_solutions(16, scale=0.3)
        result = evaluate(task, solutions)
        expected = np.stack([slow_final_angles(task, solution) for solution in solutions])
        np.testing.assert_allclose(result.truth, expected, atol=1e-3)
        np.testing.assert_array_equal(result.behavior, result.truth)
        np.testing.assert_allclose(result.fitness, np.exp(-miss(result.truth)), rtol=1e-6)

    def test_side_by_side_as_on_cpus_is_the_same_as_one_by_one(self, tasks):
        """13 are no whole number of blocks."""
        task, solutions = tasks["constrained"], random_solutions(13, scale=0.3)
        together = jax.jit(lambda rows: task._side_by_side(rows))(solutions)
        alone = jax.jit(lambda rows: jax.vmap(task._rollout)(rows))(solutions)
        np.testing.assert_allclose(together, alone, atol=1e-5)

    def test_start(self, tasks):
        np.testing.assert_allclose(tasks["free"].start, START, rtol=1e-6)
        np.testing.assert_allclose(tasks["constrained"].start, [0, 0.5, *START[2:]], rtol=1e-6)
        for task in tasks.values():  # a policy of zeros stands still
            np.testing.assert_array_equal(evaluate(task, jnp.zeros((1, 1478))).truth[0], task.start)

    @given(seed=st.integers(0, 2**31), scale=st.floats(0.0, 1e6))
    def test_limits_are_never_exceeded(self, tasks, seed, scale):
        for task in tasks.values():
            result = evaluate(task, random_solutions(8, seed, scale))
            assert ((result.truth >= task.low[None]) & (result.truth <= task.high[None])).all()
            moved = np.abs(result.truth - task.start[None])
            assert (moved <= np.asarray(SPEED) * DT * STEPS + 1e-4).all()
            assert ((result.fitness > 0) & (result.fitness <= 1)).all()

    def test_one_solution_does_not_depend_on_the_others_or_on_the_key(self, tasks):
        solutions = random_solutions(8)
        whole = evaluate(tasks["free"], solutions)
        again = eqx.filter_jit(tasks["free"].evaluate)(jax.random.key(1), solutions)
        assert eqx.tree_equal(whole, again)
        turned = evaluate(tasks["free"], solutions[::-1])
        np.testing.assert_array_equal(turned.truth[::-1], whole.truth)

    def test_every_bin_can_be_reached_in_time(self, tasks):
        for task in tasks.values():
            far = np.abs(np.asarray(task.bins.centres) - np.asarray(task.start))
            assert (far <= np.asarray(SPEED) * DT * STEPS).all()

    @pytest.mark.parametrize("name", LIMITS)
    def test_random_policies_spread_over_the_bins(self, tasks, name):
        task = tasks[name]
        solutions = jax.vmap(task.space.random)(jax.random.split(KEY, 1280))
        truth = evaluate(task, solutions).truth
        gaps = jnp.linalg.norm(truth[:, None] - task.bins.centres[None], axis=-1)
        assert len(np.unique(gaps.argmin(axis=1))) > 250

    def test_draws(self, tasks):
        figure = plt.figure()
        axes = figure.add_subplot(projection="3d")
        tasks["free"].draw(axes, random_solutions(3))
        assert len(axes.lines) == 5  # three arms, the start, the goal
        with pytest.raises(ValueError, match="3-D axes"):
            draw_poses(figure.add_subplot(), jnp.zeros((1, 6)))
        plt.close(figure)


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"low": LIMIT, "high": [-x for x in LIMIT]}, "Joint 1 needs limits.*Swap"),
            ({"low": [*(-x for x in LIMIT[:5]), 2.094]}, "Joint 6 needs limits"),
            ({"high": [4.0, *LIMIT[1:]]}, "Joint 1 needs limits.*high=4.0"),
            ({"low": [-2.0] * 7}, "low is 6 finite numbers"),
            ({"start": [0.0] * 5}, "start is 6 finite numbers"),
            ({"goal": [0.5, math.nan, 0.5]}, "goal is 3 finite numbers"),
            ({"start": [0, 0, 0, 0, 0, 2.2]}, "Joint 6 starts within its limits.*got 2.2"),
            ({"goal": [5.0, 0.0, 0.0]}, "No pose within the joint limits"),
        ],
    )
    def test_is_named(self, change, message):
        good = {"low": [-x for x in LIMIT], "high": LIMIT, "start": START, "goal": GOAL}
        with pytest.raises(ValueError, match=message):
            Arm(**{**good, **change}, cells=np.zeros((1, 6)), bins=np.zeros((1, 6)))


class TestGroundTruth:
    def test_poses_reach_the_goal_within_the_limits(self):
        truth = load_ground_truth()
        assert {name: poses.shape for name, poses in truth.items()} == {
            "cells": (1500, 6),
            "bins": (400, 6),
            "constrained_bins": (400, 6),
        }
        for name, poses in truth.items():
            limit = CONSTRAINED if name == "constrained_bins" else LIMIT
            assert poses.dtype == np.float32
            assert (np.abs(poses) <= np.asarray(limit, np.float32)).all()
            assert miss(poses).max() <= TOLERANCE
            assert len(np.unique(poses, axis=0)) == len(poses)

    def test_a_changed_file_is_refused(self, monkeypatch):
        monkeypatch.setattr(arm_module, "GROUND_TRUTH_SHA256", hashlib.sha256(b"other").hexdigest())
        with pytest.raises(RuntimeError, match=r"should have SHA-256 .*reinstall"):
            load_ground_truth()

    def test_a_missing_folder_is_named_before_any_work(self, monkeypatch, tmp_path, capsys):
        monkeypatch.setattr(sys, "argv", ["groundtruth", "--out", str(tmp_path / "none" / "a.npz")])
        with pytest.raises(SystemExit):
            groundtruth.main()
        assert "existing folder" in capsys.readouterr().err

    @pytest.mark.long
    def test_a_small_one_can_be_generated(self, monkeypatch, tmp_path, capsys):
        monkeypatch.setattr(groundtruth, "POSES", 2000)
        monkeypatch.setattr(groundtruth, "CELLS", 30)
        monkeypatch.setattr(groundtruth, "BINS", 10)
        files = [tmp_path / "a.npz", tmp_path / "b.npz"]
        for file in files:
            monkeypatch.setattr(sys, "argv", ["groundtruth", "--out", str(file)])
            groundtruth.main()
        assert files[0].read_bytes() == files[1].read_bytes()
        assert hashlib.sha256(files[0].read_bytes()).hexdigest() in capsys.readouterr().out.replace("\n", "")
        with np.load(files[0]) as found:
            assert found["cells"].shape == (30, 6)
            for name in ("bins", "constrained_bins"):
                assert found[name].shape == (10, 6)
                assert miss(found[name]).max() <= TOLERANCE
