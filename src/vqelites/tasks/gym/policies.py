"""Policies: from a solution and observations to actions, for several environments at once."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

Act = Callable[[np.ndarray], Sequence[Any]]  # observations (n, ...) -> n actions
_SEEN = 10.0  # spreads from the mean beyond which a normalised observation says nothing more


class Network:
    """A fully connected network, tanh between its layers; solutions (n, s) are the weights of n of them."""

    def __init__(self, shape: tuple[int, ...], hidden: tuple[int, ...], space: spaces.Space[Any]):
        self.decode = Decode(space)
        self.sizes = (math.prod(shape), *hidden, self.decode.width)
        self.dim = sum((inputs + 1) * outputs for inputs, outputs in itertools.pairwise(self.sizes))

    def check(self, dim: int) -> None:
        """Raise unless a solution has as many numbers."""
        if dim != self.dim:
            sizes = "-".join(map(str, self.sizes))
            raise ValueError(f"The policy {sizes} has {self.dim} parameters, but a solution was to have {dim}.")

    def __call__(self, solutions: np.ndarray) -> Act:
        """How these solutions act, each on a row of the observations."""
        self.check(solutions.shape[1])
        layers, rest = [], solutions.astype(float)
        for inputs, outputs in itertools.pairwise(self.sizes):
            weight, bias, rest = np.split(rest, [inputs * outputs, (inputs + 1) * outputs], axis=1)
            layers.append((weight.reshape(-1, inputs, outputs), bias))

        def act(observations: np.ndarray) -> Sequence[Any]:
            x = observations.reshape(len(observations), -1)
            for weight, bias in layers[:-1]:
                x = np.tanh(np.einsum("ni,nio->no", x, weight) + bias)
            weight, bias = layers[-1]
            return self.decode(np.einsum("ni,nio->no", x, weight) + bias)

        return act


class Decode:
    """From numbers (n, width) to n actions: the largest of a choice, tanh between the limits of a continuous one."""

    def __init__(self, space: spaces.Space[Any]):
        self.space = space
        if isinstance(space, spaces.Discrete):
            self.width = int(space.n)
        elif isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1:
            self.width = int(space.nvec.sum())
        elif isinstance(space, spaces.MultiBinary | spaces.Box):
            self.width = math.prod(space.shape)
            if isinstance(space, spaces.Box):
                self.limited = np.isfinite(space.low) & np.isfinite(space.high)
                self.low = np.where(self.limited, space.low, 0).astype(float)
                self.range = np.where(self.limited, space.high, 0).astype(float) - self.low
        else:
            raise ValueError(f"No policy here acts in {space}: pass a function of your own, or wrap the environment.")

    def __call__(self, numbers: np.ndarray) -> Sequence[Any]:
        space = self.space
        if isinstance(space, spaces.Discrete):
            return [int(choice + space.start) for choice in numbers.argmax(axis=1)]
        if isinstance(space, spaces.MultiDiscrete):
            parts = np.split(numbers, np.cumsum(space.nvec)[:-1], axis=1)
            return list(np.stack([part.argmax(axis=1) for part in parts], axis=1) + space.start)
        shaped = numbers.reshape(-1, *(space.shape or ()))
        if isinstance(space, spaces.MultiBinary):
            return list((shaped > 0).astype(space.dtype))
        assert isinstance(space, spaces.Box)
        between = self.low + (np.tanh(shaped) + 1) / 2 * self.range
        return list(np.where(self.limited, between, shaped).clip(space.low, space.high).astype(space.dtype))


class Own:
    """A user's `policy(solution)`, which returns a function from an observation to an action."""

    def __init__(self, policy: Callable[[np.ndarray], Callable[[np.ndarray], Any]], dim: int):
        self.policy, self.dim = policy, dim

    def __call__(self, solutions: np.ndarray) -> Act:
        """How these solutions act."""
        acts = [self.policy(solution) for solution in solutions]
        if not all(map(callable, acts)):
            raise TypeError(
                f"A policy takes a solution and returns a function of an observation, but gave {acts[0]!r}."
            )
        return lambda observations: [act(seen) for act, seen in zip(acts, observations, strict=True)]


class Scaled:
    """A policy that is given observations less their mean, divided by their spread."""

    def __init__(self, policy: Any, mean: np.ndarray, spread: np.ndarray):
        self.policy, self.dim = policy, policy.dim
        self.mean, self.spread = mean, np.where(spread > 0, spread, 1)

    def __call__(self, solutions: np.ndarray) -> Act:
        """How these solutions act."""
        act = self.policy(solutions)
        return lambda seen: act(((seen - self.mean) / self.spread).clip(-_SEEN, _SEEN))
