"""From run folders to a report: what is loaded, what is refused or left out, and whether the page can be trusted."""

import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import jax.numpy as jnp
import numpy as np
import pytest
from browser import CHROMIUM, opened

import vqelites
from vqelites import cli
from vqelites.runs.files import RunError, write_sealed
from vqelites.runs.run import Run
from vqelites.studies import pictures
from vqelites.studies.document import Bullets, Code, Details, Gallery, Heading, Table, Text
from vqelites.studies.execute import run_study
from vqelites.studies.html import html
from vqelites.studies.load import load_study
from vqelites.studies.markdown import markdown, plain
from vqelites.studies.report import _opening, write_report
from vqelites.studies.report import report as report_on
from vqelites.tasks import PlanarArm, registry
from vqelites.types import Evaluation

EVIL = "<script>fetch('http://example.com/x')</script><img src=http://example.com/y onerror=alert(1)>"


@pytest.fixture(scope="module")
def data(finished):
    return load_study(finished)


@pytest.fixture(scope="module")
def report(finished, tmp_path_factory):
    """Written by the command, with words in the data that would be dangerous as HTML."""
    root = shutil.copytree(finished, tmp_path_factory.mktemp("report") / "a study (1)")
    for file in root.rglob("environment.json"):
        rewrite(file, processor=EVIL)
    rewrite(root / "study.json", question=f"What about {EVIL}?", name="paper")
    with pytest.raises(SystemExit) as ended:
        cli.main(["report", str(root)])
    assert ended.value.code == 0
    return root / "report.html"


def rewrite(file, **changes):
    """A record with other values, properly sealed again."""
    record = json.loads(file.read_text()) | changes
    record.pop("checksum")
    write_sealed(file, record)


def place(root, task="planar-arm", algorithm="vq-elites", seed=1):
    return root / task / algorithm / f"seed-{seed}"


def nearest_bins(run):
    """The bin of every elite's true outcome, -1 where it does not count as reachable."""
    centres = np.asarray(run.task.bins.centres)
    bins = np.array([np.linalg.norm(centres - truth, axis=1).argmin() for truth in run.archive.truth])
    return np.where(np.asarray(run.task.bins.reachable)[bins], bins, -1)


def test_tables_have_every_run_and_the_final_numbers_of_its_folder(finished, data):
    assert len(data.results) == len(data.runs) == 9
    assert data.notes == ()
    assert len(data.curves) == 9 * 61
    for row in data.results.to_dict("records"):
        run = Run.load(place(finished, row["task"], row["algorithm"], row["seed"]))
        assert row["coverage"] == run.metrics["coverage"].iloc[-1]
        assert row["pqd_auc"] == pytest.approx(np.trapezoid(run.metrics["pqd"]) / 60)
        bins = nearest_bins(run)
        best = {b: run.archive.fitness[bins == b].max() for b in set(bins) - {-1}}
        assert row["pqd"] == pytest.approx(sum(best.values()), rel=1e-5)
        assert row["edr"] == pytest.approx(len(best) / len(bins), rel=1e-5)
        # The chance that none of a bin's elites is among those drawn, bin by bin.
        size, drawn = len(bins), int(data.results.loc[data.results["task"] == row["task"], "size"].min())
        missed = [math.comb(size - int((bins == b).sum()), drawn) / math.comb(size, drawn) for b in best]
        assert row["edr_common"] == pytest.approx(sum(1 - chance for chance in missed) / drawn)


def test_coverage_within_five_centimetres_is_of_arms_only(finished, data):
    arms = data.results["task"] == "arm"
    assert data.results.loc[~arms, "coverage_near_goal"].isna().all()
    for row in data.results[arms].to_dict("records"):
        run = Run.load(place(finished, "arm", "map-elites", row["seed"]))
        hit = set(nearest_bins(run)[run.archive.fitness >= np.exp(-0.05)]) - {-1}
        assert row["coverage_near_goal"] == pytest.approx(len(hit) / 400)


def test_the_report_says_who_is_given_the_descriptor_and_who_learns_it(data):
    """Coverage of MAP-Elites, which knows what is measured, stood beside that of VQ-Elites without a word."""
    page = html(list(_opening(data)))
    assert "map-elites is given the true descriptor; vq-elites learns its own from raw behavior." in page
    assert "given" not in html(list(_opening(data.part(algorithm="map-elites"))))


def test_a_missing_and_a_half_finished_run_are_left_out_and_named(copied):
    shutil.rmtree(place(copied, seed=1))
    half = place(copied, algorithm="map-elites", seed=2)
    shutil.rmtree(half / "checkpoints")
    (half / "archive.npz").unlink()
    found = load_study(copied)
    assert len(found.results) == 7
    text = "\n".join(found.notes)
    assert "Left out: vq-elites on planar-arm (quick), seed 1: missing" in text
    assert "Left out: map-elites on planar-arm (quick), seed 2: not finished, saved up to iteration 0 of 60" in text
    page = html(list(_opening(found)))
    assert '<ul class="warning"><li>Left out: vq-elites on planar-arm (quick), seed 1: missing' in page


@pytest.mark.parametrize("file", ["archive.npz", "metrics.csv", "snapshots/000005.npz"])
def test_a_damaged_run_is_left_out_and_named(copied, file):
    """The whole report was refused where a snapshot was damaged."""
    assert (place(copied) / file).exists()
    (place(copied) / file).write_bytes(b"nothing")
    found = load_study(copied)
    assert len(found.results) == 8
    assert "seed 1: damaged" in found.notes[0]
    assert "numbers of seeds differ on planar-arm (comparison, quick): vq-elites 2, map-elites 3" in found.notes[1]


class Void(PlanarArm):
    """No solution has a fitness."""

    def evaluate(self, keys, solutions):
        result = super().evaluate(keys, solutions)
        return Evaluation(result.fitness + jnp.nan, result.behavior, result.truth)


@pytest.mark.slow
def test_a_run_without_any_elite_is_left_out_and_named(finished, tmp_path):
    """The whole report was refused."""
    registry.register("void-arm", "nothing counts")(lambda: Void(behavior="joints"))
    small = {"iterations": 1, "bootstrap": 0, "batch_size": 8, "draw": False}
    run = vqelites.run("void-arm", "map-elites", preset="quick", **small, out=tmp_path / "void")
    assert len(run.archive) == 0
    found = load_study(finished, run.folder.path)
    assert len(found.results) == 9
    assert found.notes == ("Left out: map-elites on void-arm (quick), seed 0: its archive is empty.",)
    with pytest.raises(RunError, match=r"no finished run to report on.*its archive is empty"):
        load_study(run.folder.path)


def test_a_run_of_another_task_in_a_place_of_the_study_is_an_error(copied):
    shutil.rmtree(place(copied, algorithm="map-elites"))
    shutil.copytree(place(copied, "arm", "map-elites"), place(copied, algorithm="map-elites"))
    with pytest.raises(RunError, match=r"holds another run than study\.json says: .*task 'planar-arm' -> 'arm'"):
        load_study(copied)


def test_another_seed_in_a_place_of_the_study_is_an_error(copied):
    shutil.rmtree(place(copied, seed=1))
    shutil.copytree(place(copied, seed=0), place(copied, seed=1))
    with pytest.raises(RunError, match="seed 1 -> 0"):
        load_study(copied)


def test_runs_of_different_versions_are_an_error_unless_accepted_and_then_a_note(copied):
    file = place(copied) / "environment.json"
    packages = json.loads(file.read_text())["packages"]
    rewrite(file, packages=packages | {"vqelites": "9.9.9"})
    with pytest.raises(RunError, match=r"different versions of vqelites.*9\.9\.9: 1 run, such as"):
        load_study(copied)
    assert "9.9.9" in load_study(copied, mixed_versions=True).notes[0]


def test_a_newer_format_is_an_error(copied):
    rewrite(place(copied) / "config.json", format=99)
    with pytest.raises(RunError, match="Use the newer version"):
        load_study(copied)


def test_the_same_run_twice_is_an_error(finished, copied):
    with pytest.raises(RunError, match=r"more than one run of map-elites on arm \(quick\), seed 0"):
        load_study(finished, copied)


@pytest.mark.slow
def test_more_seeds_from_another_folder_are_added_but_other_settings_under_the_same_label_are_an_error(
    finished, study, tmp_path
):
    group = study.groups[1]
    run_study(replace(study, groups=(replace(group, seeds=(7, 8, 9)),)), tmp_path / "same")
    found = load_study(finished, tmp_path / "same")
    assert sorted(key.seed for key in found.runs if key[2:4] == ("planar-arm", "map-elites")) == [0, 1, 2, 7, 8, 9]
    chosen = group.config.settings
    other = replace(group.config, settings=replace(chosen, search=replace(chosen.search, line=0.3)))
    run_study(replace(study, groups=(replace(group, seeds=(10, 11, 12), config=other),)), tmp_path / "other")
    with pytest.raises(RunError, match=r"settings differ: search\.line 0\.2 -> 0\.3\. Report on them apart"):
        load_study(finished, tmp_path / "other")


def test_folders_that_hold_nothing_to_report_are_named(tmp_path, finished):
    with pytest.raises(RunError, match="neither a study nor a run"):
        load_study(tmp_path)
    with pytest.raises(ValueError, match=r"must end in \.html"):
        write_report(finished, out=tmp_path / "report.pdf")


@pytest.mark.slow
def test_a_single_run_can_be_reported_on_without_quartiles_or_claims(finished, tmp_path):
    page = write_report(place(finished), out=tmp_path / "report.html").read_text()
    assert "1 finished run of vq-elites; preset quick." in page
    assert "<p>At the end of the run:</p>" in page  # numbers came after all pictures
    assert re.search(r"<li>coverage: vq-elites 0\.\d+</li>", page)
    assert "At the end of the run." in page
    assert "Every number is computed" in page  # there are no verdicts
    assert "for every seed" not in page
    assert "with the median" not in page
    assert not re.search(r"<td>[\d.]+ \[", page)
    for absent in ("Claims of the paper", "Question", "Differences across tasks", "1 seeds", "1 runs"):
        assert absent not in page


def test_a_single_run_is_loaded_alone(finished):
    found = load_study(place(finished))
    assert found.results[["algorithm", "task", "seed"]].to_numpy().tolist() == [["vq-elites", "planar-arm", 1]]


def test_parts_keep_tables_and_runs_in_step(data):
    part = data.part(task="planar-arm", algorithm="map-elites")
    assert {key.seed for key in part.runs} == set(part.results["seed"]) == set(part.curves["seed"]) == {0, 1, 2}
    assert set(part.curves["task"]) == {"planar-arm"}


def test_dangerous_words_are_shown_and_not_obeyed(report):
    page = report.read_text()
    assert "<script" not in page
    assert "<img src=http" not in page
    assert "&lt;script&gt;fetch(&#x27;http://example.com/x&#x27;)&lt;/script&gt;" in page
    text = report.with_suffix(".md").read_text()
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;" in text


def test_the_page_needs_nothing_else(report):
    page = report.read_text()
    sources = re.findall(r'\b(?:src|href)="([^"]*)"', page)
    assert len([source for source in sources if source.startswith("data:image/png;base64,")]) == 12
    anchors = {source[1:] for source in sources if source.startswith("#")}
    assert anchors <= set(re.findall(r' id="([^"]+)"', page))
    assert all(source.startswith(("data:", "#")) for source in sources)
    assert "url(" not in page
    assert "@import" not in page


def test_every_link_of_the_markdown_leads_to_a_picture(report):
    links = re.findall(r"^!\[.*\]\(([^)]+)\)$", report.with_suffix(".md").read_text(), flags=re.M)
    assert len(links) == 12
    for link in links:
        data = (report.parent / unquote(link)).read_bytes()
        assert data.startswith(b"\x89PNG")
        assert b"<svg" in (report.parent / unquote(link)).with_suffix(".svg").read_bytes()[:3000]


def test_the_report_answers_in_order_and_has_the_numbers_of_the_data(report, data):
    page = report.read_text()
    wanted = ["Question 1:", "Question 6:", "Other tasks", "Differences across tasks", "Does the model converge?"]
    places = [page.rindex(name) for name in [*wanted, "Claims of the paper", "Configuration, versions"]]
    assert places == sorted(places)
    assert not re.search("Question [2-5]:", page)  # of which these runs know nothing
    rows = data.results[(data.results["task"] == "planar-arm") & (data.results["algorithm"] == "map-elites")]
    low, median, high = np.quantile(rows["coverage"], (0.25, 0.5, 0.75))
    assert f"<td>{median:#.3g} [{low:#.3g}, {high:#.3g}]</td>" in page
    assert "With 3 and 3 seeds the smallest reachable p is 0.1" in page
    for metric in ("coverage", "PQD", "EDR", "CDS"):
        assert f"Corrected p of the difference in final {metric}." in page
    assert "What was left out" not in page
    assert page.index("Claims that these runs cannot judge") < page.index("verdict open")
    assert page.count('class="verdict') == page.count('<td class="word"><span')
    assert '<span class="verdict open">not tested</span>' in page


def test_a_comparison_of_ones_own_is_neither_asked_nor_judged_what_the_paper_was(data, tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "archives", lambda *_: iter(()))  # nobody looks at them
    titles = [block.text for block in report_on(data, Gallery(tmp_path)) if isinstance(block, Heading)]
    assert titles[0] == "Quality-Diversity on planar-arm and arm"
    assert titles[1:4] == ["Results", "planar-arm (quick)", "arm (quick)"]
    assert not [title for title in titles if "Question" in title or "Claims" in title]


def test_tests_that_cannot_reach_the_level_are_folded_away(report):
    page = report.read_text()
    told = page.index("no corrected p could be 0.05 or less")
    assert told < page.index("The tests all the same") < page.index("Corrected p of the difference in final coverage.")


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: nothing can open the report")
def test_a_browser_opens_the_report_without_complaint_or_outside_request(report, tmp_path):
    found = opened(report, tmp_path)
    assert found.console == []
    assert found.requests == []
    assert found.dom.count("<figure") == 12
    assert "fetch('http://example.com/x')" not in found.dom.replace("&lt;script&gt;fetch('http://example.com/x')", "")


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: nothing can open the page")
def test_the_browser_would_notice_errors_and_requests(tmp_path):
    page = tmp_path / "bad.html"
    page.write_text('<img src="http://example.com/a.png"><script>console.error("boom"); nope()</script>')
    found = opened(page, tmp_path)
    assert found.requests == ["http://example.com/a.png"]
    assert ["boom" in line for line in found.console] == [True, False]


BLOCKS = [
    Heading(1, "T | <b>"),
    Text("a *b* [c](d) `e`"),
    Bullets(("<i>",), warning=True),
    Table(("x|y", "n"), (("a|b\nc", ("1", "<2>")),), "cap"),
    Details("<s>", (Code("```\n<u>"),)),
]


def test_markup_in_any_block_is_only_text():
    page, text = html(BLOCKS), markdown(BLOCKS, Path())
    for tag in ("<b>", "<i>", "<2>", "<s>", "<u>"):
        assert tag not in page
    assert "&lt;u&gt;" in page
    assert "a \\*b\\* \\[c\\](d) \\`e\\`" in text
    assert [plain(line) for line in ("- a", "1. b", "# c", "2.5 d")] == ["\\- a", "1\\. b", "\\# c", "2.5 d"]
    assert "| a\\|b c | 1<br>&lt;2&gt; |" in text
    assert "````\n```\n<u>\n````" in text  # inside a fence longer than its own nothing is markup
    assert "<s>" not in text
