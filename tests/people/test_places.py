"""The list of places that hold something of a person is whole."""

import re
from pathlib import Path

import pytest
from people.places import PLACES, WORDLESS

from botservice.storage.tables.columns import metadata

TESTS = Path(__file__).parents[1]


def test_every_column_of_every_table_is_in_the_list_once():
    """A new column makes this fail: say in places.py what of a person it holds, or that it cannot."""
    listed = [(place.where, column) for place in PLACES for column in place.columns]
    listed += [(table, column) for table, columns in WORDLESS.items() for column in columns]
    known = [(table.name, column.name) for table in metadata.sorted_tables for column in table.c]
    assert sorted(listed) == sorted(known)


@pytest.mark.parametrize("proof", sorted({place.proof for place in PLACES}))
def test_the_test_that_shows_it_is_there(proof):
    file, _, name = proof.partition("::")
    assert re.search(rf"^(async )?def {name}", (TESTS / file).read_text(), re.MULTILINE)
