"""Videos as behavior: what a camera saw of a ball in a box, and nothing else.

    python examples/video.py

A video has the shape (T, H, W, C), channels last. 8-bit pictures count as 0 to 1; their background may have any colour.
"""

import numpy as np

import vqelites

FRAMES, SIZE = 8, 24


def shoot(solution, seed):
    """A ball bounces off the walls of a box: the slower the better, and 8 frames of it."""
    place, velocity = np.full(2, 0.5), solution * 0.4
    pixels = (np.arange(SIZE) + 0.5) / SIZE
    video = np.zeros((FRAMES, SIZE, SIZE, 1), np.uint8)
    for frame in video:
        place = place + velocity
        velocity = np.where((place < 0) | (place > 1), -velocity, velocity)
        place = np.where(place < 0, -place, np.where(place > 1, 2 - place, place))
        apart = (pixels[None] - place[0]) ** 2 + (pixels[:, None] - place[1]) ** 2
        frame[..., 0] = 255 * np.clip(2.5 - np.sqrt(apart) * SIZE, 0, 1)
    return -float(np.linalg.norm(solution)), video


def main(out="runs/video", **settings):
    """A run like any other; its figures show frames of some elites, in a row each."""
    options = {"solution_dim": 2, "bounded": True, "cells": 300, "iterations": 60}
    run = vqelites.run(shoot, out=out, **options | settings)
    print(run.archive.stats, run.chosen)
    return run


if __name__ == "__main__":
    main()
