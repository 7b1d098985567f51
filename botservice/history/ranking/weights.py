"""Every weight of the ranking, with its reason. Figures behind them: docs/search.md."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the ranking; a signal is scaled to its best message, so that weights compare."""

    k1: float = 0.9
    b: float = 0.3
    inflected: float = 0.9
    alike: float = 0.2
    misspelt: float = 0.8
    related: float = 0.4
    light_word: float = 0.7
    name_in_text: float = 0.4
    previous: float = 0.2
    next: float = 0.2
    further: float = 0.0
    after_question: float = 0.4
    window: float = 2.0
    onward_from_question: float = 0.95
    onward: float = 0.9
    backward: float = 0.9
    reach: float = 4
    author: float = 0.5
    author_alone: float = 0.1
    asker: float = 0.3
    listener: float = 0.3
    date: float = 1.0
    date_alone: float = 0.3
    question: float = 0.15
    user: float = 0.1
    repeat: float = 100.0
    when: float = 0.3
    how_many: float = 0.2
    dense: float = 1.0


DEFAULT: Final = Weights()
