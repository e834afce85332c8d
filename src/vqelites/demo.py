"""The demo: VQ-Elites on the planar arm, with a progress bar, pictures and a report. Run by `make demo`."""

import argparse
import base64
from pathlib import Path

from vqelites.runs.api import run
from vqelites.runs.progress import Display
from vqelites.runs.run import Run

_REPORT = """<!doctype html><meta charset="utf-8"><title>VQ-Elites on the planar arm</title>
<style>body{{font-family:sans-serif;max-width:60em;margin:2em auto;color:#222}}img{{max-width:100%}}
th{{text-align:left;font-weight:normal;padding-right:2em}}td{{text-align:right}}</style>
<h1>VQ-Elites on the planar arm</h1>
<p>{iterations} iterations, {evaluations} evaluations, seed {seed}, {seconds:.0f} s. The algorithm saw where the
8 joints of the arm were, as 16 numbers without names, and a fitness. It was never told that two solutions differ if
the tip of the arm is somewhere else: where tips are is used only for metrics and pictures.</p>
{pictures}
<h2>Metrics at the end</h2>
<table>{rows}</table>
"""
_PICTURES = {
    "latent": "The learned map: every elite at its descriptor, with the cells of the codebook",
    "gallery": "What 24 elites spread over the map do: x and y of each joint",
    "archive": "The tips of all elites, which the algorithm never saw",
    "elites": "Some elites as arms",
    "curves": "Metrics over the iterations",
    "codes": "What some codes stand for, and how that changes",
}


def main() -> None:
    """Run the demo from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the run, its pictures and report")
    parser.add_argument("--iterations", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with Display() as display:
        done = run(
            "planar-arm",
            preset="quick",
            iterations=options.iterations,
            seed=options.seed,
            out=options.out,
            overwrite=True,
            observe=display,
        )
    (options.out / "report.html").write_text(report(done))
    display.say(f"Pictures are in {options.out}/figures, and with the numbers in {options.out}/report.html")


def report(done: Run) -> str:
    """One page that holds everything, pictures included."""
    final = done.metrics.ffill().iloc[-1]
    shown = final.drop(["iteration", "evaluations", "seconds"])
    return _REPORT.format(
        iterations=done.iteration,
        evaluations=int(final["evaluations"]),
        seed=done.seed,
        seconds=final["seconds"],
        pictures="\n".join(_picture(done, name, title) for name, title in _PICTURES.items()),
        rows="".join(
            f"<tr><th>{str(name).replace('_', ' ')}</th><td>{value:.4g}</td></tr>" for name, value in shown.items()
        ),
    )


def _picture(done: Run, name: str, title: str) -> str:
    image = base64.b64encode((done.folder.figures / f"{name}.png").read_bytes()).decode()
    return f'<h2>{title}</h2>\n<p><img alt="{title}" src="data:image/png;base64,{image}"></p>'


if __name__ == "__main__":
    main()
