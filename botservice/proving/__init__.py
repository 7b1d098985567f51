"""The proof that nothing is lost: a town writes, processes are killed, and an oracle compares what it saw.

Everything looks at the service from outside, as people and platforms do; `bot` alone is loaded by the service itself.
"""

from botservice.proving.proof import Proof, SimulationPlan, prove
from botservice.proving.table import write_table

__all__ = ["SimulationPlan", "Proof", "prove", "write_table"]
