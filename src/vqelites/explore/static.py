"""The page as one file that needs neither a server nor a network."""

import io

import panel as pn
from bokeh.core.templates import FILE
from bokeh.core.validation import silence
from bokeh.core.validation.warnings import EMPTY_LAYOUT
from bokeh.document import Document
from bokeh.models import ImportedStyleSheet, InlineStyleSheet, Model
from bokeh.resources import INLINE
from panel.io.resources import CDN_DIST, DIST_DIR, LOCAL_DIST
from panel.io.state import set_curdoc


def as_html(view: pn.Column) -> io.BytesIO:
    """All of a view with scripts and styles inside; what it can do is left to the browser."""
    silence(EMPTY_LAYOUT, True)
    document, file = Document(), io.StringIO()
    with set_curdoc(document):  # or it would share, and change, the styles of the page that is being looked at
        root = view.get_root(document)
        _bring_in_styles(root)
        document.add_root(root)
        pn.io.save.save(document, file, title="vqelites", resources=INLINE, template=FILE)
    return io.BytesIO(file.getvalue().encode())


def _bring_in_styles(root: Model) -> None:
    """Put Panel's own styles into the models: it would fetch them from the network, inline resources or not."""
    inlined: dict[str, InlineStyleSheet] = {}

    def here(sheet: object) -> object:
        if not isinstance(sheet, ImportedStyleSheet):
            return sheet
        name = sheet.url.removeprefix(CDN_DIST).removeprefix(LOCAL_DIST).partition("?")[0]
        if name not in inlined:
            inlined[name] = InlineStyleSheet(css=(DIST_DIR / name).read_text())
        return inlined[name]

    for model in root.references():
        if getattr(model, "stylesheets", []):
            model.stylesheets = [here(sheet) for sheet in model.stylesheets]
