"""Every weight of the ranking, with its reason. What each brings is measured in docs/memory-quality.md.

A signal is scaled to its best message, so that weights compare. Most stand on a plateau: half or twice of it
moves recall by less than the noise.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights, each a plain number; the defaults are those of the product."""

    # Words (BM25). A message seldom repeats a word, so a second one adds little; a long one has many
    # words by chance.
    k1: float = 0.9
    b: float = 0.75
    longest: float = 2.0  # times the average: a pasted contract is found by one of its sentences, too

    # How much a match is worth against the very word that was asked for.
    inflected: float = 0.9  # "ran" for "run"
    related: float = 0.5  # "dog" for "pet": likely meant, less sure than the word itself
    misspelt: float = 0.8  # looks like a word that the chat does not have
    alike: float = 0.2  # looks like a word that the chat has: "feather" next to "weather", but also parts of compounds

    # How much a word of the question is worth next to its rarity.
    light_word: float = 0.7  # in the library's stopword list, which also has "work", "home" and "name"
    name_in_text: float = 0.4  # a name stands for its bearer; in a text it often only addresses them

    # The talk around a message.
    window: float = 2.0  # all words of the question in one stretch of talk: the strongest signal there is
    reach: int = 4  # messages to either side
    onward: float = 0.9  # what is left of a word from one message to the next
    onward_from_question: float = 0.95  # an answer belongs to its question
    backward: float = 0.9
    # Between two people; where the assistant answers, or one person goes on, a message stands more by itself.
    unshared: float = 0.5
    least_around: float = 0.2  # without a word of the question in itself, a message is found only in such company
    previous: float = 0.1
    next: float = 0.1
    after_question: float = 0.2

    # Who spoke, as a share of the score. More would lose what the other one says of them.
    author: float = 0.5  # a person named in the question
    author_alone: float = 0.1  # so that a name alone finds its bearer's messages
    asker: float = 0.3  # "I", "my"
    listener: float = 0.5  # "you", "your": the bot; as much as `user`, so that neither is preferred then
    user: float = 0.5  # what people say is the source; the bot repeats it, and its replies have many words
    question: float = 0.15  # taken away: a question seldom answers one

    # When.
    date: float = 1.5  # said in the days that the question names
    date_alone: float = 0.3  # so that "yesterday" alone finds something
    when: float = 0.3  # "when": messages with words of time

    # Facts that are said again: the newer message stands first where it has the same words of the question ...
    renewal_words: float = 0.9  # ... and the older one nearly as many of them as the best message
    renewal_score: float = 0.7  # ... and the newer one would be found near the older one anyway

    # Meaning, where there are vectors. Words and the talk around them stay the stronger signal; more of it loses
    # names, numbers and rare words, which vectors blur.
    # A best message that has such a share of what is asked for is certain; weaker words count less next to meaning.
    covered: float = 0.7
    dense: float = 1.0
    dense_window: float = 1.0  # the talk around: the answer to a question that means the same
    brief: float = 12  # tokens: a question of so many lends its meaning to the answer only; any two are alike in form
    least_similarity: float = 0.05  # to what is special about a message; below it, two texts are not related


DEFAULT: Final = Weights()
