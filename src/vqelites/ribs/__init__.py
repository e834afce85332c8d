"""Learned descriptors for pyribs (extra `ribs`): an archive for its schedulers, emitters and pictures."""

try:
    from vqelites.ribs.archive import VQArchive as VQArchive
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "ribs":
        raise
    raise ModuleNotFoundError('vqelites.ribs needs pyribs: pip install "vqelites[ribs]".', name="ribs") from error
