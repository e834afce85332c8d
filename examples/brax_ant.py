"""An ant that goes everywhere, in as many ways as it finds: Brax, compiled with the search.

    pip install "vqelites[brax]"           # on a GPU also "jax[cuda13]"
    python examples/brax_ant.py
    vqelites show runs/ant-omni

The same from the command line: `vqelites run brax:ant-omni --behavior path --iterations 500`.
"""

import vqelites


def main(out="runs/ant-omni", steps=250, hidden=(64, 64), **sizes):
    """About 65,000 episodes: minutes on a GPU; `sizes` are hyperparameters to change."""
    task = vqelites.BraxTask(
        "ant-omni",  # paid for staying upright with little effort; the truth, for metrics only, is where it ends
        behavior="path",  # where the body is at 32 moments, from which the descriptor is learned
        steps=steps,
        hidden=hidden,
    )
    run = vqelites.run(task, out=out, **({"cells": 1000, "iterations": 500} | sizes))
    print(run.archive.stats, run.metrics["coverage"].iloc[-1])
    return run


if __name__ == "__main__":
    main()
