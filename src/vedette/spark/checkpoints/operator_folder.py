"""The folder in which Spark keeps the state of one stateful operator, copied to another checkpoint or number."""

from __future__ import annotations

import json
import re

from vedette.spark.checkpoints.folder import Folder

STATE = "state"
_METADATA = "_metadata/v2"


def copy_before(old: Folder, work: Folder, operator: int, batch: int) -> None:
    """Copy what Spark needs to load the state before a micro-batch, as operator 0. Before the first, there is none."""
    if batch == 0:
        return
    for partition in old.list(f"{STATE}/{operator}"):
        source, target = f"{STATE}/{operator}/{partition}", f"{STATE}/0/{partition}"
        if not partition.isdecimal():
            old.copy(source, work, target)
            continue
        for file in old.list(source):
            found = re.match(r"\d+", file)
            if found is None or int(found[0]) <= batch:  # the state after a micro-batch has the next number
                old.copy(f"{source}/{file}", work, f"{target}/{file}")
    _rewrite_metadata(work, 0, work.address)


def move_to_operator(old: Folder, work: Folder, new: Folder, operator: int) -> None:
    """Give the state of operator 0 its own number, and copy the state of other operators beside it."""
    if operator != 0:
        work.rename_below(f"{STATE}/0", f"{STATE}/{operator}")
    for each in old.list(STATE):
        if each != str(operator):
            old.copy(f"{STATE}/{each}", work)
        _rewrite_metadata(work, int(each), new.address)


def _rewrite_metadata(work: Folder, operator: int, address: str) -> None:
    """Rewrite the number of an operator and the paths of its schema files, which are absolute."""
    for batch in work.list(f"{STATE}/{operator}/{_METADATA}"):
        name = f"{STATE}/{operator}/{_METADATA}/{batch}"
        version, text = work.read(name).split("\n", 1)
        content = json.loads(text)
        content["operatorInfo"]["operatorId"] = operator
        for store in content["stateStoreInfo"]:
            below = [path.rpartition(f"/{STATE}/")[2].partition("/")[2] for path in store["stateSchemaFilePaths"]]
            store["stateSchemaFilePaths"] = [f"{address}/{STATE}/{operator}/{path}" for path in below]
        work.write(name, f"{version}\n{json.dumps(content, separators=(',', ':'))}")
