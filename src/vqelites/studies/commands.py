"""The commands `vqelites study`, `vqelites report` and `vqelites explore`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional, arg

from vqelites.experiments.config import PresetName
from vqelites.runs.config import Evaluating
from vqelites.runs.files import needs
from vqelites.runs.signals import interrupts
from vqelites.studies import catalogue
from vqelites.studies.catalogue import StudyName
from vqelites.studies.execute import run_study
from vqelites.studies.explored import sources
from vqelites.studies.progress import StudyDisplay
from vqelites.studies.spread import Nodes
from vqelites.studies.study import Study
from vqelites.words import counted

Folders = Annotated[tuple[Path, ...], arg(metavar="FOLDER...", help_behavior_hint="(required)")]


@dataclass
class StudyCommand:
    """Compare algorithms on tasks over many seeds, or run a study of the paper. The same command continues it."""

    tasks: Positional[Annotated[tuple[str, ...], arg(metavar="TASK...")]] = ()
    """names of tasks; with --study they replace those of the study"""
    study: StudyName | None = None
    """a study of the paper instead of tasks and algorithms"""
    algorithms: Annotated[tuple[str, ...], arg(metavar="ALGORITHM...")] = catalogue.COMPARED
    """what to compare; `vqelites algorithms` lists them"""
    seeds: Annotated[int | None, arg(metavar="N")] = None
    """runs of each; None: as many as in the paper (10, minigrid 5), 3 with --preset quick"""
    preset: PresetName = "paper"
    """paper: full size; quick: minutes on two cores; literal: the paper without any departure"""
    iterations: Annotated[int | None, arg(metavar="N")] = None
    """length of every run instead of the preset's"""
    out: Annotated[Path | None, arg(metavar="FOLDER")] = None
    """folder of the study; None: studies/NAME-PRESET"""
    together: Annotated[int | None, arg(metavar="N")] = None
    """seeds computed by one program; None: as many as fit into memory"""
    task_file: Annotated[Path | None, arg(metavar="FILE.py")] = None
    """file with a task of your own"""
    workers: Annotated[int | None, arg(metavar="N")] = None
    """processes that evaluate the solutions of simulators in Python; None: this one"""
    timeout: Annotated[float | None, arg(metavar="SECONDS")] = None
    """after which an evaluation has failed; needs workers"""
    retries: int = 0
    """times a failed evaluation is tried again"""
    cluster: Annotated[str | None, arg(metavar="auto|ADDRESS")] = None
    """Ray cluster whose nodes compute the runs; auto: that of this machine, started if there is none"""
    num_cpus: float = 1.0
    """of a node for each run on the cluster"""
    num_gpus: float = 0.0
    """of a node for each run on the cluster"""
    quiet: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """print nothing but errors"""

    def __call__(self) -> int:
        study = self.chosen()
        root = Path("studies") / f"{study.name}-{self.preset}" if self.out is None else self.out
        needs = self.num_cpus, self.num_gpus
        nodes = None if self.cluster is None else Nodes(self.cluster, *needs, self.task_file)
        with StudyDisplay("quiet" if self.quiet else "auto") as display:
            with interrupts(display.say, display.close) as asked:
                finished = run_study(study, root, together=self.together, nodes=nodes, watch=display, stop=asked)
            display.close()
            if finished:
                display.say(
                    f"Finished: {counted(study.runs, 'run')} in {root}. `vqelites report {root}` tells what they say."
                )
                return 0
            display.say(f"Saved in {root}. The same command continues it.")
            return asked.exit_code

    def chosen(self) -> Study:
        """The study these options describe."""
        if self.together is not None and self.together < 1:
            raise ValueError(f"--together must be at least 1, but got {self.together}.")
        if self.study is None:
            if not self.tasks:
                raise ValueError("Name at least one task, or a study with --study. `vqelites tasks` lists tasks.")
            study = catalogue.comparison(self.tasks, self.algorithms, preset=self.preset, seeds=self.seeds)
        else:
            if self.algorithms != catalogue.COMPARED:
                raise ValueError(f"--study {self.study} has algorithms of its own; leave out --algorithms.")
            study = catalogue.named(self.study, preset=self.preset, tasks=self.tasks, seeds=self.seeds)
        study = study if self.iterations is None else catalogue.with_iterations(study, self.iterations)
        return catalogue.with_evaluating(study, Evaluating(self.workers, self.timeout, self.retries))


@dataclass
class ReportCommand:
    """Write one self-contained HTML file about studies (or single runs), and the same as Markdown with pictures."""

    folders: Positional[Folders]
    """folders of studies or runs"""
    out: Annotated[Path | None, arg(metavar="FILE.html")] = None
    """where to write it; None: report.html in the first folder"""
    mixed_versions: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """compare runs of different versions of vqelites"""
    task_file: Annotated[Path | None, arg(metavar="FILE.py")] = None
    """file with a task of your own"""

    def __call__(self) -> int:
        from vqelites.studies.report import write_report  # not at the top: `vqelites run` need not wait for figures

        path = write_report(*self.folders, out=self.out, mixed_versions=self.mixed_versions)
        print(f"{path} is the report; {path.with_suffix('.md').name} and its pictures are beside it.")
        return 0


@dataclass
class ExploreCommand:
    """Look at runs and studies in the browser, finished or still running: a page on this machine, until Ctrl-C."""

    folders: Positional[Folders]
    """folders of runs or studies, or a folder of runs; nothing else is read"""
    port: int = 0
    """where the page is; 0: any free port"""
    address: str = "127.0.0.1"
    """of this machine; any other opens the page to a network, for those who have the token it prints"""
    task_file: Annotated[Path | None, arg(metavar="FILE.py")] = None
    """file with a task of your own, for replays"""

    def __call__(self) -> int:
        found = sources(self.folders)
        with needs("explore"):
            from vqelites.explore.server import serve

        def announce(url: str) -> None:
            print(f"Open {url} (Ctrl-C ends it)", flush=True)

        serve(found, address=self.address, port=self.port, ready=announce)
        return 0
