"""What OpenAI asks for its models, so that a budget of money works without looking that up."""

from typing import Final

from botservice.core.policies import Price, Prices, parse_prices

KNOWN_ON: Final = "2026-11-22"
"""When the prices were looked up."""
KNOWN_CURRENCY: Final = "USD"

_LONG_ABOVE: Final = 272_000  # tokens of a prompt, the same for every model here
# US dollars per million tokens: input/output/cached/written to the cache. What is not here has no price: a wrong one
# would be worse. Models before gpt-5.6 ask nothing more for what they keep.
# Source: developers.openai.com/api/docs/pricing and its pages of the models.
_DOLLARS: Final = """
gpt-5.5=5/30/0.5
gpt-5.6=5/30/0.5/6.25
gpt-5.6-sol=5/30/0.5/6.25
gpt-5.6-terra=2/12/0.2/2.5
gpt-5.6-luna=0.2/1.2/0.02/0.25
gpt-6-astra=10/50/1/12.5
gpt-6-sol=2/10/0.2/2.5
gpt-6-luna=0.1/0.5/0.01/0.125
gpt-6.1-sol=2/10/0.1/2.5
gpt-6.1-terra=1/5/0.05/1.25
"""
SEARCHES: Final = "web_search"
"""What stands in PRICES for searches of the web by a model's server: INPUT is the price of a million of them."""
_SEARCHES: Final = "web_search=10000/0"  # $10 for a thousand; what the model reads of them counts as its input
KNOWN_PRICES: Final[Prices] = {
    model: Price(price.input, price.output, price.cached, price.write, long_above=_LONG_ABOVE)
    for model, price in parse_prices(_DOLLARS).items()
} | dict(parse_prices(_SEARCHES))
"""For standard processing by OpenAI's own API."""
