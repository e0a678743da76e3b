"""What `import vedette` offers."""

from __future__ import annotations

import vedette as vd


def test_dir_shows_public_names_only() -> None:
    assert vd.QuerySet is not None  # which is then a global of the module
    assert dir(vd) == sorted([*vd.__all__, "__version__"])
