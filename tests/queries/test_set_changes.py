"""The changes of a set, as columns."""

from __future__ import annotations

import numpy as np

from vedette.queries.set_changes import Changes


def test_a_version_without_queries_is_included() -> None:
    changes = Changes.of([(3, 31, [], [("a", "x > 1")]), (4, 41, [], []), (5, 51, ["a"], [])])

    reported = [(each.until, each.removed_ids, each.added_ids) for each in changes.by_version()]

    assert reported == [(3, [], ["a"]), (4, [], []), (5, ["a"], [])]
    assert len(changes) == 3
    assert changes.marks.tolist() == [31, 41, 51]


def test_joins_bring_windows_and_bands_bring_ends() -> None:
    joins = Changes.of(
        [(1, 1, [], [("a", "left.x = right.x", {"rows": 5}), ("b", "left.x > right.x", {"within": "1 s"})])]
    )
    bands = Changes.of([(1, 1, [], [(7, -1.0, np.inf)]), (2, 2, [7], [(7, 0.0, 2.0)])])

    assert (joins.texts, joins.windows) == (
        ["left.x = right.x", "left.x > right.x"],
        [{"rows": 5}, {"within": "1 s"}],
    )
    assert [(each.lows.tolist(), each.highs.tolist()) for each in bands.by_version()] == [  # type: ignore[union-attr]
        ([-1.0], [np.inf]),
        ([0.0], [2.0]),
    ]


def test_no_change_has_no_version() -> None:
    assert Changes.of([]).until is None
    assert list(Changes.of([]).by_version()) == []
