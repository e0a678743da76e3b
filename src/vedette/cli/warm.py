"""`vedette warm`: compile all kernels ahead of time."""

from __future__ import annotations

from typing import Annotated

import typer

from vedette.cli.options import QuietOption


def warm(
    cpu: Annotated[
        str,
        typer.Option(
            "--cpu", metavar="CPU", help="portable: for all hosts of this architecture; native: for this CPU only"
        ),
    ] = "portable",
    quiet: QuietOption = False,
) -> str:
    """Compile all kernels ahead of time, for example when an image is built. Then first answers do not wait for it.

    The kernels are stored in NUMBA_CACHE_DIR if it is set, otherwise next to the package if that folder is writable,
    otherwise in your cache. Other accounts can read them. What is already there is not compiled again.
    """
    from vedette.warm.kernels import Progress, warm_kernels

    def tell(done: Progress) -> None:
        if not quiet:
            print(
                f"{done.workload:<22}{done.compiled:>4} compiled{done.loaded:>5} found{done.seconds:>7.1f} s",
                flush=True,
            )

    made = warm_kernels(cpu, tell)
    return f"{made.n_files} kernels in {made.folder}, {made.n_compiled} of them compiled now for {made.cpu}"
