"""The proof that nothing is lost: a town writes, processes are killed, and an oracle compares what it saw.

Everything looks at the service from outside, as people and platforms do; `bot` alone is loaded by the service itself.
"""

from botservice.proving.proof import Plan, Proof, prove
from botservice.proving.table import write_table

__all__ = ["Plan", "Proof", "prove", "write_table"]
