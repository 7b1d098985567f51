"""Everything that is done before a person is forgotten, in any order."""

from people.deeds import elsewhere, repeating, slack, telegram

EVERY = (*telegram.DEEDS, *slack.DEEDS, *elsewhere.DEEDS, *repeating.DEEDS)
