"""`run.explore()` as the last value of a cell, in a real Jupyter kernel."""

import re

import pytest
from folders import write_run

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Jupyter's own event loop
def test_a_notebook_shows_the_page(tmp_path):
    write_run(tmp_path / "run", "image")
    code = 'import vqelites\nvqelites.Run.load("run").explore()'
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    outputs = notebook.cells[0].outputs
    assert not [output for output in outputs if output.output_type in ("error", "stream")]
    pages = [output.data.get("text/html", "") for output in outputs if "data" in output]
    assert any("60 elites after iteration 20" in page for page in pages)
    assert not re.findall(r'src="https?://', "".join(pages))
