"""What `import vedette` and `from vedette import spark` offer."""

from __future__ import annotations

import importlib
from types import ModuleType

import vedette as vd
from vedette import spark as vs


def test_dir_shows_public_names_only() -> None:
    assert vd.QuerySet is not None  # which is then a global of the module
    assert dir(vd) == sorted([*vd.__all__, "__version__"])


def test_a_transform_is_no_module_in_whatever_order_modules_are_imported() -> None:
    for name in vs.__all__:
        home = "reported" if name == "RemoveReported" else name
        module = importlib.import_module(f"vedette.spark.{home}")
        assert getattr(vs, name) is getattr(module, name)
        assert not isinstance(getattr(vs, name), ModuleType)
    assert dir(vs) == sorted(vs.__all__)
