"""`make demo`, small: it ends, and leaves pictures and a report that holds them."""

import sys

import pytest
from matplotlib.image import imread

from vqelites import demo


@pytest.mark.slow
def test_the_demo_leaves_pictures_and_a_self_contained_report(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["demo", "--out", str(tmp_path / "demo"), "--iterations", "20"])
    demo.main()
    assert "report.html" in capsys.readouterr().out
    for name in ("archive.png", "latent.png", "curves.png", "codes.png", "elites.png", "gallery.png"):
        picture = imread(tmp_path / "demo" / "figures" / name)
        assert picture.shape[0] > 300
        assert picture[..., :3].std() > 0.05  # not an empty page
    report = (tmp_path / "demo" / "report.html").read_text()
    assert report.count("data:image/png;base64,") == 6
    assert "://" not in report  # base64 has no colons
    assert "coverage" in report
