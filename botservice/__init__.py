"""An agent for Telegram and Slack that remembers each chat, answers once and loses nothing.

`__init__.pyi` names what is offered, for type checkers and here: a module is imported when one of its names is first
used, so that commands begin at once.
"""

import lazy_loader

__version__ = "1.4.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
