"""An encoder and a decoder of your own: any Equinox modules that map one behavior to its latent vector and back.

    python examples/own_encoder.py

Here the behavior is the path of a ball, a time series (20, 2), and the encoder a convolution over time. As with
the automatic networks, its input is centred and scaled by the first data, and the principal components of these are
added to its output.
"""

import equinox as eqx
import jax
import numpy as np

from vqelites import VQElites

MOMENTS = 20


class Encoder(eqx.Module):
    """From (20, 2) to 2 numbers; tanh, which keeps descriptors in [-1, 1], comes after it."""

    over_time: eqx.nn.Conv1d
    last: eqx.nn.Linear

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.over_time = eqx.nn.Conv1d(2, 8, kernel_size=5, stride=2, key=first)
        self.last = eqx.nn.Linear(8 * 8, 2, key=second)

    def __call__(self, series):
        return self.last(jax.nn.gelu(self.over_time(series.T)).reshape(-1))


class Decoder(eqx.Module):
    """From 2 numbers to (20, 2)."""

    layers: eqx.nn.MLP

    def __init__(self, key):
        self.layers = eqx.nn.MLP(2, MOMENTS * 2, width_size=64, depth=2, key=key)

    def __call__(self, latent):
        return self.layers(latent).reshape(MOMENTS, 2)


def throw(solutions):
    """How slow a throw of some angle and speed is (n,), and the path of the ball (n, 20, 2)."""
    angle, speed = np.pi / 4 * (1 + 0.9 * solutions[:, :1]), 6 + 4 * solutions[:, 1:]
    t = np.linspace(0, 1, MOMENTS)
    path = np.stack([np.cos(angle) * speed * t, np.sin(angle) * speed * t - 4.9 * t**2], axis=2)
    return -speed[:, 0], path


def main(rounds=40, **settings):
    """Search with these networks, save, and load: networks of your own must be given again."""
    networks = {"encoder": Encoder(jax.random.key(0)), "decoder": Decoder(jax.random.key(1))}
    options = {"solution_dim": 2, "behavior_shape": (MOMENTS, 2), "bounded": True, "cells": 200, "iterations": rounds}
    qd = VQElites(**options | settings, **networks)
    while qd.iteration < rounds:
        qd.tell(*throw(qd.ask(128)))
    print(qd.archive)
    qd.save("runs/own-encoder")
    return VQElites.load("runs/own-encoder", **networks)


if __name__ == "__main__":
    main()
