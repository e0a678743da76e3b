"""The functions that a query may call. To add one, add a row to a file in `functions/`: CONTRIBUTING.md has an example.

A row has the call as the documentation shows it, the rule that types its arguments, its evaluator, and one line of
documentation. Names and numbers of arguments come from the call. `document` writes the tables of docs/language.md.
"""

from __future__ import annotations

from vedette.language import time_arithmetic
from vedette.language.functions import (
    arrays,
    bits,
    byte_strings,
    choices,
    composition,
    conversions,
    formats,
    geofences,
    hashes,
    made_arrays,
    made_times,
    maps,
    mathematics,
    moved_times,
    now,
    numbers,
    regular_expressions,
    search,
    spark_hashes,
    strings,
    time_texts,
    times,
    urls,
)

SECTIONS = {  # of docs/language.md
    "numbers": numbers.FUNCTIONS,
    "mathematics": mathematics.FUNCTIONS,
    "bits": bits.FUNCTIONS,
    "choices": choices.FUNCTIONS,
    "conversions": conversions.FUNCTIONS,
    "strings": strings.FUNCTIONS,
    "composition": composition.FUNCTIONS,
    "search": search.FUNCTIONS,
    "regular expressions": regular_expressions.FUNCTIONS,
    "formats": (*formats.FUNCTIONS, *urls.FUNCTIONS),
    "hashes": (*hashes.FUNCTIONS, *spark_hashes.FUNCTIONS),
    "byte strings": byte_strings.FUNCTIONS,
    "times": (*times.FUNCTIONS, *moved_times.FUNCTIONS, *made_times.FUNCTIONS, *time_texts.FUNCTIONS, *now.FUNCTIONS),
    "arrays": (*arrays.FUNCTIONS, *made_arrays.FUNCTIONS),
    "maps": maps.FUNCTIONS,
    "geofences": geofences.FUNCTIONS,
}
TABLE = tuple(function for section in SECTIONS.values() for function in section)
FUNCTIONS = {name: each for each in TABLE for name in (each.name, *each.aliases)}
# Nodes of trees that are not functions: their evaluators, and how many arguments each has.
_OF_TWO = time_arithmetic.OPERATORS | made_times.OPERATORS | maps.OPERATORS
_OF_ONE = times.OPERATORS | time_texts.OPERATORS
OPERATORS = bits.OPERATORS | _OF_TWO | _OF_ONE
ARGUMENTS = dict.fromkeys(_OF_TWO, 2) | dict.fromkeys(_OF_ONE, 1)
EVALUATORS = {each.name: each.evaluate for each in TABLE if each.evaluate is not None} | OPERATORS
# Non-deterministic functions, refused by name.
RANDOM = ("rand", "random", "randn", "uuid", "monotonically_increasing_id")


def document(section: str) -> str:
    """The functions of a section as a table for docs/language.md."""
    rows = [
        f"| {', '.join(f'`{name}`' for name in (each.call, *each.aliases))} | {each.gives} |"
        for each in SECTIONS[section]
    ]
    return "\n".join(["| function | result |", "| --- | --- |", *rows])
