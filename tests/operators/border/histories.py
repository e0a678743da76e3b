"""Random histories of a registry's set, and the active queries at each version, in plain Python."""

from __future__ import annotations

import itertools

import numpy as np

from vedette.queries.set_changes import Changes


def make_history(random, make_query, n_versions=30, n_ids=8, integers=False):
    """Changes one by one, as arguments of `Changes.of`, and by version the active queries: {id: query}.

    A version may change nothing, or any mix; ids come and go again and again.
    """
    told, standing = [], {}
    states = [{}]
    for version in range(1, n_versions + 1):
        removed, added = [], []
        for number in random.permutation(n_ids)[: random.integers(0, 4)].tolist():
            query_id = number if integers else f"q{number}"
            if query_id in standing:
                removed.append(query_id)
                del standing[query_id]
                if random.random() < 0.5:
                    continue
            query = make_query(random)
            added.append((query_id, *query))
            standing[query_id] = query
        told.append((version, int(random.integers(1, 1 << 62)), removed, added))
        states.append(dict(standing))
    return told, states


def cut(random, told, n_cuts=5):
    """The history in a few pieces, each applied at once."""
    cuts = sorted({0, len(told), *random.integers(0, len(told), n_cuts).tolist()})
    return [Changes.of(told[start:end]) for start, end in itertools.pairwise(cuts)]


def standing_at(told, states, version):
    """The active queries at a version as a registry returns them: with their adding versions and the version's mark."""
    added = {query[0]: (at, query) for at, _, _, queries in told[:version] for query in queries}
    lives = sorted((added[query_id] for query_id in states[version]), key=lambda life: life[0])
    changes = Changes.of([(at, 0, [], [query]) for at, query in lives])
    none = np.zeros(0, np.int64)
    return Changes(**{**vars(changes), "versions": none, "marks": none}), told[version - 1][1]
