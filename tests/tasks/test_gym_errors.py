"""What is wrong with an environment, a policy or what is asked of them is said in a sentence that helps."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra gym: pip install 'vqelites[gym]'")

from gymnasium import spaces  # noqa: E402
from probes import BOX, GO, Probe, evaluate, probe, solutions  # noqa: E402

from vqelites import GymTask  # noqa: E402
from vqelites.evaluation import Failure, Kind, PoolEvaluator, Simulator, evaluation_seeds  # noqa: E402
from vqelites.tasks import registry  # noqa: E402
from vqelites.tasks.gym import environments  # noqa: E402


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gym:LunarLandr-v3", "Did you mean LunarLander-v3"),
        ("gym:LunarLander-v2", "use `LunarLander-v3` instead"),
        ("gym:HalfCheetah-v3", "moved to the gymnasium-robotics project.*Did you mean HalfCheetah-v5"),
        ("gym:Lunar Lander", "Malformed environment ID"),
        ("gym:no_such_package:Thing-v0", "No module named 'no_such_package'"),
        ("gym:", "LunarLander-v3, say"),
        ("gymm:CartPole-v1", "Did you mean gym:LunarLander-v3"),
        ("gym:CartPole-v1,step=9", "NAME=VALUE with policy, hidden.*got 'step=9'.*Did you mean steps"),
        ("gym:CartPole-v1,steps=0", "steps must be a whole number of at least 1"),
        ("gym:CartPole-v1,behavior=fame", "Did you mean 'frame'"),
        ("gym:CartPole-v1,normalise=3", "normalise is true or false"),
        ("gym:CartPole-v1,hidden=wide", "hidden are the units of each layer"),
    ],
)
def test_names_that_are_wrong_say_how(name, message):
    with pytest.raises(ValueError, match=message):
        registry.make(name)


def test_a_package_of_other_people_is_not_looked_for_in_an_extra_of_ours():
    with pytest.raises(ValueError, match=r"Install no_such_package, or correct its name\.$") as caught:
        GymTask("no_such_package:Thing-v0")
    assert "vqelites[" not in str(caught.value)


def test_a_package_that_is_missing_is_named_by_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "Box2D", None)  # as if it were not installed
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.box2d")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ValueError, match=r'pip install "vqelites\[gym\]"') as caught:
        GymTask("LunarLander-v3")
    assert isinstance(caught.value, ImportError)


def test_without_gymnasium_the_extra_is_named():
    code = "import sys; sys.modules['gymnasium'] = None; import vqelites; vqelites.GymTask"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'pip install "vqelites[gym]"' in done.stderr.splitlines()[-1]


def test_sizes_that_do_not_fit_are_errors():
    with pytest.raises(ValueError, match="4-16-2 has 114 parameters, but a solution was to have 100"):
        GymTask("CartPole-v1", solution_dim=100)
    with pytest.raises(ValueError, match="needs solution_dim"):
        GymTask("CartPole-v1", policy=lambda solution: lambda seen: 0)
    with pytest.raises(ValueError, match="114 parameters, but a solution was to have 3"):
        GymTask("CartPole-v1").simulate(np.zeros(3), 0)
    with pytest.raises(TypeError, match=r"must return a gymnasium\.Env"):
        GymTask(lambda: "an environment")
    with pytest.raises(ValueError, match="No policy here acts in Text"):
        probe(action_space=spaces.Text(5))
    for nothing in (spaces.Dict({"say": spaces.Text(9)}), spaces.Text(9), spaces.Sequence(GO)):
        with pytest.raises(ValueError, match="are no numbers, or vary in how many"):
            probe(nothing)
    with pytest.raises(TypeError, match=r"no option 'stepps'\. Did you mean steps.* It has policy, hidden, "):
        GymTask("CartPole-v1", stepps=4)
    with pytest.raises(TypeError, match=r"no option 'is_slippery'.*itself go through `def make\(render_mode=None\)`"):
        GymTask("FrozenLake-v1", is_slippery=False)


def test_a_wrapper_that_returns_nothing_is_named():
    """It was an AttributeError of None."""
    with pytest.raises(TypeError, match="A wrapper must return the environment it has wrapped, but returned None"):
        GymTask("CartPole-v1", wrapper=lambda env: None)


def test_an_environment_of_the_old_interface_is_told_what_reset_returns():
    """The first number of the observation was taken for the observation."""

    class Old(Probe):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed)[0]

    task = GymTask(lambda: Old(BOX, GO))
    with pytest.raises(TypeError, match=r"reset of .*Old.* must return \(observation, info\), but returned array"):
        task.simulate(solutions(task, 1)[0], 0)


@pytest.mark.parametrize("space", [BOX, spaces.Dict({"seen": BOX})])
def test_observations_that_do_not_fit_their_space_are_told_so(space):
    """The policy's product of matrices failed, and said nothing of the environment."""

    class Odd(Probe):
        def step(self, action):
            one = np.zeros(4, np.float32)
            return one if self.observation_space is BOX else {"seen": one}, 0.0, False, False, {}

    task = GymTask(lambda: Odd(space, GO))
    with pytest.raises(ValueError, match=r"has shape \(4,\), but its observation_space says \(3,\)"):
        task.simulate(solutions(task, 1)[0], 0)


def test_an_environment_already_made_was_called_as_a_function():
    with pytest.raises(TypeError, match=r"its id or by a function that makes it, not as <.*CartPole"):
        GymTask(gymnasium.make("CartPole-v1"))


def test_a_function_that_cannot_make_what_is_drawn_says_how_to_write_it():
    """It was a TypeError of Python's, and came at the end of a run, when an elite was to be replayed."""

    def make():
        return Probe(BOX, GO)

    task = GymTask(make)
    with pytest.raises(ValueError, match=r"write it as `def make\(render_mode=None\)`"):
        task.render(solutions(task, 1)[0], 0)
    with pytest.raises(ValueError, match=r"render_mode='rgb_array' to draw it"):
        GymTask(make, behavior="frame")
    with pytest.raises(ValueError, match="called without arguments"):
        GymTask(lambda size: Probe(BOX, GO))


def test_what_cannot_be_drawn_without_a_display_says_what_to_set(monkeypatch):
    """It was a traceback through MuJoCo, whose last line was about another error."""
    mujoco = pytest.importorskip("mujoco")
    monkeypatch.setattr(environments, "_blind", [])

    class Hidden(Probe):
        def render(self):
            raise mujoco.FatalError("an OpenGL platform library has not been loaded")

    task = GymTask(lambda render_mode=None: Hidden(BOX, GO, render_mode))
    with pytest.raises(ValueError, match=r"OpenGL platform library .* set MUJOCO_GL=egl and start again"):
        task.render(solutions(task, 1)[0], 0)


def test_a_display_that_is_missing_is_said_each_time():
    """MuJoCo ended the whole process when it was asked for a second picture."""
    pytest.importorskip("mujoco")
    code = """
import numpy as np
from vqelites import GymTask
for name in ("Reacher-v5", "Pusher-v5"):
    task = GymTask(name, steps=2, policy="linear")
    try:
        task.render(np.zeros(task.interface.solution_dim), 0)
    except ValueError as error:
        print(error)
"""
    blind = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "MUJOCO_GL")}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, env=blind)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("set MUJOCO_GL=egl and start again.") == 2


def test_behavior_whose_shape_changes_fails_where_it_does():
    task = GymTask("CartPole-v1", behavior=lambda episode: episode.actions)
    first = evaluate(task)[0]
    like = Simulator(task.simulate).like(first)
    found = like.evaluate(solutions(task, 6), evaluation_seeds(0, range(6)))
    failed = [one for one in found if isinstance(one, Failure)]
    assert failed
    assert "behavior must have shape" in failed[0].reason


@pytest.mark.parametrize("vector", [1, 3])
def test_an_environment_that_raises_costs_one_evaluation(vector):
    class Fragile(Probe):
        def step(self, action):
            if action == 1:
                raise RuntimeError("it broke")
            return super().step(action)

    outcomes = evaluate(GymTask(lambda: Fragile(BOX, GO), vector=vector), 12)
    broken = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    assert 0 < len(broken) < 12
    assert "RuntimeError: it broke" in broken[0].reason


@pytest.mark.parametrize(
    ("kind", "fault"), [(Kind.TIMED_OUT, lambda: time.sleep(99)), (Kind.DIED, lambda: os._exit(3))]
)
def test_an_environment_that_hangs_or_ends_its_worker_costs_one_evaluation(kind, fault):
    class Treacherous(Probe):
        def step(self, action):
            if action == 1:
                fault()
            return super().step(action)

    def policy(solution):
        return lambda observation: int(solution[0] > 0)

    task = GymTask(lambda: Treacherous(BOX, GO), policy=policy, solution_dim=1)
    fails = solutions(task, 4)[:, 0] > 0
    assert fails.tolist() == [True, False, False, False]
    outcomes = evaluate(task, 4, PoolEvaluator, workers=1, timeout=1)
    assert [isinstance(outcome, Failure) for outcome in outcomes] == fails.tolist()
    assert outcomes[0].kind is kind
