"""Links that open a person's chat in a browser, and the logins that they leave, on both databases."""

import asyncio
from datetime import timedelta

from people.conversing import ALICE, ALICE_ON_SLACK, BOB, NOW

from botservice.people.identities import LINK_LIFETIME, LOGIN_LIFETIME, MOST_LINKS, MOST_LOGINS
from botservice.people.queries import (
    close_browser,
    close_browsers,
    count_browsers,
    ensure_identity,
    find_browser,
    find_identity,
    has_enough_links,
    join_identities,
    offer_browser,
    open_browser,
    part_identity,
)


async def test_a_link_opens_one_browser_and_the_login_lasts_thirty_days(storage):
    def run(connection):
        alice = ensure_identity(connection, ALICE, NOW)
        offer_browser(connection, alice, "link", NOW)
        assert open_browser(connection, "link", "cookie", NOW + LINK_LIFETIME) is None
        opened = open_browser(connection, "link", "cookie", NOW)
        assert open_browser(connection, "link", "another", NOW) is None
        assert find_browser(connection, "cookie", NOW) == opened
        assert find_browser(connection, "another", NOW) is None
        assert find_browser(connection, "cookie", NOW + LOGIN_LIFETIME) is None
        close_browser(connection, "cookie")
        assert find_browser(connection, "cookie", NOW) is None
        return alice, opened

    alice, opened = await storage.write(run)
    assert (opened.asker, opened.account) == (alice, f"p{alice.id}")


async def test_a_newer_link_takes_the_place_of_an_older_one_and_there_are_not_many(storage):
    def run(connection):
        alice, bob = ensure_identity(connection, ALICE, NOW), ensure_identity(connection, BOB, NOW)
        for number in range(MOST_LINKS):
            assert not has_enough_links(connection, alice, NOW)
            offer_browser(connection, alice, f"link {number}", NOW)
        assert has_enough_links(connection, alice, NOW)
        assert not has_enough_links(connection, bob, NOW)
        assert not has_enough_links(connection, alice, NOW + LINK_LIFETIME)
        opened = [open_browser(connection, f"link {number}", f"c{number}", NOW) for number in range(MOST_LINKS)]
        return [each is not None for each in opened]

    assert await storage.write(run) == [False] * (MOST_LINKS - 1) + [True]


async def test_the_newest_logins_stay(storage):
    def run(connection):
        alice = ensure_identity(connection, ALICE, NOW)
        for number in range(MOST_LOGINS + 2):
            now = NOW + timedelta(minutes=number)
            offer_browser(connection, alice, f"link {number}", now)
            open_browser(connection, f"link {number}", f"c{number}", now)
        found = [find_browser(connection, f"c{number}", now) is not None for number in range(MOST_LOGINS + 2)]
        return count_browsers(connection, alice.person_id, now), found

    assert await storage.write(run) == (MOST_LOGINS, [False] * 2 + [True] * MOST_LOGINS)


async def test_of_two_who_press_at_once_one_gets_in(storage):
    def offer(connection):
        offer_browser(connection, ensure_identity(connection, ALICE, NOW), "link", NOW)

    await storage.write(offer)
    presses = [storage.write(lambda c, name=name: open_browser(c, "link", name, NOW)) for name in ("one", "other")]
    assert sum(each is not None for each in await asyncio.gather(*presses)) == 1


async def test_linked_accounts_have_one_in_browsers_which_stays_with_whoever_made_it(storage):
    def run(connection):
        alice, slack = ensure_identity(connection, ALICE, NOW), ensure_identity(connection, ALICE_ON_SLACK, NOW)
        join_identities(connection, alice, slack)
        for each, name in ((ALICE, "a"), (ALICE_ON_SLACK, "b")):
            offer_browser(connection, find_identity(connection, each), name, NOW)
            open_browser(connection, name, name, NOW)
        accounts = {find_browser(connection, name, NOW).account for name in "ab"}
        assert part_identity(connection, find_identity(connection, ALICE), NOW)
        left = [find_browser(connection, name, NOW) is not None for name in "ab"]
        assert not part_identity(connection, find_identity(connection, ALICE), NOW), "with its own browser, it is alone"
        close_browsers(connection, find_identity(connection, ALICE).person_id)
        return accounts, alice.id, left, find_browser(connection, "a", NOW)

    accounts, alice, left, gone = await storage.write(run)
    assert accounts == {f"p{alice}"}
    assert left == [True, False]
    assert gone is None
