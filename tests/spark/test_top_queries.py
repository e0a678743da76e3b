"""The queries with the most answers, as tasks report them and as they are added up."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from vedette.spark.workers.top_queries import MOST, TopQueries, read_top


@given(st.lists(st.lists(st.sampled_from([f"q{i}" for i in range(MOST)]), max_size=60), max_size=4))
def test_few_queries_are_counted_exactly_whatever_the_tasks_and_batches(tasks):
    ids = pa.array([f"q{i}" for i in range(MOST)])
    texts = []
    for number, task in enumerate(tasks):
        top = TopQueries()
        for part in (task[::2], task[1::2]):
            if number % 2:
                top.add_ids(pa.chunked_array([pa.array(part, pa.string()).dictionary_encode()]))
            else:
                top.add_positions(np.array([int(each[1:]) for each in part], np.int32), ids)
        texts.append(top.write(0))  # shards of one task

    expected = Counter(each for task in tasks for each in task)
    assert read_top("\n".join(filter(None, texts)), MOST) == dict(expected)


def test_a_report_has_the_most_frequent_of_many_queries():
    positions = np.repeat(np.arange(1000, dtype=np.int32), np.arange(1000))
    by_position, by_id = TopQueries(), TopQueries()
    by_position.add_positions(positions, pa.array(range(1000)))
    by_id.add_ids(pa.array(positions))

    expected = {str(999 - i): 999 - i for i in range(20)}
    assert read_top(by_position.write(0), 20) == read_top(by_id.write(0), 20) == expected
