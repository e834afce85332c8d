"""The demo: VQ-Elites on the planar arm, with a progress bar, pictures and a report. Run by `make demo`."""

import argparse
import base64
from pathlib import Path

from vqelites.runs.api import run
from vqelites.runs.progress import Display
from vqelites.runs.run import Run

_REPORT = """<!doctype html><meta charset="utf-8"><title>VQ-Elites on the planar arm</title>
<style>body{{font-family:sans-serif;max-width:60em;margin:2em auto;color:#222}}img{{max-width:100%}}
td,th{{padding:.2em 1em;text-align:right}}</style>
<h1>VQ-Elites on the planar arm</h1>
<p>{iterations} iterations, {evaluations} evaluations, seed {seed}, {seconds:.0f} s. The algorithm saw
where the 8 joints of an arm were, as 16 nameless numbers, and a fitness. That diversity means "the tip of the arm is
somewhere else" it was never told; tips are used only to draw and to measure, here.</p>
<table><tr>{names}</tr><tr>{values}</tr></table>
{pictures}
"""


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
    images = (base64.b64encode(picture.read_bytes()).decode() for picture in sorted(done.folder.figures.glob("*.png")))
    return _REPORT.format(
        iterations=done.iteration,
        evaluations=int(final["evaluations"]),
        seed=done.seed,
        seconds=final["seconds"],
        names="".join(f"<th>{name.replace('_', ' ')}</th>" for name in shown.index),
        values="".join(f"<td>{value:.4g}</td>" for value in shown),
        pictures="\n".join(f'<p><img alt="" src="data:image/png;base64,{image}"></p>' for image in images),
    )


if __name__ == "__main__":
    main()
