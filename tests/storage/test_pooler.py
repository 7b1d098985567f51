"""A pooler in transaction mode breaks claims and LISTEN: it is found out before anything relies on them."""

import pytest
from standins.pooler import Pooler
from storage.writing import add, names

from botservice import Storage
from botservice.errors import UnsuitablePooler


@pytest.mark.parametrize("size", [1, 2, 4])
async def test_a_pooler_in_transaction_mode_is_refused_with_what_to_do(postgres_url, size):
    told = pytest.raises(UnsuitablePooler, match=r"transaction mode.*direct address.*session mode")
    with Pooler.running(postgres_url, mode="transaction", size=size) as pooler, told:
        await Storage.open(pooler.url)


async def test_a_pooler_in_session_mode_is_as_good_as_none(postgres_url):
    with Pooler.running(postgres_url, mode="session", size=8) as pooler:
        async with Storage.open(pooler.url) as one, Storage.open(postgres_url) as two:
            claim = await one.claims.try_claim(1)
            await one.write(add("a"), fence=claim)
            assert await two.claims.try_claim(1) is None
            assert await names(one) == ["a"]
