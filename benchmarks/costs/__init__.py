"""The parts of cost.py and frameworks.py: a model on loopback, the bare client, and what is measured with them."""
