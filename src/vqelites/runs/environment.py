"""What a run was computed with: results agree bit for bit only where all of it is the same."""

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import jax

_PACKAGES = ("vqelites", "jax", "jaxlib", "equinox", "optax", "orbax-checkpoint", "numpy")


def environment() -> dict[str, Any]:
    """Versions, the device, and the compiler's flags."""
    device = jax.devices()[0]
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: importlib.metadata.version(name) for name in _PACKAGES},
        "device": {"platform": device.platform, "kind": device.device_kind, "count": jax.device_count()},
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "xla_flags": os.environ.get("XLA_FLAGS", "").strip(),
    }


def memory_bytes() -> int:
    """The memory of all devices, or the machine's where they have none of their own."""
    devices = [(device.memory_stats() or {}).get("bytes_limit", 0) for device in jax.local_devices()]
    return sum(devices) or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What changed, one phrase each."""
    changed = []
    for name, value in now.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            changed += [f"{name} {part}" for part in differences(old, value)]
        elif old != value:
            changed.append(f"{name} {old!r} -> {value!r}")
    return changed


def _processor() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
