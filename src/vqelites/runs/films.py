"""An elite at work, in a window or in a file."""

from pathlib import Path
from typing import Any

import numpy as np

from vqelites.runs.files import RunError, explained
from vqelites.tasks import Film

_FORMATS = (".gif", ".mp4")


def film(shown: Any) -> Film:
    """What a simulator's `render` returned, if it is frames."""
    if isinstance(shown, Film):
        return shown
    frames = np.asarray(shown)
    if frames.ndim != 4 or frames.shape[-1] != 3 or frames.dtype != np.uint8 or not len(frames):
        raise RunError(
            "To replay an elite, `render(solution, seed)` must return frames (T, h, w, 3) in 8 bits, or a "
            f"vqelites.tasks.Film; it gave {type(shown).__name__} of {frames.dtype} and shape {frames.shape}."
        )
    return Film(frames)


def check_format(path: Path) -> None:
    """Raise unless a film can be written there; to be asked before it is made."""
    if path.suffix.lower() not in _FORMATS:
        raise RunError(f"A film is a file whose name ends in {' or '.join(_FORMATS)}, but got {path}.")


def save_film(seen: Film, path: Path) -> None:
    """Write a GIF or an MP4."""
    check_format(path)
    with explained(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix.lower() == ".gif":
            _save_gif(seen, path)
        else:
            _save_mp4(seen, path)


def _save_gif(seen: Film, path: Path) -> None:
    """Its clock ticks in hundredths of a second, and two are the least that viewers show: frames are left out."""
    from PIL import Image

    every = max(1, round(seen.rate / 50))
    first, *others = [Image.fromarray(frame) for frame in seen.frames[::every]]
    duration = max(20, round(100 * every / seen.rate) * 10)
    first.save(path, save_all=True, append_images=others, duration=duration, loop=0)


def _save_mp4(seen: Film, path: Path) -> None:
    try:
        import imageio.v3 as imageio
    except ImportError as error:
        raise RunError('MP4 needs imageio and PyAV: pip install "vqelites[gym]". GIF needs neither.') from error
    height, width = (size - size % 2 for size in seen.frames.shape[1:3])  # the codec wants even numbers
    even = seen.frames[:, :height, :width]
    imageio.imwrite(path, even, plugin="pyav", codec="libx264", fps=round(seen.rate), out_pixel_format="yuv420p")


def show_film(seen: Film, title: str) -> None:
    """Play it in a window until that is closed."""
    import matplotlib.pyplot as plt
    from matplotlib.animation import FuncAnimation
    from matplotlib.backends.registry import BackendFilter, backend_registry

    if plt.get_backend().lower() not in backend_registry.list_builtin(BackendFilter.INTERACTIVE):
        raise RunError("There is no display for a window here: write a film with --out FILE.gif or FILE.mp4.")
    figure, axes = plt.subplots(num=title, layout="constrained")
    axes.set_axis_off()
    picture = axes.imshow(seen.frames[0])

    def turn(i: int) -> list[Any]:
        picture.set_data(seen.frames[i])
        return [picture]

    playing = FuncAnimation(figure, turn, len(seen.frames), interval=1000 / seen.rate)
    plt.show()
    del playing  # it plays as long as somebody holds it
