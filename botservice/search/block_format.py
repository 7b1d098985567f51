"""How the words of a stretch of messages are divided into blocks."""

from typing import Final

BLOCKS: Final = 1024
FORMAT: Final = 1  # to be raised with every change of tokens, stems or their packing
