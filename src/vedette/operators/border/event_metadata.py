"""Metadata of the queries of border events, which may be active or retained."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.operators.query_metadata import Documents
from vedette.queries.set_view import SetView


def metadata_at(queries: NDArray[np.int32], view: SetView) -> Documents:
    """The metadata of queries, given in order by their numbers in events."""
    is_active = queries < view.first_retained
    documents = view.attributes.metadata_at(queries[is_active])
    return documents + view.retained.attributes.metadata_at(queries[~is_active] - view.first_retained)
