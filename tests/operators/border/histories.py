"""Random histories of a registry's set, and the active queries at each version, in plain Python."""

from __future__ import annotations

import itertools

import numpy as np

from vedette.queries.set_changes import Changes


def make_history(random, make_query, n_versions=30, n_ids=8, integers=False):
    """Changes one by one, as arguments of `Changes.of`, and by version the active queries: {id: query}.

    A version may change nothing, or any mix; ids come and go again and again.
    """
    reported, active = [], {}
    states = [{}]
    for version in range(1, n_versions + 1):
        removed, added = [], []
        for number in random.permutation(n_ids)[: random.integers(0, 4)].tolist():
            query_id = number if integers else f"q{number}"
            if query_id in active:
                removed.append(query_id)
                del active[query_id]
                if random.random() < 0.5:
                    continue
            query = make_query(random)
            added.append((query_id, *query))
            active[query_id] = query
        reported.append((version, int(random.integers(1, 1 << 62)), removed, added))
        states.append(dict(active))
    return reported, states


def cut(random, reported, n_cuts=5):
    """The history in a few pieces, each applied at once."""
    cuts = sorted({0, len(reported), *random.integers(0, len(reported), n_cuts).tolist()})
    return [Changes.of(reported[start:end]) for start, end in itertools.pairwise(cuts)]


def active_at(reported, states, version):
    """The active queries at a version as a registry returns them: with their adding versions and the version's mark."""
    added = {query[0]: (at, query) for at, _, _, queries in reported[:version] for query in queries}
    revisions = sorted((added[query_id] for query_id in states[version]), key=lambda revision: revision[0])
    changes = Changes.of([(at, 0, [], [query]) for at, query in revisions])
    none = np.zeros(0, np.int64)
    return Changes(**{**vars(changes), "versions": none, "marks": none}), reported[version - 1][1]
