"""The CPU that portable kernels are compiled for: code for it runs on every host that has its features.

Numba compiles for the CPU at hand. Such code may not run on another model, so another host does not use it.
"""

from __future__ import annotations

import functools

from llvmlite import binding  # type: ignore[import-untyped]

# By architecture: the name that LLVM has for the CPU, and the features of it that a host may lack.
_PORTABLE = {
    "x86_64": (
        "x86-64-v3",  # Intel since 2013 (Haswell), AMD since 2015
        "avx avx2 bmi bmi2 cx16 f16c fma lzcnt movbe popcnt sahf sse3 sse4.1 sse4.2 ssse3 xsave",
    ),
    "aarch64": ("generic", ""),
}


def portable_cpu() -> tuple[str, list[str]] | None:
    """The name of the CPU, and the features of it that this host lacks; None for an unknown architecture."""
    return _find(binding.get_process_triple().partition("-")[0])


@functools.cache
def _find(architecture: str) -> tuple[str, list[str]] | None:
    if architecture not in _PORTABLE:
        return None
    name, features = _PORTABLE[architecture]
    own = binding.get_host_cpu_features()
    return name, [feature for feature in features.split() if not own.get(feature, False)]
