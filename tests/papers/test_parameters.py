"""Parameters of the papers' indexes: what cannot be one is refused before anything is built."""

from __future__ import annotations

import numpy as np
import pytest

from vedette.indexes import grid_file
from vedette.indexes.cluster_join import join_clusters
from vedette.indexes.grid_file import MLGF
from vedette.indexes.names import INDEXES
from vedette.operators.border.differences import DiffRMQ
from vedette.papers.border.containment_grid import CEI
from vedette.papers.constructs.construct_bit_vectors import LCIBV
from vedette.papers.constructs.construct_intervals import LCI, SCI
from vedette.papers.constructs.construct_rectangles import VCR

RANGE = np.array([[1]], np.int32), np.array([[3]], np.int32), np.array([0], np.int32), [9]


@pytest.mark.parametrize("index", [SCI, LCI, LCIBV])
@pytest.mark.parametrize("name", ["longest", "n_places"])
def test_a_length_and_a_number_of_places_are_one_or_more(index, name):
    for wrong in (0, -1):
        with pytest.raises(ValueError, match=f"{name} must be 1 or more, or None to be chosen; got {wrong}"):
            index.build(*RANGE, **{name: wrong})


def test_sizes_of_rectangles_segments_and_data_clusters_are_one_or_more():
    first, last, ids, cells = RANGE
    box = np.vstack([first, first]), np.vstack([last, last]), ids, cells * 2

    with pytest.raises(ValueError, match="longest must be 1 or more"):
        VCR.build(*box, longest=0)
    with pytest.raises(ValueError, match="n_places must be 1 or more"):
        VCR.build(*box, n_places=(4, 0))
    with pytest.raises(ValueError, match="segment_cells must be 1 or more"):
        CEI.build(*RANGE, segment_cells=-5)
    with pytest.raises(ValueError, match="n_dc must be 1 or more"):
        MLGF.build(*RANGE).match_batch(np.array([[2]], np.int32), n_dc=0)


def test_differences_are_of_ids_from_the_first_on():
    first, last, _, cells = RANGE
    with pytest.raises(ValueError, match="ids must be 0 or more here; got -1"):
        DiffRMQ.build(INDEXES["IS-list"], first, last, np.array([-1], np.int32), cells)
    differences = DiffRMQ(INDEXES["IS-list"].build(first, last, np.array([5], np.int32), cells), 5, 1)

    with pytest.raises(ValueError, match="ids must be 5 or more here; got 2"):
        differences.insert(first, last, np.array([2], np.int32))


def test_a_data_cluster_has_no_more_rows_than_fit_ranks_of_16_bits():
    with pytest.raises(ValueError, match=r"n_dc must be at most 65535, as ranks of rows have 16 bits; got 65536"):
        MLGF.build(*RANGE).match_batch(np.array([[2]], np.int32), n_dc=65_536)


def test_a_batch_smaller_than_a_data_cluster_takes_the_memory_of_its_rows(monkeypatch):
    sizes = []

    def join(clusters, *rest):
        sizes.append(clusters.n_dc)
        return join_clusters(clusters, *rest)

    monkeypatch.setattr(grid_file, "join_clusters", join)
    found = MLGF.build(*RANGE).match_batch(np.array([[2, 5]], np.int32), n_dc=65_535)

    assert (found.starts.tolist(), found.positions.tolist()) == ([0, 1, 1], [0])
    assert set(sizes) == {2}
