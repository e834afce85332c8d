"""A repertoire of landings: LunarLander-v3 of Gymnasium, told apart by what the lander observes.

    pip install "vqelites[gym]"
    python examples/gymnasium_lander.py
    vqelites replay runs/lander --out landing.gif

The same from the command line: `vqelites run gym:LunarLander-v3 --behavior observations --steps 400 --workers 2`.
"""

import vqelites


def main(out="runs/lander", **sizes):
    """About 10,000 evaluations; `sizes` are hyperparameters to change."""
    task = vqelites.GymTask(
        "LunarLander-v3",
        policy="mlp",  # 8 observations, 16 hidden units, 4 actions: a solution has 212 numbers
        behavior="observations",  # 32 of them, evenly spread over the episode
        steps=400,  # hovering longer only burns fuel
    )
    run = vqelites.run(task, out=out, workers=2, **({"cells": 500, "iterations": 70} | sizes))
    print(run.archive.stats)
    return run


if __name__ == "__main__":
    main()
